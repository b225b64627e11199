"""A mixture of normals with full covariances, closed under multiplication by a normal prior.

Notation
--------
K, D    components, dimensions
w       (K,) weights, kept as logarithms
mu      (K, D) means
C       (K, D, D) covariances
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from benchmarks.problems.base import Array, Marginal

MARGINAL_POINTS = 8001
MARGINAL_REACH = 8.0  # SDs beyond the outermost component means: 1e-15 of the mass is outside


@dataclass(frozen=True, eq=False)
class NormalMixture:
    """Mixture of K normals in D dimensions."""

    log_weights: Array  # (K,), normalised
    means: Array  # (K, D)
    covariances: Array  # (K, D, D)

    @classmethod
    def from_weights(cls, weights: Array, means: Array, covariances: Array) -> NormalMixture:
        with np.errstate(divide="ignore"):  # a weight of zero is a component that is not there
            log_weights = np.log(weights)
        return cls(log_weights - np.logaddexp.reduce(log_weights), means, covariances)

    @cached_property
    def _whiteners(self) -> Array:
        """L^-1 of each covariance L L^T, (K, D, D)."""
        identity = np.eye(self.means.shape[1])
        factors = np.linalg.cholesky(self.covariances)
        return np.stack([solve_triangular(L, identity, lower=True) for L in factors])

    @cached_property
    def _log_peaks(self) -> Array:
        """Log weight plus log density of each component at its mean, (K,)."""
        log_determinants = -np.log(np.diagonal(self._whiteners, axis1=1, axis2=2)).sum(axis=1)
        constant = 0.5 * self.means.shape[1] * np.log(2 * np.pi)
        return self.log_weights - log_determinants - constant

    def log_density(self, x: Array) -> float:
        """Log density at one point x (D,)."""
        z = np.einsum("kij,kj->ki", self._whiteners, x - self.means)
        return float(np.logaddexp.reduce(self._log_peaks - 0.5 * np.sum(z * z, axis=1)))

    def gradient(self, x: Array) -> Array:
        """Gradient of the log density at one point x (D,)."""
        z = np.einsum("kij,kj->ki", self._whiteners, x - self.means)
        log_shares = self._log_peaks - 0.5 * np.sum(z * z, axis=1)
        shares = np.exp(log_shares - np.logaddexp.reduce(log_shares))
        return -np.einsum("k,kij,ki->j", shares, self._whiteners, z)

    def memberships(self, points: Array) -> Array:
        """Probability that each of the points (n, D) was drawn from each component, (n, K)."""
        z = np.einsum("kij,nkj->nki", self._whiteners, points[:, None] - self.means)
        log_shares = self._log_peaks - 0.5 * np.sum(z * z, axis=2)
        return np.exp(log_shares - np.logaddexp.reduce(log_shares, axis=1)[:, None])

    @property
    def mean(self) -> Array:
        return np.exp(self.log_weights) @ self.means

    @property
    def covariance(self) -> Array:
        weights = np.exp(self.log_weights)
        centred = self.means - self.mean
        within = np.einsum("k,kij->ij", weights, self.covariances)
        return within + np.einsum("k,ki,kj->ij", weights, centred, centred)

    def sample(self, n: int, generator: np.random.Generator) -> Array:
        """Draw n points, (n, D)."""
        k = generator.choice(len(self.log_weights), size=n, p=np.exp(self.log_weights))
        noise = generator.standard_normal((n, self.means.shape[1]))
        factors = np.linalg.cholesky(self.covariances)
        return self.means[k] + np.einsum("nij,nj->ni", factors[k], noise)

    def times_normal(self, prior_mean: Array, prior_sd: Array) -> tuple[float, NormalMixture]:
        """Log evidence and posterior under an independent normal prior.

        Component k: Z_k = N(mu_k; m, C_k + P), mean P (C_k + P)^-1 mu_k + C_k (C_k + P)^-1 m,
        covariance P (C_k + P)^-1 C_k, with prior mean m and covariance P.
        """
        P = np.diag(prior_sd**2)
        log_weights, means, covariances = [], [], []
        for log_weight, mu, C in zip(self.log_weights, self.means, self.covariances, strict=True):
            evidence = NormalMixture(np.zeros(1), prior_mean[None], (C + P)[None])
            log_weights.append(log_weight + evidence.log_density(mu))
            gain = np.linalg.solve(C + P, P).T  # P (C + P)^-1
            means.append(prior_mean + gain @ (mu - prior_mean))
            covariance = gain @ C
            covariances.append(0.5 * (covariance + covariance.T))
        unnormalised = np.array(log_weights)
        log_evidence = float(np.logaddexp.reduce(unnormalised))
        posterior = NormalMixture(
            unnormalised - log_evidence, np.array(means), np.array(covariances)
        )
        return log_evidence, posterior

    def marginals(self) -> tuple[Marginal, ...]:
        """Exact marginal of every coordinate, tabulated."""
        return tuple(self._marginal(d) for d in range(self.means.shape[1]))

    def _marginal(self, d: int) -> Marginal:
        means, sds = self.means[:, d], np.sqrt(self.covariances[:, d, d])
        lower = np.min(means - MARGINAL_REACH * sds)
        upper = np.max(means + MARGINAL_REACH * sds)
        grid = np.linspace(lower, upper, MARGINAL_POINTS)
        z = (grid[:, None] - means) / sds
        density = np.exp(self.log_weights - 0.5 * z * z) @ (1 / (np.sqrt(2 * np.pi) * sds))
        return Marginal.tabulate(grid, density)
