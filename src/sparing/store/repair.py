"""Another run directory with all that is intact in a damaged one, which is only read.

A line of the journal whose checksum holds is worth keeping wherever it is, also behind a damaged
one. What it needs and was lost is made up for: a result brings its proposal back (without the rule
that chose it), a proposal without a result is evaluated again. Snapshots are left behind.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sparing.errors import SettingsError, StoreError
from sparing.problem.evaluations import Evaluation, Event, Proposal
from sparing.store import files
from sparing.store.journal import decode_line
from sparing.store.json_members import MalformedError
from sparing.store.problem_file import read_problem_file
from sparing.store.run_directory import JOURNAL, PROBLEM, SPOOL, RunDirectory
from sparing.store.spool import Spool, write_spooled_outcome


@dataclass(frozen=True)
class Repair:
    """What was kept of a run, and sentences on what was not."""

    n_proposals: int
    n_evaluations: int
    n_spooled: int
    missing: tuple[str, ...]


def require_new(path: Path) -> None:
    """Refuse to write where something is."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise SettingsError([f"{path} must not be there yet, or be an empty directory"])


def repair(damaged: Path, new: Path) -> Repair:
    """Copy every record whose checksum holds to a run directory that is not there yet."""
    require_new(new)
    problem = read_problem_file(damaged / PROBLEM)
    if problem is None:
        raise StoreError(f"{damaged} cannot be repaired: it has no {PROBLEM}")
    missing: list[str] = []
    events = _consistent(_intact(damaged / JOURNAL, missing), missing)
    spool = Spool(damaged / SPOOL, read_only=True)
    spooled = list(spool.harvest())
    with RunDirectory.open(new, problem.fingerprint, seed=problem.seed) as store:
        for event in events:
            store.append(event)
        for identifier, record in spooled:
            write_spooled_outcome(str(new / SPOOL), identifier, record)
    n_evaluations = sum(isinstance(event, Evaluation) for event in events)
    n_proposals = len(events) - n_evaluations
    return Repair(n_proposals, n_evaluations, len(spooled), (*missing, *spool.warnings))


def _intact(journal: Path, missing: list[str]) -> Iterator[tuple[int, Event]]:
    """Line number and event of every line whose checksum holds."""
    expected = 0
    for number, line in enumerate(io.BytesIO(files.read_regular_file(journal) or b""), start=1):
        try:
            sequence, event = decode_line(line.removesuffix(b"\n"))
        except MalformedError as error:
            missing.append(f"line {number}: {error}")
            expected += 1  # it is this one that is lost
            continue
        if sequence > expected:
            missing.append(f"before line {number}: {sequence - expected} lines are not there")
        expected = max(expected, sequence + 1)
        yield number, event


def _consistent(lines: Iterator[tuple[int, Event]], missing: list[str]) -> list[Event]:
    """The events as a journal may hold them: each result after its proposal, and once."""
    events: list[Event] = []
    proposed: dict[int, Proposal] = {}
    answered: set[int] = set()
    n_results = 0
    for number, event in lines:
        if events and event.x.shape != events[0].x.shape:
            missing.append(f"line {number}: its x has shape {event.x.shape}, unlike the first one")
        elif isinstance(event, Proposal):
            if event.identifier in proposed:
                missing.append(f"line {number}: proposal {event.identifier} is there already")
            else:
                proposed[event.identifier] = event
                events.append(event)
        else:
            identifier = event.identifier
            if identifier is not None and identifier not in proposed:
                missing.append(f"the rule that chose proposal {identifier}")
                proposed[identifier] = Proposal(identifier, event.x)
                events.append(proposed[identifier])
            if identifier is not None and proposed[identifier].x.tobytes() != event.x.tobytes():
                missing.append(f"the proposal that line {number} answers; its value is kept")
                identifier = None
            if identifier in answered:
                missing.append(f"line {number}: the result of proposal {identifier} is there twice")
                continue
            if identifier is not None:
                answered.add(identifier)
            events.append(replace(event, index=n_results, identifier=identifier))
            n_results += 1
    lost = ", ".join(map(str, sorted(set(proposed) - answered)))
    if lost:
        missing.append(f"results of the proposals {lost}: evaluated when the run goes on")
    return events
