"""JSON objects that carry their own checksum.

The last member is ``"crc"``: the CRC-32 (eight lower-case hexadecimal digits) of the bytes in front
of the comma that introduces it.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from sparing.errors import StoreCorruptError
from sparing.store import files
from sparing.store.json_members import MalformedError, Members, check_nesting, parse_object, require

T = TypeVar("T")

_CHECKSUM = re.compile(rb',(?:\n  )?"crc": ?"([0-9a-f]{8})"\n?\}\Z')
_LONGEST_CHECKSUM = 40  # bytes from the comma to the end, in either layout


class ChecksumError(MalformedError):
    """A text that is incomplete or was altered."""


def encode(members: dict[str, Any], *, readable: bool = False) -> bytes:
    """JSON text with its checksum, on one line unless readable, without a final line end."""
    check_nesting(members)
    layout: dict[str, Any] = {"indent": 2} if readable else {"separators": (",", ":")}
    text = json.dumps(members, allow_nan=False, **layout)
    body = text[: text.rindex("}")].rstrip().encode()  # ASCII: json.dumps escapes the rest
    checksum = f"{zlib.crc32(body):08x}".encode()
    if readable:
        return body + b',\n  "crc": "' + checksum + b'"\n}'
    return body + b',"crc":"' + checksum + b'"}'


def decode(text: bytes) -> dict[str, Any]:
    """The members of a checked JSON object, without the checksum."""
    start = max(0, len(text) - _LONGEST_CHECKSUM)
    found = _CHECKSUM.search(text, start)
    if found is None:
        raise ChecksumError("it does not end with a checksum")
    body = text[: found.start()]
    if found.group(1) != f"{zlib.crc32(body):08x}".encode():
        raise ChecksumError("its checksum does not match")
    return parse_object(body + b"}")


def write_headed(path: Path, schema: int, members: dict[str, Any]) -> None:
    """Write a file that begins with its format's version and who wrote it, whole or not at all."""
    header = {"schema": schema, "written_by": f"sparing {version('sparing')}"}
    files.write_durably(path, encode(header | members, readable=True) + b"\n")


def read_headed(path: Path, schema: int, read: Callable[[Members], T]) -> T | None:
    """What ``read`` makes of the other members of such a file, or None when there is none."""
    content = files.read_regular_file(path)
    if content is None:
        return None
    try:
        members = Members(decode(content.rstrip(b"\n")))
        found = members.count("schema")
        require(
            found == schema,
            f"its format is version {found} and this release reads version {schema}; "
            "use a newer release of sparing",
        )
        members.text("written_by")
        value = read(members)
        members.finish()
    except MalformedError as error:
        raise StoreCorruptError(f"{path} cannot be used: {error}") from None
    return value
