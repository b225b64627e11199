"""What the kernels of the variational fit compute, one by one, with gradients by w, μ, σ and λ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparing.kernels.expected_log_joint import expected_log_joint_and_gradient
from sparing.kernels.mixture import entropy_and_gradient, entropy_lower_bound
from sparing.numerics.arrays import Array
from sparing.surrogate.interface import Surrogate
from sparing.variational.mixture import GaussianMixture
from sparing.variational.objective import Objective


@dataclass(frozen=True, eq=False)
class MixtureGradient:
    """Derivatives of a function of the mixture by w (K,), μ (K, D), σ (K,) and λ (D,).

    The weights are treated as free of each other (their sum is not held at one).
    """

    weights: Array
    means: Array
    scales: Array
    lengths: Array

    @classmethod
    def from_kernel(cls, mixture: GaussianMixture, parts: KernelGradient) -> MixtureGradient:
        """From the kernels' order and their derivatives by log σ and log λ."""
        means, log_scales, log_lengths, weights = parts
        return cls(weights, means, log_scales / mixture.scales, log_lengths / mixture.lengths)


KernelGradient = tuple[Array, Array, Array, Array]  # by μ, log σ, log λ, w


def empty_gradient(mixture: GaussianMixture) -> KernelGradient:
    """Arrays for a kernel to write its gradient into."""
    n_components, dimension = mixture.means.shape
    return (
        np.empty((n_components, dimension)),
        np.empty(n_components),
        np.empty(dimension),
        np.empty(n_components),
    )


def entropy_monte_carlo_gradient(
    mixture: GaussianMixture, normals: Array
) -> tuple[float, MixtureGradient]:
    """H[q] and its reparameterised gradient from the draws ε, normals (K, D, N_s).

    By μ, σ and λ the gradient follows the samples and leaves out the score of q, whose
    expectation is zero (Section S1.1.1); by w it is the derivative of the estimate.
    """
    n_samples = normals.shape[2]
    parts = empty_gradient(mixture)
    pool = np.array(normals, dtype=np.float64, order="C").ravel()
    value = entropy_and_gradient(*mixture.arrays, pool, 0, n_samples, n_samples, parts)
    return float(value), MixtureGradient.from_kernel(mixture, parts)


def expected_log_joint_gradient(
    mixture: GaussianMixture, surrogate: Surrogate
) -> tuple[float, MixtureGradient]:
    """E[G] and its gradient, averaged over the hyperparameter samples."""
    parts = empty_gradient(mixture)
    value = expected_log_joint_and_gradient(*mixture.arrays, *surrogate.expansion.arrays, parts)
    return float(value), MixtureGradient.from_kernel(mixture, parts)


def lower_bound(objective: Objective, mixture: GaussianMixture) -> float:
    """F with the lower bound of the entropy, from its parts."""
    integrals = objective.expansion.integrals(mixture.means, mixture.scales, mixture.lengths)
    joint = float(integrals.mean(axis=0) @ mixture.weights)
    return joint + entropy_lower_bound(*mixture.arrays) - objective.penalty(mixture)
