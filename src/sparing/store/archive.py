"""One file with named arrays and a JSON object: an uncompressed zip archive with a checksum.

    <name>.npy      one array each, in NumPy's format 1.0: float64, int64 or bool, C order
    record.json     the JSON object
    comment         SHA-256 of all bytes before it, 64 hexadecimal digits: the end of the file

So `numpy.load` and any unzip can look into it. Reading goes the other way round: the checksum
first, then only what the writer could have written. Nothing is compressed, so no small file becomes
a large array; nothing is unpickled or unpacked to disk.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.store.json_members import MalformedError, check_nesting, parse_object, require

Arrays = dict[str, NDArray[Any]]
Metadata = dict[str, Any]

RECORD = "record.json"
ARRAY_NAME = re.compile(r"[a-z_]+(?:\.[a-z_]+)*")
DIGEST_LENGTH = 64
NPY_MAGIC = b"\x93NUMPY\x01\x00"
NPY_HEADER = re.compile(
    rb"\{'descr': '(<f8|<i8|\|b1)', 'fortran_order': False, 'shape': \(([0-9, ]*)\), \} *\n"
)


def pack(arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> bytes:
    """The bytes of an archive; equal content gives equal bytes."""
    check_nesting(metadata)
    text = json.dumps(metadata, indent=1, allow_nan=False).encode("ascii")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(RECORD), text)  # ZipInfo without a date means 1980
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), _npy(name, array))
        archive.comment = b"0" * DIGEST_LENGTH
    return sealed(content.getvalue()[:-DIGEST_LENGTH])


def sealed(body: bytes) -> bytes:
    """The bytes with their checksum at the end."""
    return body + hashlib.sha256(body).hexdigest().encode("ascii")


def unpack(content: bytes) -> tuple[Arrays, Metadata]:
    """The arrays and the JSON object of an archive; MalformedError says what is wrong with it."""
    require(content.startswith(b"PK\x03\x04"), "it is not a file that sparing wrote")
    body = content[:-DIGEST_LENGTH]
    require(sealed(body) == content, "it is damaged or incomplete: its checksum does not match")
    members = _members(content)
    require(RECORD in members, f"it has no {RECORD}")
    try:
        metadata = parse_object(members.pop(RECORD))
    except MalformedError as error:
        raise MalformedError(f"in {RECORD}: {error}") from None
    arrays = {}
    for member, data in members.items():
        name = member.removesuffix(".npy")
        known = member.endswith(".npy") and ARRAY_NAME.fullmatch(name)
        require(bool(known), f"it has an unexpected member {member[:60]!r}")
        arrays[name] = _array(name, data)
    return arrays, metadata


def _npy(name: str, array: NDArray[Any]) -> bytes:
    little_endian = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    if little_endian.dtype.str not in ("<f8", "<i8", "|b1") or not ARRAY_NAME.fullmatch(name):
        raise TypeError(f"array {name!r} of type {array.dtype} cannot be written")
    content = io.BytesIO()
    np.lib.format.write_array(content, little_endian, version=(1, 0), allow_pickle=False)
    return content.getvalue()


def _members(content: bytes) -> dict[str, bytes]:
    """Name and content of each member; together they cannot be larger than the file."""
    members: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            items = archive.infolist()
            plain = all(item.compress_type == zipfile.ZIP_STORED for item in items)
            require(plain, "it is compressed, which sparing's files are not")
            sizes = sum(item.file_size for item in items)
            require(sizes <= len(content), "its members claim to be larger than the file")
            for item in items:
                require(item.filename not in members, "a member occurs twice")
                members[item.filename] = archive.read(item)
    except MalformedError:
        raise
    except Exception as error:  # the zip reader raises nearly anything on crafted archives
        raise MalformedError(f"it is not a zip archive that can be read ({error})") from None
    return members


def _array(name: str, data: bytes) -> NDArray[Any]:
    """An array in the format that `_npy` writes, which is all that is accepted."""
    start = len(NPY_MAGIC) + 2
    require(data.startswith(NPY_MAGIC) and len(data) >= start, f"{name} is not an array")
    end = start + int.from_bytes(data[start - 2 : start], "little")
    header = NPY_HEADER.fullmatch(data[start:end])
    if header is None:
        raise MalformedError(f"the array {name} is of a kind that sparing never writes")
    dtype = np.dtype(header[1].decode("ascii"))
    sizes = [size for size in header[2].replace(b" ", b"").split(b",") if size]
    require(all(len(size) <= 18 for size in sizes), f"the array {name} has an absurd size")
    shape = tuple(int(size) for size in sizes)
    fits = len(data) - end == math.prod(shape) * dtype.itemsize
    require(fits, f"the array {name} is not as large as it claims")
    values = data[end:]
    if dtype.kind == "b":
        require(set(values) <= {0, 1}, f"the array {name} holds something else than booleans")
    try:
        array = np.frombuffer(values, dtype).reshape(shape)
    except ValueError as error:  # empty, and yet too large for an index
        raise MalformedError(f"the array {name} has an absurd size ({error})") from None
    return array.astype(dtype.newbyteorder("="))
