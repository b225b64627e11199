"""The evaluations of a run: columns of numbers, and lists of names and texts in JSON.

evaluations.x (n, D)            evaluations.<field> (n,)     fields of `Outcome` that are numbers
evaluations.index (n,)          evaluations.identifier (n,)  -1 for a point evaluated without one
evaluations.gradient (n, D)     a row of NaN where there is none; absent where there is none at all
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from sparing.problem.evaluation_codec import OUTCOME_FIELDS, OutcomeField
from sparing.problem.evaluations import Evaluation, Outcome
from sparing.results.files.named_arrays import NamedArrays, write_rows
from sparing.store.archive import Arrays, Metadata
from sparing.store.dataclass_json import enum_from_json
from sparing.store.json_members import Members, require

NOBODY = -1
GRADIENTS = "evaluations.gradient"
# Of the fields that are no numbers, those with a list of JSON.
LISTED = tuple(f for f in OUTCOME_FIELDS if not f.is_number and f.name != "gradient")


def write_evaluations(evaluations: Sequence[Evaluation], dimension: int) -> tuple[Arrays, Metadata]:
    """The evaluations as arrays and a JSON object."""
    outcomes = [entry.outcome for entry in evaluations]
    identifiers = [NOBODY if e.identifier is None else e.identifier for e in evaluations]
    arrays = {
        **write_rows(Outcome, outcomes, "evaluations"),
        "evaluations.index": np.array([entry.index for entry in evaluations], dtype=np.int64),
        "evaluations.x": np.reshape([entry.x for entry in evaluations], (-1, dimension)),
        "evaluations.identifier": np.array(identifiers, dtype=np.int64),
    }
    if any(outcome.gradient is not None for outcome in outcomes):
        missing = (np.nan,) * dimension
        arrays[GRADIENTS] = np.array([outcome.gradient or missing for outcome in outcomes])
    lists = {
        field.name: [_cell(field, getattr(outcome, field.name)) for outcome in outcomes]
        for field in LISTED
    }
    return arrays, {**lists, "rule": [entry.rule for entry in evaluations]}


def read_evaluations(
    arrays: NamedArrays, members: Members, dimension: int
) -> tuple[Evaluation, ...]:
    """The evaluations that `write_evaluations` wrote, or a release before."""
    indices = arrays.integers("evaluations.index", None)
    n = len(indices)
    require(indices == list(range(n)), "evaluations are not in order")
    lists = {
        field.name: [_from_cell(field, cell) for cell in members.values(field.name, n)]
        for field in LISTED
        if field.name in members or not field.has_default
    }
    if GRADIENTS in arrays:
        rows = arrays.floats(GRADIENTS, n, dimension)
        missing = np.isnan(rows[:, 0])
        whole = np.isfinite(rows[~missing]).all() and np.isnan(rows[missing]).all()
        require(bool(whole), "a gradient is not finite")
        lists["gradient"] = [None if np.isnan(row[0]) else tuple(row.tolist()) for row in rows]
    outcomes = arrays.rows(Outcome, "evaluations", n, lists)
    rules = members.texts("rule", n) if "rule" in members else [""] * n
    identifiers = arrays.integers("evaluations.identifier", n)
    points = arrays.floats("evaluations.x", n, dimension)
    return tuple(
        Evaluation(index, None if identifier == NOBODY else identifier, x, outcome, rule)
        for index, identifier, x, outcome, rule in zip(
            indices, identifiers, points, outcomes, rules, strict=True
        )
    )


def _cell(field: OutcomeField, value: Any) -> Any:
    return value.name if isinstance(value, enum.Enum) else field.encode(value)


def _from_cell(field: OutcomeField, cell: Any) -> Any:
    """An enum is named in a result file, where a record has its value."""
    if cell is not None and issubclass(field.type, enum.Enum):
        return enum_from_json(cell, field.type, field.name)
    return field.decode(cell)
