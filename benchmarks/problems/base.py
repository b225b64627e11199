"""What a benchmark problem is: a target, its prior, and the answers methods are judged by.

Notation
--------
D       dimensions
x       (D,) a point
p(x)    prior: independent normals, mean and SD the centre and half-width of the plausible box
        (Section 4, "Procedure": the plausible box lies one prior SD about the prior mean), or
        uniform in a hard box
Z       evidence, the integral of likelihood times prior; LML = log Z
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import cumulative_trapezoid
from scipy.special import ndtr

Array = NDArray[np.float64]
NoisyValue = tuple[float, float]  # a value and the standard deviation of its noise

# Separates the starting points from the streams methods derive from the same seed; without it
# a method's first uniform draws would repeat x0.
START_STREAM = 20180

DRAWN_REACH, DRAWN_POINTS = 4.5, 1001  # of a marginal that is known from draws

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

    @classmethod
    def of_draws(cls, draws: Array, weights: Array | None = None) -> Marginal:
        """From (weighted) draws (n,): their quantiles in even steps of a standard normal."""
        order = np.argsort(draws)
        mass = np.full(len(draws), 1.0) if weights is None else weights[order]
        cumulative = np.cumsum(mass) - 0.5 * mass
        levels = np.concatenate(
            [[0.0], ndtr(np.linspace(-DRAWN_REACH, DRAWN_REACH, DRAWN_POINTS)), [1.0]]
        )
        grid = np.interp(levels, cumulative / mass.sum(), draws[order])
        return cls.of_quantiles(grid, levels)

    @classmethod
    def of_quantiles(cls, grid: Array, levels: Array) -> Marginal:
        """From the quantiles (m,) at levels (m,) that rise from 0 to 1."""
        grid, first = np.unique(grid, return_index=True)  # far tails may repeat a number
        levels = levels[first] / levels[first[-1]]
        heights = np.diff(levels) / np.diff(grid)
        density = np.concatenate([heights[:1], 0.5 * (heights[1:] + heights[:-1]), heights[-1:]])
        return cls(grid, density, levels)

    def density_at(self, x: ArrayLike) -> Array:
        return np.interp(np.asarray(x, dtype=float), self.grid, self.density, left=0.0, right=0.0)

    def cdf(self, x: ArrayLike) -> Array:
        return np.interp(np.asarray(x, dtype=float), self.grid, self.cumulative)

    def quantile(self, probability: ArrayLike) -> Array:
        return np.interp(np.asarray(probability, dtype=float), self.cumulative, self.grid)


@dataclass(frozen=True, eq=False)
class Modes:
    """Separate parts of a posterior: their masses, and to which of them points belong.

    weights (K,) sum to one. memberships maps points (n, D) to the probabilities (n, K) that each
    belongs to each part; their mean over draws from the exact posterior is weights.
    """

    weights: Array
    memberships: Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class HardBox:
    """Bounds of a uniform prior, and the plausible box inside them; each array is (D,).

    Where an upper bound is infinite the prior is one, and what is called likelihood a density.
    """

    lower: Array
    upper: Array
    plausible_lower: Array
    plausible_upper: Array

    @property
    def mean(self) -> Array:
        return 0.5 * (self.lower + self._upper)

    @property
    def sd(self) -> Array:
        return (self._upper - self.lower) / np.sqrt(12)

    @property
    def _upper(self) -> Array:
        """The plausible one where there is no other."""
        return np.where(np.isfinite(self.upper), self.upper, self.plausible_upper)

    def log_density(self, x: Array) -> float:
        if np.all((self.lower <= x) & (x <= self.upper)):
            widths = (self.upper - self.lower)[np.isfinite(self.upper)]
            return -float(np.sum(np.log(widths)))
        return -np.inf


def normal_gradient(x: Array, mean: Array, sd: Array) -> Array:
    """Of the log density of independent normals at one point; each array is (D,)."""
    return -(x - mean) / sd**2


def normal_log_density(x: Array, mean: Array, sd: Array) -> float:
    """Of independent normals at one point; each array is (D,)."""
    z = (x - mean) / sd
    return float(-0.5 * np.sum(z * z + np.log(2 * np.pi)) - np.sum(np.log(sd)))


@dataclass(frozen=True, eq=False)
class BenchmarkProblem:
    """A log likelihood and a prior, with the LML, moments and, where known, the marginals.

    The prior is normal and the parameters are unbounded, unless there is a hard box: then the
    prior is uniform in it, and prior_mean and prior_sd are that uniform's.
    """

    name: str
    log_likelihood: Callable[[Array], float]
    prior_mean: Array  # (D,)
    prior_sd: Array  # (D,)
    log_evidence: float
    posterior_mean: Array  # (D,)
    posterior_covariance: Array  # (D, D)
    marginals: tuple[Marginal, ...] | None  # D of them; None where only moments are known
    hard_box: HardBox | None = None
    # Other estimates of the LML, by their origin, where the published one is not exact.
    log_evidence_alternatives: Mapping[str, float] = field(default_factory=dict)
    # Separate modes, where the posterior is made of such; None: it is not, or nobody knows.
    modes: Modes | None = None
    # Standard deviation of the log likelihood's noise at a point; None: it is exact.
    noise_sd: Callable[[Array], float] | None = None
    # Gradient (D,) of the log likelihood at a point; None where nobody has written it down.
    gradient: Callable[[Array], Array] | None = None

    @property
    def dimension(self) -> int:
        return len(self.prior_mean)

    @property
    def lower(self) -> Array:
        """Hard lower bounds, -inf where there is none."""
        return np.full(self.dimension, -np.inf) if self.hard_box is None else self.hard_box.lower

    @property
    def upper(self) -> Array:
        """Hard upper bounds, inf where there is none."""
        return np.full(self.dimension, np.inf) if self.hard_box is None else self.hard_box.upper

    @property
    def plausible_lower(self) -> Array:
        if self.hard_box is not None:
            return self.hard_box.plausible_lower
        return self.prior_mean - self.prior_sd

    @property
    def plausible_upper(self) -> Array:
        if self.hard_box is not None:
            return self.hard_box.plausible_upper
        return self.prior_mean + self.prior_sd

    @property
    def budget(self) -> int:
        """The paper's number of likelihood evaluations."""
        return PAPER_BUDGET_FACTOR * (self.dimension + 2)

    def log_prior(self, x: ArrayLike) -> float:
        point = np.asarray(x, dtype=float).reshape(self.dimension)
        if self.hard_box is not None:
            return self.hard_box.log_density(point)
        return normal_log_density(point, self.prior_mean, self.prior_sd)

    def log_joint(self, x: ArrayLike) -> float:
        """Log likelihood plus log prior; outside the hard box the likelihood is not called."""
        point = np.asarray(x, dtype=float).reshape(self.dimension)
        log_prior = self.log_prior(point)
        if log_prior == -np.inf:
            return log_prior
        return self.log_likelihood(point) + log_prior

    def log_joint_gradient(self, x: Array) -> Array:
        """Gradient (D,) of the log joint; a uniform prior has none."""
        assert self.gradient is not None, f"{self.name} has no gradient"
        likelihood = self.gradient(x)
        if self.hard_box is not None:
            return likelihood
        return likelihood + normal_gradient(x, self.prior_mean, self.prior_sd)

    def telling_noise(self, log_joint: Callable[[Array], float]) -> Callable[[Array], NoisyValue]:
        """The log joint with the standard deviation of its noise beside it."""
        noise_sd = self.noise_sd

        def estimate(x: Array) -> NoisyValue:
            return log_joint(x), 0.0 if noise_sd is None else noise_sd(np.ravel(x))

        return estimate

    def starting_point(self, seed: int) -> Array:
        """Uniform in the plausible box (Section 4, "Procedure"), the same for every method."""
        generator = np.random.default_rng([START_STREAM, seed])
        return generator.uniform(self.plausible_lower, self.plausible_upper)
