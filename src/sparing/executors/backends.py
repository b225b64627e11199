"""Each kind of executor as the pool sees it: its capacity, its pickling, its way to break.

A worker that dies takes others down in some executors: all calls of a process pool, the calls
on the other threads of a Dask worker. Those calls are suspects: one of them did it. They run
again in isolation, where whoever dies is guilty and everyone else delivers.
"""

from __future__ import annotations

import concurrent.futures
import functools
import importlib
import os
import pickle
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sparing.errors import SettingsError, SparingWarning
from sparing.executors.clusters import DaskExecutor, RayExecutor
from sparing.executors.failures import UnpicklableProblemError, describe_exit, require_count
from sparing.executors.local_processes import LocalProcesses
from sparing.executors.target_call import evaluate_remotely
from sparing.problem.problem import Problem
from sparing.problem.user_values import function_name

# How far into an object that cannot be pickled the culprit is looked for.
MAX_DEPTH = 4

# Seconds that a process found dead may take to be buried, so that its exit code is known.
BURIAL = 2.0

Dumps = Callable[[Any], bytes]
Arguments = tuple[Any, ...]  # (problem, x, identifier, spool_dir) of evaluate_remotely


@dataclass(eq=False)
class Backend:
    """Any `concurrent.futures.Executor`, of which only ``submit`` is used."""

    # Suspects of a dead worker run one after the other (in the same executor), or side by side.
    isolates_side_by_side: ClassVar[bool] = False
    # Whether the executor keeps the time limit; otherwise the pool's clock has to.
    keeps_time_limit: ClassVar[bool] = False

    executor: Any
    workers: int | None = None
    owned: bool = False  # made here, hence to be shut down here

    @property
    def name(self) -> str:
        """The executor's class, for messages."""
        return type(self.executor).__name__

    @property
    def capacity(self) -> int:
        """How many calls run at a time: as given, as the executor says, or the CPUs here."""
        if self.workers is not None:
            return self.workers
        for attribute in ("n_workers", "_max_workers", "num_workers"):
            number = getattr(self.executor, attribute, None)
            if isinstance(number, int) and number >= 1:
                return number
        return os.cpu_count() or 1

    @property
    def dumps(self) -> Dumps | None:
        """How the problem is pickled; None when it is not, or nobody knows."""
        if _has_base(self.executor, "mpi4py"):
            return pickle.dumps
        if isinstance(self.executor, DaskExecutor | RayExecutor):
            return _cloudpickle_dumps
        return None

    def check_picklable(self, problem: Problem) -> None:
        """UnpicklableProblemError, naming the part and what to do, unless it can be sent."""
        dumps = self.dumps
        if dumps is None:
            return
        try:
            dumps(problem)
        except Exception as error:
            path, part = _culprit(problem, "problem", dumps, MAX_DEPTH)
            name = function_name(part) if callable(part) else type(part).__name__
            raise UnpicklableProblemError(
                f"{self.name} sends the problem to other processes, but {path} ({name}) cannot be "
                f"pickled: {error}. Either define it at the top level of a module, or let sparing "
                "start the processes with workers=N (the same as "
                "executor=LocalProcesses(workers=N)), which on Linux needs no pickling."
            ) from error

    def submit(self, arguments: Arguments, time_limit: float | None) -> Future[Any]:
        """Start an evaluation; BrokenExecutor when that is impossible from now on."""
        return self.executor.submit(evaluate_remotely, *arguments, time_limit)

    def submit_isolated(self, arguments: Arguments, time_limit: float | None) -> Future[Any]:
        """Run a suspect again so that its end tells about itself."""
        return self.submit(arguments, time_limit)

    def replacement(self) -> Backend:
        """What to use once the executor is broken."""
        warnings.warn(
            f"{self.name} is broken and cannot be made again; evaluations go on in "
            f"{self.capacity} processes on this machine",
            SparingWarning,
            stacklevel=2,
        )
        return LocalBackend(LocalProcesses(self.capacity), owned=True)

    def describe_death(self, _future: Future[Any], /) -> str:
        """How the process of an isolated call ended, for people."""
        return describe_exit(None)

    def release(self, _future: Future[Any], /) -> None:
        """Forget a call that is done, isolated or not."""

    def end_calls(self) -> bool:
        """End what runs in a user's executor, at its cost; whether that is possible."""
        return False

    def close(self, cancel: bool) -> None:
        """Shut down what was made here; a user's executor stays as it is."""
        if self.owned:
            self.executor.shutdown(wait=True, cancel_futures=cancel)


class LocalBackend(Backend):
    """A process per call: nothing is shared, limits are kept by killing."""

    isolates_side_by_side: ClassVar[bool] = True
    keeps_time_limit: ClassVar[bool] = True

    @property
    def dumps(self) -> Dumps | None:
        """A forked process needs no pickling."""
        return None if self.executor.start_method == "fork" else pickle.dumps

    def submit(self, arguments: Arguments, time_limit: float | None) -> Future[Any]:
        """Start an evaluation in its own process."""
        return self.executor.submit_limited(time_limit, evaluate_remotely, *arguments, None)


