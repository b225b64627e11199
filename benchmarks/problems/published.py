"""The published instances of the three synthetic families, and where published data lie.

The data path is the directory that holds ``synthetic_problems.json`` and ``neuron/``, or a JSON
file in place of the former. That file holds ``{family: {dimension: numbers}}`` with the numbers
that ``lumpy_problem``, ``student_problem`` and ``cigar_problem`` take, under the same names.
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


def synthetic_file(data: Path) -> Path:
    """The file with the numbers of the synthetic families."""
    return data / "synthetic_problems.json" if data.is_dir() else data


def neuron_folder(data: Path) -> Path:
    """The folder with the recorded cells: in the directory given, or beside the file given."""
    return (data if data.is_dir() else data.parent) / "neuron"


def published_problem(family: str, D: int, data: Path) -> BenchmarkProblem:
    """The published problem of that family and dimension."""
    file = synthetic_file(data)
    try:
        numbers = json.loads(file.read_text())
    except FileNotFoundError:
        raise BenchmarkError(f"no file with the published problems at {file}") from None
    except (OSError, ValueError) as problem:
        raise BenchmarkError(f"cannot read the published problems in {file}: {problem}") from None
    build, fields = BUILDERS[family]
    members = numbers.get(family, {})
    if str(D) not in members:
        known = ", ".join(members) or "none"
        raise BenchmarkError(f"{file} holds no {family} problem with D = {D} (it has: {known})")
    member = members[str(D)]
    missing = [field for field in fields if field not in member]
    if missing:
        raise BenchmarkError(f"{file}: {family} with D = {D} lacks {', '.join(missing)}")
    arrays = [np.asarray(member[field], dtype=float) for field in fields]
    return build(f"{family}-{D}", *arrays)
