"""One call in a process of its own: the child's side, and the parent's handle on it.

The child says that it is ready, then sends ``(succeeded, result or exception, traceback)``
pickled, and ends. Whatever it does instead (is killed, exits, sends nothing) the parent sees.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.process
import os
import pickle
import signal
import threading
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from typing import Any

from sparing.executors.failures import WorkerDiedError, describe_exit
from sparing.executors.guard import ask_for_death_signal, guard

READY = b"ready"


class ChildError(RuntimeError):
    """Stands for an exception, or a result, that could not be sent from the child."""


class _RemoteTraceback(Exception):  # noqa: N818 - shown as the cause, never raised
    """The child's traceback, so that it is printed with the exception."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


@dataclass(eq=False)
class Child:
    """A running child process and the end of the pipe to read from."""

    process: multiprocessing.process.BaseProcess
    connection: Connection

    def hears_ready(self) -> bool:
        """Whether the first message says that the call is about to be made."""
        try:
            return self.connection.recv_bytes() == READY
        except (EOFError, OSError):
            return False

    def receive(self) -> tuple[bool, Any]:
        """The child's message: its result, or the exception it raised or that explains it.

        Called when there is a message or the child is dead. A dead child's pipe does not end
        while processes that it forked hold it, so it is not read in the hope of an end.
        """
        try:
            message = self.connection.recv_bytes() if self.connection.poll() else None
        except (EOFError, OSError):  # it ended in the middle
            message = None
        if message is None:
            self.process.join(timeout=5.0)
            code = self.process.exitcode
            return False, WorkerDiedError(f"{describe_exit(code)} before it gave a result")
        try:
            succeeded, result, trace = pickle.loads(message)
        except Exception as error:
            return False, ChildError(f"the result cannot be read: {type(error).__name__}: {error}")
        if not succeeded:
            result.__cause__ = _RemoteTraceback(trace)
        return succeeded, result

    def kill(self, number: int) -> None:
        """Send a signal to the child and to the processes it started."""
        if self.process.pid is None or not self.process.is_alive():
            return
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg") and os.getpgid(self.process.pid) == self.process.pid:
                os.killpg(self.process.pid, number)
            else:
                os.kill(self.process.pid, number)

    def release(self) -> None:
        """Give back what the operating system holds for a child that has ended."""
        if self.process.pid is not None:
            guard.forget(self.process.pid)
        self.connection.close()
        self.process.join()
        self.process.close()


def start_child(context: BaseContext, call: Callable[[], Any]) -> Child:
    """Start a process that makes the call; raises what pickling raises where that is needed."""
    receiver, sender = context.Pipe(duplex=False)
    # Not a daemon: those may not have children of their own, and targets run simulators.
    by_main_thread = threading.current_thread() is threading.main_thread()
    process = context.Process(  # type: ignore[attr-defined]
        target=_child_main, args=(sender, call, by_main_thread), daemon=False
    )
    try:
        with warnings.catch_warnings():
            # From Python 3.12 on, about the threads that fork leaves behind (see LocalProcesses).
            warnings.filterwarnings("ignore", ".*multi-threaded.*fork", DeprecationWarning)
            process.start()
            assert process.pid is not None
            guard.watch(process.pid)
    except BaseException:
        receiver.close()
        if process.pid is not None:  # interrupted just after the start
            process.kill()
        raise
    finally:
        sender.close()  # only the child's copy is left: its end is the end of the pipe
    return Child(process, receiver)


def _child_main(sender: Connection, call: Callable[[], Any], by_main_thread: bool) -> None:
    """Make the call and send what it gave."""
    _detach()
    if by_main_thread:
        ask_for_death_signal()
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():  # before the guard or the kernel was told
        return
    with suppress(BrokenPipeError):
        sender.send_bytes(READY)
    trace = ""
    try:
        succeeded, result = True, call()
    except BaseException as error:
        trace = "".join(traceback.format_exception(error))
        succeeded, result = False, _sendable(error)
    try:
        message = pickle.dumps((succeeded, result, trace), protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        reason = f"the result ({type(result).__name__}) cannot be pickled: {error}"
        message = pickle.dumps((False, ChildError(reason), ""))
    with suppress(BrokenPipeError):  # the parent has gone
        sender.send_bytes(message)
    sender.close()


def _detach() -> None:
    """Leave the parent's terminal and forget its signal handlers, which fork copies.

    In a process group of its own neither the child nor a simulator it starts hears Ctrl-C, and
    both can be ended together.
    """
    if hasattr(os, "setpgid"):
        with suppress(OSError):
            os.setpgid(0, 0)
    if threading.current_thread() is threading.main_thread():
        with suppress(ValueError):
            signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _sendable(error: BaseException) -> BaseException:
    """The exception if it survives pickling, otherwise one that quotes it."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        try:
            return ChildError(f"{type(error).__qualname__}: {error}")
        except Exception:  # its str() fails as well
            return ChildError(type(error).__qualname__)
    return error
