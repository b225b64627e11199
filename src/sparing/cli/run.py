"""``sparing run`` and ``sparing resume``: infer the problem that a model file defines."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from sparing.cli.arguments import MODEL_HELP, Commands, add_command, add_json, count, positive, seed
from sparing.cli.exit_codes import ExitCode
from sparing.cli.model_file import load_model
from sparing.cli.output import (
    answer,
    only_the_answer,
    result_members,
    same_place,
    several_members,
)
from sparing.cli.stored_runs import open_run
from sparing.problem.problem import Problem
from sparing.results.result import Result
from sparing.results.several_runs import SeveralRuns
from sparing.running.infer import infer
from sparing.running.several import gather_points
from sparing.running.stored_run import RESULT, StoredIdentity, require_same_model, stored_identity
from sparing.store.run_group import read_group
from sparing.vbmc.stopping import StopReason


def add_parsers(commands: Commands) -> None:
    """The arguments of both commands."""
    example = "model.py:problem --store runs/decay --workers 8 --max-evaluations 200"
    run = add_command(commands, "run", run_model, example)
    run.add_argument("model", help=MODEL_HELP)
    run.add_argument("--store", type=Path, metavar="DIR", help="run directory, made if needed")
    run.add_argument("--seed", type=seed, help="same seed, same result (default: a fresh one)")
    run.add_argument(
        "--runs", type=count, metavar="N", help="independent runs, then a pooled one (default: 1)"
    )
    run.add_argument(
        "--tolerance",
        type=positive,
        default=0.1,
        help="stop when stable to this error of the log evidence (default: 0.1)",
    )
    _add_shared(run)

    example = "runs/decay model.py:problem --max-evaluations 400"
    resume = add_command(commands, "resume", resume_run, example)
    resume.add_argument("directory", type=Path, help="the run directory")
    resume.add_argument("model", help=MODEL_HELP)
    _add_shared(resume)


def _add_shared(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-evaluations",
        type=count,
        metavar="N",
        help="the budget, of each run when there are several (default: 50 (D + 2))",
    )
    parser.add_argument(
        "--workers", type=count, metavar="N", help="evaluate in N processes on this machine"
    )
    parser.add_argument(
        "--batch-size", type=count, metavar="N", help="points in flight (default: one per worker)"
    )
    parser.add_argument(
        "--time-limit", type=positive, metavar="SECONDS", help="end an evaluation that takes longer"
    )
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help=f"the result's file (default: DIR/{RESULT})"
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    add_json(parser)


def run_model(options: argparse.Namespace) -> ExitCode:
    """Infer the posterior and the evidence of a model.

    With --store every evaluation is on disk before it is used: the same command again goes on
    where the last one stopped. The result is saved as DIR/result.sparing. With --runs several
    independent runs are made, then one that is told what all of them evaluated: runs that disagree
    have missed something.
    """
    with only_the_answer(options):
        problem = load_model(options.model)
    own = {"seed": options.seed, "tolerance": options.tolerance}
    return _infer(options, problem, options.store, options.runs, own)


def resume_run(options: argparse.Namespace) -> ExitCode:
    """Go on with the run in a directory.

    Seed, settings, starting points and tolerance are those the run was started with, also when
    that was from Python. A model that differs from the run's is refused, naming the difference.
    """
    group = read_group(options.directory)
    directories = (options.directory,) if group is None else group.run_paths
    with only_the_answer(options):
        problem = load_model(options.model)
    identities = [_identity(directory, problem) for directory in directories]
    own = identities[0].arguments
    if group is not None:
        points = gather_points([identity.starting_points for identity in identities])
        own["x0"] = points if len(points) else None
    n_runs = None if group is None else group.n_runs
    return _infer(options, problem, options.directory, n_runs, own)


def _identity(directory: Path, problem: Problem) -> StoredIdentity:
    """How a run was started, which must have been for this problem."""
    with open_run(directory) as store:
        require_same_model(store, problem)
        return stored_identity(store)


def _infer(
    options: argparse.Namespace,
    problem: Problem,
    store: Path | None,
    n_runs: int | None,
    own: dict[str, Any],
) -> ExitCode:
    with only_the_answer(options):
        outcome: Result | SeveralRuns = infer(
            problem,
            runs=n_runs,
            store=store,
            max_evaluations=options.max_evaluations,
            workers=options.workers,
            batch_size=options.batch_size,
            time_limit=options.time_limit,
            progress=not options.quiet,
            **own,
        )
    _save(outcome, options.save, store)
    # The progress display, on standard error, has ended with the summary.
    shown = not options.quiet and same_place(sys.stdout, sys.stderr)
    several = isinstance(outcome, SeveralRuns)
    members = several_members(outcome) if several else result_members(outcome)
    answer(options, members, *([] if shown else [outcome.summary()]))
    return _code(outcome)


def _save(outcome: Result | SeveralRuns, saved_as: Path | None, store: Path | None) -> None:
    """The result where it is asked for; without that, each run's in its own directory."""
    several = isinstance(outcome, SeveralRuns)
    if saved_as is not None:
        (outcome.result if several else outcome).save(saved_as)
    elif store is not None and not several:
        outcome.save(store / RESULT)
    elif store is not None and several and outcome.pooled is not None:
        # Interrupted before, runs may have no result; what the journals hold is enough then.
        group = read_group(store)
        assert group is not None  # the runs have just been stored there
        for path, result in zip(group.run_paths, outcome.results, strict=True):
            result.save(path / RESULT)
        outcome.pooled.save(list(group.pooled_paths.values())[-1] / RESULT)


def _code(outcome: Result | SeveralRuns) -> ExitCode:
    if isinstance(outcome, SeveralRuns):
        interrupted = outcome.interrupted
    else:
        interrupted = outcome.stop_reason is StopReason.INTERRUPTED
    if interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.OK if outcome.converged else ExitCode.NOT_TRUSTED
