"""``python -m sparing demo``: see an inference run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sparing.errors import SparingError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m sparing")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser(
        "demo", help="infer a curved 2-D posterior, print the numbers and draw it"
    )
    demo.add_argument("--output", type=Path, default=Path("output"), help="where demo.png goes")
    demo.add_argument("--seed", type=int, default=1, help="seed of the run (default: 1)")
    options = parser.parse_args(arguments)

    from sparing import demo as demonstration  # here, so that --help need not load the engine

    try:
        demonstration.run(options.output, options.seed)
    except SparingError as error:
        sys.stderr.write(f"sparing: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
