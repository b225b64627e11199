"""Runs that a command is given by their path."""

from __future__ import annotations

from pathlib import Path

from sparing.cli.exit_codes import UsageError
from sparing.results.result import Result
from sparing.running.load_run import load_run
from sparing.store import RunDirectory
from sparing.store.run_directory import PROBLEM
from sparing.store.run_group import GROUP, holds_run, read_group


def require_run_directory(directory: Path) -> None:
    """Refuse a path that no run was ever stored in, or several."""
    group = read_group(directory)
    if group is not None:
        raise UsageError(
            f"{directory} holds {group.n_runs} runs: give one of them, such as "
            f"{group.run_paths[0]}, or a pooled one, {directory / 'pooled-N'}"
        )
    if not holds_run(directory):
        inside = _runs_inside(directory)
        hint = f"; runs in it: {', '.join(inside)}" if inside else ""
        raise UsageError(f"{directory} is not a run directory: it has no {PROBLEM}{hint}")


def _runs_inside(directory: Path) -> list[str]:
    """The runs one level below, for somebody who named the directory that holds them."""
    if not directory.is_dir():
        return []
    below = sorted(path for path in directory.iterdir() if path.is_dir())
    return [str(path) for path in below if holds_run(path) or (path / GROUP).exists()]


def open_run(directory: Path) -> RunDirectory:
    """A run directory for reading."""
    require_run_directory(directory)
    return RunDirectory.open(directory, read_only=True)


def result_of(path: str) -> Result:
    """The result of a run directory or result file; of several runs, the newest pooled one."""
    location = Path(path)
    if not location.exists():
        raise UsageError(f"there is no run directory and no result file {path}")
    if location.is_dir():
        group = read_group(location)
        if group is not None and group.pooled_paths:
            location = list(group.pooled_paths.values())[-1]
        require_run_directory(location)
    return load_run(location)


def runs_of(path: str) -> list[str]:
    """The runs in a directory of several; the path itself when it is no such directory."""
    group = read_group(Path(path)) if Path(path).is_dir() else None
    return [path] if group is None else [str(run) for run in group.run_paths]
