"""Medians of a campaign as a markdown table."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.metrics import bootstrap_median_interval
from benchmarks.records import FILE_NAME, RunFile

HEADER = (
    "problem",
    "method",
    "runs",
    "failed",
    "LML error",
    "ELBO error",
    "gsKL",
    "MMTV",
    "evaluations",
    "library s / evaluation",
    "coverage",
)


def markdown_table(directory: Path) -> str:
    """One row per problem, budget and method: medians with the 95 % CI by bootstrap."""
    records = RunFile(directory).read()
    if not records:
        raise BenchmarkError(f"no runs recorded in {directory / FILE_NAME}")
    groups: dict[tuple[str, int, str], list[dict[str, Any]]] = defaultdict(list)
    for key, record in records.items():
        groups[key.problem, key.budget, key.method].append(record)
    budgets: dict[str, set[int]] = defaultdict(set)
    for problem, budget, _ in groups:
        budgets[problem].add(budget)
    lines = [_line(HEADER), _line(["---"] * len(HEADER))]
    for (problem, budget, method), runs in sorted(groups.items(), key=lambda item: item[0]):
        label = problem if len(budgets[problem]) == 1 else f"{problem} (budget {budget})"
        lines.append(_line([label, method, *_cells(runs)]))
    return "\n".join(lines)


def covered(run: dict[str, Any]) -> bool:
    """Whether the LML error lies within two of the run's own standard deviations."""
    error, sd = run["lml_error"], run["lml_sd"]
    return error is not None and sd is not None and error <= 2 * sd


def _cells(runs: Sequence[dict[str, Any]]) -> list[str]:
    good = [run for run in runs if run["status"] == "ok"]
    counts = [str(len(runs)), str(len(runs) - len(good))]
    if not good:
        return counts + ["-"] * (len(HEADER) - 4)
    speeds = [run["library_seconds"] / max(run["evaluations"], 1) for run in good]
    return [
        *counts,
        *(_median_cell(good, name) for name in ("lml_error", "elbo_error", "gskl", "mmtv")),
        f"{np.median([run['evaluations'] for run in good]):g}",
        f"{np.median(speeds):.3f}",
        f"{np.mean([covered(run) for run in good]):.0%}",
    ]


def _median_cell(runs: Sequence[dict[str, Any]], name: str) -> str:
    """Median and interval; a value that was not finite counts as the worst."""
    values = [math.inf if run[name] is None else run[name] for run in runs]
    low, high = bootstrap_median_interval(values)
    return f"{np.median(values):.3g} [{low:.2g}, {high:.2g}]"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
