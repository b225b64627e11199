"""Workers end when this process does, however it ends.

A closed terminal, a lack of memory or ``kill -9`` leave no time to end anybody. Two things do it
instead, each without a word from the worker, which may be deep in somebody's compiled code:

    the guard     a small process at the other end of a pipe that only this process can write to.
                  It is told the workers; when the pipe ends, it kills them and what they started.
    death signal  on Linux, the kernel's: it kills the worker at once, also where somebody has
                  killed the guard. It goes by the thread that started the worker, so only workers
                  of the main thread, which lasts, have it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

# A number for each worker, with a minus once it has ended. A worker that has not come to have a
# process group of its own yet is killed by itself.
SCRIPT = """
import os, sys
workers = set()
for line in sys.stdin:
    number = int(line)
    (workers.add if number > 0 else workers.discard)(abs(number))
for worker in workers:
    for kill in (os.killpg, os.kill):
        try:
            kill(worker, 9)
            break
        except OSError:
            pass
"""

SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>
# Looked up here: a forked child must not wait for the loader's lock.
_prctl = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None


class Guard:
    """The guard process, started with the first worker and there until this process ends."""

    def __init__(self) -> None:
        self._starting = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def watch(self, pid: int) -> None:
        """Kill this worker when this process ends."""
        if os.name == "nt":  # no process groups, and no signals, there
            return
        with self._starting, suppress(OSError):  # a run without a guard is better than none
            if self._process is None and sys.executable:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", SCRIPT],
                    bufsize=0,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # what the terminal sends is not for it
                )
        self._tell(pid)

    def forget(self, pid: int) -> None:
        """This worker has ended, and its number may become another's."""
        self._tell(-pid)

    def _tell(self, number: int) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError, ValueError):  # it was killed, or this process is a worker
                self._process.stdin.write(b"%d\n" % number)

    def leave(self) -> None:
        """In a forked child: the guard is its parent's, and the pipe must end with that one."""
        self._starting = threading.Lock()
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.returncode = 0  # nobody's child any more: nothing to wait for
        self._process = None


guard = Guard()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=guard.leave)


def ask_for_death_signal() -> None:
    """In a worker that the main thread started: to be killed when its parent ends."""
    if _prctl is not None:
        _prctl(SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
