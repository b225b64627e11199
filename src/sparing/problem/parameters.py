"""All parameters of a log density, in its order: those that are inferred, and those that are fixed.

    N   parameters of the log density        D   of them free: what everything else sees
    x   point of the free parameters, (D,)   full x   point of all parameters, (N,)

Everything but the calls of the user's functions works on the free parameters, so that a problem
with fixed ones is, bit for bit, the problem without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sparing.numerics.arrays import Array
from sparing.problem.user_values import format_interval, one_number, short_text

VECTORS = ("lower", "upper", "plausible_lower", "plausible_upper")


@dataclass(frozen=True, eq=False)
class Parameters:
    """What was given for every parameter; a fixed one may have no plausible box (NaN)."""

    names: tuple[str, ...]
    vectors: Mapping[str, Array]  # one for each of VECTORS, (N,)
    prior: object  # as it was given
    fixed: Mapping[str, float]

    @cached_property
    def is_free(self) -> NDArray[np.bool_]:
        """Which parameters are inferred, (N,)."""
        return np.array([name not in self.fixed for name in self.names], dtype=np.bool_)

    @property
    def free_names(self) -> tuple[str, ...]:
        """The names of those that are inferred, (D,)."""
        return tuple(name for name in self.names if name not in self.fixed)

    @property
    def free_vectors(self) -> dict[str, Array]:
        """Bounds and plausible box of those that are inferred, (D,) each."""
        return {label: vector[self.is_free] for label, vector in self.vectors.items()}

    def full(self, points: Array) -> Array:
        """Points x (..., D) as points of all parameters, (..., N): a new array."""
        values = np.array([self.fixed.get(name, np.nan) for name in self.names])
        full = np.broadcast_to(values, (*points.shape[:-1], len(self.names))).copy()
        full[..., self.is_free] = points
        return full

    def text(self, x: Array) -> str:
        """A point x (D,) by the names and values of all parameters."""
        pairs = zip(self.names, self.full(x).tolist(), strict=True)
        return ", ".join(f"{name} = {value!r}" for name, value in pairs)

    def misplaced(self, full: Array) -> list[str]:
        """What a point (N,) says of fixed parameters that is not so."""
        pairs = zip(self.names, full.tolist(), strict=True)
        return [
            f"{name} = {value:g}, but it is fixed at {self.fixed[name]:g}"
            for name, value in pairs
            if self.fixed.get(name, value) != value
        ]


def fixed_values(
    fixed: object, names: Sequence[str], vectors: Mapping[str, Array] | None, faults: list[str]
) -> dict[str, float]:
    """The values by name; whatever is wrong with them is noted."""
    if fixed is None:
        return {}
    if not isinstance(fixed, Mapping):
        example = f"{{{names[-1]!r}: 1.0}}"
        faults.append(f"fixed must map names to values, as {example} does: {short_text(fixed)}")
        return {}
    values: dict[str, float] = {}
    for name, given in fixed.items():
        value = one_number(given)
        if name not in names:
            known = ", ".join(names)
            faults.append(f"fixed names {short_text(name)}, which is not a parameter: {known}")
        elif value is None or not np.isfinite(value):
            faults.append(f"fixed: {name} is {short_text(given)}, which is not a finite number")
        else:
            values[name] = value
    if vectors is not None:
        for name, value in values.items():
            low, high = (vectors[end][names.index(name)] for end in ("lower", "upper"))
            if not low <= value <= high:
                interval = format_interval(low, high)
                faults.append(f"fixed: {name} = {value:g} is outside its bounds {interval}")
    if len(values) == len(names):
        faults.append("fixed holds every parameter: at least one must be free")
    return values
