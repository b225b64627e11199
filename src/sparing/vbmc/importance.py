"""The tail of importance weights: smoothed, and judged (Vehtari et al.).

k    Pareto shape of the largest weights
"""

from __future__ import annotations

import numpy as np

from sparing.numerics.arrays import Array

# Share of the weights' sum above the tail's threshold below which its shape does not matter: even
# if it is off by half, that is two hundredths of a nat. Not to correct costs more (decisions/0010).
NEGLIGIBLE_TAIL = 0.05
# Vehtari et al., "Pareto smoothed importance sampling": estimates are unusable above.
LARGEST_PARETO_K = 0.7


def log_sum(log_weights: Array) -> float:
    """log sum_i exp(log_weights_i) of one vector."""
    return float(np.logaddexp.reduce(log_weights))


def pareto_smooth(log_weights: Array) -> tuple[Array, float]:
    """Log weights with their upper tail smoothed, and the tail's Pareto shape k.

    Where the tail adds next to nothing to the sum there is nothing to smooth: k is then -inf.
    """
    n = len(log_weights)
    n_tail = int(np.ceil(min(0.2 * n, 3.0 * np.sqrt(n))))
    order = np.argsort(log_weights)
    tail, threshold = order[-n_tail:], log_weights[order[-n_tail - 1]]
    shift = log_weights[order[-1]]
    excess = np.exp(log_weights[tail] - shift) - np.exp(threshold - shift)
    if not np.all(np.isfinite(excess)):
        return log_weights, float("inf")
    if excess.sum() <= NEGLIGIBLE_TAIL * np.exp(log_weights - shift).sum():
        return log_weights, float("-inf")
    if excess[0] <= 0.0:  # most of the tail vanishes beside a few weights
        return log_weights, float("inf")
    with np.errstate(all="ignore"):  # weights that differ by hundreds of orders of magnitude
        k, sigma = _fit_generalised_pareto(excess)
    if not (np.isfinite(k) and np.isfinite(sigma) and sigma > 0.0):
        return log_weights, float("inf")
    probabilities = (np.arange(n_tail) + 0.5) / n_tail
    with np.errstate(over="ignore"):  # a huge k: the quantile is cut at the largest weight below
        quantiles = (
            -sigma * np.log1p(-probabilities)
            if abs(k) < 1e-12
            else sigma * np.expm1(-k * np.log1p(-probabilities)) / k
        )
    smoothed = log_weights.copy()
    smoothed[tail] = np.minimum(np.log(quantiles + np.exp(threshold - shift)), 0.0) + shift
    return smoothed, k


def _fit_generalised_pareto(sorted_excess: Array) -> tuple[float, float]:
    """Shape and scale of a generalised Pareto distribution (Zhang and Stephens 2009).

    An average over a grid of the profile parameter, weighted by its profile likelihood; the shape
    is shrunk towards 0.5 as if ten more observations had it.
    """
    n = len(sorted_excess)
    n_grid = 30 + int(np.sqrt(n))
    quartile = sorted_excess[int(n / 4 + 0.5) - 1]
    grid = 1.0 / sorted_excess[-1] + (1.0 - np.sqrt(n_grid / (np.arange(n_grid) + 0.5))) / (
        3.0 * quartile
    )
    shapes = np.mean(np.log1p(-grid[:, None] * sorted_excess), axis=1)
    log_likelihood = n * (np.log(-grid / shapes) - shapes - 1.0)
    weights = np.exp(log_likelihood - log_sum(log_likelihood))
    theta = float(np.sum(weights * grid))
    shape = float(np.mean(np.log1p(-theta * sorted_excess)))
    return (shape * n + 5.0) / (n + 10.0), -shape / theta
