"""Simple Monte Carlo (SMC): the likelihood averaged over draws from the prior.

Unbiased, and the yardstick of the comparison (Section 4, "Algorithms"). Where the posterior is
much narrower than the prior hardly a draw finds it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from benchmarks.methods.base import Estimate, LibraryClock
from benchmarks.methods.recording import Look, Record, estimate_with_surrogate, look_counts
from benchmarks.methods.sampling import prior_quantile
from benchmarks.problems.base import Array, BenchmarkProblem
from benchmarks.quadrature.evidence import Evidence, scaled_likelihoods
from sparing.numerics.random_streams import RandomStreams


def run_simple_monte_carlo(
    problem: BenchmarkProblem,
    log_joint: Callable[[Array], float],
    x0: Array,  # noqa: ARG001 (a draw that is not from the prior would bias the mean)
    seed: int,
    budget: int,
    clock: LibraryClock,
) -> Estimate:
    """One run; every evaluation is a draw from the prior."""
    generator = RandomStreams(seed).generator("simple Monte Carlo")
    record = Record(problem, log_joint, budget)
    with clock:
        looks = averages(record, budget, generator)
    return estimate_with_surrogate(record, looks, seed)


def averages(record: Record, budget: int, generator: np.random.Generator) -> list[Look]:
    """Draw from the prior, and average at every look."""
    for _ in range(budget):
        record.evaluate(prior_quantile(record.problem, generator.random(record.problem.dimension)))
    counts = look_counts(budget)
    return [Look(n, averaged_likelihood(record.log_likelihood[:n])) for n in counts]


def averaged_likelihood(log_likelihood: Array) -> Evidence:
    """The evidence from likelihoods at draws from the prior, (n,)."""
    likelihood, log_scale = scaled_likelihoods(log_likelihood)
    n = len(likelihood)
    variance_of_mean = float(np.var(likelihood, ddof=1)) / n if n > 1 else math.nan
    return Evidence.from_moments(float(likelihood.mean()), variance_of_mean, log_scale)
