"""Quantities that follow from the parameters: a function of the user's, x -> {name: number}.

x   points of the free parameters, (m, D); the function gets one point of all parameters
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparing.errors import TargetError
from sparing.numerics.arrays import Array
from sparing.numerics.quasi_random import scrambled_halton
from sparing.problem.declared_support import DeclaredSupport
from sparing.problem.parameters import Parameters
from sparing.problem.user_values import function_name, one_number, short_text

N_PROBES = 1024  # points of the plausible box among which one in the support is sought


@dataclass(frozen=True, eq=False)
class Derived:
    """The function, and the names of what it gives."""

    function: Callable[[Array], Any]
    parameters: Parameters
    names: tuple[str, ...]

    def values(self, x: Array) -> dict[str, Array]:
        """Each quantity at points x (m, D): (m,) by name; TargetError where the function fails."""
        rows = [self.at(point) for point in x]
        return {name: np.array([row[name] for row in rows]) for name in self.names}

    def at(self, x: Array) -> dict[str, float]:
        """The quantities at one point x (D,)."""
        try:
            values = _numbers(self.function(self.parameters.full(x)))
        except Exception as error:
            happened = str(error)
            if not isinstance(error, _UnfitError):
                happened = f"raised {type(error).__name__}: {error}"
            raise TargetError(f"derived {happened}, at {self.parameters.text(x)}") from error
        if self.names and set(values) != set(self.names):
            given, now = ", ".join(self.names), ", ".join(values)
            raise TargetError(
                f"derived gives {now} at {self.parameters.text(x)}, and elsewhere {given}: it must "
                "give the same names everywhere"
            )
        return values

    def __str__(self) -> str:
        return function_name(self.function)


class _UnfitError(ValueError):
    """The function returned something else than numbers by name."""


def _numbers(given: object) -> dict[str, float]:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        hint = " (is a return statement missing?)" if given is None else ""
        raise _UnfitError(f"returned {short_text(given)}{hint} instead of a dict of numbers")
    values = {}
    for name, value in given.items():
        number = one_number(value)
        if number is None:
            raise _UnfitError(f"gave {short_text(value)} for {name!r}, which is not one number")
        values[name] = number
    return values


def read_derived(
    derived: object,
    parameters: Parameters,
    support: DeclaredSupport | None,
    faults: list[str],
) -> Derived | None:
    """The derived quantities as given, tried at one point; None without, or with a fault noted."""
    if derived is None:
        return None
    if not callable(derived):
        faults.append(f"derived must be a function of x, not {short_text(derived)}")
        return None
    low, high = (parameters.free_vectors[f"plausible_{end}"] for end in ("lower", "upper"))
    unit = np.vstack([np.full(len(low), 0.5), scrambled_halton(N_PROBES, len(low))])
    probes = low + unit * (high - low)
    if support is not None:
        inside = support.contains(probes)
        probes = probes[inside] if inside.any() else probes
    unnamed = Derived(derived, parameters, ())
    try:
        names = tuple(unnamed.at(probes[0]))
    except TargetError as error:
        faults.append(str(error))
        return None
    faults += [f"derived gives {n!r}, which is a parameter" for n in names if n in parameters.names]
    return replace(unnamed, names=names)
