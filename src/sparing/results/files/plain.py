"""Settings and other small dataclasses as readable JSON objects, guided by their annotations.

A field may be a bool, int, float, str, enum (by name), dataclass, None, or a tuple of these.
Reading builds only the classes that the annotations of the expected class name.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from sparing.errors import LoadError
from sparing.numerics.json_numbers import decode_number, encode_number
from sparing.results.files.parts import require

T = TypeVar("T")


@functools.cache
def field_types(owner: type) -> Mapping[str, Any]:
    """Name and type of each field of a dataclass."""
    hints = get_type_hints(owner)
    return {field.name: hints[field.name] for field in dataclasses.fields(owner)}


def to_plain(value: object, hint: Any = None) -> Any:
    """A value as JSON types; ``hint`` is its annotation, its own type when None."""
    hint = type(value) if hint is None else hint
    if value is None:
        return None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        types_of = field_types(type(value))
        return {name: to_plain(getattr(value, name), kind) for name, kind in types_of.items()}
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, tuple | list):
        (item_hint, *_) = get_args(_without_none(hint)) or (None,)
        return [to_plain(item, item_hint) for item in value]
    if isinstance(value, bool | str):
        return value
    if isinstance(value, Real):
        # 1 in a float field means 1.0, whatever the user typed.
        if isinstance(value, Integral) and _without_none(hint) is not float:
            return int(value)
        return encode_number(float(value))
    raise TypeError(f"{value!r} cannot be written as JSON")


def from_plain(value: Any, expected: type[T], where: str) -> T:
    """The dataclass that a JSON object describes; ``where`` names it in errors."""
    require(isinstance(value, dict), f"{where} is not an object")
    known = field_types(expected)
    unknown = sorted(set(value) - set(known))
    require(not unknown, f"{where} has fields that this release does not know: {unknown}")
    arguments = {key: _read(item, known[key], f"{where}.{key}") for key, item in value.items()}
    try:
        return expected(**arguments)  # a field that is absent takes its default
    except (TypeError, ValueError) as error:
        raise LoadError(f"{where} is invalid: {error}") from None


def number_from_plain(value: Any, where: str) -> float:
    """The float that `encode_number` wrote."""
    try:
        return decode_number(value)
    except ValueError as error:
        raise LoadError(f"{where} is {error}") from None


def enum_from_plain(value: Any, expected: type[T], where: str) -> T:
    """The member of an enum with this name."""
    assert issubclass(expected, enum.Enum)
    names = expected.__members__
    known = isinstance(value, str) and value in names
    require(known, f"{where} is {value!r}, not one of {', '.join(names)}")
    return names[value]


def _read(value: Any, hint: Any, where: str) -> Any:
    if hint is not (inner := _without_none(hint)):
        return None if value is None else _read(value, inner, where)
    if get_origin(hint) is tuple:
        item_hint, _ = get_args(hint)
        require(isinstance(value, list), f"{where} is not a list")
        return tuple(_read(item, item_hint, f"{where}[{i}]") for i, item in enumerate(value))
    if dataclasses.is_dataclass(hint):
        assert isinstance(hint, type)
        return from_plain(value, hint, where)
    if issubclass(hint, enum.Enum):
        return enum_from_plain(value, hint, where)
    if hint is float:
        return number_from_plain(value, where)
    fits = isinstance(value, hint) and isinstance(value, bool) == (hint is bool)
    require(fits, f"{where} is not of type {hint.__name__}")
    return value


def _without_none(hint: Any) -> Any:
    """X of an annotation X | None; any other annotation as it is."""
    if get_origin(hint) in (Union, types.UnionType):
        (inner,) = [kind for kind in get_args(hint) if kind is not type(None)]
        return inner
    return hint
