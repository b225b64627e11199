"""Rules by which one point is chosen, given the surrogate and the current posterior.

A rule is a frozen dataclass with a method and three facts: the name that is recorded with every
point it chose, whether that point is held out, to test the surrogate's error (`vbmc/held_out.py`),
and whether it reaches out for what the posterior may lack. `sparing.testing.rules` checks an
implementation.

    q       current posterior, working coordinates           D   dimension
    f, V    mean and variance of the surrogate (Eq. 10)      C   its covariance
    u       a point in working coordinates, (D,)

Acquisition functions a(x) are in log space, up to a constant: only their order matters.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from sparing.acquisition.cma_es import CmaEs
from sparing.acquisition.search import Criterion, ShrinkingClouds, search_box
from sparing.numerics.arrays import Array
from sparing.surrogate.interface import Surrogate
from sparing.variational.normal_mixture import (
    Mixture,
    NormalMixture,
    cholesky_factors,
    unchanged,
)

# Hyperparameter samples that choose a point, drawn anew for each. Their average matters for the
# posterior, hardly for which of many good points comes next. The paper takes all (Eq. 10).
FEW_SAMPLES = 3
ALL_SAMPLES = math.inf
VARIANCE_FLOOR = 1e-4  # V_reg, S2.1
MOST_REDRAWS = 20  # of draws beyond the edge of the support, before they are not stretched


class PointRule(Protocol):
    """Chooses one point."""

    @property
    def name(self) -> str:
        """What is recorded with the points it chose."""
        ...

    @property
    def held_out(self) -> bool:
        """Whether its points test the surrogate; unless it reaches out, they are draws from q."""
        ...

    @property
    def reaches_out(self) -> bool:
        """Whether it looks beyond q: then it is given the variational posterior in q as well."""
        ...

    def choose(
        self, surrogate: Surrogate, mixture: Mixture, generator: np.random.Generator
    ) -> Array:
        """The point: (D,), working coordinates. All randomness comes from the generator."""
        ...


@dataclass(frozen=True)
class SearchedRule(ABC):
    """A rule that chooses the maximum of an acquisition function."""

    search: ShrinkingClouds | CmaEs = ShrinkingClouds()
    n_samples: float = FEW_SAMPLES
    held_out: ClassVar[bool] = False
    reaches_out: ClassVar[bool] = False

    @abstractmethod
    def criterion(
        self, surrogate: Surrogate, mixture: Mixture, generator: np.random.Generator
    ) -> Criterion:
        """The log acquisition as a function of candidates, (m, D) -> (m,)."""

    def choose(
        self, surrogate: Surrogate, mixture: Mixture, generator: np.random.Generator
    ) -> Array:
        """Where the acquisition function is largest."""
        few = some_samples(surrogate, self.n_samples, generator)
        criterion = self.criterion(few, mixture, generator)

        def within(candidates: Array) -> Array:
            return np.where(mixture.contains(candidates), criterion(candidates), -np.inf)

        return self.search.maximise(within, mixture, search_box(surrogate, mixture), generator)


@dataclass(frozen=True)
class PointwiseRule(SearchedRule):
    """A rule whose acquisition function depends on q, f and V at the candidate alone."""

    @abstractmethod
    def log_acquisition(self, log_q: Array, mean: Array, variance: Array) -> Array:
        """Log a from log q, f and V, (m,) each: (m,)."""

    def criterion(
        self, surrogate: Surrogate, mixture: Mixture, generator: np.random.Generator
    ) -> Criterion:
        """Log a."""
        return lambda candidates: self.log_acquisition(
            mixture.log_density(candidates), *surrogate.predict(candidates)
        )


@dataclass(frozen=True)
class UncertaintySampling(PointwiseRule):
    """a_us with the regularisation of Eq. S22: V q^2 (Section 3.3)."""

    variance_floor: float = VARIANCE_FLOOR
    name: ClassVar[str] = "uncertainty sampling"

    def log_acquisition(self, log_q: Array, mean: Array, variance: Array) -> Array:
        """Log a_us."""
        value = log_positive(variance) + 2.0 * log_q
        return value + log_regularisation(variance, self.variance_floor)


@dataclass(frozen=True)
class ProspectiveSampling(PointwiseRule):
    """a_pro with the regularisation of Eq. S22: V q exp(f) (Section 3.3, Eq. 9)."""

    variance_floor: float = VARIANCE_FLOOR
    name: ClassVar[str] = "prospective uncertainty sampling"

    def log_acquisition(self, log_q: Array, mean: Array, variance: Array) -> Array:
        """Log a_pro."""
        value = log_positive(variance) + log_q + mean
        return value + log_regularisation(variance, self.variance_floor)


@dataclass(frozen=True)
class TemperedSampling(PointwiseRule):
    """a_pro with its density flattened, V (q exp(f))^temper: around the bulk, not at its peak.

    An upper confidence bound was tried and goes too far out: on heavy tails the surrogate then
    spends itself on regions without mass (docs/decisions/0007).
    """

    temper: float = 0.25
    name: ClassVar[str] = "tempered prospective uncertainty sampling"

    def log_acquisition(self, log_q: Array, mean: Array, variance: Array) -> Array:
        """Log V + temper log(q exp(f))."""
        return log_positive(variance) + self.temper * (log_q + mean)


@dataclass(frozen=True)
class Frontier(PointwiseRule):
    """The variance of exp(f), exp(2 f + V) (exp(V) - 1): where mass may be that nobody has seen.

    It weighs what a place would add to the evidence, and to the covariance (hence the distance), by
    how little is known about it, and reaches beyond q. V is cut at ``largest_variance``: further
    out the surrogate knows nothing.

    The maximum finds other modes, but in many dimensions it is near the top, where hardly any mass
    is. Where gradients are known, which leave few places to be surprised at, the point is a draw
    instead, by the standard deviation of exp(f) (docs/decisions/0017).
    """

    largest_variance: float = 9.0
    n_draws: int = 1024  # that the draw is chosen from, half of them widened
    widening: float = 1.5
    name: ClassVar[str] = "frontier"
    held_out: ClassVar[bool] = True  # the surrogate is tested where it knows least of what matters
    reaches_out: ClassVar[bool] = True

    def log_acquisition(self, log_q: Array, mean: Array, variance: Array) -> Array:
        """Log of the variance of a log-normal variable."""
        v = np.clip(variance, np.finfo(float).tiny, self.largest_variance)
        return 2.0 * mean + v + np.log(np.expm1(v))

    def criterion(
        self, surrogate: Surrogate, mixture: Mixture, generator: np.random.Generator
    ) -> Criterion:
        """Log a, and twice the log of what a place adds to the moments."""
        weight = moment_weight(mixture)
        pointwise = super().criterion(surrogate, mixture, generator)
        return lambda candidates: pointwise(candidates) + 2.0 * np.log(weight(candidates))

    def choose(
        self, surrogate: Surrogate, mixture: Mixture, generator: np.random.Generator
    ) -> Array:
        """The maximum, or the draw."""
        if surrogate.training.gradients is None:
            return super().choose(surrogate, mixture, generator)
        few = some_samples(surrogate, self.n_samples, generator)
        draws, log_density = self._proposed(mixture, generator)
        log_weights = 0.5 * self.criterion(few, mixture, generator)(draws) - log_density
        weights = np.exp(log_weights - log_weights.max())
        chosen = draws[generator.choice(len(draws), p=weights / weights.sum())]
        return np.clip(chosen, *search_box(surrogate, mixture))

    def _proposed(self, mixture: Mixture, generator: np.random.Generator) -> tuple[Array, Array]:
        """Draws from q and from q widened, and the log density of both together."""
        normal = unchanged(mixture)
        wide = NormalMixture(normal.weights, normal.means, self.widening * normal.factors)
        half = self.n_draws // 2
        plain = widened_draws(mixture, self.n_draws - half, 1.0, generator)
        draws = np.vstack([plain, widened_draws(mixture, half, self.widening, generator)])
        return draws, NormalMixture.union([normal, wide]).log_density(draws)


@dataclass(frozen=True)
class VarianceReduction(SearchedRule):
    """Integrated variance reduction: how much an evaluation would teach about the posterior.

        a(x) = mean over s of C(s, x)^2 / (V(x) + sigma_obs^2)

    is the exact drop of V(s) when x joins the training set, averaged over reference points s and
    over hyperparameter samples. Half of the references are drawn from q, half from q widened.
    """

    n_references: int = 128
    widening: float = 1.5
    name: ClassVar[str] = "integrated variance reduction"

    def criterion(
        self, surrogate: Surrogate, mixture: Mixture, generator: np.random.Generator
    ) -> Criterion:
        """Log a, with references drawn anew."""
        half = self.n_references // 2
        plain = widened_draws(mixture, self.n_references - half, 1.0, generator)
        wide = widened_draws(mixture, half, self.widening, generator)
        reduction = surrogate.variance_reduction(np.vstack([plain, wide]))
        return lambda candidates: log_positive(reduction(candidates))


@dataclass(frozen=True)
class PosteriorDraw:
    """A draw from the posterior, stretched about the mean of its component by ``widening``."""

    widening: float = 1.0
    name: ClassVar[str] = "draw from the posterior"
    held_out: ClassVar[bool] = True
    reaches_out: ClassVar[bool] = False

    def choose(
        self, surrogate: Surrogate, mixture: Mixture, generator: np.random.Generator
    ) -> Array:
        """The draw, within the box in which points are searched."""
        (draw,) = widened_draws(mixture, 1, self.widening, generator)
        return np.clip(draw, *search_box(surrogate, mixture))


@dataclass(frozen=True)
class EvenDraw:
    """A draw in which small parts of the posterior have more than their share.

    Components are drawn by the square roots of their weights, and stretched: a mode that has just
    been found may be larger than it seems.
    """

    widening: float = 1.5
    name: ClassVar[str] = "even draw from the posterior"
    held_out: ClassVar[bool] = True
    reaches_out: ClassVar[bool] = False

    def choose(
        self, surrogate: Surrogate, mixture: Mixture, generator: np.random.Generator
    ) -> Array:
        """The draw, within the box in which points are searched."""
        shares = np.sqrt(mixture.weights)
        (draw,) = stretched_draws(mixture, 1, shares / shares.sum(), self.widening, generator)
        return np.clip(draw, *search_box(surrogate, mixture))


Rule = (
    UncertaintySampling
    | ProspectiveSampling
    | TemperedSampling
    | Frontier
    | VarianceReduction
    | PosteriorDraw
    | EvenDraw
)


def moment_weight(mixture: Mixture) -> Criterion:
    """1 + |x - m|^2 / D, in units of q's covariance, as a function of points, (m, D) -> (m,)."""
    centre, factor = mixture.mean, cholesky_factors(mixture.covariance[None])[0]

    def weight(points: Array) -> Array:
        z = np.linalg.solve(factor, (points - centre).T)
        return 1.0 + np.mean(z * z, axis=0)

    return weight


