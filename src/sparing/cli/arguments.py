"""Parts that the parsers of several commands share."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable
from typing import TypeAlias

from sparing.cli.exit_codes import ExitCode

Handler: TypeAlias = Callable[[argparse.Namespace], ExitCode]
# What add_subparsers returns has no public name.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # pyright: ignore[reportPrivateUsage]

MODEL_HELP = "FILE.py:NAME of a sparing.Problem, or of a function that returns one"
RUN_HELP = "a run directory, or a file written by result.save"


def add_command(
    commands: Commands, name: str, handler: Handler, example: str
) -> argparse.ArgumentParser:
    """A new command with an example; its help is the docstring of the handler."""
    description = inspect.getdoc(handler) or name
    summary = description.partition("\n")[0].rstrip(".")
    parser = commands.add_parser(
        name,
        help=summary[0].lower() + summary[1:],
        description=description,
        epilog=f"example:\n  sparing {name} {example}",
        formatter_class=_Formatter,
    )
    parser.set_defaults(handler=handler)
    return parser


class _Formatter(argparse.HelpFormatter):
    """Wraps the description and leaves the example's lines alone."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        is_example = text.startswith("example:")
        return text if is_example else super()._fill_text(text, width, indent)


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option that every command with an answer has."""
    parser.add_argument("--json", action="store_true", help="answer with one JSON object")


def count(text: str, least: int = 1) -> int:
    """A whole number that is at least one."""
    number = int(text)
    if number < least:
        raise argparse.ArgumentTypeError(f"{text} is not {least}, {least + 1}, {least + 2}, ...")
    return number


def seed(text: str) -> int:
    """A whole number that is not negative."""
    return count(text, least=0)


def positive(text: str) -> float:
    """A number above zero."""
    number = float(text)
    if not 0.0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number
