"""JSON objects that carry their own checksum.

The last member is ``"crc"``: the CRC-32 (eight lower-case hexadecimal digits) of the bytes in front
of the comma that introduces it.
"""

from __future__ import annotations

import json
import re
import zlib
from typing import Any

from sparing.store.json_members import MalformedError, check_nesting, parse_object

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
