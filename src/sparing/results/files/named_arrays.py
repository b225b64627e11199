"""What is saved beside JSON: named arrays of float64, int64 or bool, read back with checks.

Rows of a dataclass are columns: one array ``<prefix>.<field>`` for each field that is a float, an
int or a bool, with one entry per row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparing.errors import LoadError, SparingError
from sparing.numerics.arrays import Array
from sparing.store.archive import Arrays
from sparing.store.dataclass_json import field_types
from sparing.store.json_members import MalformedError, require

T = TypeVar("T")
DTYPES = {float: np.float64, int: np.int64, bool: np.bool_}

# What checked values can still make constructors and libraries raise.
_CONSEQUENCES = (ValueError, TypeError, ArithmeticError, LookupError, MemoryError, RuntimeError)


class NamedArrays:
    """Arrays taken out by name with their types and shapes checked."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = arrays

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def array(self, name: str, dtype: type[np.generic], *shape: int | None) -> NDArray[Any]:
        """An array of this type and shape, None for any size: a writable C-contiguous copy."""
        require(name in self._arrays, f"the array {name} is missing")
        array = self._arrays[name]
        require(array.dtype == dtype, f"the array {name} is of type {array.dtype}")
        fits = array.ndim == len(shape) and all(
            size is None or size == actual for size, actual in zip(shape, array.shape, strict=True)
        )
        require(fits, f"the array {name} has the unexpected shape {array.shape}")
        return np.array(array, order="C")

    def floats(self, name: str, *shape: int | None) -> Array:
        """A float64 array of this shape."""
        return self.array(name, np.float64, *shape)

    def integers(self, name: str, n: int | None) -> list[int]:
        """An int64 vector as Python integers."""
        return self.array(name, np.int64, n).tolist()

    def booleans(self, name: str, n: int | None) -> list[bool]:
        """A vector of booleans."""
        return self.array(name, np.bool_, n).tolist()

    def indices(self, name: str, n: int | None, below: int) -> list[int]:
        """An int64 vector of numbers from 0 to below - 1."""
        values = self.integers(name, n)
        require(all(0 <= value < below for value in values), f"{name} points at nothing")
        return values

    def rows(
        self, owner: type[T], prefix: str, n: int, others: Mapping[str, Sequence[Any]]
    ) -> list[T]:
        """n rows from their columns and the values of the ``others``, the fields without one.

        A column that is absent, since the field is younger than the file, takes the field's
        default.
        """
        columns = dict(others)
        for field in dataclasses.fields(owner):  # type: ignore[arg-type]
            kind, name = field_types(owner)[field.name], f"{prefix}.{field.name}"
            may_be_absent = field.default is not dataclasses.MISSING
            if field.name in others or kind not in DTYPES or (may_be_absent and name not in self):
                continue
            columns[field.name] = self.array(name, DTYPES[kind], n).tolist()
        same_length = all(len(column) == n for column in columns.values())
        require(same_length, f"the columns of {prefix} have different lengths")
        return [owner(**{name: column[i] for name, column in columns.items()}) for i in range(n)]


def write_rows(owner: type, rows: Sequence[object], prefix: str) -> Arrays:
    """The scalar fields of the rows as columns."""
    scalars = {name: kind for name, kind in field_types(owner).items() if kind in DTYPES}
    return {
        f"{prefix}.{name}": np.array([getattr(row, name) for row in rows], dtype=DTYPES[kind])
        for name, kind in scalars.items()
    }


@contextmanager
def load_errors(subject: str) -> Generator[None, None, None]:
    """Turn what the content of a file led to into a `LoadError`."""
    try:
        with np.errstate(all="ignore"):
            yield
    except (LoadError, MalformedError) as error:
        raise LoadError(f"{subject} cannot be loaded: {error}") from None
    except (SparingError, *_CONSEQUENCES) as error:
        reason = f"its content is inconsistent ({type(error).__name__}: {error})"
        raise LoadError(f"{subject} cannot be loaded: {reason}") from error
