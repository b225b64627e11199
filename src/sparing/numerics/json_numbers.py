"""Floats in JSON, which lacks words for some of them: those are "nan", "inf" and "-inf"."""

from __future__ import annotations

import math

_NON_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def encode_number(value: float) -> float | str:
    """A float as JSON holds it; Python writes the shortest digits that read back exactly."""
    return value if math.isfinite(value) else repr(value)


def decode_number(value: object) -> float:
    """The float that `encode_number` wrote; ValueError, saying what it is instead, for others."""
    if isinstance(value, str) and value in _NON_FINITE:
        return _NON_FINITE[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("something that is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError("a number beyond double precision")
    return number
