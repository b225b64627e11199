"""A few of many points that lie far from each other."""

from __future__ import annotations

import numpy as np

from sparing.numerics.arrays import Array


def spread_out(
    points: Array, n_chosen: int, scales: Array, generator: np.random.Generator
) -> Array:
    """A few of the points, (k, D): one at random, then always the one furthest from the others."""
    z = points / scales
    first = int(generator.integers(len(points)))
    return points[[first, *furthest_first(z, n_chosen - 1, z[[first]])]]


def furthest_first(points: Array, n_chosen: int, others: Array) -> list[int]:
    """Which of the points (m, D): always the one furthest from the others and those before."""
    chosen: list[int] = []
    distance = np.min([((points - other) ** 2).sum(axis=1) for other in others], axis=0)
    while len(chosen) < n_chosen and distance.max(initial=0.0) > 0.0:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
    return chosen
