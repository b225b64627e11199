"""The command line: ``python -m benchmarks COMMAND``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import batch_efficiency, durability, faults, killed_runs, wall_time
from benchmarks.errors import BenchmarkError
from benchmarks.methods import METHODS
from benchmarks.methods.pyvbmc_method import REQUIREMENT, create_environment
from benchmarks.random_problems import Budget
from benchmarks.robustness import run_robustness
from benchmarks.run import Campaign, run_campaign
from benchmarks.table import markdown_table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return options.command(options)
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    names = Campaign.__dataclass_fields__
    return int(run_campaign(Campaign(**{name: getattr(options, name) for name in names})) > 0)


def _table(options: argparse.Namespace) -> int:
    print(markdown_table(options.directory))
    return 0


def _environment(options: argparse.Namespace) -> int:
    print(f"use it with: --pyvbmc-python {create_environment(options.directory)}")
    return 0


def _robustness(options: argparse.Namespace) -> int:
    numbers = range(options.first, options.first + options.runs)
    crashes = run_robustness(
        numbers, options.jobs, Budget(options.budget), options.timeout, options.out
    )
    return int(crashes > 0)


def _batch(options: argparse.Namespace) -> int:
    batch_efficiency.campaign(
        options.problems, options.batches, options.seeds, options.data, options.out, options.jobs
    )
    return 0


def _faults(options: argparse.Namespace) -> int:
    faults.campaign(options.seeds, options.data, options.problem)
    return 0


def _killed_runs(options: argparse.Namespace) -> int:
    return int(killed_runs.campaign(options.kills, options.seed) > 0)


def _durability(options: argparse.Namespace) -> int:
    return int(durability.run(options) > 0)


def _wall_time(options: argparse.Namespace) -> int:
    wall_time.campaign(
        options.problem, options.workers, options.evaluations, options.seconds, options.data
    )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run methods on problems; resumes where it stopped")
    run.set_defaults(command=_run)
    run.add_argument("--problems", nargs="+", required=True, metavar="NAME")
    run.add_argument("--methods", nargs="+", required=True, choices=list(METHODS))
    run.add_argument("--seeds", type=_positive, default=5, help="seeds 1..SEEDS (default 5)")
    run.add_argument("--jobs", type=_positive, default=1, help="runs at a time")
    run.add_argument("--data", type=Path, help="JSON file with the published problems")
    run.add_argument("--out", type=Path, required=True, help="directory of the results")
    run.add_argument("--budget", type=_positive, help="evaluations; default 50 (D + 2)")
    run.add_argument("--timeout", type=float, help="seconds a run may take")
    run.add_argument("--pyvbmc-python", type=Path, help="Python of the PyVBMC environment")
    run.add_argument("--retry-failed", action="store_true", help="run failed ones again")

    table = commands.add_parser("table", help="print the medians of a campaign as markdown")
    table.set_defaults(command=_table)
    table.add_argument("directory", type=Path)

    environment = commands.add_parser("pyvbmc-env", help=f"create a venv with {REQUIREMENT}")
    environment.set_defaults(command=_environment)
    environment.add_argument("directory", type=Path)

    batch = commands.add_parser("batch", help="evaluations and rounds needed with batches")
    batch.set_defaults(command=_batch)
    batch.add_argument("--problems", nargs="+", default=batch_efficiency.DEFAULT_PROBLEMS)
    batch.add_argument(
        "--batches", nargs="+", type=_positive, default=batch_efficiency.DEFAULT_BATCHES
    )
    batch.add_argument("--seeds", type=_positive, default=5)
    batch.add_argument("--jobs", type=_positive, default=1)
    batch.add_argument("--data", type=Path, help="JSON file with the published problems")
    batch.add_argument("--out", type=Path, required=True, help="directory of the results")

    fault = commands.add_parser("faults", help="each kind of fault at one evaluation in ten")
    fault.set_defaults(command=_faults)
    fault.add_argument("--problem", default="lumpy-2")
    fault.add_argument("--seeds", type=_positive, default=5)
    fault.add_argument("--data", type=Path, help="JSON file with the published problems")

    killed = commands.add_parser("killed-runs", help="whole runs, killed and resumed")
    killed.set_defaults(command=_killed_runs)
    killed.add_argument("--kills", type=_positive, default=200)
    killed.add_argument("--seed", type=int, default=1)

    durable = commands.add_parser("durability", help="kills, stale locks, full disk, append times")
    durable.set_defaults(command=_durability)
    durability.add_options(durable)

    wall = commands.add_parser("wall-time", help="what workers save on a slow target")
    wall.set_defaults(command=_wall_time)
    wall.add_argument("--problem", default="lumpy-6")
    wall.add_argument("--workers", type=_positive, default=8)
    wall.add_argument("--evaluations", type=_positive, default=120)
    wall.add_argument("--seconds", type=float, default=1.0, help="the target sleeps so long")
    wall.add_argument("--data", type=Path, help="JSON file with the published problems")

    robustness = commands.add_parser("robustness", help="sparing on many random problems")
    robustness.set_defaults(command=_robustness)
    robustness.add_argument("--runs", type=_positive, default=200)
    robustness.add_argument("--first", type=int, default=0, help="number of the first problem")
    robustness.add_argument("--jobs", type=_positive, default=1)
    robustness.add_argument("--budget", choices=[item.value for item in Budget], default="small")
    robustness.add_argument("--timeout", type=float, default=600.0, help="seconds: a hang")
    robustness.add_argument("--out", type=Path, help="JSONL file for every outcome")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


if __name__ == "__main__":
    sys.exit(main())