def _exit_code(process: Any) -> int | None:
    """The exit code of a dead process, None when it cannot be had.

    The pool's own thread may be burying the same process: whichever of the two comes second finds
    nothing to wait for, and the code appears a moment later.
    """
    process.join(BURIAL)
    deadline = time.monotonic() + BURIAL
    while process.exitcode is None and time.monotonic() < deadline:
        time.sleep(0.005)
    return process.exitcode


@dataclass(eq=False)
class ProcessPoolBackend(Backend):
    """The standard library's pool, or loky's: broken as a whole by one dead worker.

    It can be made again from its own settings, and pools of one worker isolate suspects.
    """

    isolates_side_by_side: ClassVar[bool] = True

    # Pool and processes of each isolated call.
    _isolated: dict[Future[Any], tuple[Executor, tuple[Any, ...]]] = field(default_factory=dict)

    @property
    def dumps(self) -> Dumps | None:
        """Plain pickle, or loky's."""
        return _cloudpickle_dumps if _loky_class(self.executor) else pickle.dumps

    def submit_isolated(self, arguments: Arguments, time_limit: float | None) -> Future[Any]:
        """Run a suspect in a pool of one worker."""
        pool = self._copy(1)
        future = pool.submit(evaluate_remotely, *arguments, time_limit)
        self._isolated[future] = (pool, _processes(pool))
        return future

    def replacement(self) -> Backend:
        """The same pool again."""
        try:
            return ProcessPoolBackend(self._copy(self.capacity), self.workers, owned=True)
        except Exception:  # a subclass with arguments of its own
            return super().replacement()

    def describe_death(self, future: Future[Any], /) -> str:
        """From the exit code of the single worker."""
        _, processes = self._isolated.get(future, (None, ()))
        for process in processes:
            with suppress(Exception):  # a process object already closed
                return describe_exit(_exit_code(process))
        return describe_exit(None)

    def release(self, future: Future[Any], /) -> None:
        """Shut down the pool of an isolated call."""
        # Not in a callback of the future: the pool may hold its lock then.
        pool, _ = self._isolated.pop(future, (None, ()))
        if pool is not None:
            pool.shutdown(wait=True)

    def end_calls(self) -> bool:
        """End all workers, which breaks the pool."""
        processes = _processes(self.executor)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(BURIAL)
            if process.is_alive():  # it does not listen
                process.kill()
        return True

    def close(self, cancel: bool) -> None:
        """Shut down what was made here; what cannot be cancelled is ended."""
        own: list[Any] = [pool for pool, _ in self._isolated.values()]
        own += [self.executor] if self.owned else []
        for pool in own:
            if cancel and _loky_class(pool):
                pool.shutdown(wait=True, kill_workers=True)
                continue
            for process in _processes(pool) if cancel else ():
                process.terminate()
            pool.shutdown(wait=True)
        self._isolated.clear()

    def _copy(self, workers: int) -> Any:
        old = self.executor
        options: dict[str, Any] = {"max_workers": workers}
        options |= {"initializer": old._initializer, "initargs": old._initargs}
        if loky_class := _loky_class(old):
            return loky_class(context=old._context, env=old._env, **options)
        if getattr(old, "_max_tasks_per_child", None) is not None:
            options["max_tasks_per_child"] = old._max_tasks_per_child
        return type(old)(mp_context=old._mp_context, **options)


def make_backend(executor: Any, workers: int | None, time_limit: float | None) -> Backend | None:
    """The backend for what the user gave; None for evaluation in this process.

    A time limit without an executor means one worker process, since only that can be ended.
    """
    if workers is not None:
        require_count("workers", workers, least=1)
    if executor is None:
        if workers is None and time_limit is None:
            return None
        return LocalBackend(LocalProcesses(workers or 1), owned=True)
    if isinstance(executor, LocalProcesses):
        return LocalBackend(executor, workers)
    if isinstance(executor, concurrent.futures.ProcessPoolExecutor) or _loky_class(executor):
        return ProcessPoolBackend(executor, workers)
    if _has_base(executor, "distributed"):
        if hasattr(executor, "_client"):  # client.get_executor()
            return Backend(DaskExecutor(executor._client, **executor._kwargs), workers)
        return Backend(DaskExecutor(executor), workers)
    if not callable(getattr(executor, "submit", None)):
        given = type(executor).__name__
        raise SettingsError(
            [f"executor must be a concurrent.futures.Executor or a Dask client, not {given}"]
        )
    return Backend(executor, workers)


def _has_base(executor: Any, package: str) -> bool:
    """Whether its class, or one it derives from, comes from a package (which is not imported)."""
    return any(base.__module__.split(".")[0] == package for base in type(executor).__mro__)


def _loky_class(executor: Any) -> type | None:
    """loky's process pool class when the executor is one, also as bundled with joblib."""
    bases = type(executor).__mro__
    return next((b for b in bases if b.__module__.endswith("loky.process_executor")), None)


def _processes(pool: Any) -> tuple[Any, ...]:
    """The worker processes; a pool lists them only while it is intact."""
    return tuple((getattr(pool, "_processes", None) or {}).values())


def _cloudpickle_dumps(value: Any) -> bytes:
    """As loky, Dask and Ray do it; the first two depend on cloudpickle, Ray brings its own."""
    try:
        module = importlib.import_module("cloudpickle")
    except ImportError:
        module = importlib.import_module("ray.cloudpickle")
    return module.dumps(value)


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
