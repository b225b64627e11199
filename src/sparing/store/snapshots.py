"""Snapshots of a run's state: a cache that may be deleted at any time.

A snapshot is one plain ``.npz`` file (arrays, no pickle) whose member ``metadata`` is a JSON text.
The file's name carries its number and the start of the SHA-256 of its content. It also records the
journal it was made from, as a number of lines and their CRC-32, so that it is not used with
another.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.errors import StoreError
from sparing.problem.warning_text import WarningText, WarningTopic
from sparing.store import files
from sparing.store.checked_json import MalformedError, Members, decode, encode, plain
from sparing.store.interface import Snapshot

SCHEMA = 1
KEPT = 2
METADATA = "metadata"
NAME = re.compile(r"([0-9]{8,18})-([0-9a-f]{16})\.npz")
ARRAY_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
KINDS = "biufcU"  # booleans, numbers, text: nothing that could hold a Python object


def write_snapshot(directory: Path, snapshot: Snapshot, digests: Sequence[int]) -> None:
    """Write a snapshot of the state after the journal's last line; remove all but two."""
    header = {
        "schema": SCHEMA,
        "number": int(snapshot.number),
        "events": len(digests) - 1,
        "digest": digests[-1],
        "metadata": plain(snapshot.metadata),
    }
    arrays = {name: np.asarray(array) for name, array in snapshot.arrays.items()}
    for name, array in arrays.items():
        if name == METADATA or not ARRAY_NAME.fullmatch(name) or array.dtype.kind not in KINDS:
            raise TypeError(f"array {name!r} ({array.dtype}) cannot be kept in a snapshot")
    text = np.frombuffer(encode(header), dtype=np.uint8)
    data = _archive({METADATA: text, **arrays})
    path = directory / f"{header['number']:08d}-{_digest(data)}.npz"
    files.write_durably(path, data)
    with files.explained_errors(directory, "clean up"):
        others = [(number, other) for number, other in _found(directory) if other != path]
        older = [other for number, other in others if number < header["number"]]
        for _, other in others:
            if other not in older[: KEPT - 1]:
                other.unlink(missing_ok=True)


def _archive(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The bytes of an ``.npz`` file; equal arrays give equal bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            # A ZipInfo without a date is dated 1980; archive.open would use the clock.
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    return content.getvalue()


def latest_snapshot(
    directory: Path, digests: Sequence[int]
) -> tuple[Snapshot | None, list[WarningText]]:
    """The newest intact snapshot that belongs to the journal, and warnings about others."""
    warnings: list[WarningText] = []
    for number, path in _found(directory):
        try:
            content = files.read_regular_file(path)
            if content is not None:
                return _read(path.name, content, number, digests), warnings
        except (MalformedError, StoreError) as error:
            text = f"{path} was ignored: {error}"
            warnings.append(WarningText(WarningTopic.DAMAGED_FILE, text))
    return None, warnings


def remove_leftovers(directory: Path) -> None:
    """Remove what an interrupted write left; only for the owner of the lock."""
    with files.explained_errors(directory, "clean up"):
        for path in directory.glob(f".*{files.TEMPORARY_SUFFIX}"):
            path.unlink(missing_ok=True)


def _found(directory: Path) -> list[tuple[int, Path]]:
    """Numbers and paths, the newest first."""
    with files.explained_errors(directory, "read"):
        try:
            paths = list(directory.iterdir())
        except FileNotFoundError:
            return []
    matches = [(NAME.fullmatch(path.name), path) for path in paths]
    return sorted(((int(match[1]), path) for match, path in matches if match), reverse=True)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _read(name: str, content: bytes, number: int, digests: Sequence[int]) -> Snapshot:
    match = NAME.fullmatch(name)
    if match is None or match[2] != _digest(content):
        raise MalformedError("its checksum does not match")
    arrays = _arrays(content)
    text = arrays.pop(METADATA, None)
    if text is None:
        raise MalformedError("it has no metadata")
    members = Members(decode(text.tobytes()))
    schema = members.count("schema")
    if schema != SCHEMA:
        raise MalformedError(f"its format is version {schema}, not {SCHEMA}")
    if members.count("number") != number:
        raise MalformedError("its number is not the one in its name")
    events, digest = members.count("events"), members.count("digest")
    if events >= len(digests) or digests[events] != digest:
        raise MalformedError("it belongs to another journal")
    metadata = members.object("metadata")
    members.finish()
    return Snapshot(number, arrays, metadata)


def _arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of an ``.npz`` file; sizes are those of the file, whatever its headers claim."""
    arrays = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for item in archive.infolist():
                name = item.filename.removesuffix(".npy")
                if item.compress_type != zipfile.ZIP_STORED or item.file_size > len(content):
                    raise MalformedError("it is compressed")
                if not ARRAY_NAME.fullmatch(name) or name in arrays:
                    raise MalformedError(f"it has a member {item.filename!r}")
                arrays[name] = _array(archive.read(item))
    except MalformedError:
        raise
    # A crafted archive or header can raise nearly anything, and a snapshot is only a cache.
    except Exception as error:
        raise MalformedError(f"it is not an archive of arrays ({error})") from error
    return arrays


def _array(data: bytes) -> NDArray[Any]:
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, column_major, dtype = readers[version](stream)
    values = data[stream.tell() :]
    if dtype.kind not in KINDS or len(values) != math.prod(shape) * dtype.itemsize:
        raise MalformedError("it holds something else than arrays of numbers")
    array = np.ndarray(shape, dtype, buffer=values, order="F" if column_major else "C")
    return array.copy(order="K")
