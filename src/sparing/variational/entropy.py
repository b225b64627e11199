"""Entropy of the variational posterior: Monte Carlo estimate and deterministic lower bound.

Notation (Section S1.1)
    H[q] = -∫ q log q,  H_k the entropy of component k,  r_k = w_k N_k / q its responsibility
    N_s   Monte Carlo samples per component

With ξ drawn from component k, -log q(ξ) = -log w_k - log N_k(ξ) + log r_k(ξ), and the expectation
of the middle term is H_k in closed form. Only E_k[log r_k] is left to Monte Carlo: the estimate is
exact for one component and for components far apart, and never noisier in practice than the plain
one, which has the same expectation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sparing.kernels.mixture import entropy_and_gradient, entropy_lower_bound_and_gradient
from sparing.numerics.arrays import Array
from sparing.variational.mixture import GaussianMixture

LOG_2_PI = float(np.log(2.0 * np.pi))


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


def entropy_monte_carlo(
    mixture: GaussianMixture, n_samples: int, generator: np.random.Generator
) -> tuple[float, float]:
    """H[q] and the standard deviation of the estimate, from n_samples draws per component."""
    shape = (n_samples, mixture.dimension)
    draws = (generator.standard_normal(shape) for _ in range(mixture.n_components))
    return entropy_from_noise(mixture, draws)


def entropy_from_noise(mixture: GaussianMixture, noise: Iterable[Array]) -> tuple[float, float]:
    """The same from given draws ε: for each component an array (N_s, D)."""
    estimate, variance = 0.0, 0.0
    for k, (weight, draws) in enumerate(zip(mixture.weights, noise, strict=True)):
        log_responsibility = _log_responsibility(mixture, k, draws)
        estimate += weight * (_component_entropy(mixture, k) - np.log(weight))
        estimate += weight * log_responsibility.mean()
        variance += weight**2 * log_responsibility.var() / draws.shape[0]
    return float(estimate), float(np.sqrt(variance))


def _log_responsibility(mixture: GaussianMixture, k: int, noise: Array) -> Array:
    """log r_k at ξ = μ_k + σ_k λ ε for each row ε of noise (N, D); (N,), at most zero."""
    if mixture.n_components == 1:
        return np.zeros(noise.shape[0])
    points = mixture.means[k] + mixture.scales[k] * mixture.lengths * noise
    log_component = (
        -0.5 * np.einsum("nd,nd->n", noise, noise)
        - 0.5 * mixture.dimension * LOG_2_PI
        - np.log(mixture.scales[k] * mixture.lengths).sum()
    )
    log_joint = np.log(mixture.weights[k]) + log_component
    return np.minimum(log_joint - mixture.log_density(points), 0.0)


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
    value = entropy_and_gradient(*mixture.arrays, pool, 0, n_samples, n_samples, *parts)
    return float(value), MixtureGradient.from_kernel(mixture, parts)


def entropy_lower_bound(mixture: GaussianMixture) -> float:
    """-Σ_k w_k log Σ_l w_l N(μ_l; μ_k, (σ_l² + σ_k²) Σ) ≤ H[q], by Jensen's inequality."""
    return entropy_lower_bound_gradient(mixture)[0]


def entropy_lower_bound_gradient(mixture: GaussianMixture) -> tuple[float, MixtureGradient]:
    """The lower bound and its gradient."""
    parts = empty_gradient(mixture)
    value = entropy_lower_bound_and_gradient(*mixture.arrays, *parts)
    return float(value), MixtureGradient.from_kernel(mixture, parts)


def _component_entropy(mixture: GaussianMixture, k: int) -> float:
    """H_k = (D/2) log(2πe) + Σ_i log(σ_k λ_i)."""
    log_sds = np.log(mixture.scales[k] * mixture.lengths)
    return float(0.5 * mixture.dimension * (LOG_2_PI + 1.0) + log_sds.sum())
