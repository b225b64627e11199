"""Floats in JSON: the numbers that it lacks are the strings "nan", "inf" and "-inf"."""

from __future__ import annotations

import math

_NON_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def encode_number(value: float) -> float | str:
    """A float as JSON holds it; Python writes the shortest digits that read back exactly."""
    number = float(value)
    return number if math.isfinite(number) else repr(number)


def decode_number(value: object, name: str) -> float:
    """The float that `encode_number` wrote; anything else is a ValueError about ``name``."""
    if isinstance(value, str) and value in _NON_FINITE:
        return _NON_FINITE[value]
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = float(value)
            if math.isfinite(number):  # not so the literal 1e999
                return number
    except OverflowError:
        pass
    raise ValueError(f"{name} must be a number in double precision, not {value!r:.60}")
