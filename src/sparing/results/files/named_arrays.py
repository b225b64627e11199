"""What is saved beside JSON: named arrays of float64, int64 or bool, read back with checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.numerics.arrays import Array
from sparing.store.json_members import require


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
