"""An executor with a fresh process for every call, so that any call can be ended.

A worker of a process pool cannot be stopped without breaking the pool. Here each call has its
own process: a time limit, a cancelled future or a crash concern that call alone, and nothing a
call leaves behind (memory, global state, a poisoned library) reaches the next. It costs a few
milliseconds per call, nothing beside an expensive target. No process outlives this one (`guard`).

How the process is made (``start_method``):

    fork      the default on Linux. A copy of this process, so any callable works (a lambda, a
              closure) and large data are shared. It has only the thread that forked: a library
              whose threads hold a lock at that moment (a GPU runtime, OpenMP) may hang in it.
              The driver therefore forks between its own computations, in the thread that runs
              them; OpenBLAS and MKL restart their threads after a fork.
    spawn     the default elsewhere. A new interpreter, safe with every library, but the function
              and its data must be picklable and are imported again for each call (a second or so).
    forkserver  as spawn, from a small server process; quicker.
"""

from __future__ import annotations

import atexit
import functools
import math
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Any

from sparing.errors import SettingsError
from sparing.executors.child import PIECE, Child, keep_from_children, start_child
from sparing.executors.failures import TimedOutError, require_count

# Seconds between asking a process to end (SIGTERM) and ending it (SIGKILL). Also how long a
# process that has delivered its result may take to exit.
GRACE = 2.0

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has the second alone

# Seconds a new interpreter may take to import what the call needs, beyond the call's limit.
START_ALLOWANCE = 120.0

# How often the processes are looked at even if nothing is heard from them, in seconds: one
# whose own children hold its pipes open dies without a sound.
LOOK_EVERY = 1.0


class EndableFuture(Future[Any]):
    """A future whose ``cancel`` also ends a call that is running.

    For the base class it stays pending until its call has ended, hence cancellable.
    """

    cancel_ends_call = True
    started = False

    def running(self) -> bool:
        """Whether the call is being executed."""
        return self.started and not self.done()


@dataclass(eq=False)
class _Call:
    """A submitted call."""

    function: Callable[[], Any]
    time_limit: float | None
    future: EndableFuture = field(default_factory=EndableFuture)
    child: Child = field(init=False)  # once it runs
    deadline: float = math.inf  # when to do something about it, by time.monotonic()
    verdict: tuple[bool, Any] | None = None  # what the future will get once the process is gone
    signals: list[signal.Signals] = field(default_factory=list)  # still to be sent

    def expect_end(self, verdict: tuple[bool, Any], deadline: float) -> None:
        """Settled; from the deadline on, ask the process to end, then make it."""
        self.verdict = verdict
        self.signals = [signal.SIGTERM, KILL]
        self.deadline = deadline


