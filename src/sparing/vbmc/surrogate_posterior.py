"""The posterior of the surrogate and its integral, by sampling that adapts to it.

q has one shape for all its components and stays where it has grown: the surrogate knows more than
it can say. Here q is the first proposal only. Draws are weighted by the surrogate, a mixture of
normals of any shape is fitted to them, and that is the next proposal (docs/decisions/0013).

    log density    g(x) = f(x) + c min(V(x), 2) / 2 - max(V(x) - 4, 0) / 2
    evidence       log Z = log mean_i w_i,    w_i = exp(g(x_i)) / p(x_i),    x_i ~ p

The mean of exp(f) is exp(f + V / 2), if the surrogate is right about itself: c says how far its own
values bear that out (belief.py). Where it hardly knows, a peak it makes up has no mass
(docs/decisions/0018).

Notation (N draws, K components, S hyperparameter samples)
    f, V    mean and variance of the surrogate, marginal over its samples
    p       the proposal: a mixture of t distributions
    h_k     control variates N_k(x) / p(x), whose expectation is one
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaincinv, gammaln, ndtri

from sparing.numerics.arrays import Array
from sparing.numerics.quasi_random import scrambled_halton
from sparing.surrogate.interface import Surrogate
from sparing.surrogate.known_support import AnySupport
from sparing.variational.expectation_maximisation import fitted_mixture
from sparing.variational.normal_mixture import BLOCK, NormalMixture, log_sum_rows
from sparing.vbmc.belief import belief_in
from sparing.vbmc.importance import log_sum, pareto_smooth

# Up to where V enters in full, in nats squared; from twice that on the surrogate is doubted. And
# what a cautious reader would believe, to whom everything beyond is an error.
LARGEST_VARIANCE = 2.0
CAUTIOUS_VARIANCE = 0.5
LARGEST_HOPE = 6.0  # variance up to which mass is not excluded
LARGEST_SURPRISE = 6.0  # nats
BELIEVED_VARIANCE = 4.0  # mass where V is larger is not taken for a finding
# How much of what the surrogate does not exclude counts as a standard deviation: it is there or it
# is not, and mostly it is not.
DOUBTED_SHARE = 0.25
DEGREES = 5.0  # of freedom of the proposal's t distributions
FEW_SAMPLES = 2  # hyperparameter samples where many points are looked at
N_EM_STEPS = 5
# Other supports that the evaluations allow, and the margin beyond which all of them agree.
N_ALTERNATIVES, NEAR_EDGE = 64, 3.0
DRAWS_PER_PARAMETER = 4.0  # effective draws for each row of a component's covariance


@dataclass(frozen=True, eq=False)
class Density:
    """f, V and g of a surrogate, and where they hold."""

    surrogate: Surrogate
    inflation: float = 1.0  # of V, by what held-out draws show
    support: AnySupport | None = None

    def margin(self, points: Array) -> Array:
        """That of the support, (N,); infinite without one."""
        return np.full(len(points), np.inf) if self.support is None else self.support.margin(points)

    @cached_property
    def belief(self) -> float:
        """c."""
        return belief_in(self._one)

    def log_density(self, mean: Array, variance: Array) -> Array:
        """g from f and V."""
        return believed(mean, variance, belief=self.belief)

    def moments(self, points: Array) -> tuple[Array, Array]:
        """f and V, (N,) each."""
        values = self.surrogate.expansion.values(points)
        return values.mean(axis=0), self._variance_within(points) + values.var(axis=0)

    def hopeful(self, points: Array) -> Array:
        """Log of the mean of exp(f), up to a limit: what the surrogate does not exclude, (N,)."""
        return hopeful(*self.quick_moments(points))

    def bold(self, points: Array) -> Array:
        """Two standard deviations above f, up to a limit: where a wrong surrogate would hurt."""
        mean, variance = self.quick_moments(points)
        return mean + np.minimum(2.0 * np.sqrt(variance), LARGEST_SURPRISE)

    def quick_moments(self, points: Array) -> tuple[Array, Array]:
        """f and V, inflated, of few hyperparameter samples; -inf where the density is zero."""
        few = self.surrogate.subset(np.arange(min(FEW_SAMPLES, self.surrogate.n_samples)))
        mean = few.expansion.values(points).mean(axis=0)
        mean = np.where(self.margin(points) > -1.0, mean, -np.inf)
        return mean, self.inflation * np.maximum(self._variance_within(points), 0.0)

    @cached_property
    def _one(self) -> Surrogate:
        """With one hyperparameter sample: variances are alike for all, and take the time."""
        return self.surrogate.subset(np.arange(1))

    def _variance_within(self, points: Array) -> Array:
        """That of one hyperparameter sample, (N,)."""
        blocks = (points[i : i + BLOCK] for i in range(0, len(points), BLOCK))
        parts = (self._one.predict_each(block)[1][0] for block in blocks)
        return np.concatenate([np.empty(0), *parts])


def believed(
    mean: Array, variance: Array, largest: float = LARGEST_VARIANCE, belief: float = 1.0
) -> Array:
    """g from f and V, with another largest variance than g's where one is given."""
    doubted = np.maximum(variance - 2.0 * largest, 0.0)
    return mean + 0.5 * belief * np.minimum(variance, largest) - 0.5 * doubted


