"""What is saved: named arrays and plain JSON values, read back with every assumption checked.

Arrays are float64, int64 or bool. In JSON an enum is its name, a number that JSON lacks is the
string "nan", "inf" or "-inf"; other floats are written with the digits that read back exactly.
Whatever does not fit is a `LoadError`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.errors import LoadError, SparingError
from sparing.numerics.arrays import Array

Arrays = dict[str, NDArray[Any]]
Metadata = dict[str, Any]

# What checked values can still make constructors and libraries raise.
_CONSEQUENCES = (ValueError, TypeError, ArithmeticError, LookupError, MemoryError, RuntimeError)


@contextmanager
def load_errors(subject: str) -> Generator[None, None, None]:
    """Name the file in a `LoadError`, and turn what else its content led to into one."""
    try:
        with np.errstate(all="ignore"):
            yield
    except LoadError as error:
        raise LoadError(f"{subject} cannot be loaded: {error}") from None
    except (SparingError, *_CONSEQUENCES) as error:
        reason = f"its content is inconsistent ({type(error).__name__}: {error})"
        raise LoadError(f"{subject} cannot be loaded: {reason}") from error


def require(condition: bool, message: str) -> None:
    """`LoadError` with the message unless the condition holds."""
    if not condition:
        raise LoadError(message)


@dataclass(frozen=True, eq=False)
class Parts:
    """Arrays and JSON values, taken out by name with their types checked."""

    arrays: Mapping[str, NDArray[Any]]
    metadata: Mapping[str, Any]

    def array(self, name: str, dtype: type[np.generic], *shape: int | None) -> NDArray[Any]:
        """An array of this type and shape, None for any size: a writable C-contiguous copy."""
        require(name in self.arrays, f"the array {name} is missing")
        array = self.arrays[name]
        require(array.dtype == dtype, f"the array {name} is of type {array.dtype}")
        fits = array.ndim == len(shape) and all(
            size is None or size == actual for size, actual in zip(shape, array.shape, strict=True)
        )
        require(fits, f"the array {name} has the unexpected shape {array.shape}")
        return np.array(array, order="C")

    def floats(self, name: str, *shape: int | None) -> Array:
        """A float64 array of this shape."""
        return self.array(name, np.float64, *shape)

    def integers(self, name: str, *shape: int | None) -> list[int]:
        """An int64 vector as Python integers."""
        return self.array(name, np.int64, *shape).tolist()

    def booleans(self, name: str, *shape: int | None) -> list[bool]:
        """A vector of booleans."""
        return self.array(name, np.bool_, *shape).tolist()

    def indices(self, name: str, n: int | None, below: int) -> list[int]:
        """An int64 vector of numbers from 0 to below - 1."""
        values = self.integers(name, n)
        require(all(0 <= value < below for value in values), f"{name} points at nothing")
        return values

    def value(self, name: str, kind: type) -> Any:
        """A JSON value of this type; a boolean is no integer."""
        require(name in self.metadata, f"{name!r} is missing")
        value = self.metadata[name]
        fits = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
        require(fits, f"{name!r} is not of type {kind.__name__}")
        return value

    def index(self, name: str, below: int) -> int:
        """A JSON integer from 0 to below - 1."""
        value = self.value(name, int)
        require(0 <= value < below, f"{name!r} points at nothing")
        return value

    def strings(self, name: str, n: int | None = None) -> list[str]:
        """A JSON list of n strings."""
        values = self.value(name, list)
        require(all(isinstance(value, str) for value in values), f"{name!r} holds no strings")
        require(n is None or len(values) == n, f"{name!r} does not have {n} entries")
        return values

    def within(self, name: str) -> Parts:
        """The same arrays, with the JSON object of this name."""
        return Parts(self.arrays, self.value(name, dict))

    def expect_format(self, name: str, version: int) -> None:
        """Refuse another kind of record, or one that a newer release wrote."""
        require(self.metadata.get("format") == name, f"it is not a {name}")
        found = self.value("version", int)
        require(
            found <= version,
            f"its format is version {found} and this release of sparing reads up to {version}: "
            "use a newer release",
        )
        require(found >= 1, f"there is no version {found} of its format")