def some_samples(
    surrogate: Surrogate, n_samples: float, generator: np.random.Generator
) -> Surrogate:
    """The surrogate with so many of its hyperparameter samples, drawn at random."""
    if n_samples >= surrogate.n_samples:
        return surrogate
    chosen = generator.choice(surrogate.n_samples, size=int(n_samples), replace=False)
    return surrogate.subset(chosen)


def widened_draws(mixture: Mixture, n: int, factor: float, generator: np.random.Generator) -> Array:
    """Draws from the posterior, each component stretched about its own mean: (n, D).

    About the mean of all of them a bent posterior would be stretched into the void.
    """
    return stretched_draws(mixture, n, mixture.weights, factor, generator)


def stretched_draws(
    mixture: Mixture, n: int, shares: Array, factor: float, generator: np.random.Generator
) -> Array:
    """The same from components in the given shares, (K,); within the support, where that is cut."""
    draws = np.empty((0, mixture.dimension))
    for _ in range(MOST_REDRAWS):
        component = generator.choice(mixture.n_components, size=n, p=shares)
        z = factor * generator.standard_normal((n, mixture.dimension))
        drawn = mixture.placed(component, z)
        draws = np.vstack([draws, drawn[mixture.contains(drawn)]])
        if len(draws) >= n:
            return draws[:n]
    return np.vstack([draws, mixture.sample(n - len(draws), generator)])


def log_regularisation(variance: Array, variance_floor: float) -> Array:
    """Log of the factor of Eq. S22: -(V_reg / V - 1) where V < V_reg, else 0."""
    safe = np.maximum(variance, np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        return np.where(variance < variance_floor, 1.0 - variance_floor / safe, 0.0)


def log_positive(values: Array) -> Array:
    """Log of values that rounding may have taken to zero."""
    return np.log(np.maximum(values, np.finfo(float).tiny))
