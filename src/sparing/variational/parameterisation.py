"""Unbounded parameters of the variational posterior (Section S1.3.1).

Notation
    φ = (μ (K D entries, row by row), log σ (K,), log λ (D,), η (K,)),   w = softmax(η)

(σ, λ) and η are each redundant by one degree of freedom: σ c and λ / c give the same mixture, and
so does η + c. Mixtures built here have mean(λ²) = 1, and η has mean zero.
"""

from __future__ import annotations

import numpy as np

from sparing.kernels.variational import unpack_parameters
from sparing.numerics.arrays import Array
from sparing.variational.mixture import GaussianMixture


def to_parameters(mixture: GaussianMixture) -> Array:
    """φ of a mixture, (K D + 2 K + D,)."""
    eta = np.log(mixture.weights)
    logs = np.log(mixture.scales), np.log(mixture.lengths)
    return np.concatenate([mixture.means.ravel(), *logs, eta - eta.mean()])


def from_parameters(phi: Array, n_components: int, dimension: int) -> GaussianMixture:
    """The mixture of φ, with mean(λ²) = 1 and the scale of λ moved into σ."""
    weights = np.empty(n_components)
    means = np.empty((n_components, dimension))
    scales = np.empty(n_components)
    lengths = np.empty(dimension)
    unpack_parameters(phi, weights, means, scales, lengths)
    return normalised(GaussianMixture(weights, means, scales, lengths))


def normalised(mixture: GaussianMixture) -> GaussianMixture:
    """The same density with mean(λ²) = 1."""
    size = float(np.sqrt(np.mean(mixture.lengths**2)))
    return GaussianMixture(
        mixture.weights, mixture.means, mixture.scales * size, mixture.lengths / size
    )
