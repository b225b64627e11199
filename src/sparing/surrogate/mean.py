"""The negative quadratic mean function (Eq. 7).

    m(x) = m_0 - 1/2 sum_i (x_i - x_m,i)^2 / omega_i^2

Unlike a constant it makes the exponentiated predictive mean integrable.

Notation
    inputs   points, (n, D)
    weights  one number per point, (n,); in the likelihood's gradient, alpha
"""

from __future__ import annotations

import numpy as np

from sparing.numerics.arrays import Array
from sparing.surrogate.layout import Hyperparameters


def negative_quadratic_mean(hyperparameters: Hyperparameters, inputs: Array) -> Array:
    """m at each point, (n,)."""
    return mean_from_offsets(hyperparameters, scaled_offsets(hyperparameters, inputs))


def scaled_offsets(hyperparameters: Hyperparameters, inputs: Array) -> Array:
    """(x - x_m) / omega, (n, D)."""
    return (inputs - hyperparameters.mean_location) / hyperparameters.mean_scales


def mean_from_offsets(hyperparameters: Hyperparameters, offsets: Array) -> Array:
    """m from (x - x_m) / omega, (n,)."""
    return hyperparameters.mean_maximum - 0.5 * np.einsum("nd,nd->n", offsets, offsets)


def weighted_mean_gradient(
    hyperparameters: Hyperparameters, offsets: Array, weights: Array
) -> Array:
    """sum_p weights_p dm(x_p) / d [m_0, x_m 1..D, log omega_1..D], (2D + 1,)."""
    dimension = offsets.shape[1]
    gradient = np.empty(2 * dimension + 1)
    gradient[0] = weights.sum()
    gradient[1 : dimension + 1] = (weights @ offsets) / hyperparameters.mean_scales
    gradient[dimension + 1 :] = weights @ (offsets * offsets)
    return gradient


def mean_jacobian(hyperparameters: Hyperparameters, inputs: Array) -> Array:
    """dm(x_p) / d [m_0, x_m 1..D, log omega_1..D], one entry per row, (2D + 1, n)."""
    offsets = scaled_offsets(hyperparameters, inputs)
    slope = offsets / hyperparameters.mean_scales
    return np.vstack([np.ones(inputs.shape[0]), slope.T, (offsets * offsets).T])
