"""A command's answer: one JSON object for machines, or text and tables for people.

On a terminal tables have lines and colours; in a file or pipe they are plain columns, as wide as
they need to be. The numbers that JSON lacks are the strings "nan", "inf" and "-inf".
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from sparing.errors import TargetError
from sparing.problem.evaluations import Evaluation
from sparing.readable_text import readable
from sparing.results.agreement import Diagnosis
from sparing.results.result import Result
from sparing.results.several_runs import SeveralRuns
from sparing.store.json_members import to_json_types

WIDTH_WITHOUT_TERMINAL = 1000
INTERVAL = (0.025, 0.5, 0.975)


def answer(options: argparse.Namespace, members: Mapping[str, Any], *parts: str | Table) -> None:
    """Write the members when asked for JSON, the parts otherwise."""
    if options.json:
        write_json(members)
        return
    plain_text = not sys.stdout.isatty()
    width = WIDTH_WITHOUT_TERMINAL if plain_text else None
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    with console.capture() if plain_text else contextlib.nullcontext() as capture:
        for part in parts:
            is_text = isinstance(part, str)
            console.print(readable(part) if is_text else part, soft_wrap=is_text)
    if capture is not None:  # rich fills columns up with blanks, which no file needs
        sys.stdout.writelines(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def write_json(members: Mapping[str, Any]) -> None:
    """One JSON object on standard output."""
    sys.stdout.write(json_text(members))


def json_text(members: Mapping[str, Any]) -> str:
    """The members as JSON for people and machines."""
    return json.dumps(to_json_types(members), indent=2, allow_nan=False) + "\n"


def make_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table; without a head when all headings are empty."""
    box = SIMPLE_HEAD if sys.stdout.isatty() else None
    table = Table(*headings, box=box, pad_edge=False, show_header=any(headings))
    for row in rows:
        table.add_row(*map(readable, row))
    return table


def only_the_answer(options: argparse.Namespace) -> contextlib.AbstractContextManager[object]:
    """Send what the user's model prints to standard error while JSON is expected."""
    return contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext()


def status_counts(evaluations: Iterable[Evaluation]) -> dict[str, int]:
    """How many evaluations ended in which way, by the status as people read it."""
    return dict(Counter(str(entry.status) for entry in evaluations))


def result_members(result: Result) -> dict[str, Any]:
    """A result as a JSON object: all that a person would quote of it."""
    posterior = result.posterior
    quantiles = posterior.quantile(INTERVAL)
    return {
        "log_evidence": result.log_evidence,
        "log_evidence_sd": result.log_evidence_sd,
        "elbo": result.elbo,
        "elbo_sd": result.elbo_sd,
        "converged": result.converged,
        "stop_reason": result.stop_reason.name.lower(),
        "n_evaluations": result.n_evaluations,
        "statuses": status_counts(result.evaluations),
        "seed": result.seed,
        "parameters": {
            name: {
                "mean": posterior.mean[i],
                "sd": posterior.sd[i],
                "quantiles": {str(p): quantiles[k, i] for k, p in enumerate(INTERVAL)},
            }
            for i, name in enumerate(posterior.names)
        },
        **({"fixed": result.problem.fixed} if result.problem.fixed else {}),
        **_derived_members(result),
        "covariance": posterior.covariance,
        "library_seconds": result.library_seconds,
        "target_seconds": result.target_seconds,
        "warnings": result.warnings,
    }


def _derived_members(result: Result) -> dict[str, Any]:
    """What is derived from the parameters, or why it could not be; nothing where nothing is."""
    try:
        derived = result.derived
    except TargetError as error:
        return {"derived": str(error)}
    numbers = {
        name: {
            "mean": np.mean(values),
            "sd": np.std(values),
            "quantiles": {str(p): np.quantile(values, p) for p in INTERVAL},
        }
        for name, values in derived.items()
    }
    return {"derived": numbers} if numbers else {}


def several_members(several: SeveralRuns) -> dict[str, Any]:
    """Several runs as a JSON object: whether they agree, and the result to use."""
    names = [f"run {number}" for number in range(1, len(several.results) + 1)]
    return {
        "converged": several.converged,
        "verdict": several.verdict,
        "n_evaluations": several.n_evaluations,
        "seed": several.seed,
        "diagnosis": several.diagnosis and diagnosis_members(several.diagnosis, names),
        "used": several.used,
        "result": result_members(several.result),
    }


def diagnosis_members(diagnosis: Diagnosis, paths: Sequence[str]) -> dict[str, Any]:
    """A diagnosis as a JSON object; the paths name the runs."""
    return {
        "verdict": diagnosis.verdict.name.lower(),
        "best": paths[diagnosis.best - 1],
        "runs": [
            {"path": path, "kept": run.kept, **asdict(run)}
            for path, run in zip(paths, diagnosis.runs, strict=True)
        ],
        "pooled": diagnosis.pooled and asdict(diagnosis.pooled),
        "pairs": [{**asdict(pair), "mmtv": pair.mmtv} for pair in diagnosis.pairs],
        "advice": diagnosis.advice,
    }
