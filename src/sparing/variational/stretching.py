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
# Tails may be as much lighter or heavier, and maxima as far away, as draws can tell.
LARGEST_LOG_TAIL, LARGEST_SHIFT, LARGEST_SKEWNESS = 1.5, 4.0, 4.0


def levelled_stretch(points: Array, minimal_gain: float, width: float) -> LevelledStretch | None:
    """A stretch for a surrogate, of draws (N, D), which then have this sd; None for less gain.

    It takes their skewness alone: a surrogate believes what its coordinates make of a tail, and
    draws with tails on both sides come of what it believes (decision 20).
    """
    stretch, gain = _fitted(points, 0.0)
    if stretch is None or gain < minimal_gain:
        return None
    return LevelledStretch.of_points(stretch, points, REACH, width)


def stretch_of(points: Array) -> Stretch | None:
    """The stretch of draws of equal weight (N, D); None where no coordinate gains by one."""
    return _fitted(points, LARGEST_LOG_TAIL)[0]


def _fitted(points: Array, largest_log_tail: float) -> tuple[Stretch | None, float]:
    """The stretch of draws, and what it gains in all."""
    mean, sd = points.mean(axis=0), points.std(axis=0)
    if not np.all(np.isfinite(sd) & (sd > 0.0)):
        return None, 0.0
    fits = [_best(column, largest_log_tail) for column in ((points - mean) / sd).T]
    gains, parameters = np.array([gain for gain, _ in fits]), np.array([p for _, p in fits])
    is_stretched = gains >= SMALLEST_GAIN
    if not is_stretched.any():
        return None, 0.0
    # A coordinate that gains nothing stays as it is: sinh(asinh t) is t.
    skewness, log_tail, shift = np.where(is_stretched[:, None], parameters, 0.0).T.copy()
    stretch = Stretch(mean + sd * shift, sd, skewness, np.exp(log_tail))
    return stretch, float(gains[is_stretched].sum())


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
