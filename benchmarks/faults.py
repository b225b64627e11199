"""What faults in the target cost: each kind injected at one evaluation in ten.

`python -m benchmarks faults`: the two-dimensional lumpy problem, every kind of fault, several
seeds; the LML error at the end of each run.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problems import load_problem
from benchmarks.problems.base import Array, BenchmarkProblem

SHARE = 0.1
TIME_LIMIT = 2.0


def _raise(_x: Array) -> Any:
    raise RuntimeError("the solver diverged")


def _hang(_x: Array) -> Any:
    time.sleep(3600.0)


def _die(_x: Array) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


FAULTS: dict[str, Callable[[Array], Any]] = {
    "raises": _raise,
    "NaN": lambda _x: float("nan"),
    "+inf": lambda _x: float("inf"),
    "-inf": lambda _x: float("-inf"),
    "None": lambda _x: None,
    "complex": lambda _x: 1.0 + 2.0j,
    "array of two": lambda _x: np.zeros(2),
    "1e300": lambda _x: 1e300,
    "-1e300": lambda _x: -1e300,
    "hangs": _hang,
    "worker killed": _die,
}
IN_WORKERS = {"hangs", "worker killed"}


@dataclass(frozen=True)
class FaultyTarget:
    """The target, failing at a share of points that depends on the point alone."""

    target: BenchmarkProblem
    fault: str

    def __call__(self, x: Array) -> Any:
        seed = int.from_bytes(np.asarray(x, dtype=np.float64).tobytes()[:8], "little")
        if np.random.default_rng(seed).random() < SHARE:
            return FAULTS[self.fault](x)
        return self.target.log_joint(x)


def run_fault(fault: str, seed: int, data: Path | None, name: str) -> tuple[float, int, int]:
    """LML error, evaluations without a value, and evaluations of one run."""
    import sparing

    target = load_problem(name, data)
    problem = sparing.Problem(
        FaultyTarget(target, fault), target.plausible_lower, target.plausible_upper
    )
    in_workers = fault in IN_WORKERS
    result = sparing.infer(
        problem,
        x0=target.starting_point(seed),
        seed=seed,
        progress=False,
        workers=1 if in_workers else None,
        time_limit=TIME_LIMIT if in_workers else None,
    )
    n_failed = sum(entry.status is not sparing.Status.OK for entry in result.evaluations)
    error = abs(result.log_evidence - target.log_evidence)
    return error, n_failed, result.n_evaluations


def campaign(seeds: int, data: Path | None, name: str) -> None:
    print("| fault | median LML error | worst | without a value | evaluations |")
    print("| --- | --- | --- | --- | --- |")
    for fault in FAULTS:
        runs = [run_fault(fault, seed, data, name) for seed in range(1, seeds + 1)]
        errors = [error for error, _, _ in runs]
        failed = sum(count for _, count, _ in runs)
        total = sum(count for _, _, count in runs)
        print(
            f"| {fault} | {np.median(errors):.4f} | {max(errors):.4f} | {failed} | {total} |",
            flush=True,
        )
