"""Recorded runs, read at any number of evaluations.

Notation
--------
n           number of evaluations
R           runs of one method on one problem
errors      (2,): LML error, gsKL; infinite when not finite or the run failed, NaN for the LML
            error of a method that estimates no evidence
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.methods import WITHOUT_EVIDENCE
from benchmarks.problems.base import Array
from benchmarks.records import FILE_NAME, RunFile

ERROR_NAMES = ("LML error", "gsKL")


@dataclass(frozen=True, eq=False)
class Run:
    """One run of a method; a failed one has infinite errors and no evaluations."""

    dimension: int
    failed: bool
    version: str  # of the library
    evaluations: int
    errors: Array  # (2,) at the end
    sd: float  # the reported sd of the log evidence; NaN when there is none
    mmtv: float
    converged: bool
    cpu_seconds: float  # of the library
    cpu_before: Array  # (n,) library CPU seconds before each evaluation; empty if not recorded
    peak_memory_mb: float
    trace_n: Array  # (m,) evaluations at each snapshot, rising
    trace_errors: Array  # (m, 2)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Run:
        """From a line of the file of runs."""
        trace = record.get("trace", [])
        lml_absent = math.nan if record["method"] in WITHOUT_EVIDENCE else math.inf
        rows = [(_value(row[1], lml_absent), _value(row[2])) for row in trace]
        return cls(
            dimension=_dimension(record),
            failed=record["status"] != "ok",
            version=record.get("version", ""),
            evaluations=record.get("evaluations", 0),
            errors=np.array(
                [_value(record.get("lml_error"), lml_absent), _value(record.get("gskl"))]
            ),
            sd=_value(record.get("lml_sd"), math.nan),
            mmtv=_value(record.get("mmtv"), math.nan),
            converged=record.get("converged", False),
            cpu_seconds=record.get("library_cpu_seconds", 0.0),
            cpu_before=np.array(record.get("library_cpu_before", []), dtype=float),
            peak_memory_mb=_value(record.get("peak_memory_mb"), math.nan),
            trace_n=np.array([row[0] for row in trace], dtype=float),
            trace_errors=np.array(rows, dtype=float).reshape(-1, 2),
        )

    def errors_at(self, n: float) -> Array:
        """Errors of the last snapshot with at most n evaluations; the run's own once it ended."""
        if self.failed or n >= self.evaluations:
            return self.errors
        position = int(np.searchsorted(self.trace_n, n, side="right"))
        return self.trace_errors[position - 1] if position else np.full(2, math.inf)

    def cpu_at(self, n: int) -> float:
        """Library CPU seconds up to the moment evaluation n + 1 is asked for, or to the end."""
        return float(self.cpu_before[n]) if n < len(self.cpu_before) else self.cpu_seconds


@dataclass(frozen=True, eq=False)
class Group:
    """The runs of one method on one problem."""

    problem: str
    method: str
    runs: Sequence[Run]

    @cached_property
    def finished(self) -> list[Run]:
        return [run for run in self.runs if not run.failed]

    @property
    def dimension(self) -> int:
        return max(run.dimension for run in self.runs)

    @cached_property
    def evaluations(self) -> float:
        """The median number at the end; NaN when every run failed."""
        return median([run.evaluations for run in self.finished])

    @cached_property
    def errors(self) -> Array:
        """Median errors (2,) at the end."""
        return np.median([run.errors for run in self.runs], axis=0)

    def errors_at(self, n: float) -> Array:
        """Errors of every run (R, 2) at n evaluations."""
        return np.array([run.errors_at(n) for run in self.runs])

    def median_errors_at(self, n: float) -> Array:
        """Median errors (2,) at n evaluations."""
        return np.median(self.errors_at(n), axis=0)

    @cached_property
    def grid(self) -> Array:
        """Every n at which some run's estimate changes."""
        ends = [[run.evaluations] for run in self.finished]
        changes = [*ends, *(run.trace_n for run in self.finished)]
        return np.unique(np.concatenate(changes)) if changes else np.zeros(0)


# method -> problem -> its runs
Groups = Mapping[str, Mapping[str, Group]]


def read_groups(directory: Path) -> Groups:
    """The runs of a directory by method and problem, in the order they were first recorded.

    Where a method ran with several budgets on a problem, the largest counts.
    """
    records = RunFile(directory).read()
    if not records:
        raise BenchmarkError(f"no runs recorded in {directory / FILE_NAME}")
    largest: dict[tuple[str, str], int] = {}
    for key in records:
        cell = key.method, key.problem
        largest[cell] = max(key.budget, largest.get(cell, 0))
    groups: dict[str, dict[str, Group]] = {}
    for (method, problem), budget in largest.items():
        runs = [
            Run.from_record(record)
            for key, record in records.items()
            if (key.method, key.problem, key.budget) == (method, problem, budget)
        ]
        groups.setdefault(method, {})[problem] = Group(problem, method, runs)
    return groups


def median(values: Sequence[float]) -> float:
    """Of the values that are there: NaN stands for none."""
    there = [value for value in values if not math.isnan(value)]
    return float(np.median(there)) if there else math.nan


def _value(recorded: float | None, absent: float = math.inf) -> float:
    return absent if recorded is None else float(recorded)


def _dimension(record: Mapping[str, Any]) -> int:
    """Recorded by every run that ended; a failed one's is read off a name like lumpy-6-g1."""
    named = re.match(r"[a-z]+-(\d+)", record["problem"])
    return record.get("dimension") or (int(named[1]) if named else 0)
