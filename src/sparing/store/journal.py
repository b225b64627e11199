"""The journal ``evaluations.jsonl``: the only truth about a run.

Every event is one line, JSON with a sequence number and a checksum, appended by one write and one
fsync, so that a process killed anywhere leaves complete lines and at most one torn one behind
them. `scan` reads; `Journal` repairs the tail on opening and appends.
"""

from __future__ import annotations

import errno
import io
import itertools
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sparing.errors import StoreCorruptError, StoreError
from sparing.numerics.json_numbers import encode_number
from sparing.problem.evaluation_codec import (
    OUTCOME_FIELDS,
    outcome_to_record,
    record_to_outcome,
)
from sparing.problem.evaluations import Evaluation, Event, Outcome, Proposal
from sparing.problem.warning_text import WarningText, WarningTopic
from sparing.store import files
from sparing.store.checked_json import ChecksumError, decode, encode
from sparing.store.json_members import MalformedError, Members, require

# What the first release wrote in every result, in this order. What `Outcome` has had since is
# written only where it is not the default, so that lines stay as they were.
ALWAYS = ("value", "status", "message", "traceback", "duration", "started", "ended", "worker")
LATER = {f.name: f.encode(f.default) for f in OUTCOME_FIELDS if f.name not in ALWAYS}
FAILURE = "failure"  # the `kind` of an outcome: a line's own kind says what it is


def encode_line(sequence: int, event: Event) -> bytes:
    """The line of an event, with its line end."""
    members: dict[str, Any] = {"seq": sequence}
    x = [encode_number(float(value)) for value in event.x]
    if isinstance(event, Proposal):
        members |= {"kind": "intent", "identifier": int(event.identifier), "x": x}
        if event.rule:
            members["rule"] = event.rule
    else:
        identifier = None if event.identifier is None else int(event.identifier)
        members |= {"kind": "result", "index": int(event.index), "identifier": identifier, "x": x}
        members |= _outcome_members(event.outcome)
    return encode(members) + b"\n"


def _outcome_members(outcome: Outcome) -> dict[str, Any]:
    record = outcome_to_record(outcome)
    names = [*ALWAYS, *(name for name, default in LATER.items() if record[name] != default)]
    members = {name: record[name] for name in names}
    if "kind" in members:
        members[FAILURE] = members.pop("kind")
    return members


def decode_line(line: bytes) -> tuple[int, Event]:
    """Sequence number and event of a line without its line end.

    Raises `ChecksumError` for a line that is incomplete or was altered, and `MalformedError` for
    one that is intact but not an event of this format. The rule of an evaluation is not repeated
    in its line: it is that of the proposal it answers.
    """
    members = Members(decode(line))
    sequence = members.count("seq")
    kind = members.text("kind")
    if kind == "intent":
        identifier, x = members.count("identifier"), np.array(members.numbers("x"))
        event: Event = Proposal(identifier, x, members.optional_text("rule"))
    elif kind == "result":
        event = _evaluation(members)
    else:
        raise MalformedError(f"its kind is {kind!r}, which this version does not know")
    members.finish()
    require(bool(np.all(np.isfinite(event.x))), "its x is not finite")
    return sequence, event


def _evaluation(members: Members) -> Evaluation:
    index, identifier = members.count("index"), members.optional_count("identifier")
    x, record = np.array(members.numbers("x")), members.rest()
    if FAILURE in record:
        record["kind"] = record.pop(FAILURE)
    try:
        return Evaluation(index, identifier, x, record_to_outcome(record))
    except ValueError as error:  # also of a gradient that is not of this point
        raise MalformedError(str(error)) from None


@dataclass(frozen=True, eq=False)
class Entry:
    """An event and the journal up to the end of its line: bytes, CRC-32, number of results."""

    event: Event
    end: int
    digest: int
    n_results: int


@dataclass(frozen=True, eq=False)
class Scan:
    """What a journal's bytes hold: intact entries, then possibly a torn tail or a fault.

    ``tail`` is an incomplete or altered last line. ``unterminated`` says that only the line end of
    the last entry is missing. ``fault`` describes damage that no interrupted write can explain.
    """

    entries: list[Entry] = field(default_factory=list)
    tail: bytes = b""
    unterminated: bool = False
    fault: str = ""


def scan(content: bytes) -> Scan:
    """Read the lines up to the first that is not intact."""
    entries: list[Entry] = []
    lines = list(io.BytesIO(content))  # with their ends, which the last may lack
    for number, line in enumerate(lines):
        text = line.removesuffix(b"\n")
        try:
            sequence, event = decode_line(text)
            require(sequence == number, f"its sequence number is {sequence}, not {number}")
            _check_consistent(event, entries)
        except MalformedError as error:
            if isinstance(error, ChecksumError) and number == len(lines) - 1:
                return Scan(entries, tail=line)
            return Scan(entries, fault=f"line {number + 1}: {error}")
        entries.append(_next_entry(entries, event, text + b"\n"))
    return Scan(entries, unterminated=bool(lines) and not content.endswith(b"\n"))


