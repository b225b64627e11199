"""Coordinate systems as arrays.

T   transforms      W   those with a whitening      Q   those with a stretch, after their bends
D   parameters      L   those with a levelled one, before       B   bends of all transforms together

transforms.whitened (T,)        transforms.number (T,)
transforms.matrix, transforms.inverse (W, D, D)
transforms.centre (W, D)        transforms.log_determinant (W,)
transforms.column_major (W,)    whether the matrix lies so in memory: BLAS may round differently
transforms.n_bends (T,)         where there are any, and then
bends.direction, bends.shift, bends.rates (B, D), bends.axes (B, D, D), bends.reach (B,)
bends.matrix, ... bends.column_major    of their whitenings, as of the transforms
transforms.levelled (T,)        where any is, and then
levelled.FIELD (L, D)           of its `Stretch`
levelled.middle, levelled.spread (L, D), levelled.reach (L,)
levelled.matrix, ... levelled.column_major      of their whitenings
transforms.stretched (T,)       where any is, and then
stretches.FIELD (Q, D)          of `Stretch`
transforms.turning (T,), transforms.turns (T, D)   seams of periodic parameters, where there are
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from sparing.problem.bending import Bend, LevelledStretch, Stretch, Whitening
from sparing.problem.parameter_transform import ParameterTransform
from sparing.results.files.named_arrays import NamedArrays
from sparing.store.archive import Arrays
from sparing.store.json_members import require

STRETCH_FIELDS = tuple(field.name for field in fields(Stretch))


def write_transforms(transforms: Sequence[ParameterTransform], dimension: int) -> Arrays:
    """What they consist of; the base is known from elsewhere."""
    whitenings = [item.whitening for item in transforms]
    numbers = [item.number for item in transforms]
    return {
        "transforms.whitened": np.array([w is not None for w in whitenings], dtype=np.bool_),
        "transforms.number": np.array(numbers, dtype=np.int64),
        **_write_whitenings("transforms", [w for w in whitenings if w is not None], dimension),
        **_write_bends(transforms, dimension),
        **_write_levelled(transforms, dimension),
        **_write_stretches(transforms),
        **_write_turns(transforms),
    }


def read_transforms(arrays: NamedArrays, base: ParameterTransform) -> list[ParameterTransform]:
    """The base where nothing follows it, else with its whitening, bends and stretch; turned."""
    whitened = arrays.booleans("transforms.whitened", None)
    # The first version had no numbers: any will do that tell them apart.
    numbers = list(range(1, len(whitened) + 1))
    if "transforms.number" in arrays:
        numbers = arrays.integers("transforms.number", len(whitened))
    whitenings = iter(_read_whitenings(arrays, "transforms", sum(whitened), base.dimension))
    bends = _read_bends(arrays, len(whitened), base.dimension)
    levelled = _read_levelled(arrays, len(whitened), base.dimension)
    stretches = _read_stretches(arrays, len(whitened), base.dimension)
    parts = zip(levelled, bends, stretches, strict=True)
    bends = [(*first, *own, *last) for first, own, last in parts]
    return [
        replace(
            start, whitening=next(whitenings) if is_whitened else None, bends=own, number=number
        )
        if is_whitened or own
        else start
        for start, is_whitened, own, number in zip(
            _turned(arrays, base, len(whitened)), whitened, bends, numbers, strict=True
        )
    ]


def _write_whitenings(table: str, whitenings: Sequence[Whitening], dimension: int) -> Arrays:
    square = (-1, dimension, dimension)
    column_major = [not w.matrix.flags.c_contiguous for w in whitenings]
    log_determinants = [w.log_determinant for w in whitenings]
    return {
        f"{table}.matrix": np.reshape([w.matrix for w in whitenings], square),
        f"{table}.inverse": np.reshape([w.inverse for w in whitenings], square),
        f"{table}.centre": np.reshape([w.centre for w in whitenings], (-1, dimension)),
        f"{table}.log_determinant": np.array(log_determinants, dtype=np.float64),
        f"{table}.column_major": np.array(column_major, dtype=np.bool_),
    }


def _write_bends(transforms: Sequence[ParameterTransform], dimension: int) -> Arrays:
    each = [[bend for bend in item.bends if isinstance(bend, Bend)] for item in transforms]
    bends = [bend for own in each for bend in own]
    if not bends:
        return {}
    return {
        "transforms.n_bends": np.array([len(own) for own in each], dtype=np.int64),
        "bends.direction": np.array([bend.direction for bend in bends]),
        "bends.shift": np.array([bend.shift for bend in bends]),
        "bends.axes": np.array([bend.axes for bend in bends]),
        "bends.rates": np.array([bend.rates for bend in bends]),
        "bends.reach": np.array([bend.reach for bend in bends]),
        **_write_whitenings("bends", [bend.whitening for bend in bends], dimension),
    }


def _write_levelled(transforms: Sequence[ParameterTransform], dimension: int) -> Arrays:
    first = [item.bends[0] if item.bends else None for item in transforms]
    levelled = [item for item in first if isinstance(item, LevelledStretch)]
    if not levelled:
        return {}
    flags = [isinstance(item, LevelledStretch) for item in first]
    return {
        "transforms.levelled": np.array(flags, dtype=np.bool_),
        **_stretch_columns("levelled", [item.stretch for item in levelled]),
        "levelled.middle": np.array([item.middle for item in levelled]),
        "levelled.spread": np.array([item.spread for item in levelled]),
        "levelled.reach": np.array([item.reach for item in levelled]),
        **_write_whitenings("levelled", [item.whitening for item in levelled], dimension),
    }


def _write_stretches(transforms: Sequence[ParameterTransform]) -> Arrays:
    last = [item.bends[-1] if item.bends else None for item in transforms]
    stretches = [stretch for stretch in last if isinstance(stretch, Stretch)]
    if not stretches:
        return {}
    flags = [isinstance(item, Stretch) for item in last]
    return {
        "transforms.stretched": np.array(flags, dtype=np.bool_),
        **_stretch_columns("stretches", stretches),
    }


def _stretch_columns(table: str, stretches: Sequence[Stretch]) -> Arrays:
    return {f"{table}.{n}": np.array([getattr(s, n) for s in stretches]) for n in STRETCH_FIELDS}


def _write_turns(transforms: Sequence[ParameterTransform]) -> Arrays:
    if not any(np.isfinite(transform.periods).any() for transform in transforms):
        return {}
    return {
        "transforms.turning": np.array([item.turning for item in transforms], dtype=np.int64),
        "transforms.turns": np.array([item.turns for item in transforms]),
    }


def _read_bends(arrays: NamedArrays, n: int, dimension: int) -> list[tuple[Bend, ...]]:
    """Those of each of n transforms."""
    if "transforms.n_bends" not in arrays:
        return [()] * n
    counts = arrays.integers("transforms.n_bends", n)
    require(all(count >= 0 for count in counts), "a transform has less than no bend")
    total = sum(counts)
    directions, shifts, rates = (
        arrays.floats(f"bends.{name}", total, dimension) for name in ("direction", "shift", "rates")
    )
    axes = arrays.floats("bends.axes", total, dimension, dimension)
    reaches = arrays.floats("bends.reach", total)
    finite = all(np.isfinite(array).all() for array in (directions, shifts, rates, axes, reaches))
    require(finite and bool(np.all(reaches > 0.0)), "a bend is not finite")
    whitenings = _read_whitenings(arrays, "bends", total, dimension)
    columns = zip(directions, shifts, axes, rates, reaches.tolist(), whitenings, strict=True)
    bends = iter(
        Bend(e.copy(), c.copy(), a.copy(), r.copy(), reach, after)
        for e, c, a, r, reach, after in columns
    )
    return [tuple(next(bends) for _ in range(count)) for count in counts]


def _read_levelled(
    arrays: NamedArrays, n: int, dimension: int
) -> list[tuple[()] | tuple[LevelledStretch]]:
    """That with which each of n transforms begins, or none."""
    if "transforms.levelled" not in arrays:
        return [()] * n
    flags = arrays.booleans("transforms.levelled", n)
    total = sum(flags)
    stretches = _stretches_of(arrays, "levelled", total, dimension)
    middles = arrays.floats("levelled.middle", total, dimension)
    spreads = arrays.floats("levelled.spread", total, dimension)
    reaches = arrays.floats("levelled.reach", total)
    finite = all(np.isfinite(array).all() for array in (middles, spreads, reaches))
    positive = bool(np.all(spreads > 0.0) and np.all(reaches > 0.0))
    require(finite and positive, "a stretch does not end anywhere")
    whitenings = _read_whitenings(arrays, "levelled", total, dimension)
    columns = zip(stretches, middles, spreads, reaches.tolist(), whitenings, strict=True)
    found = iter(LevelledStretch(h, m.copy(), s.copy(), reach, a) for h, m, s, reach, a in columns)
    return [(next(found),) if is_levelled else () for is_levelled in flags]


def _read_stretches(
    arrays: NamedArrays, n: int, dimension: int
) -> list[tuple[()] | tuple[Stretch]]:
    """That with which each of n transforms ends, or none."""
    if "transforms.stretched" not in arrays:
        return [()] * n
    flags = arrays.booleans("transforms.stretched", n)
    found = iter(_stretches_of(arrays, "stretches", sum(flags), dimension))
    return [(next(found),) if is_stretched else () for is_stretched in flags]


def _stretches_of(arrays: NamedArrays, table: str, n: int, dimension: int) -> list[Stretch]:
    columns = [arrays.floats(f"{table}.{name}", n, dimension) for name in STRETCH_FIELDS]
    require(all(np.isfinite(column).all() for column in columns), "a stretch is not finite")
    found = [Stretch(*(row.copy() for row in rows)) for rows in zip(*columns, strict=True)]
    positive = all(np.all(each.scale > 0.0) and np.all(each.tail > 0.0) for each in found)
    require(positive, "a stretch has a scale or a tail that is not positive")
    return found


def _read_whitenings(arrays: NamedArrays, table: str, n: int, dimension: int) -> list[Whitening]:
    matrices = arrays.floats(f"{table}.matrix", n, dimension, dimension)
    inverses = arrays.floats(f"{table}.inverse", n, dimension, dimension)
    centres = arrays.floats(f"{table}.centre", n, dimension)
    log_determinants = arrays.floats(f"{table}.log_determinant", n)
    column_major = arrays.booleans(f"{table}.column_major", n)
    finite = all(np.isfinite(a).all() for a in (matrices, inverses, centres, log_determinants))
    require(finite, "a whitening is not finite")
    columns = (matrices, inverses, centres, log_determinants.tolist(), column_major)
    return [
        Whitening(np.array(m, order="F" if by_column else "C"), inverse.copy(), centre.copy(), log)
        for m, inverse, centre, log, by_column in zip(*columns, strict=True)
    ]


def _turned(arrays: NamedArrays, base: ParameterTransform, n: int) -> list[ParameterTransform]:
    """The coordinates without whitening, n times, with their seams."""
    if "transforms.turns" not in arrays:
        return [base] * n
    turnings = arrays.integers("transforms.turning", n)
    turns = arrays.floats("transforms.turns", n, base.dimension)
    within = np.isfinite(turns) & (turns >= 0.0) & (turns < base.periods)
    require(bool(within.all()), "a seam is not on its circle")
    return [base.turned(turns[i].copy(), number) for i, number in enumerate(turnings)]
