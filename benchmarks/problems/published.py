"""The published instances of the three synthetic families, read from a JSON file.

The file holds ``{family: {dimension: numbers}}`` with the numbers that ``lumpy_problem``,
``student_problem`` and ``cigar_problem`` take, under the same names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.problems.base import BenchmarkProblem
from benchmarks.problems.cigar import cigar_problem
from benchmarks.problems.lumpy import lumpy_problem
from benchmarks.problems.student import student_problem

BUILDERS: Mapping[str, tuple[Callable[..., BenchmarkProblem], tuple[str, ...]]] = {
    "lumpy": (lumpy_problem, ("weights", "means", "sds")),
    "student": (student_problem, ("loc", "scale", "df")),
    "cigar": (cigar_problem, ("rotation", "mean", "axes")),
}


def published_problem(family: str, D: int, data: Path) -> BenchmarkProblem:
    """The published problem of that family and dimension."""
    try:
        numbers = json.loads(data.read_text())
    except FileNotFoundError:
        raise BenchmarkError(f"no file with the published problems at {data}") from None
    except (OSError, ValueError) as problem:
        raise BenchmarkError(f"cannot read the published problems in {data}: {problem}") from None
    build, fields = BUILDERS[family]
    members = numbers.get(family, {})
    if str(D) not in members:
        known = ", ".join(members) or "none"
        raise BenchmarkError(f"{data} holds no {family} problem with D = {D} (it has: {known})")
    member = members[str(D)]
    missing = [field for field in fields if field not in member]
    if missing:
        raise BenchmarkError(f"{data}: {family} with D = {D} lacks {', '.join(missing)}")
    arrays = [np.asarray(member[field], dtype=float) for field in fields]
    return build(f"{family}-{D}", *arrays)
