"""Coordinate-wise slice sampling with stepping out and shrinkage (Neal 2003, Section 4).

Notation (P coordinates)
    x        the current point, (P,)
    level    log of the auxiliary height, uniform under the density at x
    slice    the values of one coordinate whose log density exceeds the level
    width    w, the initial guess of a slice's extent, one per coordinate, (P,)

Any fixed widths leave the density invariant; good ones save evaluations. They are tuned during
burn-in and frozen afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sparing.numerics.arrays import Array

# Two uniform draws from an interval are a third of its length apart on average.
INTERVAL_PER_JUMP = 3.0
# An interval shrunk to this fraction of its first extent holds nothing but the current point.
SMALLEST_INTERVAL = 1e-14

Conditional = Callable[[float], float]


class CoordinateDensity(Protocol):
    """A log density, up to one constant, that is evaluated along one coordinate at a time."""

    def along(self, point: Array, index: int) -> Conditional:
        """The log density as a function of coordinate index, the others held at point."""
        ...


@dataclass(frozen=True, eq=False)
class SliceBox:
    """Hard bounds (P,) each, and how many widths a slice may be stepped out over."""

    lower: Array
    upper: Array
    max_widths: int


def slice_sample(
    density: CoordinateDensity,
    start: Array,
    widths: Array,
    box: SliceBox,
    n_samples: int,
    burn_in: int,
    thinning: int,
    generator: np.random.Generator,
) -> tuple[Array, Array]:
    """Points (n_samples, P), thinning sweeps apart after burn_in ones, and tuned widths (P,)."""
    point = np.array(start, dtype=np.float64)
    if not ((point >= box.lower) & (point <= box.upper)).all():
        raise ValueError("slice sampling must start within the bounds")
    log_density = density.along(point, 0)(float(point[0]))
    if not math.isfinite(log_density):
        raise ValueError("slice sampling must start where the density is positive and finite")
    widths = np.array(widths, dtype=np.float64)
    jumps = widths / INTERVAL_PER_JUMP  # sum of jump lengths; the first guess counts as one jump
    for sweep in range(burn_in):
        before = point.copy()
        log_density = _sweep(density, point, log_density, widths, box, generator)
        jumps += np.abs(point - before)
        widths = INTERVAL_PER_JUMP * jumps / (sweep + 2)
    points = np.empty((n_samples, point.size))
    for i in range(n_samples):
        for _ in range(thinning):
            log_density = _sweep(density, point, log_density, widths, box, generator)
        points[i] = point
    return points, widths


def _sweep(
    density: CoordinateDensity,
    point: Array,
    log_density: float,
    widths: Array,
    box: SliceBox,
    generator: np.random.Generator,
) -> float:
    """Update every coordinate of point in turn, in place; the log density at the end."""
    for index in range(point.size):
        point[index], log_density = update_coordinate(
            density.along(point, index),
            float(point[index]),
            log_density,
            float(widths[index]),
            (float(box.lower[index]), float(box.upper[index])),
            box.max_widths,
            generator,
        )
    return log_density


def update_coordinate(
    conditional: Conditional,
    position: float,
    log_density: float,
    width: float,
    bounds: tuple[float, float],
    max_widths: int,
    generator: np.random.Generator,
) -> tuple[float, float]:
    """One slice update of a single coordinate: its new position and the log density there."""
    level = log_density - generator.exponential()
    left, right = _step_out(conditional, position, level, width, bounds, max_widths, generator)
    smallest = SMALLEST_INTERVAL * (right - left)
    while right - left > smallest:
        proposal = generator.uniform(left, right)
        value = conditional(proposal)
        if value > level:
            return proposal, value
        if proposal < position:  # shrink towards the current position (Neal 2003, Fig. 5)
            left = proposal
        else:
            right = proposal
    return position, log_density


def _step_out(
    conditional: Conditional,
    position: float,
    level: float,
    width: float,
    bounds: tuple[float, float],
    max_widths: int,
    generator: np.random.Generator,
) -> tuple[float, float]:
    """An interval of at most max_widths widths around the slice (Neal 2003, Fig. 3)."""
    lower, upper = bounds
    left = position - width * generator.uniform()
    right = left + width
    steps_left = int(generator.integers(max_widths))
    steps_right = max_widths - 1 - steps_left
    while steps_left > 0 and left > lower and conditional(left) > level:
        left -= width
        steps_left -= 1
    while steps_right > 0 and right < upper and conditional(right) > level:
        right += width
        steps_right -= 1
    return max(left, lower), min(right, upper)
