"""Adaptive importance sampling and tempered sequential Monte Carlo: two ways to the same answers.

Both take the log density of many points at once. They share nothing but the target, so that a truth
on which they agree can be believed.

Notation
--------
n, D    points, dimensions
w       (n,) normalised weights; ESS = 1 / sum w^2
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from benchmarks.problems.base import Array

LogDensities = Callable[[Array], Array]  # (n, D) -> (n,)

DEGREES_OF_FREEDOM = 4.0
CLOUD = 6000  # draws that components are fitted to
JITTER = 1e-10  # of a component's covariance, relative


@dataclass(frozen=True, eq=False)
class WeightedDraws:
    """Points (n, D), their normalised weights (n,) and the log evidence with its standard error."""

    points: Array
    weights: Array
    log_evidence: float
    log_evidence_se: float

    @property
    def effective_sample_size(self) -> float:
        return float(1 / np.sum(self.weights**2))

    def moments(self) -> tuple[Array, Array]:
        mean = self.weights @ self.points
        centred = self.points - mean
        return mean, (self.weights[:, None] * centred).T @ centred


@dataclass(frozen=True, eq=False)
class StudentMixture:
    """Mixture of K multivariate Student's t: weights (K,), means (K, D), Cholesky factors."""

    weights: Array
    means: Array
    factors: Array  # (K, D, D)

    def sample(self, n: int, generator: np.random.Generator) -> Array:
        K, D = self.means.shape
        k = generator.choice(K, size=n, p=self.weights)
        scale = np.sqrt(DEGREES_OF_FREEDOM / generator.chisquare(DEGREES_OF_FREEDOM, size=n))
        noise = np.einsum("nij,nj->ni", self.factors[k], generator.standard_normal((n, D)))
        return self.means[k] + scale[:, None] * noise

    def log_densities(self, points: Array) -> Array:
        D = points.shape[1]
        half = 0.5 * (DEGREES_OF_FREEDOM + D)
        constant = gammaln(half) - gammaln(0.5 * DEGREES_OF_FREEDOM)
        constant -= 0.5 * D * np.log(DEGREES_OF_FREEDOM * np.pi)
        parts = []
        for weight, mean, factor in zip(self.weights, self.means, self.factors, strict=True):
            z = np.linalg.solve(factor, (points - mean).T)
            distance = np.sum(z * z, axis=0) / DEGREES_OF_FREEDOM
            peak = np.log(weight) + constant - np.sum(np.log(np.diag(factor)))
            parts.append(peak - half * np.log1p(distance))
        return np.logaddexp.reduce(parts)


def importance_sample(
    log_densities: LogDensities,
    start: Array,
    generator: np.random.Generator,
    draws: int,
    *,
    rounds: int = 8,
    components: int = 30,
    last_draws: int | None = None,
) -> WeightedDraws:
    """Weighted draws by a mixture of local Student's t, fitted anew in every round.

    start (m, D) are points that reach the posterior from outside. A component is placed at a draw,
    with the shape of the draws about it.
    """
    answer = WeightedDraws(start, np.full(len(start), 1 / len(start)), np.nan, np.nan)
    for last in (*(False,) * rounds, True):
        proposal = _fit(answer, components, generator)
        n = last_draws or draws if last else draws
        answer = _draw(log_densities, proposal, n, generator)
    return answer


def _draw(
    log_densities: LogDensities, proposal: StudentMixture, n: int, generator: np.random.Generator
) -> WeightedDraws:
    points = proposal.sample(n, generator)
    log_weights = log_densities(points) - proposal.log_densities(points)
    log_sum = float(np.logaddexp.reduce(log_weights))
    weights = np.exp(log_weights - log_sum)
    se = float(np.std(weights) * np.sqrt(n))
    return WeightedDraws(points, weights, log_sum - float(np.log(n)), se)


