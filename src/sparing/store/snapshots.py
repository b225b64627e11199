"""Snapshots of a run's state: a cache that may be deleted at any time.

A snapshot is an archive (`sparing.store.archive`) named by its number. It records the journal it
was made from, as a number of lines and their CRC-32, so that it is not used with another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from sparing.errors import StoreError
from sparing.problem.warning_text import WarningText, WarningTopic
from sparing.store import files
from sparing.store.archive import pack, unpack
from sparing.store.interface import Snapshot
from sparing.store.json_members import MalformedError, Members, require, to_json_types

SCHEMA = 2
KEPT = 2
NAME = re.compile(r"([0-9]{8,18})\.npz")
ANY_VERSION = "[0-9]*.npz"  # the first had a checksum in its name


def write_snapshot(directory: Path, snapshot: Snapshot, digests: Sequence[int]) -> None:
    """Write a snapshot of the state after the journal's last line; remove all but two."""
    number = int(snapshot.number)
    record = {
        "schema": SCHEMA,
        "number": number,
        "events": len(digests) - 1,
        "digest": digests[-1],
        "metadata": to_json_types(snapshot.metadata),
    }
    path = directory / f"{number:08d}.npz"
    files.make_directory(directory)  # it may have been deleted meanwhile
    files.write_durably(path, pack(snapshot.arrays, record))
    with files.explained_errors(directory, "clean up"):
        found = files.numbered_files(directory, NAME)
        kept = [other for one, other in found if one <= number][-KEPT:]
        for other in directory.glob(ANY_VERSION):
            if other not in kept:
                other.unlink(missing_ok=True)


def latest_snapshot(
    directory: Path, digests: Sequence[int]
) -> tuple[Snapshot | None, list[WarningText]]:
    """The newest intact snapshot that belongs to the journal, and warnings about others."""
    warnings: list[WarningText] = []
    try:
        found = files.numbered_files(directory, NAME)
    except StoreError as error:
        return None, [WarningText(WarningTopic.DAMAGED_FILE, f"no snapshot was used: {error}")]
    for number, path in reversed(found):
        try:
            content = files.read_regular_file(path)
            snapshot = None if content is None else _read(content, number, digests)
            if snapshot is not None:
                return snapshot, warnings
        except (MalformedError, StoreError) as error:
            text = f"{path} was ignored: {error}"
            warnings.append(WarningText(WarningTopic.DAMAGED_FILE, text))
    return None, warnings


def remove_leftovers(directory: Path) -> None:
    """Remove what an interrupted write left; only for the owner of the lock."""
    with suppress(OSError):
        for path in directory.glob(f".*{files.TEMPORARY_SUFFIX}"):
            path.unlink(missing_ok=True)


def _read(content: bytes, number: int, digests: Sequence[int]) -> Snapshot | None:
    """The snapshot; None when it is of another version of this format."""
    arrays, record = unpack(content)
    members = Members(record)
    if members.count("schema") != SCHEMA:
        return None
    require(members.count("number") == number, "its number is not the one in its name")
    events, digest = members.count("events"), members.count("digest")
    belongs = events < len(digests) and digests[events] == digest
    require(belongs, "it belongs to another journal")
    metadata = members.object("metadata")
    members.finish()
    return Snapshot(number, arrays, metadata)
