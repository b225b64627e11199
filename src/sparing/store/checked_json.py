"""JSON text that carries its own checksum, and strict reading of it.

The last member of the object is ``"crc"``: the CRC-32 (eight lower-case hexadecimal digits) of the
bytes in front of the comma that introduces it. Numbers that JSON lacks are the strings ``"nan"``,
``"inf"`` and ``"-inf"``. Reading only ever builds plain values, and whatever is wrong with a text
is a `MalformedError`.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from sparing.numerics.json_numbers import decode_number, encode_number

LARGEST_INTEGER = 2**63 - 1
DEEPEST_NESTING = 32  # far below where reading or comparing would exhaust the stack
_CHECKSUM = re.compile(rb',(?:\n  )?"crc": ?"([0-9a-f]{8})"\n?\}\Z')
_LONGEST_CHECKSUM = 40  # bytes from the comma to the end, in either layout


class MalformedError(ValueError):
    """A text or value that is not what it should be; the message says how."""


class ChecksumError(MalformedError):
    """A text that is incomplete or was altered."""


def encode(members: dict[str, Any], *, readable: bool = False) -> bytes:
    """JSON text with its checksum, on one line unless readable, without a final line end."""
    _check_nesting(members)
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


def parse_object(text: bytes) -> dict[str, Any]:
    """The members of a JSON object; duplicate names and NaN literals are refused."""
    try:
        value = json.loads(
            text.decode(), object_pairs_hook=_unique_members, parse_constant=_refuse_constant
        )
    except MalformedError:
        raise
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"it is not JSON that can be read ({error})") from None
    if not isinstance(value, dict):
        raise MalformedError("it is not a JSON object")
    _check_nesting(value)
    return value


def _check_nesting(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST_NESTING):
        containers = [item for item in level if isinstance(item, dict | list)]
        if not containers:
            return
        level = [
            child
            for container in containers
            for child in (container.values() if isinstance(container, dict) else container)
        ]
    raise MalformedError("it is nested too deeply")


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise MalformedError("a name occurs twice in one JSON object")
    return members


def _refuse_constant(name: str) -> None:
    raise MalformedError(f"{name} is not JSON")


def plain(value: Any) -> Any:
    """A value as what JSON can hold: arrays and tuples as lists, non-finite numbers as strings."""
    match value:
        case None | bool() | str():
            return value
        case np.bool_():
            return bool(value)
        case int() | np.integer():
            return int(value)
        case float() | np.floating():
            return encode_number(float(value))
        case Mapping():
            if not all(isinstance(key, str) for key in value):
                raise TypeError(f"only strings can name JSON members, unlike in {value!r}")
            return {key: plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case np.ndarray():
            return plain(value.tolist())
        case _:
            raise TypeError(f"{value!r} cannot be written as JSON")


class Members:
    """The members of one JSON object, taken out one by one with their types checked."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self._left = dict(members)

    def take(self, name: str) -> Any:
        """Any value, which must be there."""
        if name not in self._left:
            raise MalformedError(f"it has no {name!r}")
        return self._left.pop(name)

    def text(self, name: str) -> str:
        """A string."""
        value = self.take(name)
        if not isinstance(value, str):
            raise MalformedError(f"{name!r} is not a string")
        return value

    def count(self, name: str) -> int:
        """An integer that is not negative and fits 64 bits."""
        value = self.take(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise MalformedError(f"{name!r} is not an integer")
        if not 0 <= value <= LARGEST_INTEGER:
            raise MalformedError(f"{name!r} is out of range")
        return value

    def seed(self, name: str) -> int:
        """An integer that is not negative, of any size."""
        value = self.take(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise MalformedError(f"{name!r} is not a non-negative integer")
        return value

    def header(self, schema: int) -> None:
        """The format's version, which must be this one, and who wrote it."""
        found = self.count("schema")
        if found != schema:
            raise MalformedError(
                f"its format is version {found} and this release reads version {schema}; "
                "use a newer release of sparing"
            )
        self.text("written_by")

    def optional_count(self, name: str) -> int | None:
        """Such an integer, or null."""
        if self._left.get(name, ...) is None:
            return self.take(name)
        return self.count(name)

    def number(self, name: str) -> float:
        """A float."""
        return _number(self.take(name), name)

    def optional_text(self, name: str) -> str:
        """A string, empty when it is not there."""
        return self.text(name) if name in self._left else ""

    def numbers(self, name: str) -> list[float]:
        """A list of at least one float."""
        values = self.take(name)
        if not isinstance(values, list) or not values:
            raise MalformedError(f"{name!r} is not a list of numbers")
        return [_number(value, name) for value in values]

    def object(self, name: str) -> dict[str, Any]:
        """A JSON object."""
        value = self.take(name)
        if not isinstance(value, dict):
            raise MalformedError(f"{name!r} is not an object")
        return value

    def rest(self) -> dict[str, Any]:
        """All that is left."""
        left, self._left = self._left, {}
        return left

    def finish(self) -> None:
        """Refuse what was not asked for: ignoring it could change a result."""
        if self._left:
            names = ", ".join(sorted(self._left))
            raise MalformedError(f"it has members this version does not know: {names}")


def _number(value: object, name: str) -> float:
    try:
        return decode_number(value)
    except ValueError as error:
        raise MalformedError(f"{name!r} has {error}") from None
