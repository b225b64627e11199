"""What a benchmark problem is: a target, its prior, and the exact answers.

Notation
--------
D       dimensions
x       (D,) a point; every parameter is unbounded
p(x)    prior: independent normals, mean and SD the centre and half-width of the plausible box
        (Section 4, "Procedure": the plausible box lies one prior SD about the prior mean)
Z       evidence, the integral of likelihood times prior; LML = log Z
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import cumulative_trapezoid

Array = NDArray[np.float64]

# Separates the starting points from the streams methods derive from the same seed; without it
# a method's first uniform draws would repeat x0.
START_STREAM = 20180

PAPER_BUDGET_FACTOR = 50  # Section 4: 50 (D + 2) likelihood evaluations


@dataclass(frozen=True, eq=False)
class Marginal:
    """One exact posterior marginal, tabulated on a grid that holds all its mass.

    grid (m,) increasing; density (m,) normalised on it; cumulative (m,) from 0 to 1.
    """

    grid: Array
    density: Array
    cumulative: Array

    @classmethod
    def tabulate(cls, grid: Array, unnormalised_density: Array) -> Marginal:
        """Normalise by the trapezoid rule; the grid may be uneven."""
        cumulative = np.asarray(cumulative_trapezoid(unnormalised_density, grid, initial=0.0))
        mass = cumulative[-1]
        return cls(grid, unnormalised_density / mass, cumulative / mass)

    def density_at(self, x: ArrayLike) -> Array:
        return np.interp(np.asarray(x, dtype=float), self.grid, self.density, left=0.0, right=0.0)

    def cdf(self, x: ArrayLike) -> Array:
        return np.interp(np.asarray(x, dtype=float), self.grid, self.cumulative)

    def quantile(self, probability: ArrayLike) -> Array:
        return np.interp(np.asarray(probability, dtype=float), self.cumulative, self.grid)


@dataclass(frozen=True, eq=False)
class BenchmarkProblem:
    """A log likelihood and a normal prior, with the exact LML, moments and marginals."""

    name: str
    log_likelihood: Callable[[Array], float]
    prior_mean: Array  # (D,)
    prior_sd: Array  # (D,)
    log_evidence: float
    posterior_mean: Array  # (D,)
    posterior_covariance: Array  # (D, D)
    marginals: tuple[Marginal, ...]  # D of them

    @property
    def dimension(self) -> int:
        return len(self.prior_mean)

    @property
    def plausible_lower(self) -> Array:
        return self.prior_mean - self.prior_sd

    @property
    def plausible_upper(self) -> Array:
        return self.prior_mean + self.prior_sd

    @property
    def budget(self) -> int:
        """The paper's number of likelihood evaluations."""
        return PAPER_BUDGET_FACTOR * (self.dimension + 2)

    def log_prior(self, x: ArrayLike) -> float:
        z = (np.asarray(x, dtype=float).reshape(self.dimension) - self.prior_mean) / self.prior_sd
        return float(-0.5 * np.sum(z * z + np.log(2 * np.pi)) - np.sum(np.log(self.prior_sd)))

    def log_joint(self, x: ArrayLike) -> float:
        point = np.asarray(x, dtype=float).reshape(self.dimension)
        return self.log_likelihood(point) + self.log_prior(point)

    def starting_point(self, seed: int) -> Array:
        """Uniform in the plausible box (Section 4, "Procedure"), the same for every method."""
        generator = np.random.default_rng([START_STREAM, seed])
        return generator.uniform(self.plausible_lower, self.plausible_upper)
