"""Can the problem be sent to another process? Asked before the first evaluation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sparing.executors.failures import UnpicklableProblemError
from sparing.problem.problem import Problem
from sparing.problem.user_values import function_name

Dumps = Callable[[Any], bytes]

# How far into an object the culprit is looked for.
MAX_DEPTH = 4


def check_picklable(problem: Problem, dumps: Dumps, executor_name: str) -> None:
    """UnpicklableProblemError, naming the part and what to do, unless `dumps` takes the problem."""
    try:
        dumps(problem)
    except Exception as error:
        path, part = _culprit(problem, "problem", dumps, MAX_DEPTH)
        name = function_name(part) if callable(part) else type(part).__name__
        raise UnpicklableProblemError(
            f"{executor_name} sends the problem to other processes, but {path} ({name}) cannot be "
            f"pickled: {error}. Either define it at the top level of a module, or let sparing "
            "start the processes with workers=N (the same as "
            "executor=LocalProcesses(workers=N)), which on Linux needs no pickling."
        ) from error


def _culprit(value: Any, path: str, dumps: Dumps, depth: int) -> tuple[str, Any]:
    """The innermost part that cannot be pickled, and the way to it."""
    if depth > 0:
        for part_path, part in _parts(value, path):
            try:
                dumps(part)
            except Exception:
                return _culprit(part, part_path, dumps, depth - 1)
    return path, value


def _parts(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, functools.partial):
        yield f"{path}.func", value.func
        yield from _parts(value.args, f"{path}.args")
        yield from _parts(value.keywords, f"{path}.keywords")
    elif isinstance(value, Mapping):
        yield from ((f"{path}[{key!r}]", part) for key, part in value.items())
    elif isinstance(value, list | tuple):
        yield from ((f"{path}[{index}]", part) for index, part in enumerate(value))
    elif not isinstance(value, type) and not hasattr(value, "__qualname__"):
        parts = getattr(value, "__dict__", {})
        yield from ((f"{path}.{name}", part) for name, part in parts.items())
        if hasattr(value, "__self__"):  # a bound method
            yield f"{path}.__self__", value.__self__
