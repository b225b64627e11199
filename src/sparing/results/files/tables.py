"""Rows of a dataclass as columns: one array for each field that is a float, an int or a bool.

A column is named ``<prefix>.<field>`` and has one entry per row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from sparing.results.files.named_arrays import NamedArrays
from sparing.store.archive import Arrays
from sparing.store.dataclass_json import field_types
from sparing.store.json_members import require

T = TypeVar("T")
DTYPES = {float: np.float64, int: np.int64, bool: np.bool_}


def write_rows(owner: type, rows: Sequence[object], prefix: str) -> Arrays:
    """The scalar fields of the rows as columns."""
    scalars = {name: kind for name, kind in field_types(owner).items() if kind in DTYPES}
    return {
        f"{prefix}.{name}": np.array([getattr(row, name) for row in rows], dtype=DTYPES[kind])
        for name, kind in scalars.items()
    }


def read_rows(
    owner: type[T], arrays: NamedArrays, prefix: str, n: int, others: Mapping[str, Sequence[Any]]
) -> list[T]:
    """n rows from their columns and the values of the ``others``, the fields without one.

    A column that is absent, since the field is younger than the file, takes the field's default.
    """
    columns = dict(others)
    for field in dataclasses.fields(owner):  # type: ignore[arg-type]
        kind, name = field_types(owner)[field.name], f"{prefix}.{field.name}"
        if field.name in others or kind not in DTYPES:
            continue
        if name not in arrays and field.default is not dataclasses.MISSING:
            continue
        columns[field.name] = arrays.array(name, DTYPES[kind], n).tolist()
    same_length = all(len(column) == n for column in columns.values())
    require(same_length, f"the columns of {prefix} have different lengths")
    return [owner(**{name: column[row] for name, column in columns.items()}) for row in range(n)]
