"""Bends that make a posterior normal, by its third moments and the entropy they explain.

A curved ridge and a funnel are normal distributions seen through a bend (problem/bending.py). Which
one is told by draws. Whitened, so that their covariance is the identity, a bend of Jacobian J that
leaves them with the covariance C brings them nearer to a normal distribution by

    gain = -1/2 log det C + E log J        nats of the divergence from it.

Bends are sought one after the other, along the direction in which one gains most, with a whitening
after each. To lowest order gains are slices of the third moments, 1/4 |T(e, e, .)|^2 of a ridge and
1/4 |T(e, ., .)|^2 of a funnel, without their parts along e: the search begins at their maxima.

    z    whitened draws, (N, D)       T    third moments E[z_i z_j z_k], (D, D, D)
    e    a direction, (D,)            t    z . e            r    t, bounded far away (`Bend`)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from sparing.numerics.arrays import Array
from sparing.problem.bending import Bend, Whitening, reach_of

# Of the gain of all bends before it that one must have: where draws are scattered widely, chance
# alone explains a little.
SMALLEST_SHARE = 0.05
# Draws longer than sqrt(D), as normal ones are, by more than this are drawn in before third moments
# are taken: few far ones would decide alone.
FURTHER = 1.65
# Draws for each dimension, and smallest eigenvalue of their correlations, where bends are sought.
FEWEST_DRAWS, SMALLEST_EIGENVALUE = 50, 1e-10
FARTHEST = 1e100  # the cube of more is no number
# Sds at which parabolas and exponentials level off: beyond what draws tell of, and before an
# exponential leads to where nobody wants an evaluation.
RIDGE_REACH, FUNNEL_REACH = 10.0, 3.0
N_STARTS = 3  # directions from which the best one is sought
MOST_STEPS = 20  # of a search
# Of the minimal gain: less to lowest order, and nothing is sought. Normal draws have 0.2 of the
# usual one in ten dimensions by chance.
WORTH_A_LOOK = 0.3
# The direction of a funnel is sought by differences, with as many of the draws.
N_FEW_DRAWS, FEW_STEPS = 2**9, 10
WORTH_SEEKING = 0.75  # of a ridge's gain: what a funnel must have before that, which adds a tenth
N_SCALINGS, DEGREES = 5, 1.0  # fixed-point iterations of the scales, and their t distribution
LARGEST_RATE = 2.0  # of a scale: a factor of e^2 for each sd; Neal's funnel has 1.5

# A function of a direction, and its gradient.
Climb = Callable[[Array], tuple[float, Array]]


def straightened(z: Array, width: float, minimal_gain: float) -> tuple[Bend, ...]:
    """Bends of whitened draws z times ``width`` in this order, as long as each gains enough."""
    bends: list[Bend] = []
    total = 0.0
    while len(bends) < z.shape[1]:
        found = best_bend(z, width, max(minimal_gain, SMALLEST_SHARE * total))
        if found is None:
            break
        bend, gain = found
        bends.append(bend)
        total += gain
        z = bend.forwards(width * z) / width
    return tuple(bends)


def best_bend(z: Array, width: float, minimal_gain: float) -> tuple[Bend, float] | None:
    """The bend along one direction that gains most, and its gain; None where it is not enough."""
    try:
        return _best_bend(z, width, minimal_gain)
    except np.linalg.LinAlgError:  # draws that are scattered over more digits than a float has
        return None


def is_scattered(points: Array) -> bool:
    """Whether there are enough points (N, D), and no linear relation between their coordinates."""
    if len(points) < FEWEST_DRAWS * points.shape[1] or not np.all(np.abs(points) < FARTHEST):
        return False
    sds = points.std(axis=0)
    if not np.all(sds > 0.0):
        return False
    correlation = np.corrcoef(points / sds, rowvar=False)
    return bool(np.linalg.eigvalsh(correlation)[0] > SMALLEST_EIGENVALUE)


def _best_bend(z: Array, width: float, minimal_gain: float) -> tuple[Bend, float] | None:
    D = z.shape[1]
    longest = np.sqrt(D) + FURTHER
    near = z / np.maximum(1.0, np.linalg.norm(z, axis=1) / longest)[:, None]
    third = np.einsum("ni,nj,nk->ijk", near, near, near, optimize=True) / len(z)
    slabs = third.reshape(D, -1)
    starts = [*np.linalg.eigh(slabs @ slabs.T)[1].T, *np.eye(D)]
    ridges = _maxima(lambda e: ridge_guess(third, e), starts)
    funnels = _maxima(lambda e: funnel_guess(third, e), starts)
    guesses = ridge_guess(third, ridges[0])[0], funnel_guess(third, funnels[0])[0]
    if max(guesses) < WORTH_A_LOOK * minimal_gain:
        return None
    shift, rates, axes, reach = np.zeros(D), np.zeros(D), np.eye(D), RIDGE_REACH
    e, gain = ridge_direction(z, [*starts, *ridges])
    few = z[:N_FEW_DRAWS]  # the first of evenly spread draws are; every fourth are not
    direction, promise = funnel_start(few, [*starts, *funnels])
    by_chance = 0.5 * D * (D - 1) / len(few)  # of normal draws, by the numbers in S
    if promise - by_chance > WORTH_SEEKING * max(gain, minimal_gain):
        direction = _climbed_by_differences(lambda e: funnel_gain(few, e), direction)
        promise = funnel_gain(z, direction)
    if max(gain, promise) < minimal_gain:
        return None
    if promise > gain:
        e, gain, reach = direction, promise, FUNNEL_REACH
        rates, axes = np.linalg.eigh(funnel_scales(z, e))
    else:
        shift = ridge_shift(z, e)
    plain = Bend(e / width, width * shift, axes, rates, reach, Whitening.nothing(D))
    return plain.whitened(width * z, width), gain


def ridge_direction(z: Array, starts: list[Array]) -> tuple[Array, float]:
    """The direction along which a parabola explains most, and its gain."""
    best = _maxima(lambda e: ridge_gain(z, e), starts)[0]
    return best, ridge_gain(z, best)[0]


def funnel_start(z: Array, starts: list[Array]) -> tuple[Array, float]:
    """Which of these directions is the one along which an exponential explains most; its gain."""
    gains = [funnel_gain(z, e) for e in starts]
    best = int(np.argmax(gains))
    return starts[best], gains[best]


def ridge_guess(third: Array, e: Array) -> tuple[float, Array]:
    """The gain to lowest order and its gradient."""
    T_e = third @ e
    T_ee = T_e @ e
    T_eee = float(T_ee @ e)
    return 0.25 * (float(T_ee @ T_ee) - T_eee**2), T_e @ T_ee - 1.5 * T_eee * T_ee


def ridge_gain(z: Array, e: Array) -> tuple[float, Array]:
    """-1/2 log(1 - share of the variance that r^2 explains beyond t), and its gradient."""
    N = len(z)
    r, slope = reach_of(z @ e, RIDGE_REACH)
    rise = 2.0 * r * slope
    parabola = r * r - np.mean(r * r)
    common = parabola @ z / N
    along = float(common @ e)
    explained = float(common @ common) - along**2
    spread = float(parabola @ parabola) / N - along**2
    share = min(explained / spread, 1.0 - 1e-12)
    turning = (z * (rise / N)[:, None]).T @ z  # of `common`, by e
    along_slope = turning @ e + common
    explained_slope = 2.0 * (turning @ common - along * along_slope)
    spread_slope = 2.0 * ((parabola * rise) @ z / N - along * along_slope)
    share_slope = (explained_slope - share * spread_slope) / spread
    return -0.5 * float(np.log1p(-share)), 0.5 * share_slope / (1.0 - share)


def ridge_shift(z: Array, e: Array) -> Array:
    """c, (D,): the regression of the others on r^2, given t."""
    r = reach_of(z @ e, RIDGE_REACH)[0]
    parabola = r * r - np.mean(r * r)
    common = parabola @ z / len(z)
    along = float(common @ e)
    return (common - along * e) / (float(parabola @ parabola) / len(z) - along**2)


def funnel_guess(third: Array, e: Array) -> tuple[float, Array]:
    """The gain to lowest order and its gradient."""
    T_e = third @ e
    T_ee = T_e @ e
    T_eee = float(T_ee @ e)
    value = 0.25 * (float(np.sum(T_e * T_e)) - 2.0 * float(T_ee @ T_ee) + T_eee**2)
    return value, 0.5 * np.tensordot(T_e, third, 2) - 2.0 * T_e @ T_ee + 1.5 * T_eee * T_ee


def funnel_gain(z: Array, e: Array) -> float:
    """What scales that are exponentials of r explain."""
    scales = funnel_scales(z, e)
    r = reach_of(z @ e, FUNNEL_REACH)[0]
    determinant = np.linalg.slogdet(np.cov(_scaled(scales, -r, z), rowvar=False))[1]
    return -0.5 * float(determinant) - float(np.trace(scales) * r.mean())


def funnel_scales(z: Array, e: Array) -> Array:
    """S, (D, D): then the variances no longer depend on t.

    Draws count as in the fit of a t distribution, so that the few at a funnel's wide end do not
    decide alone while it is not straight yet.
    """
    D = z.shape[1]
    r = reach_of(z @ e, FUNNEL_REACH)[0]
    scales = np.zeros((D, D))
    for _ in range(N_SCALINGS):
        scaled = _across(_scaled(scales, -r, z), e)
        inverse = _inverse_root(scaled.T @ scaled / len(z), e)
        squares = np.square(scaled @ inverse.T).sum(axis=1)
        weights = 1.0 / (DEGREES + squares)
        weights /= weights.sum()
        centred = r - weights @ r
        inverse = _inverse_root((scaled.T * weights) @ scaled, e)
        turned = (scaled.T * (weights * centred)) @ scaled
        slopes = inverse @ turned @ inverse.T / (weights @ centred**2)
        step = _across(_across(slopes, e).T, e)
        values, axes = np.linalg.eigh(scales + 0.25 * (step + step.T))
        scales = (axes * np.clip(values, -LARGEST_RATE, LARGEST_RATE)) @ axes.T
    return scales


def _inverse_root(covariance: Array, e: Array) -> Array:
    """That of the lower Cholesky factor of a covariance across e, with one along it, (D, D)."""
    root = np.linalg.cholesky(covariance + np.outer(e, e))
    return np.asarray(np.linalg.inv(root), dtype=np.float64)


def _scaled(scales: Array, r: Array, z: Array) -> Array:
    """exp(r S) times each row."""
    rates, axes = np.linalg.eigh(scales)
    return (np.exp(np.outer(r, rates)) * (z @ axes)) @ axes.T


def _across(rows: Array, e: Array) -> Array:
    """Rows (..., D) without their part along e."""
    return rows - np.multiply.outer(rows @ e, e)


def _maxima(function: Climb, starts: list[Array]) -> list[Array]:
    """Those uphill of the best of these directions, the highest one first."""
    ranked = sorted(starts, key=lambda e: -function(e)[0])
    return sorted(
        (_climbed(function, start) for start in ranked[:N_STARTS]), key=lambda e: -function(e)[0]
    )


def _climbed(function: Climb, start: Array) -> Array:
    """The direction uphill of one."""

    def loss(e: Array) -> tuple[float, Array]:
        length = float(np.linalg.norm(e))
        unit = e / length
        value, gradient = function(unit)
        return -value, (float(gradient @ unit) * unit - gradient) / length

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": MOST_STEPS})
    return found.x / np.linalg.norm(found.x)


def _climbed_by_differences(function: Callable[[Array], float], start: Array) -> Array:
    def loss(e: Array) -> float:
        return -function(e / np.linalg.norm(e))

    found = minimize(loss, start, method="L-BFGS-B", options={"maxiter": FEW_STEPS})
    return found.x / np.linalg.norm(found.x)