def _fit(draws: WeightedDraws, K: int, generator: np.random.Generator) -> StudentMixture:
    """Local shapes about K of the draws, with what all draws together look like beside them.

    Half of the centres are random draws; the others are far from each other, for small modes.
    """
    n, D = draws.points.shape
    tempered = draws.weights ** (1.0 if draws.effective_sample_size > 20 * D else 0.3)
    picked = generator.choice(n, size=CLOUD, p=tempered / tempered.sum())
    cloud = np.unique(draws.points[picked], axis=0)
    mean, covariance = cloud.mean(axis=0), np.cov(cloud.T).reshape(D, D)
    covariance += JITTER * np.trace(covariance) * np.eye(D)
    whitened = np.linalg.solve(np.linalg.cholesky(covariance), (cloud - mean).T).T
    means, factors = [mean], [np.linalg.cholesky(2.0 * covariance)]
    many, few = max(len(cloud) // K, 10 * D), 5 * D
    nearest = np.full(len(cloud), np.inf)  # to any centre so far
    for k in range(K):
        is_random = k < K // 2
        centre = int(generator.integers(len(cloud))) if is_random else int(np.argmax(nearest))
        distance = np.sum((whitened - whitened[centre]) ** 2, axis=1)
        nearest = np.minimum(nearest, distance)
        near = min(many if is_random else few, len(cloud) - 1)
        group = cloud[np.argpartition(distance, near)[:near]]
        local = np.cov(group.T).reshape(D, D) + 1e-4 * covariance
        means.append(group.mean(axis=0))
        factors.append(np.linalg.cholesky(1.5 * local))
    weights = np.append(0.1, np.full(K, 0.9 / K))
    return StudentMixture(weights, np.array(means), np.array(factors))


def tempered_sample(
    log_densities: LogDensities,
    log_start_densities: LogDensities,
    start: Array,
    generator: np.random.Generator,
    *,
    moves: int = 10,
) -> WeightedDraws:
    """Sequential Monte Carlo from a distribution that can be drawn from to the target.

    start (n, D) are draws from it, of density exp(log_start_densities). Temperatures keep half of
    the ESS; particles move by differences of others (ter Braak). The se is that of the product of
    the steps, each by the variance of its weights, and leaves the moves' correlation out.
    """
    points = start.copy()
    n, D = points.shape
    target, origin = log_densities(points), log_start_densities(points)
    temperature, log_evidence, variance = 0.0, 0.0, 0.0
    while temperature < 1:
        gap = np.where(np.isfinite(target), target - origin, -np.inf)
        step = _next_step(gap, 1 - temperature)
        weights = step * gap
        total = float(np.logaddexp.reduce(weights))
        log_evidence += total - float(np.log(n))
        shares = np.exp(weights - total)
        variance += max(float(np.sum(shares**2)) - 1 / n, 0.0)
        temperature += step
        positions = (generator.uniform() + np.arange(n)) / n
        picked = np.minimum(np.searchsorted(np.cumsum(shares), positions), n - 1)
        points, target, origin = points[picked], target[picked], origin[picked]
        for _ in range(moves):
            a, b = generator.integers(n, size=(2, n))
            factor = np.where(generator.uniform(size=n) < 0.1, 1.0, 2.38 / np.sqrt(2 * D))
            factor *= np.exp(generator.uniform(-1.5, 0.3, size=n))
            moved = points + factor[:, None] * (points[a] - points[b])
            new_target, new_origin = log_densities(moved), log_start_densities(moved)
            with np.errstate(invalid="ignore"):  # both are -inf outside a box
                tempered = temperature * new_target + (1 - temperature) * new_origin
            change = tempered - temperature * target - (1 - temperature) * origin
            change = np.where(np.isfinite(new_target), change, -np.inf)
            accepted = np.log(generator.uniform(size=n)) < change
            points[accepted], target[accepted] = moved[accepted], new_target[accepted]
            origin[accepted] = new_origin[accepted]
    return WeightedDraws(points, np.full(n, 1 / n), log_evidence, float(np.sqrt(variance)))


def _next_step(gap: Array, left: float) -> float:
    """The largest step that keeps half of the effective sample size."""

    def size(step: float) -> float:
        shares = np.exp(step * gap - np.logaddexp.reduce(step * gap))
        return float(1 / np.sum(shares**2))

    if size(left) >= 0.5 * len(gap):
        return left
    low, high = 0.0, left
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if size(middle) >= 0.5 * len(gap) else (low, middle)
    return max(low, 1e-9)
