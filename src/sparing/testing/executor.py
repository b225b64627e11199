"""Does an executor do what a run needs? A suite for those shipped here and for anyone's own.

    from concurrent.futures import ThreadPoolExecutor
    from sparing.testing import Abilities, check_executor

    check_executor(lambda: ThreadPoolExecutor(2), Abilities(outlives_workers=False))

Workers must see the same temporary directory as this process: targets meet there, by files, so
that no check depends on how fast anything is.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sparing.errors import SparingWarning
from sparing.executors import EvaluationPool, FailureKind, Outcome
from sparing.numerics.arrays import Array
from sparing.problem.evaluations import Proposal, Status
from sparing.problem.problem import Problem

# Seconds after which something that has to happen is taken not to happen.
PATIENCE = 60.0

# The limit of the check of time limits.
TIME_LIMIT = 1.0


@dataclass(frozen=True)
class Abilities:
    """What an executor is able to do; what it is not is not checked.

    parallel          runs at least two calls at a time
    outlives_workers  a worker that is killed is noticed and the executor, or another in its
                      place, goes on
    ends_calls        a call past its time limit ends, if it runs Python code, and frees its worker

    >>> from sparing.testing import Abilities
    >>> threads = Abilities(outlives_workers=False, ends_calls=False)
    """

    parallel: bool = True
    outlives_workers: bool = True
    ends_calls: bool = True


@dataclass(frozen=True)
class Target:
    """A log density that, depending on its first coordinate, misbehaves; importable by workers.

    0: returns -x_1^2 / 2.  1: raises.  2: returns NaN.  3: waits for a companion.
    4: waits until released.  5: kills its process once companions have started.
    """

    folder: str
    n_companions: int = 2

    def __call__(self, x: Array) -> float:
        """Note the call, then act."""
        kind, value = int(x[0]), float(x[1])
        folder = Path(self.folder)
        (folder / f"call-{value!r}-{uuid.uuid4().hex}").touch()
        if kind == 1:
            raise RuntimeError(f"no value at {value:g}")
        if kind == 2:
            return float("nan")
        if kind == 3 or kind == 5:
            (folder / f"here-{value!r}").touch()
            _wait_until(lambda: len(list(folder.glob("here-*"))) >= self.n_companions)
        if kind == 4:
            _wait_until((folder / "released").exists)
        if kind == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return -0.5 * value**2


def check_executor(
    make_executor: Callable[[], Any], abilities: Abilities | None = None, *, shut_down: bool = True
) -> None:
    """Run every check that the abilities call for; AssertionError says which one failed.

    make_executor gives what ``infer(executor=...)`` takes, and is called once per check. The
    executor is shut down after each; with shut_down=False it is left alone, so that the same
    one may be given every time.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from sparing.testing import Abilities, check_executor
    >>> threads = Abilities(outlives_workers=False, ends_calls=False)
    >>> check_executor(lambda: ThreadPoolExecutor(2), threads)
    """
    able = Abilities() if abilities is None else abilities
    checks: list[Callable[[Any, str], None]] = [_values, _failures, _equal_points, _one_by_one]
    if able.parallel:
        checks += [_overlap, _any_order]
    if able.outlives_workers:
        checks.append(_killed_worker)
    if able.ends_calls:
        checks.append(_time_limit)
    for check in checks:
        executor = make_executor()
        try:
            with tempfile.TemporaryDirectory(prefix="sparing-") as folder:
                check(executor, folder)
        except AssertionError as error:
            raise AssertionError(f"{check.__name__.strip('_')}: {error}") from error
        finally:
            if shut_down and executor is not None:
                executor.shutdown(wait=True)


def _values(executor: Any, folder: str) -> None:
    """Each point gets its own value, and the record of who evaluated it and when."""
    points = [0.1 * k for k in range(7)]
    outcomes = _evaluate(executor, folder, [(0, value) for value in points])
    for value in points:
        outcome = outcomes[value]
        assert outcome.status is Status.OK, f"status {outcome.status}: {outcome.message}"
        assert outcome.value == -0.5 * value**2, f"{outcome.value} at {value}"
        assert outcome.started <= outcome.ended, "it ended before it started"
        assert outcome.worker, "the worker is not named"
    assert _n_calls(folder) == len(points), "a point was evaluated more than once"


def _failures(executor: Any, folder: str) -> None:
    """Failures come back as such, once each, and leave the others alone."""
    outcomes = _evaluate(executor, folder, [(1, 1.0), (0, 2.0), (2, 3.0), (0, 4.0)])
    assert outcomes[1.0].kind is FailureKind.EXCEPTION, f"raised, but got {outcomes[1.0]}"
    assert "no value at 1" in outcomes[1.0].message, f"message {outcomes[1.0].message!r}"
    assert "RuntimeError" in outcomes[1.0].traceback, "the traceback is lost"
    assert outcomes[3.0].kind is FailureKind.INVALID_VALUE, f"NaN, but got {outcomes[3.0]}"
    assert outcomes[2.0].value == -2.0 and outcomes[4.0].value == -8.0, "wrong values"
    assert _n_calls(folder) == 4, "a failing call was repeated"


def _equal_points(executor: Any, folder: str) -> None:
    """Equal points are evaluated each time: the target may be stochastic."""
    with _pool(executor, folder) as pool:
        for identifier in range(3):
            pool.submit(Proposal(identifier, np.array([0.0, 1.5])))
        _gather(pool, 3)
    assert _n_calls(folder) == 3, f"3 equal points were evaluated {_n_calls(folder)} times"


def _one_by_one(executor: Any, folder: str) -> None:
    """A point can be submitted after others have finished."""
    with _pool(executor, folder) as pool:
        for identifier in range(3):
            pool.submit(Proposal(identifier, np.array([0.0, float(identifier)])))
            ((proposal, outcome),) = _gather(pool, 1)
            assert proposal.identifier == identifier, "an outcome of another point"
            assert outcome.value == -0.5 * identifier**2, f"value {outcome.value}"
        assert pool.n_in_flight == 0, "something is still in flight"


def _overlap(executor: Any, folder: str) -> None:
    """Two calls run at the same time: each waits until the other has started."""
    outcomes = _evaluate(executor, folder, [(3, 1.0), (3, 2.0)])
    first, second = outcomes[1.0], outcomes[2.0]
    for outcome in (first, second):
        assert outcome.status is Status.OK, f"no companion came: {outcome.message}"
    overlap = max(first.started, second.started) <= min(first.ended, second.ended)
    assert overlap, "the recorded times do not overlap"


def _any_order(executor: Any, folder: str) -> None:
    """What finishes first comes back first, whatever was submitted first."""
    with _pool(executor, folder) as pool:
        pool.submit(Proposal(0, np.array([4.0, 1.0])))
        pool.submit(Proposal(1, np.array([0.0, 2.0])))
        ((quick, _),) = _gather(pool, 1)
        Path(folder, "released").touch()
        ((slow, outcome),) = _gather(pool, 1)
    assert (quick.identifier, slow.identifier) == (1, 0), "the order of submission was kept"
    assert outcome.status is Status.OK, outcome.message


def _killed_worker(executor: Any, folder: str) -> None:
    """A killed worker is recorded against its point; its siblings and successors get values."""
    points = [(5, 1.0), (3, 2.0), (0, 3.0), (0, 4.0)]
    outcomes = _evaluate(executor, folder, points)
    victim = outcomes[1.0]
    assert victim.status is Status.FAILED, f"the killed call has status {victim.status}"
    assert victim.kind is FailureKind.WORKER_DIED, f"kind {victim.kind}: {victim.message}"
    for value in (2.0, 3.0, 4.0):
        outcome = outcomes[value]
        assert outcome.value == -0.5 * value**2, f"a sibling was lost: {outcome.message}"
    assert _n_calls(folder, 1.0) <= 2, "the call that kills was run more than twice"


def _time_limit(executor: Any, folder: str) -> None:
    """A call past its limit is given up and its worker evaluates again."""
    with warnings.catch_warnings(), _pool(executor, folder, TIME_LIMIT) as pool:
        warnings.simplefilter("error", SparingWarning)  # a worker that stays occupied
        n_hanging = pool.capacity
        for identifier in range(n_hanging):
            pool.submit(Proposal(identifier, np.array([4.0, float(identifier)])))
        for _, outcome in _gather(pool, n_hanging):
            assert outcome.status is Status.TIMED_OUT, f"hanging, but {outcome.status}"
        pool.submit(Proposal(n_hanging, np.array([0.0, 2.0])))
        ((_, outcome),) = _gather(pool, 1)
        assert outcome.value == -2.0, f"no value after a timeout: {outcome.message}"


# ---------------------------------------------------------------------- the checks' tools


def _pool(executor: Any, folder: str, time_limit: float | None = None) -> EvaluationPool:
    problem = Problem(Target(folder), [0.0, -5.0], [5.0, 5.0])
    return EvaluationPool(problem, executor, time_limit=time_limit)


def _evaluate(executor: Any, folder: str, points: list[tuple[int, float]]) -> dict[float, Outcome]:
    """Outcomes by the second coordinate."""
    with _pool(executor, folder) as pool:
        for identifier, (kind, value) in enumerate(points):
            pool.submit(Proposal(identifier, np.array([float(kind), value])))
        gathered = _gather(pool, len(points))
    return {float(proposal.x[1]): outcome for proposal, outcome in gathered}


def _gather(pool: EvaluationPool, n: int) -> list[tuple[Proposal, Outcome]]:
    gathered: list[tuple[Proposal, Outcome]] = []
    deadline = time.monotonic() + 2.0 * PATIENCE
    while len(gathered) < n:
        gathered += pool.wait(timeout=1.0)
        assert time.monotonic() < deadline, f"only {len(gathered)} of {n} outcomes came"
    return gathered


def _n_calls(folder: str, value: float | None = None) -> int:
    pattern = "call-*" if value is None else f"call-{value!r}-*"
    return len(list(Path(folder).glob(pattern)))


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("what was waited for did not happen")
        time.sleep(0.01)
