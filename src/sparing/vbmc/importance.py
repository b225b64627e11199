"""Draws from q weighted by the surrogate, and the posterior they correct.

The variational fit makes q as close to the surrogate's posterior as KL(q || posterior) allows,
which favours q too narrow over q too wide. Importance weights tell what it missed, at no
evaluation of the target. One step of expectation maximisation on the weighted draws moves q there,
now by KL(posterior || q), which covers the tails (docs/decisions/0010).

Notation (N draws, K components, S hyperparameter samples)
    x_i      draws from q, (N, D)
    w_i      importance weights exp(f(x_i) + V(x_i) / 2) / q(x_i), normalised, (N,)
    r_ik     responsibility of component k for draw i, (N, K)
    f, V     posterior mean and variance of the surrogate for one hyperparameter sample psi
    k        Pareto shape of the largest weights
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparing.numerics.arrays import Array
from sparing.surrogate.gaussian_process import GaussianProcess, predict_each
from sparing.variational.mixture import GaussianMixture
from sparing.variational.parameterisation import normalised

# Share of the weights' sum above the tail's threshold below which its shape does not matter: even
# if it is off by half, that is two hundredths of a nat. Not to correct costs more (decisions/0010).
NEGLIGIBLE_TAIL = 0.05
# How far one step may change a component: its weight and its variance keep at least these shares.
SMALLEST_WEIGHT_LEFT = 0.1
SMALLEST_VARIANCE_LEFT = 0.25
# Alternating least squares for variances of the form sigma_k^2 lambda_i^2.
N_ALTERNATIONS = 5


@dataclass(frozen=True, eq=False)
class WeightedDraws:
    """Draws from q, (N, D), and for each psi the log weights with and without V / 2, (S, N)."""

    points: Array
    log_weights: Array
    flat_log_weights: Array


def weighted_draws(
    mixture: GaussianMixture,
    gp: GaussianProcess,
    n_draws: int,
    largest_variance: float,
    generator: np.random.Generator,
) -> WeightedDraws:
    """Draw from q and weigh by the surrogate; V is cut at largest_variance."""
    points = mixture.sample(n_draws, generator)
    log_q = mixture.log_density(points)
    means, variances = predict_each(gp, points)
    flat = means - log_q
    return WeightedDraws(points, flat + 0.5 * np.minimum(variances, largest_variance), flat)


def corrected_mixture(
    mixture: GaussianMixture, draws: WeightedDraws, largest_pareto_k: float
) -> GaussianMixture:
    """The mixture after one step of expectation maximisation on the weighted draws.

    Unchanged where the weights are too heavy-tailed to be trusted. Sums over draws enter as
    differences from the same sums with equal weights, whose expectations are known exactly: where
    q is right already the step then adds no Monte Carlo noise.
    """
    per_sample = [row - log_sum(row) for row in draws.log_weights]
    log_weights, pareto_k = pareto_smooth(np.logaddexp.reduce(per_sample))
    if not pareto_k <= largest_pareto_k:
        return mixture
    weights = np.exp(log_weights - log_sum(log_weights))
    excess = (weights - 1.0 / len(weights))[:, None] * _responsibilities(mixture, draws.points)
    mass = np.maximum(mixture.weights + excess.sum(axis=0), SMALLEST_WEIGHT_LEFT * mixture.weights)
    # Moments about q's centre rather than the origin, for the sake of their last digits.
    centre = mixture.mean
    x, mu = draws.points - centre, mixture.means - centre
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
