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
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from numpy.typing import NDArray

from sparing.errors import StoreCorruptError, StoreError
from sparing.numerics.random_streams import RandomStreams
from sparing.problem.evaluations import Event
from sparing.problem.warning_text import WarningText, WarningTopic
from sparing.store import files, snapshots
from sparing.store.interface import Snapshot
from sparing.store.journal import Journal, Scan, scan
from sparing.store.lock.lock import RunLock
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
LOCK = "lock"
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
        spool: Spool,
        writer: _Writer | None,
        found: Scan,
        warnings: list[WarningText],
    ) -> None:
        self._path = path
        self._problem = problem
        self._spool = spool
        self._writer = writer
        self._found = found
        self._warnings = warnings
        self._release = weakref.finalize(self, writer.release if writer else _nothing)

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
        return cls(path, problem, Spool(path / SPOOL, read_only=True), None, found, warnings)

    @classmethod
    def _open_to_write(
        cls, path: Path, fingerprint: Mapping[str, Any], seed: int | None, upgrade: Upgrade
    ) -> RunDirectory:
        with files.explained_errors(path, "create"):
            for directory in (path, path / SPOOL, path / SNAPSHOTS):
                directory.mkdir(parents=True, exist_ok=True)
        lock = RunLock(path / LOCK)
        try:
            problem = _settled_problem(path, fingerprint, seed, upgrade)
            snapshots.remove_leftovers(path / SNAPSHOTS)
            journal = Journal(path / JOURNAL)
        except BaseException:
            lock.release()
            raise
        writer = _Writer(lock, journal)
        warnings = [*journal.warnings]
        if lock.previous is not None:
            text = f"the lock was taken over from a dead {lock.previous.described()}"
            warnings.append(WarningText(WarningTopic.LOCK_TAKEN_OVER, text))
        if seed is not None and seed != problem.seed:
            text = f"the run goes on with its seed {problem.seed}, not with {seed}"
            warnings.append(WarningText(WarningTopic.SEED_KEPT, text))
        return cls(path, problem, Spool(path / SPOOL), writer, Scan(), warnings)

    @property
    def path(self) -> Path:
        """The directory."""
        return self._path

    @property
    def seed(self) -> int:
        """The seed the run was created with."""
        return self._problem.seed

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """The problem's fingerprint as it was stored, in plain JSON values."""
        return self._problem.fingerprint

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written."""
        return self._writer is None

    @property
    def spool(self) -> Spool:
        """Results that workers left behind."""
        return self._spool

    @property
    def torn_tail(self) -> Path | None:
        """Where an incomplete last line was moved when this store was opened."""
        return self._writer.journal.torn_tail if self._writer else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know, such as damage found on opening."""
        return (*self._warnings, *self._spool.warnings)

    def events(self) -> tuple[Event, ...]:
        """All events, in order."""
        if self._writer is not None:
            return self._writer.journal.events()
        return tuple(entry.event for entry in self._found.entries)

    def append(self, event: Event) -> None:
        """Record a proposal or an evaluation: one write and one fsync."""
        self._writing().append(event)

    def write_snapshot(
        self, number: int, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]
    ) -> None:
        """Save the state after the last event; the two newest snapshots are kept."""
        digests = self._writing().digests()
        snapshot = Snapshot(number, arrays, metadata)
        snapshots.write_snapshot(self._path / SNAPSHOTS, snapshot, digests)

    def latest_snapshot(self) -> Snapshot | None:
        """The newest intact snapshot that agrees with the events; damaged ones are ignored."""
        if self._writer is not None:
            digests = self._writer.journal.digests()
        else:
            digests = [0, *(entry.digest for entry in self._found.entries)]
        snapshot, warnings = snapshots.latest_snapshot(self._path / SNAPSHOTS, digests)
        self._warnings += [warning for warning in warnings if warning not in self._warnings]
        return snapshot

    def _writing(self) -> Journal:
        if self._writer is None:
            raise StoreError(f"{self._path} was opened read-only")
        self._writer.lock.verify()
        return self._writer.journal

    def close(self) -> None:
        """Release the directory; closing again does nothing."""
        self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _Writer:
    """The lock and the journal, kept apart so that a forgotten store releases them."""

    def __init__(self, lock: RunLock, journal: Journal) -> None:
        self.lock = lock
        self.journal = journal
        _WRITERS.add(self)

    def release(self) -> None:
        self.journal.close()
        self.lock.release()

    def abandon(self) -> None:
        """In a forked child: let go of the parent's files, so that its lock ends with it."""
        self.journal.close()
        self.lock.abandon()


_WRITERS: weakref.WeakSet[_Writer] = weakref.WeakSet()


def _abandon_all() -> None:
    for writer in list(_WRITERS):
        writer.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)


def _nothing() -> None:
    pass


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
    write_problem_file(path / PROBLEM, ProblemFile(fingerprint, RandomStreams(seed).seed))
    written = read_problem_file(path / PROBLEM)
    if written is None:
        raise StoreError(f"{path / PROBLEM} was deleted while the run was being created")
    return written