class LocalProcesses(Executor):
    """Runs each call in a process of its own, at most `workers` at a time.

    workers       default: the number of CPUs
    start_method  "fork", "spawn" or "forkserver"; see the module's text

    A call past its limit gives TimedOutError, one whose process died WorkerDiedError.

    >>> with sparing.LocalProcesses(workers=2) as executor:
    ...     short = sparing.infer(problem, executor=executor, max_evaluations=12, progress=False)
    >>> len({entry.worker for entry in short.evaluations})  # a process for every evaluation
    12
    """

    def __init__(self, workers: int | None = None, *, start_method: str | None = None) -> None:
        n_workers = os.cpu_count() or 1 if workers is None else workers
        require_count("workers", n_workers, least=1)
        method = start_method or ("fork" if sys.platform == "linux" else "spawn")
        if method not in multiprocessing.get_all_start_methods():
            known = ", ".join(multiprocessing.get_all_start_methods())
            raise SettingsError([f"start_method must be one of {known}, not {method!r}"])
        self.n_workers = int(n_workers)
        self.start_method = method
        self._context = multiprocessing.get_context(method)
        # Reentrant: a signal handler of the driver may cancel while we hold it.
        self._lock = threading.RLock()
        self._waiting: deque[_Call] = deque()
        self._running: list[_Call] = []
        self._is_shut_down = False
        self._thread: threading.Thread | None = None
        # While there is a thread: what is written to the second wakes it.
        self._wake_pipe: tuple[socket.socket, socket.socket] | None = None
        _alive.add(self)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call fn(*args, **kwargs) in a process of its own.

        >>> with sparing.LocalProcesses(2) as executor:
        ...     futures = [executor.submit(pow, 2, exponent) for exponent in (3, 10)]
        ...     [future.result() for future in futures]
        [8, 1024]
        """
        return self.submit_limited(None, fn, *args, **kwargs)

    def submit_limited(
        self, time_limit: float | None, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        """As `submit`; the process is ended `time_limit` seconds after the call began.

        >>> with sparing.LocalProcesses(1) as executor:
        ...     executor.submit_limited(60.0, pow, 2, 10).result()
        1024
        """
        call = _Call(functools.partial(fn, *args, **kwargs), time_limit)
        with self._lock:
            if self._is_shut_down:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._waiting.append(call)
            self._start_waiting()  # here, not in the watcher: fork in the caller's thread
            if self._thread is None and self._running:
                self._start_watcher()
        call.future.add_done_callback(self._wake_on_cancel)
        self._wake()
        return call.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls. cancel_futures ends those that run, too.

        >>> import time
        >>> executor = sparing.LocalProcesses(1)
        >>> future = executor.submit(time.sleep, 60.0)
        >>> executor.shutdown(cancel_futures=True)
        >>> future.cancelled()
        True
        """
        with self._lock:
            self._is_shut_down = True
            calls = [*self._waiting, *self._running]
        if cancel_futures:
            for call in calls:
                call.future.cancel()
        self._wake()
        thread = self._thread
        if wait and thread is not None and thread is not threading.current_thread():
            thread.join()

    def __exit__(self, *exception: object) -> None:
        self.shutdown(wait=True, cancel_futures=exception[0] is not None)

    # ------------------------------------------------------------------ starting

    def _start_waiting(self) -> None:
        """Start calls while there is room, drop cancelled ones; with the lock held."""
        for call in [call for call in self._waiting if call.future.cancelled()]:
            self._waiting.remove(call)
            call.future.set_running_or_notify_cancel()
        while self._waiting and len(self._running) < self.n_workers:
            call = self._waiting.popleft()
            try:
                call.child = start_child(self._context, call.function)
            except Exception as error:
                if call.future.set_running_or_notify_cancel():
                    call.future.set_exception(error)
                continue
            call.future.started = True
            if call.time_limit is not None:
                call.deadline = time.monotonic() + call.time_limit + START_ALLOWANCE
            self._running.append(call)

    def _start_watcher(self) -> None:
        receiver, sender = self._wake_pipe = socket.socketpair()
        keep_from_children(receiver)
        keep_from_children(sender)
        self._thread = threading.Thread(
            target=self._watch, args=(receiver,), name="sparing-processes", daemon=True
        )
        self._thread.start()

    def _wake(self) -> None:
        with self._lock:
            if self._wake_pipe is not None:
                with suppress(BlockingIOError):  # it is full: the thread wakes up anyway
                    self._wake_pipe[1].send(b"\0")

    def _wake_on_cancel(self, future: Future[Any]) -> None:
        if future.cancelled():
            self._wake()

    # ------------------------------------------------------------------ watching

    def _watch(self, wake_receiver: socket.socket) -> None:
        """The watcher thread: collects results, keeps the limits, ends and buries processes.

        It ends when nothing is left to watch; the next submission starts another.
        """
        while True:
            with self._lock:
                self._start_waiting()
                if not self._running:
                    self._retire_watcher()
                    return
                running = list(self._running)
            ready = wait([wake_receiver, *map(_news, running)], timeout=_pause(running))
            if wake_receiver in ready:
                with suppress(BlockingIOError):
                    wake_receiver.recv(PIECE)
            for call in running:
                self._attend(call)

    def _retire_watcher(self) -> None:
        """With the lock held, so that a submission sees either a watcher or none."""
        self._thread = None
        for end in self._wake_pipe or ():
            end.close()
        self._wake_pipe = None

    def _attend(self, call: _Call) -> None:
        """Move one running call a step further: result, end of its process, burial."""
        child = call.child
        now = time.monotonic()
        dead = not child.process.is_alive()
        if call.verdict is None:
            while child.listen() and dead:
                pass  # all that it left
            if child.hears_ready():  # the time limit counts from here
                call.deadline = now + call.time_limit if call.time_limit else math.inf
                child.listen()
        if call.verdict is None and (dead or child.has_answer()):
            call.expect_end(child.receive(), now + GRACE)
            dead = not child.process.is_alive()
        elif call.verdict is None and call.future.cancelled():
            call.expect_end((False, None), now)
        elif call.verdict is None and now >= call.deadline:
            limit = f"the call took longer than {call.time_limit:g} s and its process was ended"
            call.expect_end((False, TimedOutError(limit)), now)
        if dead:
            self._bury(call)
        elif call.signals and now >= call.deadline:
            child.kill(call.signals.pop(0))
            call.deadline = now + GRACE

    def _bury(self, call: _Call) -> None:
        assert call.verdict is not None
        succeeded, result = call.verdict
        call.child.release()
        with self._lock:
            self._running.remove(call)
        if not call.future.set_running_or_notify_cancel():
            return
        if succeeded:
            call.future.set_result(result)
        else:
            call.future.set_exception(result)

    def _end_all(self) -> None:
        """At exit of the interpreter: leave no process behind."""
        with self._lock:
            self._is_shut_down = True
            running = list(self._running)
        for call in running:
            call.child.kill(KILL)


def _news(call: _Call) -> Any:
    """What to listen to: the result's pipe, and after that the end of the process."""
    return call.child.connection if call.verdict is None else call.child.process.sentinel


def _pause(running: list[_Call]) -> float:
    next_deadline = min(call.deadline for call in running)
    return min(max(next_deadline - time.monotonic(), 0.0), LOOK_EVERY)


_alive: weakref.WeakSet[LocalProcesses] = weakref.WeakSet()


@atexit.register
def _end_everything() -> None:
    # Runs before multiprocessing's own exit handler, which would wait for the processes.
    for executor in list(_alive):
        executor._end_all()  # pyright: ignore[reportPrivateUsage] (of this module)
