"""Where a problem lives, by a function of the user's: x -> True or False.

    x   points of the free parameters, (m, D)      full x   of all parameters, (m, N)

The function gets all parameters, of one point (N,) or of many (m, N): which of them it can do is
found out once, when the problem is built.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.errors import TargetError
from sparing.numerics.arrays import Array
from sparing.numerics.quasi_random import scrambled_halton
from sparing.problem.parameters import Parameters
from sparing.problem.user_values import function_name, short_text

N_PROBES = 64  # points of the plausible box at which the function is tried; N is another number


@dataclass(frozen=True, eq=False)
class DeclaredSupport:
    """A support that is certain: outside it the target is never called."""

    function: Callable[[Array], Any]
    parameters: Parameters
    vectorised: bool
    lost: bool = False  # whether the function was not stored, and only says so

    def contains(self, x: Array) -> NDArray[np.bool_]:
        """Which points x (m, D) are inside: (m,); TargetError where the function fails."""
        full = self.parameters.full(x)
        try:
            return _many(self.function, full) if self.vectorised else _each(self.function, full)
        except TargetError:
            raise
        except Exception as error:
            text = f"support ({self}) {_what_happened(error)}"
            raise TargetError(text) from error

    def __str__(self) -> str:
        return getattr(self.function, "name", None) or function_name(self.function)


class _UnfitError(ValueError):
    """The function returned something else than True or False."""


def read_support(
    support: object, parameters: Parameters, faults: list[str]
) -> DeclaredSupport | None:
    """The support as given; None where there is none, or with the fault noted."""
    if support is None:
        return None
    if isinstance(support, DeclaredSupport):
        return replace(support, parameters=parameters)
    if not callable(support):
        faults.append(f"support must be a function of x, not {short_text(support)}")
        return None
    low, high = (parameters.free_vectors[f"plausible_{end}"] for end in ("lower", "upper"))
    probes = parameters.full(low + scrambled_halton(N_PROBES, len(low)) * (high - low))
    try:
        one_by_one, fault = _each(support, probes), None
    except Exception as error:
        one_by_one, fault = None, f"support {_what_happened(error)}"
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # it may not be meant for this
            together = _many(support, probes)
    except Exception:
        together = None
    if one_by_one is None and together is None:
        faults.append(fault or "")
        return None
    same = together is not None and (one_by_one is None or np.array_equal(together, one_by_one))
    return DeclaredSupport(support, parameters, vectorised=same)


def _each(function: Callable[[Array], Any], full: Array) -> NDArray[np.bool_]:
    return np.array([_true_or_false(function(x.copy())) for x in full], dtype=np.bool_)


def _many(function: Callable[[Array], Any], full: Array) -> NDArray[np.bool_]:
    answer = np.asarray(function(full))
    if answer.shape != full.shape[:1] or answer.dtype != np.bool_:
        shape = f"an array of {answer.dtype}, {answer.shape}"
        raise _UnfitError(f"returned {shape}, for {len(full)} points")
    return answer


def _true_or_false(answer: object) -> bool:
    array = np.asarray(answer)
    if array.dtype != np.bool_ or array.size != 1:
        hint = " (is a return statement missing?)" if answer is None else ""
        raise _UnfitError(f"returned {short_text(answer)}{hint} instead of True or False")
    return bool(array.reshape(-1)[0])


def _what_happened(error: Exception) -> str:
    if isinstance(error, _UnfitError):
        return str(error)
    return f"raised {type(error).__name__}: {error}"
