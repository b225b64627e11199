"""The command line: ``python -m benchmarks COMMAND``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from benchmarks import (
    batch_efficiency,
    beside_nuts,
    durability,
    faults,
    first_minutes,
    killed_runs,
    periodic,
    profile,
    wall_time,
)
from benchmarks.attack import command as attack
from benchmarks.errors import BenchmarkError
from benchmarks.figures import command as figure_command
from benchmarks.methods import METHODS, SAMPLERS
from benchmarks.methods.pyvbmc_method import REQUIREMENT, create_environment
from benchmarks.problems import load_problem
from benchmarks.random_problems import Budget
from benchmarks.robustness import run_robustness
from benchmarks.run import (
    FEW_SEEDS,
    MANY_SEEDS,
    SMALL_DIMENSION,
    Campaign,
    run_campaign,
)
from benchmarks.table import QUANTITIES, compact_table, markdown_table
from benchmarks.trust import trust_table
from benchmarks.versus import campaign as versus
from benchmarks.versus.report import write_report

DATA_HELP = (
    "what was published: a file like synthetic_problems.json, or the directory that holds it; the "
    "recorded cells of the neuronal model are in neuron/ there or beside the file"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return options.command(options)
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    return int(run_campaign(_campaign(options)) > 0)


def _versus(options: argparse.Namespace) -> int:
    methods = dict.fromkeys([versus.METHOD, versus.BASELINE, *options.methods])
    return int(versus.run_versus(replace(_campaign(options), methods=list(methods))) > 0)


def _campaign(options: argparse.Namespace) -> Campaign:
    """A campaign from the options that are named like its fields."""
    names = [field.name for field in fields(Campaign)]
    return Campaign(**{name: getattr(options, name) for name in names if hasattr(options, name)})


def _versus_report(options: argparse.Namespace) -> int:
    print(write_report(options.directory, options.method, options.baseline))
    return 0


def _profile(options: argparse.Namespace) -> int:
    problem = load_problem(options.problem, options.data)
    spent = profile.profile(
        problem, options.evaluations, options.seed, options.top, gradients=options.gradients
    )
    print(profile.profile_text(spent, options.window))
    if options.cold:
        print(profile.compile_text())
    return 0


def _table(options: argparse.Namespace) -> int:
    if options.compact is None:
        print(markdown_table(options.directory))
    else:
        print(compact_table(options.directory, options.compact))
    return 0


def _trust(options: argparse.Namespace) -> int:
    print(trust_table(options.directory, by_problem=options.by_problem))
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


def _periodic(options: argparse.Namespace) -> int:
    periodic.campaign(options.seeds, options.problems)
    return 0


def _nuts(options: argparse.Namespace) -> int:
    beside_nuts.campaign(
        options.problems, options.seeds, options.draws, options.seconds, options.acceptance
    )
    return 0


def _first_minutes(options: argparse.Namespace) -> int:
    steps = first_minutes.walk(options.out)
    print(first_minutes.text(steps))
    return int(any(step.failed for step in steps))


def _attack(options: argparse.Namespace) -> int:
    return int(attack.run(options) > 0)


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
    run.add_argument("--core", type=int, help="core that every run is pinned to (default: none)")
    _add_campaign_options(run)

    versus_run = commands.add_parser(
        "versus",
        help="sparing and PyVBMC in turns on one core; resumes where it stopped",
        description="Run sparing and PyVBMC (and the methods added) in turns, one run at a time "
        "on one core. 'versus-report' makes tables and plots of the result.",
    )
    versus_run.set_defaults(command=_versus)
    versus_run.add_argument(
        "--problems",
        nargs="+",
        default=versus.HEADLINE_PROBLEMS,
        metavar="NAME",
        help="default: " + " ".join(versus.HEADLINE_PROBLEMS),
    )
    versus_run.add_argument(
        "--methods",
        nargs="+",
        default=[],
        choices=list(METHODS),
        metavar="METHOD",
        help=f"methods besides {versus.METHOD} and {versus.BASELINE}: " + ", ".join(METHODS),
    )
    versus_run.add_argument(
        "--seeds",
        type=_positive,
        help=f"seeds 1..SEEDS (default {MANY_SEEDS}, and {FEW_SEEDS} above D = {SMALL_DIMENSION})",
    )
    versus_run.add_argument(
        "--core",
        type=int,
        default=versus.default_core(),
        help="core that every run is pinned to (default: the last one)",
    )
    _add_campaign_options(versus_run)

    versus_table = commands.add_parser(
        "versus-report", help="tables and plots of one method against another"
    )
    versus_table.set_defaults(command=_versus_report)
    versus_table.add_argument("directory", type=Path, help="the --out of 'versus' or 'run'")
    for role, name in (("method", versus.METHOD), ("baseline", versus.BASELINE)):
        versus_table.add_argument(
            f"--{role}",
            default=name,
            choices=list(METHODS),
            metavar="METHOD",
            help=f"default {name}",
        )

    profiling = commands.add_parser(
        "profile",
        help="where sparing's own time goes",
        description="One run of sparing that ends only with its budget, on a target that costs "
        "nothing.",
    )
    profiling.set_defaults(command=_profile)
    profiling.add_argument("--problem", default="lumpy-6", metavar="NAME")
    profiling.add_argument("--evaluations", type=_positive, default=120)
    profiling.add_argument("--seed", type=int, default=1)
    profiling.add_argument("--data", type=Path, help=DATA_HELP)
    profiling.add_argument(
        "--gradients", action="store_true", help="the target gives its gradient with every value"
    )
    profiling.add_argument(
        "--window", type=_positive, default=50, help="evaluations per line of the time table"
    )
    profiling.add_argument(
        "--cold", action="store_true", help="also the time to compile with an empty cache"
    )
    profiling.add_argument(
        "--top", type=_positive, metavar="N", help="also the N functions that take most time"
    )

    table = commands.add_parser("table", help="print the medians of a campaign as markdown")
    table.set_defaults(command=_table)
    table.add_argument("directory", type=Path)
    table.add_argument(
        "--compact",
        choices=list(QUANTITIES),
        help="medians of one quantity alone, a column per method; cpu: library CPU seconds per "
        "evaluation",
    )

    trust = commands.add_parser(
        "trust", help="how often runs are right about themselves, over families of problems"
    )
    trust.set_defaults(command=_trust)
    trust.add_argument("directory", type=Path)
    trust.add_argument("--by-problem", action="store_true", help="a row for each problem")

    figures = commands.add_parser(
        "figures",
        help="draw the paper's figures from the runs of a campaign",
        description=figure_command.__doc__,
    )
    figures.set_defaults(command=figure_command.run)
    figures.add_argument("directory", type=Path, help="the --out of 'run' or 'versus'")
    figures.add_argument("--data", type=Path, help=DATA_HELP)
    figures.add_argument(
        "--control-seeds", type=_positive, default=5, help="control runs a problem (default 5)"
    )
    figures.add_argument("--jobs", type=_positive, default=1, help="control runs at a time")
    figure_command.add_options(figures)

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
    batch.add_argument("--data", type=Path, help=DATA_HELP)
    batch.add_argument("--out", type=Path, required=True, help="directory of the results")

    fault = commands.add_parser("faults", help="each kind of fault at one evaluation in ten")
    fault.set_defaults(command=_faults)
    fault.add_argument("--problem", default="lumpy-2")
    fault.add_argument("--seeds", type=_positive, default=5)
    fault.add_argument("--data", type=Path, help=DATA_HELP)

    killed = commands.add_parser("killed-runs", help="whole runs, killed and resumed")
    killed.set_defaults(command=_killed_runs)
    killed.add_argument("--kills", type=_positive, default=200)
    killed.add_argument("--seed", type=int, default=1)

    durable = commands.add_parser("durability", help="kills, stale locks, full disk, append times")
    durable.set_defaults(command=_durability)
    durability.add_options(durable)

    minutes = commands.add_parser(
        "first-minutes", help="every command and block of the first pages, on a fresh clone"
    )
    minutes.set_defaults(command=_first_minutes)
    minutes.add_argument("--out", type=Path, default=Path("output/first-minutes"), help="pictures")

    circle = commands.add_parser("periodic", help="angles, with their mass across the bounds too")
    circle.set_defaults(command=_periodic)
    choices = list(periodic.PROBLEMS)
    circle.add_argument("--problems", nargs="+", choices=choices, default=choices)
    circle.add_argument("--seeds", type=_positive, default=10)

    nuts = commands.add_parser("nuts", help="sparing with gradients beside NumPyro's NUTS")
    nuts.set_defaults(command=_nuts)
    choices = list(beside_nuts.PROBLEMS)
    nuts.add_argument("--problems", nargs="+", choices=choices, default=choices)
    nuts.add_argument("--seeds", type=_positive, default=3)
    nuts.add_argument(
        "--draws",
        nargs="+",
        type=_positive,
        default=beside_nuts.LENGTHS,
        help="lengths of NUTS's chains, each after a warm-up of as many draws",
    )
    nuts.add_argument(
        "--seconds", type=float, default=beside_nuts.SECONDS, help="an evaluation takes so long"
    )
    nuts.add_argument(
        "--acceptance",
        type=float,
        default=beside_nuts.ACCEPTANCE,
        help=f"NUTS's target_accept_prob (default {beside_nuts.ACCEPTANCE}, as NumPyro's)",
    )

    attacking = commands.add_parser(
        "attack", help="hostile cases of every kind", description=attack.__doc__
    )
    attacking.set_defaults(command=_attack)
    attack.add_options(attacking)

    wall = commands.add_parser("wall-time", help="what workers save on a slow target")
    wall.set_defaults(command=_wall_time)
    wall.add_argument("--problem", default="lumpy-6")
    wall.add_argument("--workers", type=_positive, default=8)
    wall.add_argument("--evaluations", type=_positive, default=120)
    wall.add_argument("--seconds", type=float, default=1.0, help="the target sleeps so long")
    wall.add_argument("--data", type=Path, help=DATA_HELP)

    robustness = commands.add_parser("robustness", help="sparing on many random problems")
    robustness.set_defaults(command=_robustness)
    robustness.add_argument("--runs", type=_positive, default=200)
    robustness.add_argument("--first", type=int, default=0, help="number of the first problem")
    robustness.add_argument("--jobs", type=_positive, default=1)
    robustness.add_argument("--budget", choices=[item.value for item in Budget], default="small")
    robustness.add_argument("--timeout", type=float, default=600.0, help="seconds: a hang")
    robustness.add_argument("--out", type=Path, help="JSONL file for every outcome")
    return parser


def _add_campaign_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, help=DATA_HELP)
    parser.add_argument("--out", type=Path, required=True, help="directory of the results")
    parser.add_argument("--budget", type=_positive, help="evaluations; default 50 (D + 2)")
    parser.add_argument(
        "--sampler-budget",
        type=_positive,
        default=Campaign.sampler_budget,
        help=f"evaluations of {' and '.join(SAMPLERS)} (default {Campaign.sampler_budget})",
    )
    parser.add_argument("--timeout", type=float, help="seconds a run may take")
    parser.add_argument("--pyvbmc-python", type=Path, help="Python of the PyVBMC environment")
    parser.add_argument("--retry-failed", action="store_true", help="run failed ones again")
    parser.add_argument(
        "--redo",
        nargs="+",
        default=[],
        choices=list(METHODS),
        metavar="METHOD",
        help="run these methods' recorded runs again, as after a change of the code",
    )


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


if __name__ == "__main__":
    sys.exit(main())
