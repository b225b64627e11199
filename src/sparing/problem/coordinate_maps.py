"""The map of one parameter from its interval to the real line (Section S2.3).

x    value of the parameter                                           (m,)
v    unbounded: v = g(x), increasing                                  (m,)
z    (x - lower) / (upper - lower), for a parameter with both bounds

g(x) = x                            no bound
       F^-1(z)                      both; F logistic (the paper's logit) or normal (probit)
       log(x - lower)               lower bound only
       -log(upper - x)              upper bound only
       F^-1(z) of x turned back     periodic: the bounds are one place, and the seam at which the
                                    circle is cut open may be anywhere
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import log_expit, log_ndtr, ndtri_exp

from sparing.numerics.arrays import Array

LARGEST = float(np.finfo(np.float64).max)
SMALLEST = float(np.finfo(np.float64).tiny)
# A point on a bound is treated as this close to it, relative to the near plausible bound (or, for
# a box that spans decades, as three box widths of log distance beyond it): a finite outlier.
EDGE_DISTANCE = 1e-30
EDGE_BOX_WIDTHS = 3.0
LOG_2_PI = float(np.log(2.0 * np.pi))
LARGEST_SQUARABLE = 1e150
# How far from the plausible box a point may be worth an evaluation: in box widths without bounds,
# by a factor of the distance to a single bound, by a share of the range next to one of two bounds.
REACH_WIDTHS = 100.0
REACH_FACTOR = 1e6
REACH_SHARE = 1e-9


class BoundedMap(enum.Enum):
    """The distribution F whose quantile function maps (0, 1) to the real line.

    >>> from dataclasses import replace
    >>> settings = replace(sparing.Settings(), bounded_map=sparing.BoundedMap.LOGIT)
    """

    LOGIT = "logit"  # the paper, Section S2.3
    PROBIT = "probit"  # a uniform density becomes normal, the shape the surrogate expects

    def log_tail(self, v: Array) -> Array:
        """Log F(v), for v <= 0.

        >>> np.exp(sparing.BoundedMap.PROBIT.log_tail(np.array([0.0, -1.96]))).round(3)
        array([0.5  , 0.025])
        """
        return log_expit(v) if self is BoundedMap.LOGIT else log_ndtr(v)

    def tail_quantile(self, log_probability: Array) -> Array:
        """F^-1(exp(log_probability)), for probabilities up to 1/2.

        >>> sparing.BoundedMap.PROBIT.tail_quantile(np.log([0.5, 0.025])).round(2)
        array([ 0.  , -1.96])
        """
        if self is BoundedMap.LOGIT:
            return log_probability - np.log1p(-np.exp(log_probability))
        return ndtri_exp(log_probability)

    def log_density(self, v: Array) -> Array:
        """Log F'(v).

        >>> np.exp(sparing.BoundedMap.LOGIT.log_density(np.array([0.0])))
        array([0.25])
        """
        if self is BoundedMap.LOGIT:
            return log_expit(v) + log_expit(-v)
        squarable = np.clip(v, -LARGEST_SQUARABLE, LARGEST_SQUARABLE)
        return -0.5 * (squarable**2 + LOG_2_PI)

    def log_density_slope(self, v: Array) -> Array:
        """The derivative of log F'(v).

        >>> sparing.BoundedMap.PROBIT.log_density_slope(np.array([1.5]))
        array([-1.5])
        """
        if self is BoundedMap.LOGIT:
            return -np.tanh(0.5 * v)
        return -np.clip(v, -LARGEST_SQUARABLE, LARGEST_SQUARABLE)


class Coordinate(Protocol):
    """The map g of one parameter."""

    def to_unbounded(self, x: Array) -> Array:
        """v = g(x), finite on the bounds too: (m,)."""
        ...

    def to_bounded(self, v: Array) -> Array:
        """x = g^-1(v), finite and within the closed bounds: (m,)."""
        ...

    def log_derivative(self, v: Array) -> Array:
        """Log dx/dv: (m,)."""
        ...

    def log_derivative_slope(self, v: Array) -> Array:
        """The derivative of log dx/dv with respect to v: (m,)."""
        ...

    def reach(self, centre: float, width: float) -> tuple[float, float]:
        """The v beyond which nothing is worth an evaluation, for a plausible box in v."""
        ...


@dataclass(frozen=True)
class Unbounded:
    """g(x) = x."""

    def to_unbounded(self, x: Array) -> Array:
        """v = x."""
        return x

    def to_bounded(self, v: Array) -> Array:
        """x = v."""
        return v

    def log_derivative(self, v: Array) -> Array:
        """Log 1."""
        return np.zeros_like(v)

    def log_derivative_slope(self, v: Array) -> Array:
        """None."""
        return np.zeros_like(v)

    def reach(self, centre: float, width: float) -> tuple[float, float]:
        """So many box widths."""
        beyond = REACH_WIDTHS * float(width)
        return max(float(centre) - beyond, -LARGEST), min(float(centre) + beyond, LARGEST)


@dataclass(frozen=True)
class HalfBounded:
    """g(x) = sign log(sign (x - bound)): sign +1 for a lower bound, -1 for an upper one."""

    bound: float
    sign: float
    edge: float  # smallest distance to the bound that is told from zero

    def to_unbounded(self, x: Array) -> Array:
        """Log distance to the bound."""
        return self.sign * np.log(np.maximum(self.sign * (x - self.bound), self.edge))

    def to_bounded(self, v: Array) -> Array:
        """The bound plus or minus exp(|v|)."""
        return np.clip(self.bound + self.sign * np.exp(self.sign * v), -LARGEST, LARGEST)

    def log_derivative(self, v: Array) -> Array:
        """dx/dv is the distance itself."""
        return self.sign * v

    def log_derivative_slope(self, v: Array) -> Array:
        """The sign."""
        return np.full_like(v, self.sign)

    def reach(self, centre: float, width: float) -> tuple[float, float]:
        """A factor closer to the bound or further from it than the box."""
        beyond = 0.5 * width + float(np.log(REACH_FACTOR))
        return centre - beyond, centre + beyond


@dataclass(frozen=True)
class Bounded:
    """g(x) = F^-1(z), computed from the nearer bound: 1 - z loses the digits of a small z."""

    lower: float
    upper: float
    edge_lower: float
    edge_upper: float
    bounded_map: BoundedMap

    def reach(self, centre: float, width: float) -> tuple[float, float]:
        """A small share of the range from each bound; further where the box reaches further."""
        edge = float(self.bounded_map.tail_quantile(np.log(np.array([REACH_SHARE])))[0])
        return min(edge, centre - width), max(-edge, centre + width)

    def to_unbounded(self, x: Array) -> Array:
        """F^-1(z) below the middle, -F^-1(1 - z) above it."""
        from_lower = np.maximum(x - self.lower, self.edge_lower)
        from_upper = np.maximum(self.upper - x, self.edge_upper)
        in_lower_half = from_lower <= from_upper
        distance = np.where(in_lower_half, from_lower, from_upper)
        # distance / width underflows for ranges such as [1e-300, 1e300]
        z = distance / (self.upper - self.lower)
        tiny = np.log(distance) - np.log(self.upper - self.lower)
        log_z = np.where(z > SMALLEST, np.log(np.maximum(z, SMALLEST)), tiny)
        tail = self.bounded_map.tail_quantile(np.minimum(log_z, -np.log(2.0)))
        return np.where(in_lower_half, tail, -tail)

    def to_bounded(self, v: Array) -> Array:
        """Lower + width F(v) below the middle, upper - width F(-v) above it."""
        width = self.upper - self.lower
        log_z = self.bounded_map.log_tail(-np.abs(v))
        z = np.exp(log_z)
        distance = np.where(z > SMALLEST, width * z, np.exp(np.log(width) + log_z))
        x = np.where(v <= 0.0, self.lower + distance, self.upper - distance)
        return np.clip(x, self.lower, self.upper)

    def log_derivative(self, v: Array) -> Array:
        """dx/dv = width F'(v)."""
        return np.log(self.upper - self.lower) + self.bounded_map.log_density(v)

    def log_derivative_slope(self, v: Array) -> Array:
        """That of log F'(v)."""
        return self.bounded_map.log_density_slope(v)