def hopeful(mean: Array, variance: Array) -> Array:
    """Log of the mean of exp(f), up to a limit: what the surrogate does not exclude."""
    return mean + 0.5 * np.minimum(variance, LARGEST_HOPE)


@dataclass(frozen=True, eq=False)
class HeavyTailed:
    """A mixture whose normals are replaced by t distributions of the same centres and shapes."""

    mixture: NormalMixture

    def sample(self, n: int, generator: np.random.Generator) -> Array:
        """Evenly spread draws, (n, D): a Halton sequence, shifted at random."""
        dimension = self.mixture.dimension
        unit = scrambled_halton(n, dimension + 2) + generator.random(dimension + 2)
        unit = np.clip(unit % 1.0, 1e-12, 1.0 - 1e-12)
        cumulative = np.cumsum(self.mixture.weights)
        component = np.searchsorted(cumulative, unit[:, 0] * cumulative[-1], side="right")
        component = np.minimum(component, self.mixture.n_components - 1)
        chi_squared = 2.0 * gammaincinv(0.5 * DEGREES, unit[:, 1])
        z = ndtri(unit[:, 2:]) * np.sqrt(DEGREES / chi_squared)[:, None]
        return self.mixture.placed(component, z)

    def log_densities(self, points: Array) -> tuple[Array, Array]:
        """log p, (N,), and log N_k / p, (N, K)."""
        mixture, D = self.mixture, self.mixture.dimension
        constant = gammaln(0.5 * (DEGREES + D)) - gammaln(0.5 * DEGREES)
        constant -= 0.5 * D * np.log(0.5 * DEGREES)
        log_p, log_ratios = np.empty(len(points)), np.empty((len(points), mixture.n_components))
        for first in range(0, len(points), BLOCK):
            rows = slice(first, first + BLOCK)
            squares = mixture.squared_distances(points[rows])
            normal = mixture.log_heights - 0.5 * squares  # log w_k N_k
            heavier = constant - 0.5 * (DEGREES + D) * np.log1p(squares / DEGREES) + 0.5 * squares
            log_p[rows] = log_sum_rows(normal + heavier)
            log_ratios[rows] = normal - np.log(mixture.weights) - log_p[rows, None]
        return log_p, log_ratios


@dataclass(frozen=True, eq=False)
class WeightedSample:
    """Draws from a proposal, with their log weights and what they say of the integral."""

    points: Array
    variance: Array  # V at the points
    probabilities: Array
    log_evidence: float
    monte_carlo_sd: float
    curvature: float  # what mass that is not excluded adds to a cautious log evidence
    pareto_k: float
    edge_sd: float = 0.0  # of the log evidence, by what is not known of the edge of the support
    support: AnySupport | None = None

    @property
    def effective_size(self) -> float:
        """Of how many equally weighted draws it is worth."""
        return 1.0 / float(self.probabilities @ self.probabilities)

    def equally_weighted(self, n: int, generator: np.random.Generator) -> Array:
        """Draws of equal weight, (n, D)."""
        cumulative = np.cumsum(self.probabilities)
        even = (np.arange(n) + generator.random()) / n * cumulative[-1]
        return self.points[np.minimum(np.searchsorted(cumulative, even), len(self.points) - 1)]

    def mixture(self, largest_n_components: int, generator: np.random.Generator) -> NormalMixture:
        """Fitted to the draws; as many components as they support."""
        dimension = self.points.shape[1]
        supported = int(self.effective_size / (DRAWS_PER_PARAMETER * (dimension + 1)))
        n_components = max(1, min(largest_n_components, supported))
        points, probabilities, contains = self.points, self.probabilities, None
        if self.support is not None:
            inside = probabilities > 0.0
            points, probabilities = points[inside], probabilities[inside]
            contains = self.support.contains
        return fitted_mixture(points, probabilities, n_components, N_EM_STEPS, generator, contains)


