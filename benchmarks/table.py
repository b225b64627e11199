"""Medians of a campaign as a markdown table."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.methods import METHODS, WITHOUT_EVIDENCE
from benchmarks.metrics import bootstrap_median_interval
from benchmarks.records import FILE_NAME, RunFile

ABSENT = "-"  # not estimated, or no run that did not fail
Runs = Sequence[dict[str, Any]]
Groups = dict[tuple[str, int, str], list[dict[str, Any]]]  # by problem, budget and method

# What 'compact_table' may show, from a run's record.
QUANTITIES: dict[str, Callable[[dict[str, Any]], float | None]] = {
    "lml": lambda run: run["lml_error"],
    "gskl": lambda run: run["gskl"],
    "mmtv": lambda run: run["mmtv"],
    "evaluations": lambda run: run["evaluations"],
    "cpu": lambda run: run["library_cpu_seconds"] / max(run["evaluations"], 1),
}


def markdown_table(directory: Path) -> str:
    """One row per problem, budget and method: medians with the 95 % CI by bootstrap.

    The LML error has a column for every other value of the LML that some problem comes with.
    """
    groups = _read_groups(directory)
    recorded = (run.get("lml_error_alternatives", {}) for runs in groups.values() for run in runs)
    origins = sorted({origin for alternatives in recorded for origin in alternatives})
    labels = _labels(groups)
    rows = []
    for (problem, budget, method), runs in groups.items():
        cells = _cells(runs, method, origins)
        rows.append({"problem": labels[problem, budget], "method": method, **cells})
    header = list(max(rows, key=len))  # a row without a run that did not fail is short
    return markdown(header, ([row.get(name, ABSENT) for name in header] for row in rows))


def compact_table(directory: Path, quantity: str) -> str:
    """Medians of one quantity, a row per problem and budget and a column per method."""
    groups, read = _read_groups(directory), QUANTITIES[quantity]
    labels = _labels(groups)
    methods = sorted({method for _, _, method in groups}, key=_place)
    rows = []
    for (problem, budget), label in labels.items():
        row = [label]
        for method in methods:
            runs = [run for run in groups.get((problem, budget, method), []) if _is_good(run)]
            without = quantity == "lml" and method in WITHOUT_EVIDENCE
            row.append(ABSENT if without or not runs else _compact([read(run) for run in runs]))
        rows.append(row)
    return markdown([quantity, *methods], rows)


def _read_groups(directory: Path) -> Groups:
    """The recorded runs: problems in their natural order, methods in that of their list."""
    records = RunFile(directory).read()
    if not records:
        raise BenchmarkError(f"no runs recorded in {directory / FILE_NAME}")
    groups: Groups = defaultdict(list)
    for key, record in records.items():
        groups[key.problem, key.budget, key.method].append(record)
    order = sorted(groups, key=lambda key: (natural_order(key[0]), key[1], _place(key[2])))
    return {key: groups[key] for key in order}


def _labels(groups: Groups) -> dict[tuple[str, int], str]:
    """What to call a problem with a budget: the budget counts where there are several."""
    budgets: dict[str, set[int]] = defaultdict(set)
    for problem, budget, _ in groups:
        budgets[problem].add(budget)
    return {
        (problem, budget): problem if len(budgets[problem]) == 1 else f"{problem} (budget {budget})"
        for problem, budget, _ in groups
    }


def _place(method: str) -> int:
    return list(METHODS).index(method) if method in METHODS else -1


def _is_good(run: dict[str, Any]) -> bool:
    return run["status"] == "ok"


def _compact(values: Sequence[float | None]) -> str:
    """The median with two digits; what was not finite counts as the worst."""
    median = float(np.median(_with_the_worst(values)))
    return f"{median:.0f}" if 10 <= median < 1e4 else f"{median:.2g}"


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
    good = [run for run in runs if _is_good(run)]
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


def _with_the_worst(values: Sequence[float | None]) -> list[float]:
    """What was not finite is recorded as None and counts as infinite."""
    return [math.inf if value is None else value for value in values]


def _median_if_any(values: Sequence[float | None]) -> str:
    """For what not every problem or method has: nothing known of any run is not the worst."""
    return ABSENT if all(value is None for value in values) else _median(values)


def _median(values: Sequence[float | None], form: str = ".3g") -> str:
    """Median and interval, alone where all runs agree; what was not finite counts as the worst."""
    numbers = _with_the_worst(values)
    if min(numbers) == max(numbers):
        return format(numbers[0], form)
    return median_with_interval(numbers, form)