@dataclass(frozen=True)
class Periodic:
    """A parameter that wraps at its bounds: the circle, cut open at a seam.

    ``turn`` is how far the seam is above the lower bound. A value beyond the bounds is the one
    within them at the same place of the circle.
    """

    inner: Bounded
    turn: float

    @property
    def period(self) -> float:
        """The length of the circle."""
        return self.inner.upper - self.inner.lower

    def to_unbounded(self, x: Array) -> Array:
        """That of the place on the circle that has been cut open."""
        return self.inner.to_unbounded(self._turned(x, -self.turn))

    def to_bounded(self, v: Array) -> Array:
        """Wrapped to the bounds."""
        return self._turned(self.inner.to_bounded(v), self.turn)

    def log_derivative(self, v: Array) -> Array:
        """Turning changes no length."""
        return self.inner.log_derivative(v)

    def log_derivative_slope(self, v: Array) -> Array:
        """As with two bounds."""
        return self.inner.log_derivative_slope(v)

    def reach(self, centre: float, width: float) -> tuple[float, float]:
        """As with two bounds."""
        return self.inner.reach(centre, width)

    def _turned(self, x: Array, angle: float) -> Array:
        lower, upper = self.inner.lower, self.inner.upper
        turned = lower + np.mod(x - lower + angle, self.period)
        stays = (x >= lower) & (x <= upper) & (angle == 0.0)
        return np.where(stays, x, np.clip(turned, lower, upper))