def average_sd(surrogate: Surrogate, points: Array) -> float:
    """The surrogate's standard deviation of the average of f over points (m, D).

    To first order that of the log evidence, where the points are draws from the posterior.
    """
    few = surrogate.subset(np.arange(min(FEW_SAMPLES, surrogate.n_samples)))
    within = max(0.0, float(few.covariance(points, points).mean()))
    between = float(surrogate.expansion.values(points).mean(axis=1).var())
    return float(np.sqrt(within + between))


def weighted_sample(
    density: Density, proposal: HeavyTailed, n_draws: int, generator: np.random.Generator
) -> WeightedSample:
    """Draws from the proposal, weighted by the surrogate."""
    points = proposal.sample(n_draws, generator)
    log_p, log_ratios = proposal.log_densities(points)
    mean, variance = density.moments(points)
    margin = density.margin(points)
    inside = np.where(margin > 0.0, 0.0, -np.inf)
    flat = mean - log_p + inside
    anywhere = density.log_density(mean, variance) - log_p
    log_weights, pareto_k = pareto_smooth(anywhere + inside)
    total = log_sum(log_weights)
    probabilities = np.exp(log_weights - total)
    probabilities /= probabilities.sum()
    log_evidence, sd = _controlled_log_mean(log_weights, log_ratios)
    hoped, _ = pareto_smooth(hopeful(flat, density.inflation * variance))
    cautious, _ = pareto_smooth(believed(flat, variance, CAUTIOUS_VARIANCE))
    curvature = max(0.0, log_sum(hoped) - log_sum(cautious))
    edge_sd = 0.0
    if density.support is not None:
        near = np.abs(margin) < NEAR_EDGE
        inside = density.support.alternatives(points[near], N_ALTERNATIVES, generator)
        gained = np.exp(anywhere[near] - total) @ (inside - 1.0 * (margin[near] > 0.0)[:, None])
        edge_sd = float(np.sqrt(np.mean(gained**2)))
    return WeightedSample(
        points,
        variance,
        probabilities,
        log_evidence,
        sd,
        curvature,
        pareto_k,
        edge_sd,
        density.support,
    )


def _controlled_log_mean(log_weights: Array, log_ratios: Array) -> tuple[float, float]:
    """The log of the mean weight and its sd, by regression on the control variates h_k - 1.

    Each component's density over the proposal's has the mean one (Owen and Zhou 2000): where the
    proposal describes the posterior well, hardly anything is left to chance.
    """
    n = len(log_weights)
    shift = log_sum(log_weights) - np.log(n)
    weights = np.exp(log_weights - shift)  # of mean one
    plain_sd = float(weights.std() / np.sqrt(n))
    controls = np.exp(log_ratios) - 1.0
    controls = controls[:, controls.max(axis=0) > 0.0]  # without a draw near it one is constant
    n_controls = controls.shape[1]
    if n_controls > n // 20:
        return float(shift), plain_sd
    design = np.column_stack([np.ones(n), controls])
    # The normal equations are enough, and quicker; components that coincide are no harm.
    coefficients, *_ = np.linalg.lstsq(design.T @ design, design.T @ weights, rcond=1e-10)
    residual = weights - design @ coefficients
    sd = float(np.sqrt(residual @ residual / (n - n_controls - 1) / n))
    if not (abs(coefficients[0] - 1.0) < min(1.0, 5.0 * plain_sd) and sd < plain_sd):
        return float(shift), plain_sd
    return float(shift + np.log(coefficients[0])), sd
