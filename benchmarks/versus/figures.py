"""The figures by which a method is compared with a baseline, problem by problem.

Notation
--------
N           the baseline's median number of evaluations at its end
n           number of evaluations
errors      (2,): medians of LML error and gsKL over the runs
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.problems.base import Array
from benchmarks.table import covered
from benchmarks.versus.runs import Group, Run, median

NEGLIGIBLE = 0.02  # errors below it count as none
TOLERANCE = 0.1  # the default of sparing.infer
BLUNDER = 1.0  # an error that makes a result useless


class Verdict(enum.Enum):
    NO_WORSE = "no worse"
    NEGLIGIBLE = f"both below {NEGLIGIBLE:g}"
    WORSE = "worse"


@dataclass(frozen=True, eq=False)
class CurvePoint:
    """Both methods after the same number of evaluations."""

    problem: str
    n: float
    errors: Array
    baseline_errors: Array

    @property
    def verdict(self) -> Verdict:
        if np.all(self.errors <= self.baseline_errors):
            return Verdict.NO_WORSE
        return Verdict.NEGLIGIBLE if np.all(self.errors < NEGLIGIBLE) else Verdict.WORSE


def curve_point(group: Group, baseline: Group, share: float) -> CurvePoint:
    """The comparison at a share of N."""
    n = share * baseline.evaluations
    return CurvePoint(group.problem, n, group.median_errors_at(n), baseline.median_errors_at(n))


@dataclass(frozen=True, eq=False)
class Reach:
    """Evaluations after which the method's median errors stay at or below the baseline's last."""

    problem: str
    targets: Array  # (2,), the baseline's median errors at its end
    needed: Array  # (2,), n for each error; infinite: never
    needed_negligible: Array  # (2,), with targets no smaller than NEGLIGIBLE
    baseline_evaluations: float  # N

    @property
    def ratio(self) -> float:
        """Evaluations for both errors, as a share of N."""
        return float(np.max(self.needed)) / self.baseline_evaluations

    @property
    def ratio_negligible(self) -> float:
        return float(np.max(self.needed_negligible)) / self.baseline_evaluations


def reach(group: Group, baseline: Group) -> Reach:
    targets = baseline.errors
    return Reach(
        group.problem,
        targets,
        evaluations_needed(group, targets),
        evaluations_needed(group, np.maximum(targets, NEGLIGIBLE)),
        baseline.evaluations,
    )


def evaluations_needed(group: Group, targets: Array) -> Array:
    """For each error (2,) the first n from which its median stays at or below the target."""
    medians = np.array([group.median_errors_at(n) for n in group.grid]).reshape(-1, 2)
    needed = []
    for column, target in zip(medians.T, targets, strict=True):
        above = np.flatnonzero(~(column <= target))
        first = above[-1] + 1 if len(above) else 0
        needed.append(group.grid[first] if first < len(group.grid) else math.inf)
    return np.array(needed)


@dataclass(frozen=True)
class CpuRatio:
    """Library CPU seconds per evaluation of both over the same number of evaluations."""

    problem: str
    n: int
    seconds: float
    baseline_seconds: float
    loop_ratio: float  # of the times up to evaluation n alone, without what follows the last

    @property
    def ratio(self) -> float:
        return self.seconds / self.baseline_seconds


def cpu_ratio(group: Group, baseline: Group) -> CpuRatio:
    """At the smaller of the two median numbers of evaluations at the end."""
    n = int(min(group.evaluations, baseline.evaluations))
    return CpuRatio(
        group.problem,
        n,
        cpu_per_evaluation(group, n),
        cpu_per_evaluation(baseline, n),
        _loop_cpu_per_evaluation(group, n) / _loop_cpu_per_evaluation(baseline, n),
    )


def cpu_per_evaluation(group: Group, n: int) -> float:
    """Median over the runs; one that ended by n counts with all it did."""
    counts = [(run, min(n, run.evaluations)) for run in _timed(group)]
    return median([run.cpu_at(count) / count for run, count in counts])


def _loop_cpu_per_evaluation(group: Group, n: int) -> float:
    """Median over the runs of the time before evaluation n, or before their last one."""
    counts = [(run, min(n, run.evaluations)) for run in _timed(group)]
    return median([run.cpu_at(count - 1) / count for run, count in counts])


def _timed(group: Group) -> list[Run]:
    return [run for run in group.finished if len(run.cpu_before)]


@dataclass(frozen=True)
class Honesty:
    """Whether a method's word can be trusted: its error bars and its claims of convergence."""

    n_runs: int
    n_failed: int
    n_with_sd: int  # those that report an sd of the log evidence
    n_covered: int  # |LML error| <= 2 sd
    n_converged: int
    n_blunders: int  # converged, with an error above BLUNDER
    n_above_tolerance: int  # converged, with an error above TOLERANCE

    @property
    def coverage(self) -> float:
        """Share of all runs; NaN for a method that reports no sd."""
        return self.n_covered / self.n_runs if self.n_with_sd else math.nan


def honesty(runs: Sequence[Run]) -> Honesty:
    """Over all runs; a failed one is not covered and claims nothing."""
    worst = np.array([np.nanmax(run.errors) for run in runs if run.converged])
    return Honesty(
        n_runs=len(runs),
        n_failed=sum(run.failed for run in runs),
        n_with_sd=sum(math.isfinite(run.sd) for run in runs),
        n_covered=sum(covered(float(run.errors[0]), run.sd) for run in runs),
        n_converged=len(worst),
        n_blunders=int(np.sum(worst > BLUNDER)),
        n_above_tolerance=int(np.sum(worst > TOLERANCE)),
    )


def median_sd(groups: Sequence[Group], largest_dimension: int) -> float:
    """Median reported sd over the runs on problems up to that dimension."""
    small = [group for group in groups if group.dimension <= largest_dimension]
    return median([run.sd for group in small for run in group.finished])
