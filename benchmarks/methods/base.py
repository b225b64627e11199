"""What every method hands back, and the clock that measures the library alone."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import TracebackType
from typing import ParamSpec, TypeVar

from benchmarks.problems.base import Array, BenchmarkProblem

P = ParamSpec("P")
R = TypeVar("R")


class Environment(Enum):
    """Which Python a method runs in."""

    PROJECT = "project"
    PYVBMC = "pyvbmc"


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The estimate after one iteration; moments are absent where a method does not give them."""

    n_evaluations: int
    log_evidence: float  # the method's best estimate at that point
    mean: Array | None = None
    covariance: Array | None = None
    log_evidence_sd: float = math.nan


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a method returned for a problem."""

    log_evidence: float
    log_evidence_sd: float
    elbo: float
    elbo_sd: float
    mean: Array  # (D,)
    covariance: Array  # (D, D)
    samples: Array  # (n, D), for the marginals
    converged: bool
    snapshots: tuple[Snapshot, ...]
    version: str
    phase_seconds: Mapping[str, float] = field(default_factory=dict)


class LibraryClock:
    """Wall and CPU seconds inside ``with clock:``, less those inside excluded functions.

    ``exclude`` wraps the target and our own callbacks, so what remains is the library's overhead.
    """

    def __init__(self) -> None:
        self.wall = 0.0
        self.cpu = 0.0

    def __enter__(self) -> LibraryClock:
        self._add(-1.0)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._add(1.0)

    def exclude(self, function: Callable[P, R]) -> Callable[P, R]:
        def excluded(*args: P.args, **kwargs: P.kwargs) -> R:
            self._add(1.0)
            try:
                return function(*args, **kwargs)
            finally:
                self._add(-1.0)

        return excluded

    def _add(self, sign: float) -> None:
        self.wall += sign * time.perf_counter()
        self.cpu += sign * time.process_time()


# (problem, log joint to call, x0, seed, budget, clock) -> estimate
Run = Callable[
    [BenchmarkProblem, Callable[[Array], float], Array, int, int, LibraryClock], Estimate
]


@dataclass(frozen=True)
class Method:
    """A named way to run inference, and the environment it needs."""

    name: str
    environment: Environment
    run: Run
