"""How far a campaign's runs may be trusted: a row for each family of problems, and for all.

A run is wrong when its LML is off by more than half a nat or its gsKL exceeds one, whatever it says
about itself; a mode is missed when less than half of its mass was found.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.records import FILE_NAME, RunFile
from benchmarks.table import ABSENT, covered, markdown, natural_order

WRONG_LML, WRONG_GSKL = 0.5, 1.0
FOUND = 0.5  # of a mode's true mass
ALL = "all"

Run = dict[str, Any]


def trust_table(directory: Path, *, by_problem: bool = False) -> str:
    """Per method and family (or problem): errors, what the runs said of them, and evaluations."""
    records = RunFile(directory).read()
    if not records:
        raise BenchmarkError(f"no runs recorded in {directory / FILE_NAME}")
    groups: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for key, run in records.items():
        group = key.problem if by_problem else key.problem.split("-")[0]
        groups[key.method, group].append(run)
        groups[key.method, ALL].append(run)
    order = sorted(groups, key=lambda group: (group[0], group[1] == ALL, natural_order(group[1])))
    rows = [
        {"method": method, "problems": name, **_cells(groups[method, name])}
        for method, name in order
    ]
    header = list(max(rows, key=len))
    return markdown(header, ([row.get(column, ABSENT) for column in header] for row in rows))


def is_wrong(run: Run) -> bool:
    """Whether the evidence or the posterior is far off; what is not finite is."""
    return _number(run["lml_error"]) > WRONG_LML or _number(run["gskl"]) > WRONG_GSKL


def missed_modes(run: Run) -> int | None:
    """How many modes have less than half of their mass; None where there are none to miss."""
    if "mode_masses" not in run:
        return None
    pairs = zip(run["mode_masses"], run["mode_weights"], strict=True)
    return sum(found < FOUND * exact for found, exact in pairs)


def _cells(runs: Sequence[Run]) -> dict[str, str]:
    good = [run for run in runs if run["status"] == "ok"]
    counts = {"runs": str(len(runs)), "failed": str(len(runs) - len(good))}
    if not good:
        return counts
    converged = [run for run in good if run["converged"]]
    within = sum(covered(run["lml_error"], run["lml_sd"]) for run in good)
    missed = [number for run in good if (number := missed_modes(run)) is not None]
    return {
        **counts,
        "within 2 sds": f"{within / len(good):.0%}",
        "converged": str(len(converged)),
        "converged and wrong": str(sum(map(is_wrong, converged))),
        "wrong": str(sum(map(is_wrong, good))),
        "missed a mode": _share_with_a_miss(missed),
        "LML error": _median(good, "lml_error"),
        "LML sd": _median(good, "lml_sd"),
        "gsKL": _median(good, "gskl"),
        "sd ratio, worst": _worst_ratio(good),
        "sd ratio, median": _median_ratio(good),
        "95 % limits": _median(good, "limit_error"),
        "evaluations": f"{np.median([run['evaluations'] for run in good]):g}",
    }


def _share_with_a_miss(missed: Sequence[int]) -> str:
    """Of the runs on problems with separate modes."""
    return f"{sum(number > 0 for number in missed)} of {len(missed)}" if missed else ABSENT


def _number(value: float | None) -> float:
    return math.inf if value is None else value


def _median(runs: Sequence[Run], name: str) -> str:
    """Over the runs that have it; what was not finite counts as the worst."""
    values = [_number(run[name]) for run in runs if name in run]
    return f"{np.median(values):.2g}" if values else ABSENT


def _worst_ratio(runs: Sequence[Run]) -> str:
    """The worst of the runs' worst ratios of marginal sds."""
    ratios = _ratios(runs)
    return f"{max(ratios, key=lambda ratio: abs(math.log(ratio))):.2f}" if ratios else ABSENT


def _median_ratio(runs: Sequence[Run]) -> str:
    ratios = _ratios(runs)
    return f"{np.median(ratios):.2g}" if ratios else ABSENT


def _ratios(runs: Sequence[Run]) -> list[float]:
    return [run["sd_ratio"] for run in runs if run.get("sd_ratio") is not None]
