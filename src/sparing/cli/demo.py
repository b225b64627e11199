"""``sparing demo``: see an inference run."""

from __future__ import annotations

import argparse
from pathlib import Path

from sparing.cli.arguments import Commands, add_command, seed
from sparing.cli.exit_codes import ExitCode


def add_parser(commands: Commands) -> None:
    """The arguments of the command."""
    parser = add_command(commands, "demo", run_demo, "--output pictures")
    parser.add_argument("--output", type=Path, default=Path("output"), help="where demo.png goes")
    parser.add_argument("--seed", type=seed, default=1, help="seed of the run (default: 1)")


def run_demo(options: argparse.Namespace) -> ExitCode:
    """Infer a curved posterior in two dimensions, print the numbers and draw it.

    What is found stands beside what is exact. Needs pip install 'sparing[plots]'.
    """
    from sparing.cli import demo_run  # imports scipy.stats, which takes a while

    demo_run.run(options.output, options.seed)
    return ExitCode.OK
