"""What the samplers share: the prior as a map of the unit cube, and when they are looked at."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from scipy.special import ndtri

from benchmarks.problems.base import Array, BenchmarkProblem

N_SAMPLES = 20_000  # handed back for the marginals, as many as the other methods
FIRST_SNAPSHOT = 50  # evaluations
SNAPSHOTS_PER_DECADE = 16


def import_sampler(package: str) -> Any:
    """The package, or the error that names the extra it comes with."""
    try:
        return import_module(package)
    except ImportError as problem:
        # Here and not above: this module is also imported where sparing is not installed.
        from sparing.errors import MissingExtraError

        raise MissingExtraError(package, "benchmarks") from problem


def prior_quantile(problem: BenchmarkProblem, u: Array) -> Array:
    """Points (..., D) whose prior cumulative probabilities, coordinate by coordinate, are u."""
    if problem.hard_box is not None:  # a uniform prior
        return problem.lower + u * (problem.upper - problem.lower)
    return problem.prior_mean + problem.prior_sd * ndtri(u)


def snapshot_counts(budget: int) -> list[int]:
    """Numbers of evaluations, even in their logarithm, up to the budget."""
    decades = np.log10(max(budget / FIRST_SNAPSHOT, 1.0))
    counts = np.geomspace(budget, FIRST_SNAPSHOT, round(SNAPSHOTS_PER_DECADE * decades) + 1)
    return sorted({round(count) for count in counts})
