"""Evenly spread points of the unit cube, without the second that importing scipy.stats takes.

D   dimension        n   points
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from sparing.numerics.arrays import Array


def latin_hypercube(n_points: int, dimension: int, generator: np.random.Generator) -> Array:
    """Random points with one in each of n equal slices of every coordinate: (n, D)."""
    slices = np.column_stack([generator.permutation(n_points) for _ in range(dimension)])
    return (slices + generator.random((n_points, dimension))) / n_points


@lru_cache(maxsize=8)
def scrambled_halton(n_points: int, dimension: int) -> Array:
    """The first points of a Halton sequence with permuted digits, (n, D): always the same ones.

    Coordinate d is i written in the d-th prime base, its digits mirrored at the point. Each digit
    is permuted on its own, without which coordinates with large bases rise and fall together. The
    error of a covariance of 32768 normal draws is below 1e-3 up to D = 11 and 3e-3 up to D = 21
    (1e-2 for random points).
    """
    generator = np.random.default_rng(0)
    points = np.empty((n_points, dimension))
    for column, base in zip(points.T, _primes(dimension), strict=True):
        remaining = np.arange(n_points)
        column[:] = 0.0
        for place in range(1, math.ceil(53 / math.log2(base))):
            digits = generator.permutation(base)
            # Beyond the largest index all digits are zero: a number instead of an array.
            last = remaining if remaining[-1] > 0 else 0
            column += digits[last % base] / float(base) ** place
            remaining //= base
    points.flags.writeable = False  # shared by all who ask
    return points


def _primes(count: int) -> list[int]:
    found: list[int] = []
    candidate = 2
    while len(found) < count:
        if all(candidate % prime for prime in found):
            found.append(candidate)
        candidate += 1
    return found