def periodic_map(
    lower: float, upper: float, low: float, high: float, bounded_map: BoundedMap
) -> Periodic:
    """The map of a parameter that wraps at its bounds, the seam opposite to its plausible box."""
    middle, half = 0.5 * (lower + upper), 0.5 * (high - low)
    turn = 0.5 * (low + high) - middle
    if abs(turn) < 4.0 * np.spacing(max(abs(lower), abs(upper))):
        turn = 0.0
    inner = _bounded(lower, upper, middle - half, middle + half, bounded_map)
    return Periodic(inner, float(np.mod(turn, upper - lower)))


def coordinate_map(
    lower: float, upper: float, low: float, high: float, bounded_map: BoundedMap
) -> Coordinate:
    """The map of one parameter with these hard bounds and this (inner) plausible box."""
    has_lower, has_upper = np.isfinite(lower), np.isfinite(upper)
    if has_lower and has_upper:
        return _bounded(lower, upper, low, high, bounded_map)
    if has_lower:
        return HalfBounded(float(lower), 1.0, _edge(lower, low, high))
    if has_upper:
        return HalfBounded(float(upper), -1.0, _edge(upper, high, low))
    return Unbounded()


def _bounded(
    lower: float, upper: float, low: float, high: float, bounded_map: BoundedMap
) -> Bounded:
    edges = _edge(lower, low, high), _edge(upper, high, low)
    return Bounded(float(lower), float(upper), *edges, bounded_map)


def _edge(bound: float, near: float, far: float) -> float:
    """The distance given to a point on the bound, from the plausible bounds near it and far."""
    hidden_by_rounding = 0.25 * float(np.spacing(abs(bound)))
    ratio = abs(near - bound) / abs(far - bound)
    beyond = min(EDGE_DISTANCE, ratio**EDGE_BOX_WIDTHS) * abs(near - bound)
    return max(hidden_by_rounding, beyond, SMALLEST)
