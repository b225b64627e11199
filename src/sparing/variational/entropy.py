"""Entropy of the variational posterior by Monte Carlo.

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

import numpy as np

from sparing.numerics.arrays import Array
from sparing.variational.mixture import GaussianMixture

LOG_2_PI = float(np.log(2.0 * np.pi))


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


def _component_entropy(mixture: GaussianMixture, k: int) -> float:
    """H_k = (D/2) log(2πe) + Σ_i log(σ_k λ_i)."""
    log_sds = np.log(mixture.scales[k] * mixture.lengths)
    return float(0.5 * mixture.dimension * (LOG_2_PI + 1.0) + log_sds.sum())
