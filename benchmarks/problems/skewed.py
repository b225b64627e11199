"""Skewed posteriors that lean on their bounds: beta, gamma, log-normal and truncated normal.

Marginals are cut at finite bounds, or those of positive numbers without an upper one; some members
are products of them, most are tied by a normal copula.

Notation
--------
F_i, f_i    distribution and density of coordinate i within its bounds
z_i         Phi^-1(F_i(x_i)), normal with correlation R:
            log f = sum log f_i - (log |R| + z^T (R^-1 - I) z) / 2
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import ndtr, ndtri

from benchmarks.problems.answers import Answers, density_problem, quadrature
from benchmarks.problems.base import Array, BenchmarkProblem, Marginal

Z_REACH = 8.0
TABLE_POINTS = 4001
NODES = 30  # panels of a quadrature over z
FAR_TAIL = 1e-5  # mass of a gamma or log-normal beyond its upper bound
TIED = 0.75  # share of members with a copula
LOADINGS = (0.6, 0.95)  # on a common factor; correlations are their products
PLAUSIBLE_LEVELS = (0.1, 0.9)


@dataclass(frozen=True, eq=False)
class CutMarginal:
    """A one-dimensional distribution within bounds, of which the upper one may be infinite."""

    distribution: Any  # frozen, of scipy.stats
    lower: float
    upper: float

    @cached_property
    def _levels(self) -> tuple[float, float]:
        return self.distribution.cdf(self.lower), self.distribution.cdf(self.upper)

    def cdf(self, x: Any) -> Any:
        low, high = self._levels
        return (self.distribution.cdf(x) - low) / (high - low)

    def log_density(self, x: Any) -> Any:
        low, high = self._levels
        return self.distribution.logpdf(x) - np.log(high - low)

    def quantile(self, level: Any) -> Any:
        low, high = self._levels
        return np.clip(self.distribution.ppf(low + (high - low) * level), self.lower, self.upper)

    @cached_property
    def _table(self) -> tuple[Array, Array]:
        z = np.linspace(-Z_REACH, Z_REACH, TABLE_POINTS)
        return z, self.quantile(ndtr(z))

    def of_normal(self, z: Array) -> Array:
        """The x that has the same level as a standard normal z."""
        return np.interp(z, *self._table)

    def tabulated(self) -> Marginal:
        z, x = self._table
        upper = self.upper if np.isfinite(self.upper) else x[-1]
        return Marginal.of_quantiles(
            np.concatenate([[self.lower], x[1:-1], [upper]]),
            np.concatenate([[0.0], ndtr(z[1:-1]), [1.0]]),
        )


def generate_skewed(name: str, D: int, generator: np.random.Generator) -> BenchmarkProblem:
    """A member of the family."""
    return _tied(name, [_random_marginal(generator) for _ in range(D)], generator)


def generate_positive(name: str, D: int, generator: np.random.Generator) -> BenchmarkProblem:
    """A member of the family of numbers that are positive, and may be zero for all one knows."""
    return _tied(name, [_random_positive(generator) for _ in range(D)], generator)


def _tied(
    name: str, marginals: list[CutMarginal], generator: np.random.Generator
) -> BenchmarkProblem:
    D = len(marginals)
    correlation = np.eye(D)
    if generator.uniform() < TIED:
        loadings = generator.uniform(*LOADINGS, size=D) * generator.choice([-1.0, 1.0], size=D)
        correlation = np.outer(loadings, loadings)
        np.fill_diagonal(correlation, 1.0)
    precision = np.linalg.inv(correlation) - np.eye(D)
    offset = float(generator.uniform(-20, 20))
    constant = offset - 0.5 * float(np.linalg.slogdet(correlation)[1])

    def log_density(x: Array) -> float:
        pairs = list(zip(marginals, x, strict=True))
        z = ndtri(np.clip([m.cdf(value) for m, value in pairs], 1e-300, 1 - 1e-16))
        separate = sum(float(m.log_density(value)) for m, value in pairs)
        return constant + separate - 0.5 * float(z @ precision @ z)

    lower, upper = np.array([m.lower for m in marginals]), np.array([m.upper for m in marginals])
    low, high = (np.array([m.quantile(p) for m in marginals]) for p in PLAUSIBLE_LEVELS)
    answers = _answers(marginals, correlation, offset)
    return density_problem(name, log_density, answers, low, high, (lower, upper))


def _random_marginal(generator: np.random.Generator) -> CutMarginal:
    scale = float(np.exp(generator.uniform(-1, 1)))
    kind = generator.integers(4)
    if kind == 0:
        a, b = generator.uniform(1.0, 2.0), generator.uniform(3.0, 8.0)
        a, b = (a, b) if generator.uniform() < 0.5 else (b, a)
        return CutMarginal(stats.beta(a, b, scale=scale), 0.0, scale)
    if kind == 1:
        gamma = stats.gamma(generator.uniform(1.0, 2.5), scale=scale)
        return CutMarginal(gamma, 0.0, float(gamma.isf(FAR_TAIL)))
    if kind == 2:
        log_normal = stats.lognorm(generator.uniform(0.5, 1.0), scale=scale)
        return CutMarginal(log_normal, 0.0, float(log_normal.isf(FAR_TAIL)))
    # The peak lies within an sd of the lower bound, on either side of it.
    return CutMarginal(stats.norm(generator.uniform(-1, 1) * scale, scale), 0.0, 6 * scale)


def _random_positive(generator: np.random.Generator) -> CutMarginal:
    scale = float(np.exp(generator.uniform(-2, 2)))
    distributions = (
        stats.expon(scale=scale),
        stats.halfnorm(scale=scale),
        stats.gamma(generator.uniform(0.7, 1.5), scale=scale),
        stats.lognorm(generator.uniform(0.5, 1.0), scale=scale),
    )
    return CutMarginal(distributions[generator.integers(4)], 0.0, np.inf)


def _answers(marginals: list[CutMarginal], correlation: Array, offset: float) -> Answers:
    z, weights = quadrature(-Z_REACH, Z_REACH, NODES)
    weights = weights * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
    values = np.array([m.of_normal(z) for m in marginals])  # (D, n)
    mean = values @ weights
    covariance = np.diag((values**2) @ weights - mean**2)
    for i, first in enumerate(values):
        for j in range(i):
            rho = correlation[i, j]
            second = marginals[j].of_normal(rho * z[:, None] + np.sqrt(1 - rho**2) * z)
            product = weights @ (first[:, None] * second) @ weights
            covariance[i, j] = covariance[j, i] = product - mean[i] * mean[j]
    return Answers(offset, mean, covariance, tuple(m.tabulated() for m in marginals))
