"""The stretch in which draws are nearest to normal ones, coordinate by coordinate.

A mixture of normals describes a marginal that ends sharply, as that of a positive parameter's
logarithm does, by tails that reach beyond it; one skewed coordinate it can afford, not six. In
coordinates in which each by itself is normal it need not (docs/decisions/0020).

Brought to unit variance, a map g of draws t brings them nearer to a normal distribution by

    gain = E log g'(t) - log sd(g(t))        nats of the divergence from it.

    t    draws of one coordinate in sds from their mean, (N,)
    g    sinh(d asinh(t - s) - e) (`Stretch`)
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from sparing.numerics.arrays import Array
from sparing.problem.bending import LevelledStretch, Stretch

SMALLEST_GAIN = 0.01  # nats of a coordinate: 2048 normal draws gain 0.003 at most by chance
REACH = 4.0  # sds within which a surrogate's coordinates are stretched: beyond are no draws
# Draws are skewed, not heavy in both tails, where skewness alone has this share of what a stretch
# gains: of an exponential's logarithm 0.96, of a t distribution next to nothing.
SKEWNESS_SHARE = 0.5
# Tails may be as much lighter or heavier, and maxima as far away, as draws can tell.
LARGEST_LOG_TAIL, LARGEST_SHIFT, LARGEST_SKEWNESS = 1.5, 4.0, 4.0


def levelled_stretch(points: Array, minimal_gain: float, width: float) -> LevelledStretch | None:
    """A stretch for a surrogate, of draws (N, D), which then have this sd; None for less gain.

    It takes their skewness alone: a surrogate believes what its coordinates make of a tail, and
    draws with tails on both sides come of what it believes (decision 20).
    """
    if not _is_scattered(points):
        return None
    gains, parameters = _fits(points, 0.0)
    gains_with_tails, _ = _fits(points, LARGEST_LOG_TAIL)
    gains[gains < np.maximum(SMALLEST_GAIN, SKEWNESS_SHARE * gains_with_tails)] = 0.0
    stretch = _where_it_gains(points, gains, parameters)
    if stretch is None or gains.sum() < minimal_gain:
        return None
    return LevelledStretch.of_points(stretch, points, REACH, width)


def stretch_of(points: Array) -> Stretch | None:
    """The stretch of draws of equal weight (N, D); None where no coordinate gains by one."""
    if not _is_scattered(points):
        return None
    return _where_it_gains(points, *_fits(points, LARGEST_LOG_TAIL))


def _is_scattered(points: Array) -> bool:
    sd = points.std(axis=0)
    return bool(np.all(np.isfinite(sd) & (sd > 0.0)))


def _fits(points: Array, largest_log_tail: float) -> tuple[Array, Array]:
    """Gains and [e, log d, s] of each coordinate of draws (N, D): (D,) and (D, 3)."""
    z = (points - points.mean(axis=0)) / points.std(axis=0)
    fits = [_best(column, largest_log_tail) for column in z.T]
    return np.array([gain for gain, _ in fits]), np.array([p for _, p in fits])


def _where_it_gains(points: Array, gains: Array, parameters: Array) -> Stretch | None:
    """A coordinate that gains nothing stays as it is: sinh(asinh t) is t."""
    is_stretched = gains >= SMALLEST_GAIN
    if not is_stretched.any():
        return None
    skewness, log_tail, shift = np.where(is_stretched[:, None], parameters, 0.0).T.copy()
    mean, sd = points.mean(axis=0), points.std(axis=0)
    return Stretch(mean + sd * shift, sd, skewness, np.exp(log_tail))


def _best(t: Array, largest_log_tail: float) -> tuple[float, Array]:
    """The largest gain, and [e, log d, s] that have it."""

    def loss(p: Array) -> tuple[float, Array]:
        gain, gradient = stretch_gain(t, p)
        return -gain, -gradient

    bounds = [(-b, b) for b in (LARGEST_SKEWNESS, largest_log_tail, LARGEST_SHIFT)]
    found = minimize(loss, np.zeros(3), jac=True, method="L-BFGS-B", bounds=bounds)
    return -float(found.fun), found.x


def stretch_gain(t: Array, p: Array) -> tuple[float, Array]:
    """The gain of p = [e, log d, s] and its gradient, (3,)."""
    e, d, s = p[0], np.exp(p[1]), p[2]
    z = t - s
    root = np.sqrt(1.0 + z * z)
    asinh = np.arcsinh(z)
    g, slope = np.sinh(d * asinh - e), np.cosh(d * asinh - e)  # slope is dg / d(argument)
    centred = g - g.mean()
    variance = float(np.mean(centred * centred))
    gain = float(np.mean(np.log(slope) - np.log(root))) + p[1] - 0.5 * np.log(variance)
    moved = np.stack([-np.ones_like(t), d * asinh, -d / root])  # d(argument) / dp, (3, N)
    gradient = moved @ (g / slope) / len(t) - moved @ (slope * centred) / (len(t) * variance)
    gradient[1] += 1.0
    gradient[2] += float(np.mean(z / root**2))
    return gain, gradient
