"""``sparing run`` and ``sparing resume``: infer the problem that a model file defines."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from sparing.cli.arguments import MODEL_HELP, Commands, add_command, add_json, count, positive, seed
from sparing.cli.exit_codes import ExitCode
from sparing.cli.model_file import load_model
from sparing.cli.output import answer, only_the_answer, result_members
from sparing.cli.stored_runs import open_run
from sparing.driver import infer
from sparing.problem import Problem
from sparing.result import Result
from sparing.stopping import StopReason
from sparing.stored_run import RESULT, require_same_model, stored_identity


def add_parsers(commands: Commands) -> None:
    """The arguments of both commands."""
    run = add_command(
        commands,
        "run",
        run_model,
        "infer the posterior and the evidence of a model",
        "With --store every evaluation is on disk before it is used: the same command again goes "
        f"on where the last one stopped. The result is saved as DIR/{RESULT}.",
        "sparing run model.py:problem --store runs/decay --workers 8 --max-evaluations 200",
    )
    run.add_argument("model", help=MODEL_HELP)
    run.add_argument("--store", type=Path, metavar="DIR", help="run directory, made if needed")
    run.add_argument("--seed", type=seed, help="same seed, same result (default: a fresh one)")
    run.add_argument(
        "--tolerance",
        type=positive,
        default=0.1,
        help="stop when stable to this error of the log evidence (default: 0.1)",
    )
    _add_shared(run)

    resume = add_command(
        commands,
        "resume",
        resume_run,
        "go on with the run in a directory",
        "Seed, settings, starting points and tolerance are those the run was started with, also "
        "when that was from Python. A model that differs from the run's is refused, naming the "
        "difference.",
        "sparing resume runs/decay model.py:problem --max-evaluations 400",
    )
    resume.add_argument("directory", type=Path, help="the run directory")
    resume.add_argument("model", help=MODEL_HELP)
    _add_shared(resume)


def _add_shared(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-evaluations", type=count, metavar="N", help="the budget (default: 50 (D + 2))"
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
    """Start a run, or go on with it when its directory is there."""
    with only_the_answer(options):
        problem = load_model(options.model)
    own = {"seed": options.seed, "tolerance": options.tolerance}
    return _infer(options, problem, options.store, own)


def resume_run(options: argparse.Namespace) -> ExitCode:
    """Go on with a run as it was started."""
    with open_run(options.directory) as store:
        with only_the_answer(options):
            problem = load_model(options.model)
        require_same_model(store, problem)
        arguments = stored_identity(store).arguments
    return _infer(options, problem, options.directory, arguments)


def _infer(
    options: argparse.Namespace, problem: Problem, store: Path | None, own: dict[str, Any]
) -> ExitCode:
    with only_the_answer(options):
        result = infer(
            problem,
            store=store,
            max_evaluations=options.max_evaluations,
            workers=options.workers,
            batch_size=options.batch_size,
            time_limit=options.time_limit,
            progress=not options.quiet,
            **own,
        )
    saved_as = options.save or (store / RESULT if store is not None else None)
    if saved_as is not None:
        result.save(saved_as)
    # On a terminal the progress display, on standard error, has ended with the summary.
    shown = not options.quiet and sys.stdout.isatty() and sys.stderr.isatty()
    answer(options, result_members(result), *([] if shown else [result.summary()]))
    return _code(result)


def _code(result: Result) -> ExitCode:
    if result.stop_reason is StopReason.INTERRUPTED:
        return ExitCode.INTERRUPTED
    return ExitCode.OK if result.converged else ExitCode.NOT_TRUSTED