def _next_entry(entries: Sequence[Entry], event: Event, line: bytes) -> Entry:
    last = entries[-1] if entries else None
    end, digest, n_results = (last.end, last.digest, last.n_results) if last else (0, 0, 0)
    n_results += isinstance(event, Evaluation)
    return Entry(event, end + len(line), zlib.crc32(line, digest), n_results)


def digests(entries: Sequence[Entry]) -> list[int]:
    """The CRC-32 of the journal's first k lines, for every k from 0."""
    return [0, *(entry.digest for entry in entries)]


def _check_consistent(event: Event, entries: Sequence[Entry]) -> None:
    """Refuse an event that cannot follow the entries."""
    alike = event.x.ndim == 1 and (not entries or event.x.shape == entries[0].event.x.shape)
    require(alike, f"its x has shape {event.x.shape}, unlike the first one")
    n_results = entries[-1].n_results if entries else 0
    if isinstance(event, Evaluation):
        require(event.index == n_results, f"its index is {event.index}, not {n_results}")


class Journal:
    """The journal open for appending; only the owner of the run directory's lock may do so."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn_tail: Path | None = None
        self.warnings: list[WarningText] = []
        self._broken = ""
        with files.explained_errors(path, "open"):
            self._descriptor = files.open_to_write(path, os.O_APPEND)
            try:
                files.sync_directory(path.parent)
                found = scan(files.read_descriptor(self._descriptor))
                if found.fault:
                    raise StoreCorruptError(
                        f"{path}, {found.fault}. Nothing was changed: restore the file from a "
                        "copy, or keep every intact line with "
                        f"'sparing verify {path.parent} --repair NEW_DIR'"
                    )
                self.entries = found.entries
                self._repair(found)
            except BaseException:
                self.close()
                raise

    def _repair(self, found: Scan) -> None:
        """Give the last line its end, or move a torn one aside, where it stays for a person."""
        if found.unterminated:
            files.write_all(self._descriptor, b"\n")
            text = f"the last line of {self.path} lacked its end and was completed"
        elif found.tail:
            self.torn_tail = _unused_name(self.path)
            files.write_durably(self.torn_tail, found.tail)  # kept before it is cut off
            os.ftruncate(self._descriptor, self._length)
            text = (
                f"the last line of {self.path} was incomplete ({len(found.tail)} bytes) and was "
                f"moved to {self.torn_tail.name}; the {len(self.entries)} before it are intact"
            )
        else:
            return
        os.fsync(self._descriptor)
        self.warnings.append(WarningText(WarningTopic.INCOMPLETE_LINE, text))

    @property
    def _length(self) -> int:
        return self.entries[-1].end if self.entries else 0

    def append(self, event: Event) -> None:
        """Record an event: when this returns, it is on the disk."""
        try:
            _check_consistent(event, self.entries)
            line = encode_line(len(self.entries), event)
            decode_line(line.removesuffix(b"\n"))  # nothing enters that cannot be read back
        except (TypeError, ValueError, OverflowError) as error:
            raise StoreError(f"cannot record {event}: {error}") from None
        entry = _next_entry(self.entries, event, line)
        with files.explained_errors(self.path, "append to"):
            self._check_unchanged()
            try:
                if os.write(self._descriptor, line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(self._descriptor)
                self.entries.append(entry)  # one step, so an interrupt cannot leave it half done
            except OSError:
                self._withdraw()
                raise
            except BaseException:
                self._settle(entry)
                raise

    def _check_unchanged(self) -> None:
        """Refuse to append to a file that is gone, or that another process has written to."""
        if self._broken:
            raise StoreError(self._broken)
        status = os.fstat(self._descriptor)
        if status.st_nlink == 0:
            raise StoreError(f"{self.path} was deleted while the run was writing it")
        if status.st_size != self._length:
            raise StoreError(
                f"{self.path} has {status.st_size} bytes instead of {self._length}: another "
                "process changed it. Stop that one, then start the run again to resume it"
            )

    def _withdraw(self) -> None:
        """Cut off what a failed append left; when even that fails, append nothing more."""
        try:
            os.ftruncate(self._descriptor, self._length)
            os.fsync(self._descriptor)
        except OSError as error:
            self._broken = (
                f"{self.path} could not be restored after a failed write ({error.strerror}). "
                "Every complete line is safe: start the run again to resume it"
            )

    def _settle(self, entry: Entry) -> None:
        """After an interrupt (not an error) in an append: keep the line if it is all there."""
        if self.entries and self.entries[-1] is entry:
            return
        if os.fstat(self._descriptor).st_size == entry.end:
            os.fsync(self._descriptor)
            self.entries.append(entry)
        else:
            self._withdraw()

    def close(self) -> None:
        """Close the file; closing again does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._broken = f"{self.path} is closed"


def _unused_name(path: Path) -> Path:
    names = (path.with_name(f"{path.stem}.torn-{number}") for number in itertools.count(1))
    return next(name for name in names if not name.exists())
