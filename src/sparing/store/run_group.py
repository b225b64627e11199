"""A directory of several runs of one problem, each in a run directory of its own.

    runs.json    how many runs, and the seed theirs are derived from
    run-1 ...    the independent runs
    pooled-<n>   the run that was told the n evaluations of all of them

When the runs go on with a larger budget they have more to tell, so there may be several pooled
runs; the one with the largest number is the newest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from sparing.errors import SettingsError, StoreError
from sparing.numerics.random_streams import RandomStreams
from sparing.store import files
from sparing.store.checked_json import read_headed, write_headed
from sparing.store.json_members import Members, require
from sparing.store.run_directory import JOURNAL, PROBLEM

GROUP = "runs.json"
SCHEMA = 1
POOLED = re.compile(r"pooled-(\d+)")


@dataclass(frozen=True)
class RunGroup:
    """Where several runs are stored; ``seed`` is the one all of theirs are derived from."""

    path: Path
    n_runs: int
    seed: int

    @property
    def run_paths(self) -> tuple[Path, ...]:
        """The independent runs, in order."""
        return tuple(self.path / f"run-{number}" for number in range(1, self.n_runs + 1))

    def pooled_path(self, n_told: int) -> Path:
        """The run that was told so many evaluations of the independent runs."""
        return self.path / f"pooled-{n_told}"

    @property
    def pooled_paths(self) -> dict[int, Path]:
        """The pooled runs there are, by how many evaluations they were told; newest last."""
        found = files.numbered_files(self.path, POOLED)
        return {n_told: path for n_told, path in found if (path / PROBLEM).exists()}

    @property
    def begun_paths(self) -> tuple[Path, ...]:
        """The runs of which something is stored, then the pooled ones."""
        begun = [path for path in self.run_paths if holds_run(path)]
        return (*begun, *self.pooled_paths.values())


def holds_run(path: Path) -> bool:
    """Whether a run was ever stored in a directory, damaged since or not."""
    return any((path / name).exists() for name in (PROBLEM, JOURNAL))


def open_group(path: Path, n_runs: int, seed: int | None) -> RunGroup:
    """The group in a directory, made when there is none; it must be of as many runs."""
    if (path / PROBLEM).exists():
        raise StoreError(
            f"{path} holds a single run: leave runs= out to go on with it, or give another "
            "directory"
        )
    group = read_group(path)
    if group is None:
        with files.explained_errors(path, "create"):
            path.mkdir(parents=True, exist_ok=True)
        group = RunGroup(path, n_runs, RandomStreams(seed).seed)
        write_headed(path / GROUP, SCHEMA, {"runs": group.n_runs, "seed": group.seed})
        return group
    faults = []
    if group.n_runs != n_runs:
        faults.append(
            f"runs is {n_runs}, but {path} holds {group.n_runs} runs: give runs={group.n_runs}, or "
            "another directory"
        )
    if seed is not None and seed != group.seed:
        faults.append(
            f"seed is {seed}, but the runs in {path} were started with {group.seed}: leave it out"
        )
    if faults:
        raise SettingsError(faults)
    return group


def read_group(path: Path) -> RunGroup | None:
    """The group in a directory, or None when there is none."""

    def read(members: Members) -> RunGroup:
        group = RunGroup(path, members.count("runs"), members.seed("seed"))
        require(group.n_runs >= 2, "'runs' is not at least 2")
        return group

    return read_headed(path / GROUP, SCHEMA, read)


def refuse_group(path: Path) -> None:
    """Refuse to store a single run where several are."""
    group = read_group(path)
    if group is not None:
        raise StoreError(
            f"{path} holds {group.n_runs} runs: give runs={group.n_runs} to go on with them, or "
            "another directory"
        )
