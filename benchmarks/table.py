"""Medians of a campaign as a markdown table."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.methods import METHODS, WITHOUT_EVIDENCE
from benchmarks.metrics import bootstrap_median_interval
from benchmarks.records import FILE_NAME, RunFile

ABSENT = "-"  # not estimated, or no run that did not fail
Runs = Sequence[dict[str, Any]]


def markdown_table(directory: Path) -> str:
    """One row per problem, budget and method: medians with the 95 % CI by bootstrap.

    The LML error has a column for every other value of the LML that some problem comes with.
    """
    records = RunFile(directory).read()
    if not records:
        raise BenchmarkError(f"no runs recorded in {directory / FILE_NAME}")
    groups: dict[tuple[str, int, str], list[dict[str, Any]]] = defaultdict(list)
    for key, record in records.items():
        groups[key.problem, key.budget, key.method].append(record)
    budgets: dict[str, set[int]] = defaultdict(set)
    for problem, budget, _ in groups:
        budgets[problem].add(budget)
    recorded = (record.get("lml_error_alternatives", {}) for record in records.values())
    origins = sorted({origin for alternatives in recorded for origin in alternatives})
    places = {name: place for place, name in enumerate(METHODS)}
    order = sorted(groups, key=lambda key: (natural_order(key[0]), key[1], places.get(key[2], -1)))
    rows = []
    for problem, budget, method in order:
        label = problem if len(budgets[problem]) == 1 else f"{problem} (budget {budget})"
        cells = _cells(groups[problem, budget, method], method, origins)
        rows.append({"problem": label, "method": method, **cells})
    header = list(max(rows, key=len))  # a row without a run that did not fail is short
    return markdown(header, ([row.get(name, ABSENT) for name in header] for row in rows))


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A markdown table."""
    lines = (header, ["---"] * len(header), *rows)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def natural_order(name: str) -> list[tuple[int, int, str]]:
    """A key by which lumpy-2 sorts before lumpy-10."""
    parts = re.split(r"(\d+)", name)
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts]


def covered(error: float | None, sd: float | None) -> bool:
    """Whether the LML error lies within two of the run's own standard deviations."""
    return error is not None and sd is not None and error <= 2 * sd


def median_with_interval(values: Sequence[float], form: str = ".3g") -> str:
    """The median and, in brackets, its 95 % interval by bootstrap."""
    low, high = bootstrap_median_interval(values)
    return f"{np.median(values):{form}} [{low:{form}}, {high:{form}}]"


def _cells(runs: Runs, method: str, origins: Sequence[str]) -> dict[str, str]:
    """A row's cells by the column's name."""
    good = [run for run in runs if run["status"] == "ok"]
    counts = {"runs": str(len(runs)), "failed": str(len(runs) - len(good))}
    if not good:
        return counts
    lml = [run["lml_error"] for run in good]
    alternatives = {
        f"LML error ({origin})": [run.get("lml_error_alternatives", {}).get(origin) for run in good]
        for origin in origins
    }
    speeds = [run["library_seconds"] / max(run["evaluations"], 1) for run in good]
    return {
        **counts,
        "LML error": ABSENT if method in WITHOUT_EVIDENCE else _median(lml),
        **{column: _median_if_any(errors) for column, errors in alternatives.items()},
        "ELBO error": _median_if_any([run["elbo_error"] for run in good]),
        "gsKL": _median([run["gskl"] for run in good]),
        "MMTV": _median_if_any([run["mmtv"] for run in good]),
        "evaluations": f"{np.median([run['evaluations'] for run in good]):g}",
        "library s / evaluation": _median(speeds, ".3f"),
        "coverage": f"{np.mean([covered(run['lml_error'], run['lml_sd']) for run in good]):.0%}",
    }


def _median_if_any(values: Sequence[float | None]) -> str:
    """For what not every problem or method has: nothing known of any run is not the worst."""
    return ABSENT if all(value is None for value in values) else _median(values)


def _median(values: Sequence[float | None], form: str = ".3g") -> str:
    """Median and interval, alone where all runs agree; what was not finite counts as the worst."""
    numbers = [math.inf if value is None else value for value in values]
    if min(numbers) == max(numbers):
        return format(numbers[0], form)
    return median_with_interval(numbers, form)
