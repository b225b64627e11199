"""Runs that a command is given by their path."""

from __future__ import annotations

from pathlib import Path

from sparing.cli.exit_codes import UsageError
from sparing.result import Result
from sparing.store import RunDirectory
from sparing.store.run_directory import JOURNAL, PROBLEM
from sparing.stored_run import load_run


def require_run_directory(directory: Path) -> None:
    """Refuse a path that no run was ever stored in."""
    if not any((directory / name).exists() for name in (PROBLEM, JOURNAL)):
        raise UsageError(f"{directory} is not a run directory: it has no {PROBLEM}")


def open_run(directory: Path) -> RunDirectory:
    """A run directory for reading."""
    require_run_directory(directory)
    return RunDirectory.open(directory, read_only=True)


def result_of(path: str) -> Result:
    """The result of a run directory or result file."""
    if not Path(path).exists():
        raise UsageError(f"there is no run directory and no result file {path}")
    if Path(path).is_dir():
        require_run_directory(Path(path))
    return load_run(path)
