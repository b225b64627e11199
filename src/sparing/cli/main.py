"""Parse the command line, run a command, and turn errors into a message and an exit code."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from sparing.cli import compare, export, run, status, verify
from sparing.cli.exit_codes import ExitCode, code_for
from sparing.cli.output import write_json
from sparing.errors import SparingError
from sparing.readable_text import readable


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without "±" is no reason to fail
    options = _parser().parse_args(arguments)
    try:
        code = options.handler(options)
        sys.stdout.flush()  # here, where a closed pipe is expected
        return code
    except SparingError as error:
        return _failed(options, str(error), code_for(error))
    except BrokenPipeError:  # `sparing status DIR | head`: the reader has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FAILED
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        return _failed(options, f"{name}{error.strerror or error}", ExitCode.FAILED)
    except KeyboardInterrupt as interrupt:
        return _failed(options, str(interrupt) or "interrupted", ExitCode.INTERRUPTED)


def _failed(options: argparse.Namespace, text: str, code: ExitCode) -> int:
    """Say what is wrong: to a person on standard error, to a machine as JSON as well."""
    sys.stderr.write(f"sparing: {readable(text)}\n")
    if getattr(options, "json", False):
        write_json({"error": text, "exit_code": int(code)})
    return code


def _parser() -> argparse.ArgumentParser:
    codes = "\n".join(f"  {code:<4} {code.meaning}" for code in ExitCode)
    parser = argparse.ArgumentParser(
        prog="sparing",
        description="Posterior and log evidence from few evaluations of an expensive log density.",
        epilog=f"exit codes:\n{codes}\n\nEvery command explains itself: sparing COMMAND --help",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sparing {version('sparing')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run.add_parsers(commands)
    status.add_parser(commands)
    export.add_parsers(commands)
    verify.add_parser(commands)
    compare.add_parsers(commands)
    return parser
