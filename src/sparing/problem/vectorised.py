"""What a log density of many points at once returned, point by point.

m    points of one call      N    parameters of each, the fixed ones included

It takes (m, N) and returns (m,) values, or a tuple of them and their noise: (m,), or one number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparing.errors import TargetError
from sparing.numerics.arrays import Array
from sparing.problem.user_values import short_text


def point_by_point(returned: object, x: Array) -> list[Any]:
    """For each point of x (m, N) what a log density of one point would have returned.

    TargetError where there is not one value for each: a fault of the target, not of a point.
    """
    if not isinstance(returned, tuple):
        return _rows(returned, x)
    values, *others = returned or (None,)
    parts = [[part] * len(x) if np.ndim(part) == 0 else _rows(part, x, 2) for part in others]
    return list(zip(_rows(values, x), *parts, strict=True))


def _rows(part: Any, x: Array, most_axes: int = 1) -> list[Any]:
    """The rows of an array; one number will do for one point."""
    try:
        array = np.asanyarray(part)  # a masked one stays masked
    except Exception:  # ragged, or of another library and not on this machine
        array = np.empty((0, 0))
    if array.ndim == 0 and len(x) == 1:
        return [part]
    if 1 <= array.ndim <= most_axes and len(array) == len(x):
        return list(array)
    what = f"an array of shape {array.shape}" if array.size and array.ndim else short_text(part)
    one = f"({len(x)},)"
    raise TargetError(
        f"log_density is vectorised, but returned {what} for x of shape {x.shape}: it must return "
        f"values of shape {one}, or a tuple of values and noise_sds, {one} each"
    )
