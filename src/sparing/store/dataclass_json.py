"""Settings and other small dataclasses as readable JSON objects, guided by their annotations.

A field may be a bool, int, float, str, enum (by name), dataclass, None, or a tuple of these. Where
an annotation names several dataclasses (``A | B``), the member "kind" of the object is the name of
its class. Reading builds only the classes that the annotations of the expected class name.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from sparing.numerics.json_numbers import encode_number
from sparing.store.json_members import MalformedError, read_number, require

T = TypeVar("T")
KIND = "kind"


@functools.cache
def field_types(owner: type) -> Mapping[str, Any]:
    """Name and type of each field of a dataclass."""
    hints = get_type_hints(owner)
    return {field.name: hints[field.name] for field in dataclasses.fields(owner)}


def dataclass_to_json(value: object) -> dict[str, Any]:
    """A dataclass as a JSON object."""
    return _write(value, type(value))


def _write(value: object, hint: Any) -> Any:
    """A value with this annotation as JSON types."""
    kinds = alternatives(hint)
    if value is None:
        return None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        types_of = field_types(type(value))
        members = {name: _write(getattr(value, name), kind) for name, kind in types_of.items()}
        if len(kinds) == 1:
            return members
        name = type(value).__name__
        if type(value) not in kinds:
            raise TypeError(f"{name} is not one of {', '.join(kind.__name__ for kind in kinds)}")
        if KIND in members:
            raise TypeError(f"a {name} cannot be told from other dataclasses in JSON")
        return {KIND: name, **members}
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, tuple | list) and (item_hints := get_args(kinds[0])):
        return [_write(item, item_hints[0]) for item in value]
    if isinstance(value, bool | str):
        return value
    if isinstance(value, Real):
        # 1 in a float field means 1.0, whatever the user typed.
        if isinstance(value, Integral) and kinds[0] is not float:
            return int(value)
        return encode_number(float(value))
    raise TypeError(f"{value!r} cannot be written as JSON")


def dataclass_from_json(value: Any, expected: type[T], where: str, *, strict: bool = True) -> T:
    """The dataclass that a JSON object describes; ``where`` names it in errors.

    Unless ``strict``, members that are no field are passed over.
    """
    require(isinstance(value, dict), f"{where} is not an object")
    known = field_types(expected)
    unknown = sorted(set(value) - set(known)) if strict else []
    require(not unknown, f"{where} has fields that this release does not know: {unknown}")
    arguments = {
        key: _read(value[key], kind, f"{where}.{key}", strict)
        for key, kind in known.items()
        if key in value
    }
    try:
        return expected(**arguments)  # a field that is absent takes its default
    except (TypeError, ValueError) as error:
        raise MalformedError(f"{where} is invalid: {error}") from None


def enum_from_json(value: Any, expected: type[T], where: str) -> T:
    """The member of an enum with this name."""
    assert issubclass(expected, enum.Enum)
    names = expected.__members__
    known = isinstance(value, str) and value in names
    require(known, f"{where} is {value!r}, not one of {', '.join(names)}")
    return names[value]


def _read(value: Any, hint: Any, where: str, strict: bool) -> Any:
    if (kinds := alternatives(hint)) != (hint,):
        optional = type(None) in get_args(hint)
        return None if optional and value is None else _read_one_of(value, kinds, where, strict)
    if get_origin(hint) is tuple:
        item_hint, _ = get_args(hint)
        require(isinstance(value, list), f"{where} is not a list")
        items = enumerate(value)
        return tuple(_read(item, item_hint, f"{where}[{i}]", strict) for i, item in items)
    if dataclasses.is_dataclass(hint):
        assert isinstance(hint, type)
        return dataclass_from_json(value, hint, where, strict=strict)
    if issubclass(hint, enum.Enum):
        return enum_from_json(value, hint, where)
    if hint is float:
        return read_number(value, where)
    fits = isinstance(value, hint) and isinstance(value, bool) == (hint is bool)
    require(fits, f"{where} is not of type {hint.__name__}")
    return value


def _read_one_of(value: Any, kinds: Sequence[type[Any]], where: str, strict: bool) -> Any:
    """The only kind, or that of several dataclasses which the object names."""
    if len(kinds) == 1:
        return _read(value, kinds[0], where, strict)
    require(isinstance(value, dict), f"{where} is not an object")
    members = dict(value)
    name = members.pop(KIND, None)
    named = [kind for kind in kinds if kind.__name__ == name]
    known = ", ".join(kind.__name__ for kind in kinds)
    require(len(named) == 1, f"{where}.{KIND} is {name!r:.60}, not one of {known}")
    return dataclass_from_json(members, named[0], where, strict=strict)


def alternatives(hint: Any) -> tuple[Any, ...]:
    """X and Y of an annotation X | Y | None; of any other, that annotation alone."""
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(kind for kind in get_args(hint) if kind is not type(None))
    return (hint,)
