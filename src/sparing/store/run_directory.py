"""A run directory: everything a run needs to go on after its process is gone.

    problem.json          fingerprint and seed; another problem is refused
    evaluations.jsonl     the journal, the only truth
    evaluations.torn-<n>  incomplete last lines, moved aside
    lock                  who writes
    spool/                results of workers that the coordinator has not recorded yet
    snapshots/            a cache of the state

The format is described in docs/run-directory.md.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from numpy.typing import NDArray

from sparing.errors import StoreCorruptError, StoreError
from sparing.numerics.random_streams import RandomStreams
from sparing.problem.evaluations import Event
from sparing.problem.warning_text import WarningText, WarningTopic
from sparing.store import files, snapshots
from sparing.store.interface import Snapshot
from sparing.store.journal import Entry, Journal, digests, scan
from sparing.store.json_members import to_json_types
from sparing.store.lock import LOCK, RunLock
from sparing.store.problem_file import (
    ProblemFile,
    read_problem_file,
    require_same_problem,
    write_problem_file,
)
from sparing.store.spool import Spool

Upgrade = Callable[[Mapping[str, Any]], Mapping[str, Any]]

PROBLEM = "problem.json"
JOURNAL = "evaluations.jsonl"
SPOOL = "spool"
SNAPSHOTS = "snapshots"


class RunDirectory:
    """A store in a directory of its own; made by `RunDirectory.open`, used as a context manager.

    Without a writer (``writer`` is None) it shows what was there when it was opened.

    >>> from sparing.executors import Outcome
    >>> from sparing.store import RunDirectory
    >>> x = np.array([1.0, 0.0])
    >>> with RunDirectory.open("run", {"model": "line"}, seed=1) as store:
    ...     store.append(sparing.Proposal(0, x))
    ...     store.append(sparing.Evaluation(0, 0, x, Outcome(-1.5, sparing.Status.OK, 0.2)))
    ...     store.write_snapshot(2, {"weights": np.ones(2)}, {"iteration": 1})
    >>> store = RunDirectory.open("run", read_only=True)
    >>> store.path.name, store.seed, store.fingerprint, store.read_only
    ('run', 1, {'model': 'line'}, True)
    >>> len(store.events()), store.latest_snapshot().number, list(store.spool.harvest())
    (2, 2, [])
    >>> store.warnings, store.torn_tail
    ((), None)
    >>> store.close()
    """

    def __init__(
        self,
        path: Path,
        problem: ProblemFile,
        entries: Sequence[Entry],
        writer: _Writer | None,
        warnings: list[WarningText],
    ) -> None:
        self.path = path
        self.seed = problem.seed
        self.fingerprint = problem.fingerprint
        self.spool = Spool(path / SPOOL, read_only=writer is None)
        self.read_only = writer is None
        self.torn_tail = writer.journal.torn_tail if writer else None
        self._entries = entries
        self._writer = writer
        self._warnings = warnings
        if writer is not None:
            weakref.finalize(self, writer.release)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        fingerprint: Mapping[str, Any] | None = None,
        *,
        seed: int | None = None,
        read_only: bool = False,
        upgrade: Upgrade | None = None,
    ) -> RunDirectory:
        """Create a run directory, or open the one that is there.

        ``fingerprint`` holds whatever changes results; a directory of another problem is refused.
        It may be left out only for reading. ``seed`` counts at creation (None: a fresh one).
        ``upgrade`` turns a fingerprint that an earlier release stored into today's.

        >>> from sparing.store import RunDirectory
        >>> RunDirectory.open("run", {"model": "line"}, seed=1).close()
        >>> RunDirectory.open("run", {"model": "curve"})
        Traceback (most recent call last):
        sparing.errors.StoreMismatchError: run holds a run of another problem ...
        """
        directory = Path(path)
        if read_only:
            return cls._open_to_read(directory, fingerprint, upgrade or dict)
        if fingerprint is None:
            raise TypeError("a fingerprint is needed to open a run directory for writing")
        return cls._open_to_write(directory, fingerprint, seed, upgrade or dict)

    @classmethod
    def _open_to_read(
        cls, path: Path, fingerprint: Mapping[str, Any] | None, upgrade: Upgrade
    ) -> RunDirectory:
        problem = read_problem_file(path / PROBLEM)
        if problem is None:
            raise StoreError(f"{path} is not a run directory: it has no {PROBLEM}")
        if fingerprint is not None:
            require_same_problem(path, upgrade(problem.fingerprint), fingerprint)
        found = scan(files.read_regular_file(path / JOURNAL) or b"")
        warnings: list[WarningText] = []
        if found.tail:
            text = f"the last line of {path / JOURNAL} is incomplete and was left out"
            warnings.append(WarningText(WarningTopic.INCOMPLETE_LINE, text))
        if found.fault:
            text = f"{path / JOURNAL}, {found.fault}. Only the lines before are shown"
            warnings.append(WarningText(WarningTopic.DAMAGED_JOURNAL, text))
        return cls(path, problem, found.entries, None, warnings)

    @classmethod
    def _open_to_write(
        cls, path: Path, fingerprint: Mapping[str, Any], seed: int | None, upgrade: Upgrade
    ) -> RunDirectory:
        with files.explained_errors(path, "create"):
            path.mkdir(parents=True, exist_ok=True)
        for name in (SPOOL, SNAPSHOTS):
            files.make_directory(path / name)
        lock = RunLock(path / LOCK)
        try:
            problem = _settled_problem(path, fingerprint, seed, upgrade)
            snapshots.remove_leftovers(path / SNAPSHOTS)
            journal = Journal(path / JOURNAL)
        except BaseException:
            lock.release()
            raise
        warnings = [*journal.warnings]
        if seed is not None and seed != problem.seed:
            text = f"the run goes on with its seed {problem.seed}, not with {seed}"
            warnings.append(WarningText(WarningTopic.SEED_KEPT, text))
        return cls(path, problem, journal.entries, _Writer(lock, journal), warnings)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know, such as damage found on opening."""
        return (*self._warnings, *self.spool.warnings)

    def events(self) -> tuple[Event, ...]:
        """All events, in order."""
        return tuple(entry.event for entry in self._entries)

    def append(self, event: Event) -> None:
        """Record a proposal or an evaluation: one write and one fsync."""
        self._writing().append(event)

    def write_snapshot(
        self, number: int, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]
    ) -> None:
        """Save the state after the last event; the two newest snapshots are kept."""
        self._writing()
        snapshot = Snapshot(number, arrays, metadata)
        snapshots.write_snapshot(self.path / SNAPSHOTS, snapshot, digests(self._entries))

    def latest_snapshot(self) -> Snapshot | None:
        """The newest intact snapshot that agrees with the events; damaged ones are ignored."""
        folder = self.path / SNAPSHOTS
        snapshot, warnings = snapshots.latest_snapshot(folder, digests(self._entries))
        self._warnings += [warning for warning in warnings if warning not in self._warnings]
        return snapshot

    def _writing(self) -> Journal:
        if self._writer is None:
            raise StoreError(f"{self.path} was opened read-only")
        self._writer.lock.verify()
        return self._writer.journal

    def close(self) -> None:
        """Release the directory; closing again does nothing."""
        if self._writer is not None:
            self._writer.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@dataclass(frozen=True, eq=False)
