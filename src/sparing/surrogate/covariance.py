"""The squared exponential covariance function (Eq. S10).

    kappa(x, x') = sigma_f^2 exp(-1/2 sum_i (x_i - x'_i)^2 / ell_i^2)

The paper writes it sigma_f^2 Lambda N(x; x', Sigma_ell) with Lambda = (2 pi)^(D/2) prod_i ell_i,
so that its value at zero distance is sigma_f^2.

Notation
    inputs   training inputs X, (n, D)
    queries  any other points, (m, D)
"""

from __future__ import annotations

import numpy as np

from sparing.kernels.gaussian_process import fill_cross_covariance, fill_gram_matrix
from sparing.numerics.arrays import Array
from sparing.surrogate.layout import Hyperparameters


def scaled_transpose(inputs: Array, lengths: Array) -> Array:
    """Inputs over length scales, transposed for the kernels, (D, n)."""
    return np.ascontiguousarray((inputs / lengths).T)


def gram_matrix(z: Array, variance: float, out: Array | None = None) -> Array:
    """kappa(X, X) from scaled inputs (D, n), (n, n), into out when given."""
    n = z.shape[1]
    gram = np.empty((n, n)) if out is None else out
    fill_gram_matrix(z, variance, gram)
    return gram


def cross_covariance(hyperparameters: Hyperparameters, queries: Array, inputs: Array) -> Array:
    """kappa(queries, X), (m, n)."""
    lengths = hyperparameters.length_scales
    covariance = np.empty((queries.shape[0], inputs.shape[0]))
    fill_cross_covariance(
        np.ascontiguousarray(queries / lengths),
        scaled_transpose(inputs, lengths),
        hyperparameters.output_scale**2,
        covariance,
    )
    return covariance
