"""Runs that a command is given by their path."""

from __future__ import annotations

from pathlib import Path

from sparing.cli.exit_codes import UsageError
from sparing.results.result import Result
from sparing.results.several_runs import SeveralRuns
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
    """The result of a run directory or result file; of several runs, the one to use."""
    location = Path(path)
    if not location.exists():
        raise UsageError(f"there is no run directory and no result file {path}")
    pooled = pooled_of(path)
    if pooled is not None:
        return SeveralRuns(tuple(result_of(run) for run in runs_of(path)), pooled, seed=0).result
    if location.is_dir():
        require_run_directory(location)
    return load_run(location)


def pooled_of(path: str) -> Result | None:
    """The result of the newest pooled run in a directory of several; None where there is none."""
    group = read_group(Path(path)) if Path(path).is_dir() else None
    paths = [] if group is None else list(group.pooled_paths.values())
    return load_run(paths[-1]) if paths else None


def runs_of(path: str) -> list[str]:
    """The runs in a directory of several; the path itself when it is no such directory."""
    group = read_group(Path(path)) if Path(path).is_dir() else None
    return [path] if group is None else [str(run) for run in group.run_paths]
