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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.errors import ProblemError
from sparing.numerics.arrays import Array
from sparing.problem.user_values import format_interval, numeric_array, one_number, short_text

VECTORS = ("lower", "upper", "plausible_lower", "plausible_upper")
# Of a parameter for which they are not given: no bounds, and an empty box, which nobody would give.
NOT_GIVEN: dict[str, float] = dict(zip(VECTORS, (-np.inf, np.inf, np.inf, -np.inf), strict=True))


@dataclass(frozen=True, eq=False)
class Parameters:
    """What was given for every parameter; what is not is in `NOT_GIVEN`."""

    names: tuple[str, ...]
    vectors: Mapping[str, Array]  # one for each of VECTORS, (N,)
    prior: object  # as it was given
    fixed: Mapping[str, float]
    periodic: tuple[str, ...] = ()  # those that wrap at their bounds

    @cached_property
    def is_free(self) -> NDArray[np.bool_]:
        """Which parameters are inferred, (N,)."""
        return np.array([name not in self.fixed for name in self.names], dtype=np.bool_)

    @property
    def free_names(self) -> tuple[str, ...]:
        """The names of those that are inferred, (D,)."""
        return tuple(name for name in self.names if name not in self.fixed)

    @property
    def free_periodic(self) -> tuple[str, ...]:
        """Those that wrap at their bounds and are inferred."""
        return tuple(name for name in self.periodic if name not in self.fixed)

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

    def lines(self) -> list[str]:
        """For each parameter its bounds and its plausible box, or the value it is fixed at."""
        lines: list[str] = []
        width = max(len(name) for name in self.names)
        for i, name in enumerate(self.names):
            lower, upper, low, high = (self.vectors[label][i] for label in VECTORS)
            wraps = ", where it wraps" if name in self.periodic else ""
            box = (
                f"in {format_interval(lower, upper)}{wraps}, plausibly {format_interval(low, high)}"
            )
            text = f"fixed at {self.fixed[name]:g}" if name in self.fixed else box
            lines.append(f"  {name:<{width}}  {text}")
        return lines

    def rows(self, x: Any, label: str) -> Array:
        """One point or several, of free or of all parameters, or by name: (k, D).

        ProblemError where they are nothing of the kind; values are not looked at.
        """
        n_free, n_all = len(self.free_names), len(self.names)
        try:
            points = self._by_name(x, label) if isinstance(x, Mapping) else numeric_array(x)
        except ProblemError:
            raise
        except ValueError as error:
            raise ProblemError([f"{label} {error}"]) from None
        shape = points.shape
        if n_free == 1 and points.ndim < 2:
            if self.fixed and shape == (n_all,):
                one, several = f"(1, {n_all})", f"({n_all}, 1)"
                fault = f"may be one point of all parameters, {one}, or {several}: give it as such"
                raise ProblemError([f"{label} of shape {shape} {fault}"])
            points = points.reshape(-1, 1)
        points = np.atleast_2d(points)
        if points.ndim != 2 or points.shape[1] not in (n_free, n_all):
            expected = f"({n_free},) or (k, {n_free})"
            raise ProblemError([f"{label} has shape {shape}, expected {expected}"])
        if points.shape[1] == n_free:
            return points
        faults = [f"{label}: {fault}" for point in points for fault in self.misplaced(point)]
        if faults:
            raise ProblemError(faults)
        return points[:, self.is_free]

    def _by_name(self, given: Mapping[Any, object], label: str) -> Array:
        """Numbers, or sequences of as many, by name: (D,) or (k, D)."""
        unknown = [name for name in given if name not in self.names]
        faults = [f"{label} names {short_text(name)}, which is not a parameter" for name in unknown]
        absent = [name for name in self.free_names if name not in given]
        faults += [f"{label} has no value for {', '.join(map(repr, absent))}"] if absent else []
        for name, value in self.fixed.items():
            if name in given and one_number(given[name]) != value:
                shown = short_text(given[name])
                faults.append(f"{label}: {name} = {shown}, but it is fixed at {value:g}")
        if faults:
            raise ProblemError(faults)
        columns = [numeric_array(given[name]) for name in self.free_names]
        lengths = {column.shape for column in columns if column.shape}
        if len(lengths) > 1:
            raise ValueError("has a different number of values for different parameters")
        return np.stack(np.broadcast_arrays(*columns), axis=-1)

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
