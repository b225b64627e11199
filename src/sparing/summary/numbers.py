"""Numbers as a person reads them, and the rows of the table of parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from sparing.errors import TargetError
from sparing.vbmc.run_record import RunRecord

INTERVAL = (0.025, 0.975)
# Beyond these scales a number with a fixed point is hard to read.
SMALLEST_SCALE, LARGEST_SCALE = 1e-4, 1e6
MOST_DIGITS = 17  # of a float


def parameter_rows(record: RunRecord) -> list[tuple[str, ...]]:
    """Name, mean, sd and ends of the central 95 % interval: all numbers to the same decimal.

    The interval of a periodic parameter is one piece, and may lie beyond a bound.
    """
    posterior, periodic = record.posterior, record.problem.periodic
    names = [f"{name} (wraps)" if name in periodic else name for name in posterior.names]
    columns = posterior.mean, posterior.sd, *posterior.quantile(INTERVAL)
    rows = zip(names, posterior.sd, *columns, strict=True)
    return [(name, *(rounded(value, sd) for value in values)) for name, sd, *values in rows]


def derived_rows(record: RunRecord) -> tuple[list[tuple[str, ...]], str]:
    """The same of what is derived from the parameters, and what kept it from being computed."""
    try:
        derived = record.derived
    except TargetError as error:  # the run itself is as good as ever
        return [], str(error)
    rows = []
    for name, values in derived.items():
        with np.errstate(invalid="ignore"):  # some may be infinite
            sd = float(np.std(values))
            numbers = float(np.mean(values)), sd, *np.quantile(values, INTERVAL).tolist()
        rows.append((name, *(rounded(value, sd) for value in numbers)))
    return rows, ""


def rounded(value: float, scale: float) -> str:
    """The value to the decimal that shows ``scale`` with three digits."""
    if not math.isfinite(value) or not 0.0 < scale < math.inf:
        return f"{value:.5g}"
    exponent = math.floor(math.log10(scale))
    if SMALLEST_SCALE <= scale < LARGEST_SCALE:
        return f"{value:z.{max(0, 2 - exponent)}f}"
    size = math.floor(math.log10(abs(value))) if value else exponent
    return f"{value:.{min(max(3, 3 + size - exponent), MOST_DIGITS)}g}"


def estimate(value: float, sd: float) -> str:
    """A value with its error, to the second digit of the error or the fourth decimal."""
    if not math.isfinite(value) or not 0.0 < sd < LARGEST_SCALE:
        return f"{value:.5g} ± {sd:.2g}"
    decimals = min(4, max(0, 1 - math.floor(math.log10(sd))))
    error = f"{sd:.{decimals}f}" if sd >= SMALLEST_SCALE else f"{sd:.1g}"
    return f"{value:z.{decimals}f} ± {error}"


def counted(number: int, noun: str) -> str:
    """'1 evaluation', '2 evaluations'."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    if seconds < 120.0:
        return f"{seconds:.1f} s"
    if seconds < 7200.0:
        return f"{seconds / 60.0:.1f} min"
    return f"{seconds / 3600.0:.1f} h"


def names_by_fixed(fixed: Sequence[Mapping[str, float]]) -> list[str]:
    """Models by what is fixed in them; none where that does not tell them apart."""
    names = [", ".join(f"{n} = {v:g}" for n, v in one.items()) or "all free" for one in fixed]
    return names if any(fixed) and len(set(names)) == len(names) else []


def listed(words: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c', 'a, b, c and 9 others'."""
    if len(words) > 4:
        words = [*words[:3], f"{len(words) - 3} others"]
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
