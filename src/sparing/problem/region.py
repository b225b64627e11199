"""Where the points of a problem may be: within bounds and support, around the plausible box.

D            number of parameters that are inferred
x            point of them in the user's coordinates                     (D,)
lower, upper hard bounds, each side finite or infinite                   (D,)
PLB, PUB     plausible box, which holds most of the posterior            (D,)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparing.errors import ProblemError
from sparing.numerics.arrays import Array
from sparing.problem.declared_support import DeclaredSupport
from sparing.problem.parameters import Parameters
from sparing.problem.user_values import format_interval, short_text

Points: TypeAlias = ArrayLike | Mapping[str, Any]

# A plausible bound that coincides with a hard bound, or a starting point on one, has no finite
# place in unbounded coordinates: it is moved inside by this fraction of the plausible width.
# For a uniform prior it puts 99.8 % of the mass inside the standardising box.
INWARD_FRACTION = 1e-3

# From a point that is further away than this, the plausible box is lost in rounding, and squared
# distances overflow.
FARTHEST_WIDTHS = 1e15


@dataclass(frozen=True, eq=False)
class Region:
    """Bounds, plausible box and support of the free parameters, and points of theirs."""

    parameters: Parameters
    support: DeclaredSupport | None
    lower: Array
    upper: Array
    plausible_lower: Array
    plausible_upper: Array

    def point(self, x: ArrayLike) -> Array:
        """One point, of free or of all parameters, as (D,); ValueError for anything else."""
        names, fixed = self.parameters.names, self.parameters.fixed
        point, dimension = np.array(x, dtype=np.float64), len(self.lower)
        if dimension == 1 and point.ndim == 0:
            point = point.reshape(1)
        if fixed and point.shape == (len(names),):
            if faults := self.parameters.misplaced(point):
                raise ValueError("; ".join(faults))
            point = point[self.parameters.is_free]
        if point.shape != (dimension,) or np.any(np.isnan(point)):
            raise ValueError(f"a point is {dimension} numbers, not {short_text(x)}")
        return point

    def contains(self, point: Array) -> bool:
        """Whether a point (D,) is within the bounds and the support."""
        if np.any(point < self.lower) or np.any(point > self.upper):
            return False
        return self.support is None or bool(self.support.contains(point[None])[0])

    def inner_plausible_box(self) -> tuple[Array, Array]:
        """(PLB, PUB), moved inside where on a hard bound."""
        low, high, step = self.plausible_lower, self.plausible_upper, self._inward_step
        inner_low = np.where(_touches(low, self.lower), low + step, low)
        return inner_low, np.where(_touches(high, self.upper), high - step, high)

    @property
    def _inward_step(self) -> Array:
        return INWARD_FRACTION * (self.plausible_upper - self.plausible_lower)

    def starting_points(self, x0: Points | None) -> Array:
        """Points (k, D) to start from, off the hard bounds; none for None."""
        if x0 is None:
            return np.empty((0, len(self.lower)))
        points, step = self.read_points(x0, "x0"), self._inward_step
        inner_low, inner_high = self.inner_plausible_box()
        points = np.where(points == self.lower, np.minimum(self.lower + step, inner_low), points)
        points = np.where(points == self.upper, np.maximum(self.upper - step, inner_high), points)
        return points if self.support is None else self.read_points(points, "x0, off its bounds")

    def read_points(self, x: Points, label: str) -> Array:
        """Points (k, D), finite and within bounds and support; ProblemError lists all faults."""
        points = self.parameters.rows(x, label)
        faults = [
            f"{label}{f'[{row}]' if len(points) > 1 else ''}: {name} = {point[i]:g} {fault}"
            for row, point in enumerate(points)
            for i, name in enumerate(self.parameters.free_names)
            if (fault := self._coordinate_fault(i, point[i]))
        ]
        if not faults and self.support is not None:
            outside = map(self.parameters.text, points[~self.support.contains(points)])
            faults = [f"{label}: {place} is outside the support" for place in outside]
        if faults:
            raise ProblemError(faults)
        return points

    def _coordinate_fault(self, i: int, value: float) -> str | None:
        if not np.isfinite(value):
            return "is not finite"
        if value < self.lower[i] or value > self.upper[i]:
            return f"is outside its bounds {format_interval(self.lower[i], self.upper[i])}"
        low, high = float(self.plausible_lower[i]), float(self.plausible_upper[i])
        if np.isinf(self.lower[i]) and np.isinf(self.upper[i]):
            widths = abs(float(value) / 2 - (low / 4 + high / 4)) / (high / 2 - low / 2)
            if widths > FARTHEST_WIDTHS:
                return f"is more than {FARTHEST_WIDTHS:g} widths of its plausible box away from it"
        return None


def _touches(plausible: Array, bound: Array) -> NDArray[np.bool_]:
    """Where a plausible bound coincides with its hard bound, up to rounding."""
    finite = np.isfinite(bound)
    edge = np.where(finite, bound, plausible)
    return finite & (np.abs(plausible - edge) <= 4.0 * np.spacing(np.abs(edge)))
