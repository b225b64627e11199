"""A mixture of normals of any shape: what describes the surrogate's posterior.

The variational q has one shape for all its components (Eq. 6), which is what its closed forms need.
What is handed over needs none of them, and may bend.

Notation (K components, D dimensions, N points)
    w_k, mu_k    weights (K,) and means (K, D)
    L_k          lower Cholesky factors of the covariances, (K, D, D)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sparing.numerics.arrays import Array
from sparing.numerics.quasi_random import scrambled_halton

LOG_2_PI = float(np.log(2.0 * np.pi))
BLOCK = 2048  # points at a time, so that what is between them stays in the cache
MODE_TOLERANCE, MODE_MAX_STEPS = 1e-10, 2000


class Mixture(ABC):
    """What sampling, plotting and the choice of points need of a posterior."""

    weights: Array  # w, (K,)
    means: Array  # mu, (K, D)

    @property
    def n_components(self) -> int:
        """K."""
        return self.means.shape[0]

    @property
    def dimension(self) -> int:
        """D."""
        return self.means.shape[1]

    @property
    def mean(self) -> Array:
        """E[x], (D,)."""
        return self.weights @ self.means

    @property
    def covariance(self) -> Array:
        """Cov[x], (D, D)."""
        deviations = self.means - self.mean
        return self.typical_covariance() + (deviations.T * self.weights) @ deviations

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Which points (N, D) the density is not zero at, (N,): all."""
        return np.ones(len(points), dtype=np.bool_)

    def sample(self, n: int, generator: np.random.Generator) -> Array:
        """n independent draws, (n, D)."""
        component = generator.choice(self.n_components, size=n, p=self.weights)
        return self.placed(component, generator.standard_normal((n, self.dimension)))

    def mode(self) -> Array:
        """The highest point, (D,)."""
        return unchanged(self).mode()

    @abstractmethod
    def typical_covariance(self) -> Array:
        """The components' covariances on average, (D, D)."""

    @abstractmethod
    def log_density(self, x: Array) -> Array:
        """At points (N, D): (N,)."""

    @abstractmethod
    def placed(self, component: NDArray[np.intp], z: Array) -> Array:
        """Standard normal z (n, D) as draws from the given components (n,): (n, D)."""

    @abstractmethod
    def image(self, matrix: Array, offset: Array) -> NormalMixture:
        """The distribution of A x + b, with A (d, D) of full rank and b (d,)."""


