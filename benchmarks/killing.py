"""Processes that are killed: after a delay, or around one of their calls that change a file."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

WATCHED_CALLS = ("open", "write", "fsync", "ftruncate", "replace", "unlink", "mkdir")


def killed_child(action: Callable[[Callable[[], None]], None], delay: float | None) -> int:
    """Fork, run the action in the child, kill it after the delay; return its acknowledgements.

    Without a delay the child is expected to kill itself; -1 when it ended before.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _run_child(action, writing)
    os.close(writing)
    if delay is not None:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    with os.fdopen(reading, "rb") as pipe:
        acknowledged = len(pipe.read())
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise RuntimeError("the child failed by itself")
    return acknowledged if os.WIFSIGNALED(status) or delay is not None else -1


def _run_child(action: Callable[[Callable[[], None]], None], pipe: int) -> NoReturn:
    write = os.write  # before it is watched
    try:
        action(lambda: write(pipe, b".") and None)
        os._exit(0)
    except BaseException as error:
        write(2, f"{error!r}\n".encode())
        os._exit(1)


def kill_at_boundary(boundary: int) -> None:
    """Have this process killed around its n-th call that changes a file.

    Two boundaries belong to a call: before it, and inside, which for a write is after half of it.
    """
    number = itertools.count()
    for name in WATCHED_CALLS:
        setattr(os, name, _watched(getattr(os, name), number, boundary, halves=name == "write"))


def _watched(
    call: Callable[..., Any], number: Iterator[int], boundary: int, *, halves: bool
) -> Callable[..., Any]:
    def watched(*arguments: Any, **options: Any) -> Any:
        position = 2 * next(number)
        if position == boundary:
            os.kill(os.getpid(), signal.SIGKILL)
        if position + 1 == boundary:
            if halves:
                call(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                call(*arguments, **options)
            finally:
                os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments, **options)

    return watched
