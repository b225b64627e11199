"""Mixtures, transforms and posteriors as arrays.

Mixtures and transforms are kept in tables without repetition, and everything else refers to their
rows. A transform is known by its number, a mixture by being the same object.

    M, T      mixtures; transforms                    W   transforms with a whitening
    K_total   components of all mixtures together     D   parameters

    mixtures.n_components (M,)      mixtures.weights (K_total,)   mixtures.means (K_total, D)
    mixtures.scales (K_total,)      mixtures.lengths (M, D)
    transforms.whitened (T,)        transforms.number (T,)
    transforms.matrix, transforms.inverse (W, D, D)
    transforms.centre (W, D)        transforms.log_determinant (W,)
    transforms.column_major (W,)    whether the matrix lies so in memory: BLAS may round differently
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np

from sparing.numerics.arrays import Array
from sparing.problem.parameter_transform import ParameterTransform, Whitening
from sparing.results.files.named_arrays import NamedArrays
from sparing.store.archive import Arrays
from sparing.store.json_members import require
from sparing.variational.mixture import GaussianMixture
from sparing.variational.posterior import Posterior

T = TypeVar("T")


class Table(Generic[T]):
    """Items in the order they first came, each once, told apart by a key."""

    def __init__(self, key: Callable[[T], int]) -> None:
        self.items: list[T] = []
        self._key = key
        self._rows: dict[int, int] = {}

    def row(self, item: T) -> int:
        """The item's row, a new one when it has not been seen."""
        row = self._rows.setdefault(self._key(item), len(self.items))
        if row == len(self.items):
            self.items.append(item)
        return row


class PosteriorWriter:
    """Gathers the mixtures and transforms of a record."""

    def __init__(self) -> None:
        self.mixtures: Table[GaussianMixture] = Table(id)  # the table keeps them alive
        self.transforms: Table[ParameterTransform] = Table(lambda transform: transform.number)

    def rows(self, posteriors: Sequence[Posterior], prefix: str) -> Arrays:
        """Which mixture and transform each posterior has."""
        mixtures = [self.mixtures.row(posterior.mixture) for posterior in posteriors]
        transforms = [self.transforms.row(posterior.transform) for posterior in posteriors]
        return {
            f"{prefix}.mixture": np.array(mixtures, dtype=np.int64),
            f"{prefix}.transform": np.array(transforms, dtype=np.int64),
        }

    def arrays(self, dimension: int) -> Arrays:
        """Everything gathered so far."""
        whitenings = [item.whitening for item in self.transforms.items]
        numbers = [item.number for item in self.transforms.items]
        return {
            **_write_mixtures(self.mixtures.items, dimension),
            "transforms.whitened": np.array([w is not None for w in whitenings], dtype=np.bool_),
            "transforms.number": np.array(numbers, dtype=np.int64),
            **_write_whitenings([w for w in whitenings if w is not None], dimension),
        }


class PosteriorReader:
    """The mixtures and transforms of a record."""

    def __init__(
        self, arrays: NamedArrays, base: ParameterTransform, names: tuple[str, ...]
    ) -> None:
        self._arrays = arrays
        self._names = names
        self.mixtures = _read_mixtures(arrays, base.dimension)
        self.transforms = _read_transforms(arrays, base)

    def posteriors(self, prefix: str, n: int) -> list[Posterior]:
        """The n posteriors written by `PosteriorWriter.rows`."""
        mixtures = self._arrays.indices(f"{prefix}.mixture", n, len(self.mixtures))
        transforms = self._arrays.indices(f"{prefix}.transform", n, len(self.transforms))
        return [
            Posterior(self.mixtures[i], self.transforms[j], self._names)
            for i, j in zip(mixtures, transforms, strict=True)
        ]


def _write_mixtures(mixtures: Sequence[GaussianMixture], dimension: int) -> Arrays:
    empty, none = np.empty(0), np.empty((0, dimension))
    weights, means, scales, lengths = zip(*(m.arrays for m in mixtures), strict=True)
    return {
        "mixtures.n_components": np.array([m.n_components for m in mixtures], dtype=np.int64),
        "mixtures.weights": np.concatenate([empty, *weights]),
        "mixtures.means": np.vstack([none, *means]),
        "mixtures.scales": np.concatenate([empty, *scales]),
        "mixtures.lengths": np.reshape(lengths, (-1, dimension)),
    }


def _read_mixtures(arrays: NamedArrays, dimension: int) -> list[GaussianMixture]:
    counts = arrays.integers("mixtures.n_components", None)
    weights = arrays.floats("mixtures.weights", None)
    total = len(weights)
    means = arrays.floats("mixtures.means", total, dimension)
    scales = arrays.floats("mixtures.scales", total)
    lengths = arrays.floats("mixtures.lengths", len(counts), dimension)
    require(all(k > 0 for k in counts) and sum(counts) == total, "mixtures have wrong sizes")
    ends = np.cumsum(counts)
    rows = [slice(end - k, end) for k, end in zip(counts, ends, strict=True)]
    return [
        _exact_mixture(weights[own], means[own], scales[own], length)
        for own, length in zip(rows, lengths, strict=True)
    ]


def _exact_mixture(weights: Array, means: Array, scales: Array, lengths: Array) -> GaussianMixture:
    """The mixture with these very weights: the constructor normalises, which rounds again."""
    mixture = GaussianMixture(weights, means, scales, lengths)
    object.__setattr__(mixture, "weights", weights.copy())
    return mixture


def _write_whitenings(whitenings: Sequence[Whitening], dimension: int) -> Arrays:
    square = (-1, dimension, dimension)
    column_major = [not w.matrix.flags.c_contiguous for w in whitenings]
    return {
        "transforms.matrix": np.reshape([w.matrix for w in whitenings], square),
        "transforms.inverse": np.reshape([w.inverse for w in whitenings], square),
        "transforms.centre": np.reshape([w.centre for w in whitenings], (-1, dimension)),
        "transforms.log_determinant": np.array(
            [w.log_determinant for w in whitenings], dtype=float
        ),
        "transforms.column_major": np.array(column_major, dtype=np.bool_),
    }


def _read_transforms(arrays: NamedArrays, base: ParameterTransform) -> list[ParameterTransform]:
    """The base itself where there is no whitening, else the base with its whitening."""
    dimension = base.dimension
    whitened = arrays.booleans("transforms.whitened", None)
    # The first version had no numbers: any will do that tell them apart.
    numbers = list(range(1, len(whitened) + 1))
    if "transforms.number" in arrays:
        numbers = arrays.integers("transforms.number", len(whitened))
    n = sum(whitened)
    matrices = arrays.floats("transforms.matrix", n, dimension, dimension)
    inverses = arrays.floats("transforms.inverse", n, dimension, dimension)
    centres = arrays.floats("transforms.centre", n, dimension)
    log_determinants = arrays.floats("transforms.log_determinant", n)
    column_major = arrays.booleans("transforms.column_major", n)
    finite = all(np.isfinite(a).all() for a in (matrices, inverses, centres, log_determinants))
    require(finite, "a whitening is not finite")
    columns = (matrices, inverses, centres, log_determinants.tolist(), column_major)
    whitenings = (
        Whitening(np.array(m, order="F" if by_column else "C"), inverse.copy(), centre.copy(), log)
        for m, inverse, centre, log, by_column in zip(*columns, strict=True)
    )
    return [
        replace(base, whitening=next(whitenings), number=number) if is_whitened else base
        for is_whitened, number in zip(whitened, numbers, strict=True)
    ]
