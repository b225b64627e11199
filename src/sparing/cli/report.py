"""``sparing report`` and ``sparing watch``: a run as a page to read."""

from __future__ import annotations

import argparse
from pathlib import Path

from sparing.cli.arguments import RUN_HELP, Commands, add_command, add_json
from sparing.cli.exit_codes import ExitCode
from sparing.cli.output import answer
from sparing.cli.stored_runs import require_run_directory, result_of


def add_parsers(commands: Commands) -> None:
    """The arguments of both commands."""
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
