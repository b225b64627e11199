"""Mixtures, transforms, supports and posteriors as arrays.

Mixtures, transforms and supports are kept in tables without repetition, and everything else refers
to their rows; -1 where there is no support. A transform is known by its number, a mixture and a
support by being the same object.

    M, E      mixtures; supports
    K_total   components of all mixtures together     D   parameters
    M_1, K_1  mixtures whose components share their shape, and those components
    K_2       components of the others

    mixtures.n_components (M,)      mixtures.weights (K_total,)   mixtures.means (K_total, D)
    mixtures.any_shape (M,)         whether it is a `NormalMixture`, not a `GaussianMixture`
    mixtures.scales (K_1,)          mixtures.lengths (M_1, D)     mixtures.factors (K_2, D, D)
    transforms.NAME                 see transforms.py
    supports.n_surfaces, supports.n_bumps (E,)
    supports.FIELD                  of `Support`, one after the other; weights and factors flat
    PREFIX.inside (n, N_EVEN / 64)  where the problem declares a support, which is a function that
                                    no file holds: the side of each even draw, as bits
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparing.numerics.arrays import Array
from sparing.problem.parameter_transform import ParameterTransform
from sparing.results.files.named_arrays import NamedArrays
from sparing.results.files.transforms import read_transforms, write_transforms
from sparing.store.archive import Arrays
from sparing.store.json_members import MalformedError, require
from sparing.surrogate.known_support import AnySupport, known_support
from sparing.surrogate.support import Support, n_features
from sparing.variational.cut_mixture import (
    N_EVEN,
    CutMixture,
    RememberedCut,
    RememberedSupport,
)
from sparing.variational.mixture import WEIGHT_SUM_TOLERANCE, GaussianMixture
from sparing.variational.normal_mixture import Mixture, NormalMixture
from sparing.variational.posterior import Posterior

T = TypeVar("T")
SUPPORT_FIELDS = tuple(field.name for field in fields(Support) if field.name != "transform")


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
        self.mixtures: Table[Mixture] = Table(id)  # the table keeps them alive
        self.transforms: Table[ParameterTransform] = Table(lambda transform: transform.number)
        self.supports: Table[Support] = Table(id)

    def rows(self, posteriors: Sequence[Posterior], prefix: str) -> Arrays:
        """Which mixture, transform and support each posterior has."""
        mixtures, supports, inside = [], [], []
        for posterior in posteriors:
            mixture, support = posterior.mixture, None
            if isinstance(mixture, CutMixture):
                support = mixture.support
                if not isinstance(support, Support):
                    inside.append(np.packbits(mixture.even_inside).view("<i8").astype(np.int64))
                mixture = mixture.mixture
            mixtures.append(self.mixtures.row(mixture))
            supports.append(self.support_row(support))
        transforms = [self.transforms.row(posterior.transform) for posterior in posteriors]
        arrays: Arrays = {
            f"{prefix}.mixture": np.array(mixtures, dtype=np.int64),
            f"{prefix}.transform": np.array(transforms, dtype=np.int64),
            f"{prefix}.support": np.array(supports, dtype=np.int64),
        }
        return arrays | ({f"{prefix}.inside": np.array(inside)} if inside else {})

    def support_row(self, support: AnySupport | RememberedSupport | None) -> int:
        """The row of what was learnt of a support, -1 where nothing was."""
        learnt = support if isinstance(support, Support | None) else support.learnt
        return -1 if learnt is None else self.supports.row(learnt)

    def arrays(self, dimension: int) -> Arrays:
        """Everything gathered so far."""
        return {
            **_write_mixtures(self.mixtures.items, dimension),
            **write_transforms(self.transforms.items, dimension),
            **_write_supports(self.supports.items, dimension),
        }


class PosteriorReader:
    """The mixtures and transforms of a record."""

    def __init__(
        self, arrays: NamedArrays, base: ParameterTransform, names: tuple[str, ...]
    ) -> None:
        self._arrays = arrays
        self._names = names
        self.mixtures = _read_mixtures(arrays, base.dimension)
        self.transforms = read_transforms(arrays, base)
        self._supports = _read_supports(arrays, base.dimension)

    def posteriors(self, prefix: str, n: int) -> list[Posterior]:
        """The n posteriors written by `PosteriorWriter.rows`."""
        mixtures = self._arrays.indices(f"{prefix}.mixture", n, len(self.mixtures))
        transforms = self._arrays.indices(f"{prefix}.transform", n, len(self.transforms))
        # Files of an earlier release have no supports.
        name, rows = f"{prefix}.support", [-1] * n
        if name in self._arrays:
            rows = self._arrays.integers(name, n)
        declared = f"{prefix}.inside" in self._arrays
        inside = self._inside(prefix, n) if declared else [None] * n
        found = []
        for i, j, row, sides in zip(mixtures, transforms, rows, inside, strict=True):
            mixture, transform = self.mixtures[i], self.transforms[j]
            learnt = self.support(row, transform)
            if declared or learnt is not None:
                if not isinstance(mixture, NormalMixture):
                    raise MalformedError("a support cuts something else than normals of any shape")
                mixture = _cut(mixture, transform, learnt, sides)
            found.append(Posterior(mixture, transform, self._names))
        return found

    def _inside(self, prefix: str, n: int) -> list[NDArray[np.bool_]]:
        """Which even draws of each of n posteriors are in the declared support."""
        bits = self._arrays.array(f"{prefix}.inside", np.int64, n, N_EVEN // 64).astype("<i8")
        inside = [np.unpackbits(row.view(np.uint8)).astype(np.bool_) for row in bits]
        require(all(sides.any() for sides in inside), "a posterior has no mass in the support")
        return inside

    def support(self, row: int, transform: ParameterTransform) -> Support | None:
        """The support of that row, in these coordinates; None for -1."""
        require(-1 <= row < len(self._supports), "there is no such support")
        return None if row == -1 else Support(transform, **self._supports[row])


def _cut(
    mixture: NormalMixture,
    transform: ParameterTransform,
    learnt: Support | None,
    inside: NDArray[np.bool_] | None,
) -> CutMixture:
    """The mixture within its support; by what is left of a declared one, without its function."""
    if inside is not None and (transform.declared is None or transform.declared.lost):
        return RememberedCut(mixture, RememberedSupport(mixture, inside, learnt))
    support = known_support(transform, learnt)
    require(support is not None, "a mixture is cut off at nothing")
    return CutMixture(mixture, support)  # type: ignore[arg-type]


def _write_mixtures(mixtures: Sequence[Mixture], dimension: int) -> Arrays:
    none = np.empty((0, dimension, dimension))
    shared = [m.arrays for m in mixtures if isinstance(m, GaussianMixture)]
    others = [m for m in mixtures if isinstance(m, NormalMixture)]
    any_shape = [isinstance(m, NormalMixture) for m in mixtures]
    return {
        "mixtures.n_components": np.array([m.n_components for m in mixtures], dtype=np.int64),
        "mixtures.any_shape": np.array(any_shape, dtype=np.bool_),
        "mixtures.weights": np.concatenate([none[:, 0, 0], *(m.weights for m in mixtures)]),
        "mixtures.means": np.vstack([none[:, 0], *(m.means for m in mixtures)]),
        "mixtures.scales": np.concatenate([none[:, 0, 0], *(scales for _, _, scales, _ in shared)]),
        "mixtures.lengths": np.vstack([none[:, 0], *(lengths for *_, lengths in shared)]),
        "mixtures.factors": np.concatenate([none, *(m.factors for m in others)]),
    }


def _read_mixtures(arrays: NamedArrays, dimension: int) -> list[Mixture]:
    counts = arrays.integers("mixtures.n_components", None)
    weights = arrays.floats("mixtures.weights", None)
    means = arrays.floats("mixtures.means", len(weights), dimension)
    columns = _portions(weights, counts), _portions(means, counts)
    shapes = _read_shapes(arrays, counts, dimension)
    return [
        _exact_mixture(w, mu, *shape) if len(shape) == 2 else _normal_mixture(w, mu, *shape)
        for w, mu, shape in zip(*columns, shapes, strict=True)
    ]


def _read_shapes(
    arrays: NamedArrays, counts: list[int], dimension: int
) -> Iterator[tuple[Array, Array] | tuple[Array]]:
    """Of each mixture its scales and lengths, or its factors."""
    # Before version 3 the components of every mixture shared their shape.
    any_shape, factors = [False] * len(counts), np.empty((0, dimension, dimension))
    if "mixtures.any_shape" in arrays:
        any_shape = arrays.booleans("mixtures.any_shape", len(counts))
        factors = arrays.floats("mixtures.factors", None, dimension, dimension)
    scales = arrays.floats("mixtures.scales", None)
    lengths = iter(arrays.floats("mixtures.lengths", any_shape.count(False), dimension))
    kinds = list(zip(counts, any_shape, strict=True))
    scales_of = iter(_portions(scales, [k for k, is_other in kinds if not is_other]))
    factors_of = iter(_portions(factors, [k for k, is_other in kinds if is_other]))
    for is_other in any_shape:
        yield (next(factors_of),) if is_other else (next(scales_of), next(lengths))


def _portions(rows: NDArray[Any], counts: Sequence[int]) -> list[NDArray[Any]]:
    """The rows of one mixture or support after the other."""
    fits = all(k > 0 for k in counts) and sum(counts) == len(rows)
    require(fits, "mixtures or supports have wrong sizes")
    ends = np.cumsum(counts, dtype=np.int64)
    return [rows[end - k : end].copy() for k, end in zip(counts, ends, strict=True)]


def _exact_mixture(weights: Array, means: Array, scales: Array, lengths: Array) -> GaussianMixture:
    """The mixture with these very weights: the constructor normalises, which rounds again."""
    mixture = GaussianMixture(weights, means, scales, lengths)
    object.__setattr__(mixture, "weights", weights.copy())
    return mixture


def _normal_mixture(weights: Array, means: Array, factors: Array) -> NormalMixture:
    """The mixture, once it is known to be one: its constructor believes what it is given."""
    finite = all(np.isfinite(array).all() for array in (weights, means, factors))
    require(finite, "a mixture is not finite")
    are_probabilities = np.all(weights > 0.0) and abs(weights.sum() - 1.0) <= WEIGHT_SUM_TOLERANCE
    require(bool(are_probabilities), "weights of a mixture are not positive with the sum one")
    diagonals = np.diagonal(factors, axis1=1, axis2=2)
    are_factors = np.all(diagonals > 0.0) and not np.triu(factors, 1).any()
    require(bool(are_factors), "a mixture has matrices that are no Cholesky factors")
    return NormalMixture(weights, means, factors)


def _write_supports(supports: Sequence[Support], dimension: int) -> Arrays:
    none = np.empty((0, dimension))
    square = (-1, dimension, dimension)
    of_user = [s.in_user_coordinates for s in supports]
    return {
        "supports.n_surfaces": np.array([len(s.weights) for s in supports], dtype=np.int64),
        "supports.n_bumps": np.array([len(s.bumps) for s in supports], dtype=np.int64),
        "supports.in_user_coordinates": np.array(of_user, dtype=np.bool_),
        "supports.quadratic": np.array([s.quadratic for s in supports], dtype=np.bool_),
        "supports.centre": np.reshape([s.centre for s in supports], (-1, dimension)),
        "supports.matrix": np.reshape([s.matrix for s in supports], square),
        "supports.bumps": np.vstack([none, *(s.bumps for s in supports)]),
        "supports.weights": np.concatenate([none[:, 0], *(s.weights.ravel() for s in supports)]),
        "supports.factors": np.concatenate([none[:, 0], *(s.factors.ravel() for s in supports)]),
    }


def _read_supports(arrays: NamedArrays, dimension: int) -> list[dict[str, Any]]:
    """The fields of each support but its transform."""
    if "supports.n_surfaces" not in arrays:
        return []
    n_surfaces = arrays.integers("supports.n_surfaces", None)
    n = len(n_surfaces)
    n_bumps = arrays.integers("supports.n_bumps", n)
    of_user = arrays.booleans("supports.in_user_coordinates", n)
    quadratic = arrays.booleans("supports.quadratic", n)
    centres = arrays.floats("supports.centre", n, dimension)
    matrices = arrays.floats("supports.matrix", n, dimension, dimension)
    counts = all(k > 0 for k in n_surfaces) and all(k >= 0 for k in n_bumps)
    require(counts, "a support has no surface, or less than no bump")
    bumps = arrays.floats("supports.bumps", sum(n_bumps), dimension)
    shapes = [
        (surfaces, n_features(dimension, quadratic=is_quadratic, n_bumps=k))
        for surfaces, is_quadratic, k in zip(n_surfaces, quadratic, n_bumps, strict=True)
    ]
    weights = arrays.floats("supports.weights", sum(j * f for j, f in shapes))
    factors = arrays.floats("supports.factors", sum(j * f * f for j, f in shapes))
    numbers = (centres, matrices, bumps, weights, factors)
    require(all(np.isfinite(array).all() for array in numbers), "a support is not finite")
    found = []
    for i, (j, f) in enumerate(shapes):
        own, bumps = bumps[: n_bumps[i]].copy(), bumps[n_bumps[i] :]
        mean, weights = weights[: j * f].reshape(j, f).copy(), weights[j * f :]
        factor, factors = factors[: j * f * f].reshape(j, f, f).copy(), factors[j * f * f :]
        values = (of_user[i], centres[i].copy(), matrices[i].copy(), quadratic[i])
        found.append(dict(zip(SUPPORT_FIELDS, (*values, own, mean, factor), strict=True)))
    return found
