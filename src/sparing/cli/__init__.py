"""The command line ``sparing``; ``python -m sparing`` is the same. See docs/command-line.md."""

from sparing.cli.main import main

__all__ = ["main"]
