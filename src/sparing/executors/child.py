"""One call in a process of its own: the child's side, and the parent's handle on it.

The child sends a mark to say that it is ready, then the mark again, a length, a checksum, and
``(succeeded, result or exception, traceback)`` pickled, and ends. Whatever it does instead (is
killed, exits, sends nothing or a part) the parent sees, and never waits for the rest. What the
call itself writes to a pipe that it happens to have is passed over.
"""

from __future__ import annotations

import multiprocessing.process
import os
import pickle
import secrets
import signal
import socket
import struct
import threading
import traceback
import warnings
import weakref
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.context import BaseContext
from typing import Any

from sparing.executors.failures import WorkerDiedError, describe_exit
from sparing.executors.guard import ask_for_death_signal, guard

# What begins every message, drawn for each child: nothing else that is written there has it.
MARK_BYTES = 16
HEADER = struct.Struct("!QI")  # of the message: bytes and CRC-32
PIECE = 1 << 20  # bytes read at a time
MOST_PIECES = 16  # read at a time from one child, so that the others have their turn


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
    connection: socket.socket  # without waiting
    mark: bytes
    received: bytearray = field(default_factory=bytearray)
    is_ready: bool = False  # what the call needs is imported
    has_ended: bool = False  # no more will come

    def listen(self) -> bool:
        """Take what has arrived; whether there may be more already."""
        for _ in range(MOST_PIECES):
            if self.has_ended or self._is_complete:
                return False
            try:
                piece = self.connection.recv(PIECE)
            except BlockingIOError:
                return False
            except OSError:
                piece = b""
            self.has_ended = not piece
            self.received += piece
            self._pass_over()
        return True

    def _pass_over(self) -> None:
        """Drop what comes before the mark; without one, the end may be its beginning."""
        start = self.received.find(self.mark)
        del self.received[: start if start >= 0 else 1 - MARK_BYTES]

    @property
    def _header(self) -> tuple[int, int]:
        """Length and checksum; the first is 2**64 while there is none."""
        if not self.is_ready or len(self.received) < MARK_BYTES + HEADER.size:
            return 1 << 64, 0
        return HEADER.unpack_from(self.received, MARK_BYTES)

    @property
    def _is_complete(self) -> bool:
        return len(self.received) >= MARK_BYTES + HEADER.size + self._header[0]

    def hears_ready(self) -> bool:
        """Whether the first mark has come, since the last time: the call is about to be made."""
        if self.is_ready or not self.received.startswith(self.mark):
            return False
        self.is_ready = True
        del self.received[:MARK_BYTES]
        self._pass_over()
        return True

    def has_answer(self) -> bool:
        """Whether `receive` has something to say."""
        return self._is_complete or self.has_ended

    def receive(self) -> tuple[bool, Any]:
        """The child's message: its result, or the exception it raised or that explains it.

        Called when there is an answer or the child is dead. A dead child's pipe does not end
        while processes that it forked hold it, so nobody waits for an end.
        """
        length, checksum = self._header
        message = memoryview(self.received)[MARK_BYTES + HEADER.size :][:length]
        if len(message) < length:
            self.process.join(timeout=5.0)
            code = self.process.exitcode
            return False, WorkerDiedError(f"{describe_exit(code)} before it gave a result")
        if zlib.crc32(message) != checksum:
            return False, WorkerDiedError("the worker's result was damaged on its way here")
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


def keep_from_children(end: socket.socket) -> None:
    """Nobody waits at this end, and forked children close it."""
    end.setblocking(False)
    _not_for_children.add(end)


# Ends of pipes that are this process's: what a child writes to them, or reads, others would miss.
_not_for_children: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def _close_in_child() -> None:
    for end in list(_not_for_children):
        end.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)


def start_child(context: BaseContext, call: Callable[[], Any]) -> Child:
    """Start a process that makes the call; raises what pickling raises where that is needed."""
    receiver, sender = socket.socketpair()
    keep_from_children(receiver)
    mark = secrets.token_bytes(MARK_BYTES)
    by_main_thread = threading.current_thread() is threading.main_thread()
    parent = None if context.get_start_method() == "forkserver" else os.getpid()
    # Not a daemon: those may not have children of their own, and targets run simulators.
    process = context.Process(  # type: ignore[attr-defined]
        target=_child_main, args=(sender, mark, call, parent, by_main_thread), daemon=False
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
    return Child(process, receiver, mark)


def _child_main(
    sender: socket.socket,
    mark: bytes,
    call: Callable[[], Any],
    parent: int | None,
    by_main_thread: bool,
) -> None:
    """Make the call and send what it gave."""
    _detach()
    if by_main_thread:
        ask_for_death_signal()
    if parent is not None and os.getppid() != parent:  # it ended before the guard was told
        return
    with suppress(OSError):
        sender.sendall(mark)
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
    with suppress(OSError):  # the parent has gone, or the target has closed it
        sender.sendall(mark + HEADER.pack(len(message), zlib.crc32(message)))
        sender.sendall(message)
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
