"""Draws from a problem's exact posterior, whatever the problem.

Importance sampling from Student's t with the exact posterior's moments, which every problem knows.

Notation: m draws, w their weights, ESS = (sum w)^2 / sum w^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import multivariate_t

from benchmarks.errors import BenchmarkError
from benchmarks.figures.recorded_runs import Source
from benchmarks.figures.solutions import kept_path
from benchmarks.problems.base import Array, BenchmarkProblem

N_DRAWS = 20_000
DEGREES_OF_FREEDOM = 5.0  # tails heavier than those of every problem but Student's own
SMALLEST_ESS = 500.0  # below it contours are noise
SEED = 0


@dataclass(frozen=True, eq=False)
class WeightedDraws:
    """points (m, D), weights (m,) with the sum one."""

    points: Array
    weights: Array

    @property
    def effective_sample_size(self) -> float:
        return float(1.0 / np.sum(self.weights**2))


def exact_draws(source: Source, problem: BenchmarkProblem) -> WeightedDraws:
    """The draws kept in the campaign's directory, or new ones."""
    path = kept_path(source, f"{problem.name}_exact.npz")
    if path.exists():
        with np.load(path) as kept:
            return WeightedDraws(kept["points"], kept["weights"])
    source.report(f"drawing from the exact posterior of {problem.name}, {N_DRAWS:,} evaluations")
    draws = draw_exactly(problem, N_DRAWS)
    np.savez(path, points=draws.points, weights=draws.weights)
    return draws


def draw_exactly(problem: BenchmarkProblem, n: int) -> WeightedDraws:
    """n weighted draws; an error where too few of them carry the weight."""
    proposal = multivariate_t(
        problem.posterior_mean,
        problem.posterior_covariance,
        df=DEGREES_OF_FREEDOM,
        seed=np.random.default_rng(SEED),
    )
    points = proposal.rvs(n).reshape(n, problem.dimension)
    log_joint = np.array([problem.log_joint(x) for x in points])
    log_weights = log_joint - proposal.logpdf(points)
    weights = np.exp(log_weights - log_weights.max())
    draws = WeightedDraws(points, weights / weights.sum())
    if draws.effective_sample_size < SMALLEST_ESS:
        raise BenchmarkError(
            f"{n} draws from the exact posterior of {problem.name} are worth only "
            f"{draws.effective_sample_size:.0f}: a Student's t with its moments is too unlike it"
        )
    return draws
