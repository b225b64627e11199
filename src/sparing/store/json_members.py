"""JSON written from plain values, and read strictly: what does not fit is a `MalformedError`.

Numbers that JSON lacks are the strings ``"nan"``, ``"inf"`` and ``"-inf"``. Reading only ever
builds plain values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from sparing.numerics.json_numbers import decode_number, encode_number

LARGEST_INTEGER = 2**63 - 1
DEEPEST_NESTING = 32  # far below where reading or comparing would exhaust the stack


class MalformedError(ValueError):
    """A text or value that is not what it should be; the message says how."""


def require(condition: bool, message: str) -> None:
    """`MalformedError` with the message unless the condition holds."""
    if not condition:
        raise MalformedError(message)


def to_json_types(value: Any) -> Any:
    """A value as what JSON can hold: arrays and tuples as lists, non-finite numbers as strings."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return int(value)
        case float() | np.floating():
            return encode_number(float(value))
        case Mapping():
            if not all(isinstance(key, str) for key in value):
                raise TypeError(f"only strings can name JSON members, unlike in {value!r}")
            return {key: to_json_types(item) for key, item in value.items()}
        case list() | tuple():
            return [to_json_types(item) for item in value]
        case np.ndarray() | np.bool_() | np.integer():
            return to_json_types(value.tolist())
        case _:
            raise TypeError(f"{value!r} cannot be written as JSON")


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
    check_nesting(value)
    return value


def check_nesting(value: Any, deepest: int = DEEPEST_NESTING) -> None:
    """Refuse what is nested too deeply to be read back."""
    if isinstance(value, dict | list):
        require(deepest > 1, "it is nested too deeply")
        for child in value.values() if isinstance(value, dict) else value:
            check_nesting(child, deepest - 1)


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    require(len(members) == len(pairs), "a name occurs twice in one JSON object")
    return members


def _refuse_constant(name: str) -> None:
    raise MalformedError(f"{name} is not JSON")


class Members:
    """The members of one JSON object, taken out one by one with their types checked."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self._left = dict(members)

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def take(self, name: str) -> Any:
        """Any value, which must be there."""
        require(name in self, f"it has no {name!r}")
        return self._left.pop(name)

    def _take(self, name: str, kind: type, described: str) -> Any:
        value = self.take(name)
        fits = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
        require(fits, f"{name!r} is not {described}")
        return value

    def text(self, name: str) -> str:
        """A string."""
        return self._take(name, str, "a string")

    def optional_text(self, name: str) -> str:
        """A string, empty when it is not there."""
        return self.text(name) if name in self else ""

    def flag(self, name: str) -> bool:
        """True or false."""
        return self._take(name, bool, "true or false")

    def integer(self, name: str) -> int:
        """An integer of any size."""
        return self._take(name, int, "an integer")

    def seed(self, name: str) -> int:
        """An integer that is not negative, of any size."""
        value = self.integer(name)
        require(value >= 0, f"{name!r} is negative")
        return value

    def count(self, name: str) -> int:
        """An integer that is not negative and fits 64 bits."""
        value = self.integer(name)
        require(0 <= value <= LARGEST_INTEGER, f"{name!r} is out of range")
        return value

    def optional_count(self, name: str) -> int | None:
        """Such an integer, or null."""
        return None if self._take_null(name) else self.count(name)

    def index(self, name: str, below: int) -> int:
        """An integer from 0 to below - 1."""
        value = self.integer(name)
        require(0 <= value < below, f"{name!r} points at nothing")
        return value

    def number(self, name: str) -> float:
        """A float."""
        return read_number(self.take(name), name)

    def numbers(self, name: str) -> list[float]:
        """A list of at least one float."""
        return read_numbers(self.take(name), name)

    def values(self, name: str, n: int | None = None) -> list[Any]:
        """A list of n values of any kind, of any number when None."""
        values = self._take(name, list, "a list")
        require(n is None or len(values) == n, f"{name!r} does not have {n} entries")
        return values

    def texts(self, name: str, n: int | None = None) -> list[str]:
        """A list of n strings, of any number when None."""
        values = self.values(name, n)
        require(all(isinstance(value, str) for value in values), f"{name!r} holds no strings")
        return values

    def object(self, name: str) -> dict[str, Any]:
        """A JSON object."""
        return self._take(name, dict, "an object")

    def optional_object(self, name: str) -> dict[str, Any] | None:
        """A JSON object, or null."""
        return None if self._take_null(name) else self.object(name)

    def rest(self) -> dict[str, Any]:
        """All that is left."""
        left, self._left = self._left, {}
        return left

    def _take_null(self, name: str) -> bool:
        null = self._left.get(name, ...) is None
        if null:
            self.take(name)
        return null

    def format(self, name: str, version: int) -> None:
        """The name of a format, and its version up to this one."""
        require(self._left.pop("format", None) == name, f"it is not a {name}")
        found = self.integer("version")
        require(
            found <= version,
            f"its format is version {found} and this release of sparing reads up to {version}: "
            "use a newer release",
        )
        require(found >= 1, f"there is no version {found} of its format")

    def finish(self) -> None:
        """Refuse what was not asked for: ignoring it could change a result."""
        names = ", ".join(sorted(self._left))
        require(not names, f"it has members this version does not know: {names}")


def read_number(value: object, name: str) -> float:
    """The float that `encode_number` wrote."""
    try:
        return decode_number(value, repr(name))
    except ValueError as error:
        raise MalformedError(str(error)) from None


def read_numbers(values: object, name: str) -> list[float]:
    """A list of at least one float."""
    if not isinstance(values, list) or not values:
        raise MalformedError(f"{name!r} is not a list of numbers")
    return [read_number(value, name) for value in values]
