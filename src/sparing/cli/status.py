"""``sparing status``: how far a run is, without disturbing it."""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sparing.cli.arguments import Commands, add_command, add_json
from sparing.cli.exit_codes import ExitCode
from sparing.cli.output import answer, make_table, status_counts
from sparing.cli.stored_runs import open_run
from sparing.problem.evaluations import Evaluation
from sparing.readable_text import moment_text
from sparing.results.result import Result
from sparing.running.progress.progress import estimate
from sparing.running.stored_run import (
    latest_iteration,
    pending_proposals,
    saved_result,
    stored_identity,
)
from sparing.store.lock import Holder, LockState, lock_state
from sparing.store.run_group import RunGroup, read_group
from sparing.summary.history import standing
from sparing.vbmc.state import IterationInfo
from sparing.vbmc.stopping import StopReason

SHOWN_OF_ITERATION = (
    *("iteration", "n_evaluations", "log_evidence", "log_evidence_sd", "elbo", "elbo_sd"),
    *("reliability", "warm_up", "stable"),
)


@dataclass(frozen=True, eq=False)
class RunStatus:
    """What a run directory tells about its run."""

    directory: Path
    names: tuple[str, ...]
    seed: int
    tag: str
    evaluations: tuple[Evaluation, ...]
    n_pending: int
    lock: LockState
    iteration: IterationInfo | None
    result: Result | None
    warnings: tuple[str, ...]

    @property
    def finished(self) -> bool:
        """Whether it came to its end, as its saved result tells."""
        return self.result is not None and self.result.stop_reason is not StopReason.INTERRUPTED

    @property
    def state(self) -> str:
        """Running, finished or stopped."""
        if self.lock.holder is Holder.ALIVE:
            return "running"
        return "finished" if self.finished else "stopped"

    @property
    def target_seconds(self) -> float:
        """Seconds spent in the target."""
        return float(np.nansum([entry.duration for entry in self.evaluations]))

    @property
    def last_ended(self) -> float:
        """Unix time at which the last evaluation ended; NaN when nobody took it."""
        times = [entry.ended for entry in self.evaluations]
        return max((moment for moment in times if math.isfinite(moment)), default=math.nan)

    @property
    def best(self) -> Evaluation | None:
        """The evaluation with the highest log joint."""
        usable = [entry for entry in self.evaluations if entry.usable]
        return max(usable, key=lambda entry: entry.value, default=None)


def add_parser(commands: Commands) -> None:
    """The arguments of the command."""
    parser = add_command(commands, "status", show_status, "runs/decay")
    parser.add_argument("directory", type=Path, help="the run directory")
    add_json(parser)


def show_status(options: argparse.Namespace) -> ExitCode:
    """Show how far the run in a directory is.

    Reads only, so it may be asked at any time and from anywhere.
    """
    group = read_group(options.directory)
    if group is not None:
        return _show_group(options, group)
    status = read_status(options.directory)
    rows = [(name, text) for name, text in _rows(status) if text]
    warnings = [f"warning: {text}" for text in status.warnings]
    answer(options, _members(status), make_table(("", ""), rows), *warnings)
    return ExitCode.OK


def _show_group(options: argparse.Namespace, group: RunGroup) -> ExitCode:
    """One row for each run that has begun, and one for each pooled run."""
    statuses = [read_status(path) for path in group.begun_paths]
    rows = [
        (
            status.directory.name,
            status.state,
            str(len(status.evaluations)),
            str(status.n_pending),
            _iteration_text(status.iteration),
            _result_text(status.result),
        )
        for status in statuses
    ]
    members = {
        "directory": str(group.path),
        "n_runs": group.n_runs,
        "seed": group.seed,
        "runs": [_members(status) for status in statuses],
    }
    headings = ("run", "state", "evaluations", "in flight", "last iteration", "result")
    warnings = [
        f"warning: {status.directory.name}: {text}"
        for status in statuses
        for text in status.warnings
    ]
    answer(options, members, make_table(headings, rows), *warnings)
    return ExitCode.OK


def read_status(directory: Path) -> RunStatus:
    """Everything that the directory tells."""
    with open_run(directory) as store:
        identity = stored_identity(store)
        events, result = store.events(), saved_result(store)
        return RunStatus(
            directory=directory,
            names=identity.problem.names,
            seed=store.seed,
            tag=identity.tag,
            evaluations=tuple(event for event in events if isinstance(event, Evaluation)),
            n_pending=len(pending_proposals(events)),
            lock=lock_state(directory),
            iteration=latest_iteration(store) if result is None else result.history[-1],
            result=result,
            warnings=store.warnings,
        )


def _rows(status: RunStatus) -> list[tuple[str, str]]:
    counts = status_counts(status.evaluations)
    kinds = ", ".join(f"{number} {kind}" for kind, number in counts.items())
    return [
        ("state", f"{status.state}; lock {status.lock.text}"),
        ("parameters", f"{len(status.names)}: {', '.join(status.names)}"),
        ("evaluations", f"{len(status.evaluations)}" + (f" ({kinds})" if kinds else "")),
        # Nobody waits for what was under way when a run ended.
        ("not evaluated" if status.finished else "in flight", _pending_text(status)),
        ("last evaluation", _ago(status.last_ended)),
        ("target time", f"{status.target_seconds:.1f} s"),
        ("best log joint", _best_text(status)),
        ("last iteration", _iteration_text(status.iteration)),
        ("result", _result_text(status.result)),
        ("seed", str(status.seed)),
        ("tag", status.tag),
    ]


def _members(status: RunStatus) -> dict[str, Any]:
    best, info = status.best, status.iteration
    return {
        "directory": str(status.directory),
        "state": status.state,
        "lock": status.lock.text,
        "names": status.names,
        "n_evaluations": len(status.evaluations),
        "statuses": status_counts(status.evaluations),
        "n_pending": status.n_pending,
        "last_ended": status.last_ended,
        "target_seconds": status.target_seconds,
        "best": best and {"log_joint": best.value, "x": best.x},
        "iteration": info and {name: getattr(info, name) for name in SHOWN_OF_ITERATION},
        "finished": status.finished,
        "converged": status.result is not None and status.result.converged,
        "seed": status.seed,
        "tag": status.tag,
        "warnings": status.warnings,
    }


def _pending_text(status: RunStatus) -> str:
    if not status.finished:
        return str(status.n_pending)
    return f"{status.n_pending} still under way when the run ended" if status.n_pending else ""


def _best_text(status: RunStatus) -> str:
    if status.best is None:
        return ""
    point = zip(status.names, status.best.x, strict=True)
    return f"{status.best.value:.4f} at " + ", ".join(f"{name} = {x:.5g}" for name, x in point)


def _iteration_text(info: IterationInfo | None) -> str:
    if info is None:
        return ""
    evidence = estimate(info.log_evidence, info.log_evidence_sd)
    n_evaluations = f"{info.iteration} with {info.n_evaluations} evaluations"
    return f"{n_evaluations}, {standing(info)}: log evidence {evidence}"


def _result_text(result: Result | None) -> str:
    if result is None:
        return ""
    word = "converged" if result.converged else "NOT converged"
    return f"log evidence {estimate(result.log_evidence, result.log_evidence_sd)}, {word}"


def _ago(moment: float) -> str:
    if not math.isfinite(moment):
        return ""
    return f"{moment_text(moment)} ({time.time() - moment:.0f} s ago)"
