"""Checks of a problem's arguments; faults are collected, so that all are listed at once.

    lower, upper                        hard bounds of a parameter
    plausible_lower, plausible_upper    its plausible box

A fault is one sentence that names the argument or the parameter and says what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sparing.numerics.arrays import Array
from sparing.problem.user_values import numeric_array, short_text
from sparing.readable_text import readable

# The plausible box must be resolved by doubles: this many steps of their grid at least, so that
# INWARD_FRACTION of it is still several steps.
FEWEST_STEPS = 10_000


def read(value: object, label: str, missing: float | None, faults: list[str]) -> Array | None:
    """One argument as a scalar or vector, or None with the fault noted."""
    if value is None and missing is None:
        faults.append(f"{label} is missing: give it, or a prior that it can be read from")
        return None
    try:
        array = numeric_array(value, missing)
    except ValueError as error:
        faults.append(f"{label} {error}")
        return None
    if array.ndim > 1 or array.size == 0:
        faults.append(f"{label} has shape {array.shape}: give one number per parameter")
        return None
    return array


def names_in_mappings(*arguments: object) -> tuple[str, ...] | None:
    """The names by which the first mapping among the arguments goes; None when there is none."""
    for argument in arguments:
        if isinstance(argument, Mapping):
            return tuple(str(name) for name in argument)
    return None


def in_order(
    value: object,
    label: str,
    names: Sequence[str] | str | None,
    missing: float | None,
    faults: list[str],
) -> object:
    """A mapping by name as a list in the order of the names; anything else as it is.

    A name that is not there has no bound, where ``missing`` says what that is.
    """
    if not isinstance(value, Mapping) or not isinstance(names, Sequence):
        return value
    known = [names] if isinstance(names, str) else list(names)
    unknown = [key for key in value if key not in known]
    faults += [f"{label} names {short_text(key)}, which is not a parameter" for key in unknown]
    absent = [name for name in known if name not in value]
    if missing is None and absent:
        faults.append(f"{label} has no value for {', '.join(map(repr, absent))}")
        return [value.get(name, 0.0) for name in known]  # the rest can still be checked
    return [value.get(name) for name in known]


def read_vectors(
    given: Mapping[str, tuple[object, float | None]],
    names: Sequence[str] | str | None,
    n_named: int,
    faults: list[str],
) -> tuple[tuple[str, ...], bool, dict[str, Array] | None]:
    """The names, whether they are the ones given, and the four vectors; None where unusable.

    Where none of them is a sequence and no box is given, there are ``n_named`` parameters.
    """
    arrays = {
        label: read(in_order(value, label, names, missing, faults), label, missing, faults)
        for label, (value, missing) in given.items()
    }
    boxless = all(given[f"plausible_{end}"][0] is None for end in ("lower", "upper"))
    alone = n_named if boxless else 1
    dimension = next((a.size for a in arrays.values() if a is not None and a.ndim == 1), alone)
    accepted = check_names(names, dimension, faults)
    labels = accepted or default_names(dimension)
    return labels, accepted is not None, match_lengths(arrays, dimension, faults)


def check_names(
    names: Sequence[str] | str | None, dimension: int, faults: list[str]
) -> tuple[str, ...] | None:
    """The names, x1, x2, ... when not given; None with the faults noted when not usable."""
    if names is None:
        return default_names(dimension)
    try:
        given = (names,) if isinstance(names, str) else tuple(names)
    except TypeError:
        faults.append(f"names must be a sequence of strings, not {short_text(names)}")
        return None
    before = len(faults)
    if len(given) != dimension:
        count = f"{len(given)} name{'' if len(given) == 1 else 's'}"
        faults.append(f"names holds {count} for {dimension} parameters: {short_text(given)}")
    for name in given:
        if not isinstance(name, str) or not name.strip():
            faults.append(f"names holds {short_text(name)}, which is not a name")
        elif readable(name) != name or set(name) & {"\t", "\n"}:
            hint = "write a backslash twice, or r'...', where one is meant"
            faults.append(f"names holds {short_text(name)}, with characters nobody can see: {hint}")
    repeated = {name for name in given if isinstance(name, str) and given.count(name) > 1}
    faults += [f"names holds {name!r} more than once" for name in sorted(repeated)]
    return tuple(str(name) for name in given) if len(faults) == before else None


def default_names(dimension: int) -> tuple[str, ...]:
    """x1, x2, ...: counted from one, since x0 is the starting point."""
    return tuple(f"x{i + 1}" for i in range(dimension))


def periodic_names(
    periodic: Sequence[str] | str | None, names: Sequence[str], faults: list[str]
) -> tuple[str, ...]:
    """The names of parameters that wrap at their bounds."""
    try:
        given = (periodic,) if isinstance(periodic, str) else tuple(periodic or ())
    except TypeError:
        faults.append(f"periodic must be names of parameters, not {short_text(periodic)}")
        return ()
    unknown = [short_text(name) for name in given if name not in names]
    faults += [f"periodic names {name}, which is not a parameter" for name in unknown]
    return tuple(name for name in names if name in given)


def period_faults(
    periodic: Sequence[str], names: Sequence[str], vectors: dict[str, Array]
) -> list[str]:
    """Parameters that are to wrap at bounds which they do not have."""
    ends = vectors["lower"], vectors["upper"]
    return [
        f"{name}: give lower and upper, one period apart, at which it wraps"
        for name in periodic
        if not all(np.isfinite(end[names.index(name)]) for end in ends)
    ]


def match_lengths(
    arrays: dict[str, Array | None], dimension: int, faults: list[str]
) -> dict[str, Array] | None:
    """All four as vectors of length D; None when one could not be read or has another length."""
    for label, array in arrays.items():
        if array is not None and array.ndim == 1 and array.size != dimension:
            faults.append(f"{label} has {array.size} values for {dimension} parameters")
    vectors = {
        label: np.broadcast_to(array, (dimension,)).copy()
        for label, array in arrays.items()
        if array is not None and array.shape in ((), (dimension,))
    }
    return vectors if len(vectors) == len(arrays) else None


def box_faults(names: Sequence[str], vectors: dict[str, Array]) -> list[str]:
    """What is wrong with the bounds, by the name of the parameter."""
    faults: list[str] = []
    for i, name in enumerate(names):
        values = {label: float(vector[i]) for label, vector in vectors.items()}
        faults += [f"{name}: {fault}" for fault in _parameter_faults(**values)]
    return faults


def _parameter_faults(
    plausible_lower: float, plausible_upper: float, lower: float, upper: float
) -> list[str]:
    """What is wrong with the bounds of one parameter."""
    if np.isposinf(plausible_lower) and np.isneginf(plausible_upper):
        return ["it has no plausible box: give one, or a prior that is one of its own"]
    values = {"plausible_lower": plausible_lower, "plausible_upper": plausible_upper}
    faults = [f"{label} is {v:g}" for label, v in values.items() if not np.isfinite(v)]
    faults += [f"{n} is nan" for n, v in (("lower", lower), ("upper", upper)) if np.isnan(v)]
    if faults:
        return faults
    if lower >= upper or np.isposinf(lower) or np.isneginf(upper):
        faults.append(f"lower ({lower:g}) must be below upper ({upper:g})")
    if plausible_lower >= plausible_upper:
        faults.append(
            f"plausible_lower ({plausible_lower:g}) must be below"
            f" plausible_upper ({plausible_upper:g})"
        )
    if plausible_lower < lower:
        faults.append(f"plausible_lower ({plausible_lower!r}) is below lower ({lower!r})")
    if plausible_upper > upper:
        faults.append(f"plausible_upper ({plausible_upper!r}) is above upper ({upper!r})")
    return faults or _resolution_faults(plausible_lower, plausible_upper, lower, upper)


def _resolution_faults(
    plausible_lower: float, plausible_upper: float, lower: float, upper: float
) -> list[str]:
    """Ranges that double precision cannot hold: too wide, or too narrow for their place."""
    ends = [edge for edge in (lower, upper) if np.isfinite(edge)]
    ends = [*ends, plausible_lower, plausible_upper]
    if max(ends) / 2 - min(ends) / 2 > np.finfo(np.float64).max / 4:
        return ["its range is too wide for double precision: rescale the parameter"]
    # Coordinates are distances to the nearer bound; a point's own size limits them too.
    nearer = min(plausible_upper - lower, upper - plausible_lower)
    sizes = [abs(plausible_lower), abs(plausible_upper), nearer if np.isfinite(nearer) else 0.0]
    if plausible_upper - plausible_lower < FEWEST_STEPS * np.spacing(max(sizes)):
        box = f"[{plausible_lower!r}, {plausible_upper!r}]"
        return [f"the plausible box {box} is too narrow for double precision: shift or rescale it"]
    return []
