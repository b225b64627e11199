"""``sparing export``, ``report`` and ``watch``: a run for other programs, or as a page to read."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from sparing.cli.arguments import RUN_HELP, Commands, add_command, add_json, count, seed
from sparing.cli.exit_codes import ExitCode, UsageError
from sparing.cli.output import answer, json_text, result_members
from sparing.cli.stored_runs import require_run_directory, result_of
from sparing.integrations.columns import column_names, draw_columns, outcome_columns
from sparing.results.result import Result
from sparing.store.files import explained_errors, write_durably

FILES = {
    "evaluations": "CSV of every evaluation",
    "samples": "CSV of draws from the posterior",
    "netcdf": "NetCDF of draws and evaluations, for ArviZ",
    "summary": "JSON of evidence, moments and intervals",
}
# What a column is called here, for people who have not read `Outcome`.
CSV_NAMES = {"value": "log_joint", "duration": "seconds"}
SAMPLE_COLUMNS = ("log_density",)


def add_parsers(commands: Commands) -> None:
    """The arguments of the three commands."""
    report = add_command(commands, "report", write_report, "runs/decay -o decay.html")
    report.add_argument("run", help=RUN_HELP)
    report.add_argument(
        "-o", "--output", type=Path, default=Path("run.html"), help="the file (default: run.html)"
    )
    add_json(report)

    watch = add_command(commands, "watch", watch_run, "runs/decay")
    watch.add_argument("directory", type=Path, help="the run directory")
    watch.add_argument("--port", type=int, default=0, help="port (default: a free one)")
    watch.add_argument("--no-browser", action="store_true", help="only print the address")

    example = "runs/decay --samples draws.csv --summary decay.json"
    parser = add_command(commands, "export", export, example)
    parser.add_argument("run", help=RUN_HELP)
    for name, text in FILES.items():
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help=text)
    parser.add_argument(
        "--draws", type=count, default=4000, help="how many draws to write (default: 4000)"
    )
    parser.add_argument("--seed", type=seed, default=0, help="seed of the draws (default: 0)")
    add_json(parser)


def write_report(options: argparse.Namespace) -> ExitCode:
    """Write a report that can be sent to a colleague.

    One HTML file with everything in it: posterior, evidence, pictures, diagnostics in words. Needs
    pip install 'sparing[report]'.
    """
    result_of(options.run).report(options.output)
    answer(options, {"report": str(options.output)}, f"report: {options.output}")
    return ExitCode.OK


def watch_run(options: argparse.Namespace) -> ExitCode:
    """Show the report of a run in progress in the browser.

    Served on this machine only, until Ctrl-C; reading disturbs nothing.
    """
    from sparing.running.live import watch  # a web server, which nothing else needs

    require_run_directory(options.directory)
    watch(options.directory, port=options.port, open_browser=not options.no_browser)
    return ExitCode.OK


def export(options: argparse.Namespace) -> ExitCode:
    """Write evaluations, posterior draws or the summary for other programs.

    Give one or more files to write. NetCDF is what ArviZ reads: pip install 'sparing[arviz]'.
    """
    wanted = {name: path for name in FILES if (path := getattr(options, name)) is not None}
    if not wanted:
        raise UsageError("give at least one of --evaluations, --samples, --netcdf and --summary")
    result = result_of(options.run)
    texts = {
        "evaluations": lambda: evaluations_csv(result),
        "samples": lambda: samples_csv(result, options.draws, options.seed),
        "summary": lambda: json_text(result_members(result)),
    }
    for name, path in wanted.items():
        if name in texts:
            # A message of the target may hold what no encoding has, such as half a character.
            write_durably(path, texts[name]().encode("utf-8", "backslashreplace"))
        else:
            with explained_errors(path, "write"):
                result.to_arviz(options.draws, options.seed).to_netcdf(str(path))
    written = {name: str(path) for name, path in wanted.items()}
    answer(options, {"written": written}, *(f"{name}: {path}" for name, path in written.items()))
    return ExitCode.OK


def evaluations_csv(result: Result) -> str:
    """One row per evaluation, in order; numbers with the digits that read back exactly."""
    outcomes = outcome_columns(result)
    header = ["index", *(CSV_NAMES.get(name, name) for name in outcomes)]
    columns = [column.tolist() for column in outcomes.values()]
    rows = (
        (entry.index, *cells, *result.problem.full(entry.x).tolist())
        for entry, *cells in zip(result.evaluations, *columns, strict=True)
    )
    return _csv((*header, *column_names(result.problem.all_names, header)), rows)


def samples_csv(result: Result, n: int, seed: int) -> str:
    """One row per draw from the posterior, with its log density under it."""
    draws = result.posterior.sample(n, seed=seed)
    log_density = result.posterior.log_density(draws)
    columns = draw_columns(result, draws, SAMPLE_COLUMNS)
    rows = zip(*(column.tolist() for column in (*columns.values(), log_density)), strict=True)
    return _csv((*columns, *SAMPLE_COLUMNS), rows)


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
