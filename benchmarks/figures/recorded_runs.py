"""The recorded runs of a campaign as the figures need them.

A failed run has no estimate: medians leave it out, and every figure says how many there were.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.errors import BenchmarkError
from benchmarks.figures.looks import LOOKS, look_of
from benchmarks.methods import METHODS, SAMPLERS
from benchmarks.problems import GENERATORS, load_problem
from benchmarks.problems.base import BenchmarkProblem
from benchmarks.problems.neuron import NEURON_PROBLEMS
from benchmarks.records import RunFile, RunKey
from benchmarks.table import natural_order
from benchmarks.versus.runs import Group, Groups, Run, read_groups

FAMILIES = tuple(GENERATORS)
NEURON_DIMENSION = 7


@dataclass(frozen=True, eq=False)
class Source:
    """A campaign's directory, and what is needed to run what it does not hold."""

    directory: Path
    data: Path | None = None
    control_seeds: int = 1
    jobs: int = 1
    report: Callable[[str], None] = print

    @cached_property
    def groups(self) -> Groups:
        """Method -> problem -> runs, in the order of legends.

        Samplers, which need a thousand times the evaluations, are left to the tables.
        """
        groups = read_groups(self.directory)
        few = [name for name in {**LOOKS, **METHODS} if name in groups and name not in SAMPLERS]
        if not few:
            raise BenchmarkError(f"{self.directory} holds runs of {' and '.join(groups)} only")
        if not any(group.finished for name in few for group in groups[name].values()):
            raise BenchmarkError(f"every run in {self.directory} failed: its records say why")
        return {name: groups[name] for name in few}

    @cached_property
    def problems(self) -> list[str]:
        """Every problem of the campaign, by family and dimension."""
        names = {name for by_problem in self.groups.values() for name in by_problem}
        return sorted(names, key=natural_order)

    @cached_property
    def records(self) -> Mapping[RunKey, dict[str, Any]]:
        return RunFile(self.directory).read()

    def on(self, problem: str) -> list[Group]:
        """The runs of every method on that problem."""
        return [by[problem] for by in self.groups.values() if problem in by]

    def budget(self, problem: str) -> int:
        """The largest recorded one."""
        return max(
            key.budget
            for key in self.records
            if key.problem == problem and key.method in self.groups
        )

    def finished(self, problem: str, method: str) -> dict[int, dict[str, Any]]:
        """By seed, the records of the runs that did not fail, of those with the largest budget."""
        found = {
            key: record
            for key, record in self.records.items()
            if (key.problem, key.method, record["status"]) == (problem, method, "ok")
        }
        largest = max((key.budget for key in found), default=0)
        return {key.seed: record for key, record in found.items() if key.budget == largest}

    def typical_seed(self, problem: str, method: str) -> int:
        """The seed of the run with the median gsKL; 1 where none is recorded."""
        runs = self.finished(problem, method)
        errors = {
            seed: math.inf if run["gskl"] is None else run["gskl"] for seed, run in runs.items()
        }
        order = sorted(errors, key=errors.__getitem__)
        return order[(len(order) - 1) // 2] if order else 1

    def load(self, problem: str) -> BenchmarkProblem:
        return load_problem(problem, self.data)

    def featured(self) -> list[str]:
        """The problems of the figures about few of them: the neurons.

        Where a campaign has none, those whose dimension is nearest to theirs.
        """
        neurons = [name for name in self.problems if name in NEURON_PROBLEMS]
        if neurons:
            return neurons
        dimensions = {name: self.on(name)[0].dimension for name in self.problems}
        nearest = min(dimensions.values(), key=lambda D: (abs(D - NEURON_DIMENSION), D))
        return [name for name in dimensions if dimensions[name] == nearest]


class Row(NamedTuple):
    """A row of panels: published members of a family, or generated ones; sorted as in the paper."""

    family: int  # its place in FAMILIES
    generated: bool

    @property
    def label(self) -> str:
        return FAMILIES[self.family] + (", generated" if self.generated else "")


# (row, dimension) -> the runs of each method
Cells = Mapping[tuple[Row, int], Sequence[Group]]


def synthetic_cells(groups: Groups) -> Cells:
    """The runs on the synthetic families; those on generated members of one are taken together."""
    runs: dict[tuple[Row, int], dict[str, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for method, by_problem in groups.items():
        for problem, group in by_problem.items():
            name = re.fullmatch(rf"({'|'.join(FAMILIES)})-(\d+)(-g\d+)?", problem)
            if name is not None:
                row = Row(FAMILIES.index(name[1]), name[3] is not None)
                runs[row, int(name[2])][method] += group.runs
    return {
        (row, D): [Group(f"{row.label}, D = {D}", *item) for item in by_method.items()]
        for (row, D), by_method in runs.items()
    }


def failure_note(groups: Iterable[Group]) -> str:
    """How many runs failed, by method; empty when none did."""
    runs: dict[str, list[bool]] = defaultdict(list)
    for group in groups:
        runs[group.method] += [run.failed for run in group.runs]
    parts = [
        f"{look_of(method).label} {sum(failed)} of {len(failed)}"
        for method, failed in runs.items()
        if any(failed)
    ]
    return f"Failed runs, left out: {', '.join(parts)}." if parts else ""


def run_counts(groups: Iterable[Group]) -> str:
    """How many runs a median is over, as in "5 to 10 runs"."""
    counts = sorted({len(group.finished) for group in groups if group.finished})
    if not counts:
        return "no run"
    plural = "" if counts == [1] else "s"
    span = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
    return f"{span} run{plural}"
