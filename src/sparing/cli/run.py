"""``sparing run`` and ``resume``: infer the problem that a model file defines; ``sparing demo``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from sparing.cli.arguments import MODEL_HELP, Commands, add_command, add_json, count, positive, seed
from sparing.cli.exit_codes import ExitCode
from sparing.cli.model_file import load_model
from sparing.cli.output import answer, only_the_answer, result_members, several_members
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
    """The arguments of the three commands."""
    demo = add_command(commands, "demo", run_demo, "--output pictures")
    demo.add_argument("--output", type=Path, default=Path("output"), help="where demo.png goes")
    demo.add_argument("--seed", type=seed, default=1, help="seed of the run (default: 1)")

    example = "model.py:problem --store runs/decay --workers 8 --max-evaluations 200"
    run = add_command(commands, "run", run_model, example)
    run.add_argument("model", help=MODEL_HELP)
    run.add_argument("--store", type=Path, metavar="DIR", help="run directory, made if needed")
    run.add_argument("--seed", type=seed, help="same seed, same result (default: a fresh one)")
    text = "independent runs, then a pooled one (default: 1)"
    run.add_argument("--runs", type=count, metavar="N", help=text)
    text = "stop when stable to this error of the log evidence (default: 0.1)"
    run.add_argument("--tolerance", type=positive, default=0.1, help=text)
    _add_shared(run)

    example = "runs/decay model.py:problem --max-evaluations 400"
    resume = add_command(commands, "resume", resume_run, example)
    resume.add_argument("directory", type=Path, help="the run directory")
    resume.add_argument("model", help=MODEL_HELP)
    _add_shared(resume)


def _add_shared(parser: argparse.ArgumentParser) -> None:
    budget = "the budget, of each run when there are several (default: 50 (D + 2))"
    for name, kind, metavar, text in (
        ("--max-evaluations", count, "N", budget),
        ("--workers", count, "N", "evaluate in N processes on this machine"),
        ("--batch-size", count, "N", "points in flight (default: one per worker)"),
        ("--time-limit", positive, "SECONDS", "end an evaluation that takes longer"),
        ("--save", Path, "FILE", f"the result's file (default: DIR/{RESULT})"),
    ):
        parser.add_argument(name, type=kind, metavar=metavar, help=text)
    text = "trust that the model has not changed since its run was stored, and its gradient"
    parser.add_argument("--unchecked", action="store_true", help=text)
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    add_json(parser)


def run_demo(options: argparse.Namespace) -> ExitCode:
    """Infer a curved posterior in two dimensions, print the numbers and draw it.

    What is found stands beside what is exact. Needs pip install 'sparing[plots]'.
    """
    from sparing.cli import demo_run  # imports scipy.stats, which takes a while

    demo_run.run(options.output, options.seed)
    return ExitCode.OK


def run_model(options: argparse.Namespace) -> ExitCode:
    """Infer the posterior and the evidence of a model.

    With --store every evaluation is on disk before it is used: the same command again goes on
    where the last one stopped. The result is saved as DIR/result.sparing. With --runs several
    independent runs are made, then one that is told what all of them evaluated: runs that disagree
    have missed something.
    """
    with only_the_answer(options):
        problem = load_model(options.model)
    own = {"seed": options.seed, "tolerance": options.tolerance, "runs": options.runs}
    return _infer(options, problem, options.store, own)


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
        own |= {"runs": group.n_runs, "x0": points if len(points) else None}
    return _infer(options, problem, options.directory, own)


def _identity(directory: Path, problem: Problem) -> StoredIdentity:
    """How a run was started, which must have been for this problem."""
    with open_run(directory) as store:
        require_same_model(store, problem)
        return stored_identity(store)


def _infer(
    options: argparse.Namespace, problem: Problem, store: Path | None, own: dict[str, Any]
) -> ExitCode:
    """Infer as the options say and as its ``own`` arguments do; save, and print the result."""
    with only_the_answer(options):
        outcome: Result | SeveralRuns = infer(
            problem,
            store=store,
            max_evaluations=options.max_evaluations,
            workers=options.workers,
            batch_size=options.batch_size,
            time_limit=options.time_limit,
            check_target=not options.unchecked,
            check_gradient=not options.unchecked,
            progress=not options.quiet,
            **own,
        )
    _save(outcome, options.save, store)
    several = isinstance(outcome, SeveralRuns)
    members = several_members(outcome) if several else result_members(outcome)
    answer(options, members, outcome.summary())
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
