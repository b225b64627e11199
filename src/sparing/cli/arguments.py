"""Parts that the parsers of several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeAlias

from sparing.cli.exit_codes import ExitCode

Handler: TypeAlias = Callable[[argparse.Namespace], ExitCode]
# What add_subparsers returns has no public name.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # pyright: ignore[reportPrivateUsage]

MODEL_HELP = "FILE.py:NAME of a sparing.Problem, or of a function that returns one"
RUN_HELP = "a run directory, or a file written by result.save"


def add_command(
    commands: Commands, name: str, handler: Handler, summary: str, details: str, example: str
) -> argparse.ArgumentParser:
    """A new command with its help and an example."""
    parser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}. {details}".strip(),
        epilog=f"example:\n  {example}",
        formatter_class=_Formatter,
    )
    parser.set_defaults(handler=handler)
    return parser


class _Formatter(argparse.HelpFormatter):
    """Wraps the description and leaves the example's lines alone."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("example:"):
            return text
        return super()._fill_text(text, width, indent)


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option that every command with an answer has."""
    parser.add_argument("--json", action="store_true", help="answer with one JSON object")


def count(text: str) -> int:
    """A whole number that is at least one."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1, 2, 3, ...")
    return number


def seed(text: str) -> int:
    """A whole number that is not negative."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is not 0, 1, 2, ...")
    return number


def positive(text: str) -> float:
    """A number above zero."""
    number = float(text)
    if not 0.0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number
