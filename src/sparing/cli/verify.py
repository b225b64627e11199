"""``sparing verify``: the integrity of a run directory."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from sparing.cli.arguments import MODEL_HELP, Commands, add_command, add_json
from sparing.cli.exit_codes import ExitCode
from sparing.cli.integrity import Finding, Remark, inspect_directory
from sparing.cli.model_file import load_model
from sparing.cli.output import answer, make_table, only_the_answer
from sparing.cli.stored_runs import open_run, require_run_directory
from sparing.problem.problem import Problem
from sparing.running.stored_run import require_same_model
from sparing.store.run_group import read_group


def add_parser(commands: Commands) -> None:
    """The arguments of the command."""
    parser = add_command(commands, "verify", verify, "runs/decay model.py:problem")
    parser.add_argument("directory", type=Path, help="the run directory")
    parser.add_argument("model", nargs="?", help=f"{MODEL_HELP} (optional)")
    add_json(parser)


def verify(options: argparse.Namespace) -> ExitCode:
    """Check the integrity of a run directory.

    Checksums and order of every line, the problem's fingerprint, the lock, points in flight,
    results that workers left, snapshots and the saved result. Nothing is changed. With a model,
    also whether it is the run's. Of a directory of several runs, each is checked.
    """
    problem = None
    if options.model is not None:
        with only_the_answer(options):
            problem = load_model(options.model)
    group = read_group(options.directory)
    remarks: list[Remark] = []
    for path in (options.directory,) if group is None else group.begun_paths:
        found = _inspect_run(path, options.model, problem)
        prefix = "" if group is None else f"{path.name}: "
        remarks += [replace(remark, subject=prefix + remark.subject) for remark in found]
    damaged = any(remark.finding is Finding.DAMAGE for remark in remarks)
    members = {
        "directory": str(options.directory),
        "intact": not damaged,
        "checks": [
            {"subject": remark.subject, "finding": remark.finding.name.lower(), "text": remark.text}
            for remark in remarks
        ],
    }
    rows = [(remark.subject, remark.finding.value, remark.text) for remark in remarks]
    verdict = "DAMAGED: restore what is damaged from a copy" if damaged else "intact"
    answer(options, members, make_table(("what", "finding", ""), rows), verdict)
    return ExitCode.DAMAGED if damaged else ExitCode.OK


def _inspect_run(directory: Path, model: str | None, problem: Problem | None) -> list[Remark]:
    """What there is to say of one run; another model is an error, which names what differs."""
    require_run_directory(directory)
    remarks = list(inspect_directory(directory))
    if problem is not None and not any(remark.finding is Finding.DAMAGE for remark in remarks):
        with open_run(directory) as store:
            require_same_model(store, problem)
        remarks.append(Remark("model", Finding.OK, f"{model} is the model of this run"))
    return remarks
