"""Integrated variance reduction: how much an evaluation at x would teach about the posterior.

    a(x) = mean over s of C(s, x)^2 / (V(x) + sigma_obs^2)

is the exact drop of the surrogate's variance V(s) when x joins the training set, averaged over
reference points s drawn from the current posterior and over hyperparameter samples.

    R   reference points, (r, D)          X   training inputs, (n, D)
    C   posterior covariance of f         V   posterior variance of f
    S   hyperparameter samples
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparing.numerics.arrays import Array
from sparing.numerics.linear_algebra import (
    multiply_lower_rows,
    solve_lower_rows,
    solve_lower_transposed_rows,
)
from sparing.surrogate.covariance import cross_covariance
from sparing.surrogate.gaussian_process import GaussianProcess


@dataclass(frozen=True, eq=False)
class IntegratedVarianceReduction:
    """The criterion as a callable: candidates (m, D) -> log a(x), (m,).

    ``weights`` is A^-1 k(X, R), (S, n, r): what the references need of the surrogate, once.
    """

    gp: GaussianProcess
    references: Array
    weights: Array

    @classmethod
    def create(cls, gp: GaussianProcess, references: Array) -> IntegratedVarianceReduction:
        """Prepare the criterion for a surrogate and reference points (r, D)."""
        weights = np.empty((gp.n_samples, gp.training.n_points, len(references)))
        for s in range(gp.n_samples):
            rows = cross_covariance(gp.sample(s), references, gp.training.inputs)
            half = solve_lower_rows(gp.cholesky[s], rows)
            weights[s] = solve_lower_transposed_rows(gp.cholesky[s], half).T
        return cls(gp, references, weights)

    def __call__(self, candidates: Array) -> Array:
        """Log acquisition at the candidates."""
        gp = self.gp
        total = np.zeros(len(candidates))
        for s in range(gp.n_samples):
            sample = gp.sample(s)
            rows = cross_covariance(sample, candidates, gp.training.inputs)  # k(x, X), (m, n)
            covariance = cross_covariance(sample, candidates, self.references)
            covariance -= rows @ self.weights[s]  # C(x, s), (m, r)
            half = multiply_lower_rows(gp.inverse_cholesky[s], rows)
            variance = sample.output_scale**2 - np.einsum("mn,mn->m", half, half)
            noise = sample.noise_sd**2 + gp.training.typical_noise_variance
            drop = np.einsum("mr,mr->m", covariance, covariance) / covariance.shape[1]
            total += drop / (np.maximum(variance, 0.0) + noise)
        return np.log(np.maximum(total / gp.n_samples, np.finfo(float).tiny))