@dataclass(frozen=True, eq=False)
class NormalMixture(Mixture):
    """Weights, means and Cholesky factors; the arrays must not be written to."""

    weights: Array
    means: Array
    factors: Array

    @classmethod
    def of_covariances(cls, weights: Array, means: Array, covariances: Array) -> NormalMixture:
        """With weights that need not sum to one, and covariances (K, D, D)."""
        return cls(weights / weights.sum(), means, cholesky_factors(covariances))

    @classmethod
    def union(cls, parts: Sequence[NormalMixture]) -> NormalMixture:
        """Several mixtures as one, in equal shares."""
        return cls(
            np.concatenate([part.weights for part in parts]) / len(parts),
            np.concatenate([part.means for part in parts]),
            np.concatenate([part.factors for part in parts]),
        )

    def part(self, chosen: NDArray[np.bool_]) -> NormalMixture:
        """Some of the components, (K,), by themselves."""
        weights = self.weights[chosen]
        return NormalMixture(weights / weights.sum(), self.means[chosen], self.factors[chosen])

    @cached_property
    def covariances(self) -> Array:
        """Those of the components, (K, D, D)."""
        return self.factors @ self.factors.transpose(0, 2, 1)

    def typical_covariance(self) -> Array:
        """The components' on average, (D, D)."""
        return np.einsum("k,kij->ij", self.weights, self.covariances)

    @cached_property
    def _inverse_factors(self) -> Array:
        return np.asarray(np.linalg.inv(self.factors), dtype=np.float64)

    @cached_property
    def log_heights(self) -> Array:
        """log w_k N_k at its centre, (K,)."""
        diagonals = np.diagonal(self.factors, axis1=1, axis2=2)
        constant = 0.5 * self.dimension * LOG_2_PI
        return np.log(self.weights) - np.log(diagonals).sum(axis=1) - constant

    @cached_property
    def _quadratics(self) -> Array:
        """Coefficients of |L_k^-1 (x - mu_k)|^2 as a polynomial in x - E[x], (F, K)."""
        inverse, offsets = self._inverse_factors, self.means - self.mean
        precisions = inverse.transpose(0, 2, 1) @ inverse
        first, second = np.triu_indices(self.dimension)
        pairs = np.where(first == second, 1.0, 2.0) * precisions[:, first, second]
        pulls = np.einsum("kij,kj->ki", precisions, offsets)
        constants = np.einsum("ki,ki->k", pulls, offsets)
        return np.hstack([pairs, -2.0 * pulls, constants[:, None]]).T

    def squared_distances(self, x: Array) -> Array:
        """|L_k^-1 (x - mu_k)|^2, (N, K): one product of matrices."""
        offsets = x - self.mean
        first, second = np.triu_indices(self.dimension)
        with np.errstate(over="ignore", invalid="ignore"):  # absurdly far out
            products = offsets[:, first] * offsets[:, second]
            polynomial = np.hstack([products, offsets, np.ones((len(x), 1))])
            squares = np.maximum(polynomial @ self._quadratics, 0.0)
        return np.where(np.isnan(squares), np.inf, squares)

    def component_log_densities(self, x: Array) -> Array:
        """log w_k N_k(x), (N, K)."""
        return self.log_heights - 0.5 * self.squared_distances(x)

    def log_density(self, x: Array) -> Array:
        """At points (N, D): (N,)."""
        blocks = (x[i : i + BLOCK] for i in range(0, len(x), BLOCK))
        parts = [log_sum_rows(self.component_log_densities(block)) for block in blocks]
        return np.concatenate(parts) if parts else np.empty(0)

    def placed(self, component: NDArray[np.intp], z: Array) -> Array:
        """Standard normal z (n, D) as draws from the given components (n,): (n, D)."""
        return self.means[component] + np.einsum("nij,nj->ni", self.factors[component], z)

    def mode(self) -> Array:
        """The highest point found from the component means and where two of them cross, (D,).

        Where the gradient is zero, x = (sum_k r_k P_k)^-1 sum_k r_k P_k mu_k with the precisions
        P_k; iterating that map never lowers the density.
        """
        precisions = self._inverse_factors.transpose(0, 2, 1) @ self._inverse_factors
        pulls = np.einsum("kij,kj->ki", precisions, self.means)
        points = np.vstack([self.means, self._best_crossing(precisions, pulls)])
        width = np.sqrt(np.diag(self.covariance))
        for _ in range(MODE_MAX_STEPS):
            terms = self.component_log_densities(points)
            r = np.exp(terms - log_sum_rows(terms)[:, None])
            total = np.einsum("nk,kij->nij", r, precisions)
            moved = np.linalg.solve(total, (r @ pulls)[:, :, None])[:, :, 0]
            step = np.max(np.abs(moved - points) / width)
            points = moved
            if step < MODE_TOLERANCE:
                break
        return points[int(np.argmax(self.log_density(points)))]

    def _best_crossing(self, precisions: Array, pulls: Array) -> Array:
        """Of the modes of the products of two components the highest: (1, D); (0, D) for one."""
        i, j = np.triu_indices(self.n_components, 1)
        right = (pulls[i] + pulls[j])[:, :, None]
        solved = np.linalg.solve(precisions[i] + precisions[j], right)[:, :, 0]
        points = np.asarray(solved, dtype=np.float64)
        return points[np.argsort(self.log_density(points))[-1:]]

    def image(self, matrix: Array, offset: Array) -> NormalMixture:
        """The distribution of A x + b, with A (d, D) of full rank and b (d,)."""
        covariances = matrix @ self.covariances @ matrix.T
        means = self.means @ matrix.T + offset
        return NormalMixture(self.weights, means, cholesky_factors(covariances))


def cholesky_factors(covariances: Array) -> Array:
    """Lower factors of symmetric matrices, (K, D, D)."""
    return np.asarray(np.linalg.cholesky(covariances), dtype=np.float64)


def unchanged(mixture: Mixture) -> NormalMixture:
    """The same distribution as a mixture of normals of any shape."""
    return mixture.image(np.eye(mixture.dimension), np.zeros(mixture.dimension))


def even_sample(mixture: Mixture, n: int) -> Array:
    """A deterministic, evenly spread sample of the mixture: (n, D)."""
    return mixture.placed(*even_places(mixture, n))


def even_places(mixture: Mixture, n: int) -> tuple[NDArray[np.intp], Array]:
    """The components (n,) of such draws, and where in them: standard normal (n, D)."""
    unit = scrambled_halton(n, mixture.dimension + 1)
    component = np.searchsorted(np.cumsum(mixture.weights), unit[:, 0], side="right")
    component = np.minimum(component, mixture.n_components - 1)
    return component, ndtri(np.clip(unit[:, 1:], 1e-12, 1.0 - 1e-12))


def log_sum_rows(terms: Array) -> Array:
    """log sum_k exp(terms), over the last axis: (N,)."""
    largest = terms.max(axis=-1)
    with np.errstate(invalid="ignore", under="ignore"):  # so far out that all are zero
        total = largest + np.log(np.exp(terms - largest[:, None]).sum(axis=-1))
    return np.where(largest > -np.inf, total, largest)
