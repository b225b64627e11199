"""Move the mixture towards weighted draws by one step of expectation maximisation.

The variational fit makes q as close to the surrogate's posterior as KL(q || posterior) allows,
which favours q too narrow over q too wide. A step on draws weighted by the surrogate moves q by
KL(posterior || q) instead, which covers the tails (docs/decisions/0010).

Notation (N draws, K components)
    x_i      draws from q, (N, D)                  w_i   their normalised weights, (N,)
    r_ik     responsibility of component k for draw i, (N, K)
"""

from __future__ import annotations

import numpy as np

from sparing.numerics.arrays import Array
from sparing.variational.mixture import GaussianMixture
from sparing.variational.parameterisation import normalised

# How far one step may change a component: its weight and its variance keep at least these shares.
SMALLEST_WEIGHT_LEFT = 0.1
SMALLEST_VARIANCE_LEFT = 0.25
# Alternating least squares for variances of the form sigma_k^2 lambda_i^2.
N_ALTERNATIONS = 5


def reweighted(mixture: GaussianMixture, points: Array, weights: Array) -> GaussianMixture:
    """The mixture after one step on its own draws, points (N, D) with weights (N,).

    Sums over draws enter as differences from the same sums with equal weights, whose expectations
    are known exactly: where q is right already the step then adds no Monte Carlo noise.
    """
    excess = (weights - 1.0 / len(weights))[:, None] * _responsibilities(mixture, points)
    mass = np.maximum(mixture.weights + excess.sum(axis=0), SMALLEST_WEIGHT_LEFT * mixture.weights)
    # Moments about q's centre rather than the origin, for the sake of their last digits.
    centre = mixture.mean
    x, mu = points - centre, mixture.means - centre
    total = excess.sum(axis=0)[:, None]
    first = excess.T @ x - total * mu
    second = excess.T @ (x * x) - 2.0 * mu * (excess.T @ x) + total * mu * mu
    variances = (mixture.scales[:, None] * mixture.lengths) ** 2
    shift = first / mass[:, None]
    moved = (mixture.weights[:, None] * variances + second) / mass[:, None] - shift * shift
    moved = np.maximum(moved, SMALLEST_VARIANCE_LEFT * variances)
    new_weights = mass / mass.sum()
    scales, squares = mixture.scales**2, mixture.lengths**2
    for _ in range(N_ALTERNATIONS):
        scales = np.mean(moved / squares, axis=1)
        squares = new_weights @ (moved / scales[:, None])
    corrected = (new_weights, mixture.means + shift, np.sqrt(scales), np.sqrt(squares))
    if not all(np.isfinite(part).all() for part in corrected):
        return mixture
    return normalised(GaussianMixture(*corrected))


def _responsibilities(mixture: GaussianMixture, points: Array) -> Array:
    """r_ik, (N, K)."""
    z = (points - mixture.mean) / mixture.lengths
    c = (mixture.means - mixture.mean) / mixture.lengths
    squared = (z * z).sum(axis=1)[:, None] - 2.0 * z @ c.T + (c * c).sum(axis=1)
    log_terms = np.log(mixture.weights) - mixture.dimension * np.log(mixture.scales)
    log_terms = log_terms - 0.5 * squared / mixture.scales**2
    return np.exp(log_terms - np.logaddexp.reduce(log_terms, axis=1, keepdims=True))
