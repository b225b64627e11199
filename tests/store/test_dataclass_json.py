"""Dataclasses through JSON and back by their annotations, and what no annotation allows."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from sparing.store.dataclass_json import dataclass_from_json, dataclass_to_json
from sparing.store.json_members import MalformedError


@dataclass(frozen=True)
class Slice:
    n_steps: int = 3
    width: float = 1.0


@dataclass(frozen=True)
class LowerBound:
    pass


@dataclass(frozen=True)
class Other:
    pass


@dataclass(frozen=True)
class Composed:
    search: Slice | LowerBound = LowerBound()
    several: tuple[Slice | LowerBound, ...] = ()
    perhaps: LowerBound | Slice | None = None
    alone: Slice = Slice()
    alone_or_none: Slice | None = None


@dataclass(frozen=True)
class Ambiguous:
    kind: str = "x"


@dataclass(frozen=True)
class HoldsAmbiguous:
    part: Ambiguous | Slice = Slice()


def through_json(value):
    return dataclass_from_json(json.loads(json.dumps(dataclass_to_json(value))), type(value), "it")


@pytest.mark.parametrize(
    "value",
    [
        Composed(),
        Composed(search=Slice(5, 0.5), perhaps=LowerBound()),
        Composed(several=(LowerBound(), Slice(2), LowerBound()), perhaps=Slice()),
        Composed(several=(Slice(),), alone_or_none=Slice(7)),
    ],
)
def test_composed_dataclasses_are_read_as_they_were(value):
    assert through_json(value) == value


def test_an_object_names_its_class_only_where_there_are_several():
    members = dataclass_to_json(Composed(several=(Slice(2, 4),), alone_or_none=Slice()))
    assert members == {
        "search": {"kind": "LowerBound"},
        "several": [{"kind": "Slice", "n_steps": 2, "width": 4.0}],
        "perhaps": None,
        "alone": {"n_steps": 3, "width": 1.0},
        "alone_or_none": {"n_steps": 3, "width": 1.0},
    }
    assert isinstance(members["several"][0]["width"], float)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"search": {"kind": "Other"}}, "it.search.kind is 'Other', not one of Slice, LowerBound"),
        ({"search": {"kind": "Composed"}}, "not one of"),
        ({"search": {"kind": ["Slice"]}}, "not one of"),
        ({"search": {}}, "it.search.kind is None"),
        ({"search": None}, "it.search is not an object"),
        ({"search": "Slice"}, "it.search is not an object"),
        ({"search": {"kind": "LowerBound", "n_steps": 1}}, "does not know"),
        ({"search": {"kind": "Slice", "n_steps": 1.5}}, "it.search.n_steps is not of type int"),
        ({"several": [{"kind": "Slice"}, {"kind": "Other"}]}, r"it.several\[1\].kind is 'Other'"),
        ({"alone": {"kind": "Slice"}}, "does not know"),
    ],
)
def test_only_what_the_annotation_names_is_built(members, message):
    with pytest.raises(MalformedError, match=message):
        dataclass_from_json(members, Composed, "it")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Composed(search=Other()), "Other is not one of Slice, LowerBound"),
        (HoldsAmbiguous(Ambiguous()), "an? Ambiguous cannot be told"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(value, message):
    with pytest.raises(TypeError, match=message):
        dataclass_to_json(value)