class _Writer:
    """The lock and the journal, kept apart so that a forgotten store releases them."""

    lock: RunLock
    journal: Journal

    def __post_init__(self) -> None:
        _WRITERS.add(self)

    def release(self) -> None:
        self.journal.close()
        self.lock.release()


_WRITERS: weakref.WeakSet[_Writer] = weakref.WeakSet()


def _abandon_all() -> None:
    """In a forked child: let go of the parent's files, so that its lock ends with it."""
    for writer in list(_WRITERS):
        writer.journal.close()
        writer.lock.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)


def _settled_problem(
    path: Path, fingerprint: Mapping[str, Any], seed: int | None, upgrade: Upgrade
) -> ProblemFile:
    """The stored problem, which must be this one; written when the directory is new."""
    problem = read_problem_file(path / PROBLEM)
    if problem is not None:
        require_same_problem(path, upgrade(problem.fingerprint), fingerprint)
        return problem
    if (path / JOURNAL).exists() and (path / JOURNAL).stat().st_size:
        raise StoreCorruptError(
            f"{path} has evaluations but no {PROBLEM}, so they cannot be told to be of this "
            "problem; restore the file from a copy or give another directory"
        )
    problem = ProblemFile(to_json_types(fingerprint), RandomStreams(seed).seed)
    write_problem_file(path / PROBLEM, problem)
    return problem
