"""Reading values that come from the user's side, and naming them in messages.

bounds, x0    numbers in any container: scalars, lists, tuples, arrays, with None for "no bound"
log values    what a log density or log prior returned, noise included
"""

from __future__ import annotations

import math
from decimal import Decimal
from numbers import Integral, Real
from typing import TypeGuard

import numpy as np

from sparing.errors import InvalidValueError
from sparing.numerics.arrays import Array

LONGEST_TEXT = 60  # characters of a value quoted in a message

# A log density is a sum over data: its size is that of their number. Beyond this it is an
# overflow, a penalty or a unit error, and differences of 1 are lost in its rounding noise soon
# after (float64 resolves 1e-4 at 1e12). So is a larger noise.
LARGEST_CREDIBLE = 1e12


def is_real(value: object) -> TypeGuard[float]:
    """Whether a scalar is a real number; True and False are not."""
    return isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_)


def is_whole(value: object, least: int = 0) -> TypeGuard[int]:
    """Whether a scalar is a whole number that is not less; 20.0 is one."""
    if not is_real(value):
        return False
    whole = isinstance(value, Integral) or (math.isfinite(value) and value == int(value))
    return whole and value >= least


def numeric_array(value: object, missing: float | None = None) -> Array:
    """Any container of real numbers as a new array; ValueError says what is not a number.

    Text and booleans, which NumPy would convert, are refused. None stands for `missing`.
    """
    try:
        raw = np.asarray(value)
    except ValueError:
        raise ValueError("is ragged: its rows have different lengths") from None
    if raw.dtype.kind in "iuf":
        return raw.astype(np.float64)
    raw = np.asarray(value, dtype=object)  # [0, "a"] would have become two strings
    result = np.empty(raw.shape)
    for index, item in np.ndenumerate(raw):
        if item is None and missing is not None:
            result[index] = missing
        elif is_real(item):
            result[index] = float(item)
        else:
            raise ValueError(f"holds {short_text(item)}, which is not a real number")
    return result


def one_number(value: object) -> float | None:
    """A real number, or an array of one, as a float; None for anything else, text included."""
    if np.ma.is_masked(value):  # a masked element would read as whatever lies beneath
        return None
    try:
        array = np.asarray(value)
        if array.size == 1 and is_real(array.reshape(-1)[0]):
            return float(array.reshape(-1)[0])
    except (TypeError, ValueError, OverflowError, RuntimeError):
        pass
    return None


def log_value(value: object) -> float:
    """What a log density returned as a float; InvalidValueError unless it is real and < +inf.

    Arrays of one element are accepted, -inf too: a density may be zero.
    """
    number = one_number(value)
    if number is None:
        hint = " (is a return statement missing?)" if value is None else ""
        raise InvalidValueError(f"returned {short_text(value)}{hint} instead of one real number")
    if np.isnan(number) or number == np.inf:
        raise InvalidValueError(f"returned {number}, which is not a log density")
    return number


def estimated_log_value(value: object) -> tuple[float, float]:
    """What a log density returned as (value, standard deviation of its noise).

    An exact one is a single number; an estimate is a tuple of two. InvalidValueError otherwise.
    """
    if not (isinstance(value, tuple) and len(value) == 2):
        return log_value(value), 0.0
    number, noise_sd = log_value(value[0]), noise_value(value[1])
    if noise_sd is None:
        raise InvalidValueError(
            f"returned {short_text(value[1])} as the standard deviation of its noise, which must "
            f"be {NOISE_WORDS}"
        )
    return number, noise_sd


NOISE_WORDS = f"a number from 0 to {LARGEST_CREDIBLE:g}"


def noise_value(value: object) -> float | None:
    """The standard deviation of a noise as a float; None for anything else."""
    number = one_number(value)
    return number if number is not None and 0.0 <= number <= LARGEST_CREDIBLE else None


def format_interval(low: float, high: float) -> str:
    """An interval as a person writes it: closed at finite ends."""
    left = f"[{low:g}" if np.isfinite(low) else f"({low:g}"
    right = f"{high:g}]" if np.isfinite(high) else f"{high:g})"
    return f"{left}, {right}"


def function_name(function: object) -> str:
    """Where a function is defined, or the type of a callable object."""
    source = function if hasattr(function, "__qualname__") else type(function)
    return f"{getattr(source, '__module__', '?')}.{getattr(source, '__qualname__', '?')}"


def short_text(value: object) -> str:
    """The value's representation, cut to a readable length."""
    text = repr(value)
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[: LONGEST_TEXT - 3]}... ({type(value).__name__})"
