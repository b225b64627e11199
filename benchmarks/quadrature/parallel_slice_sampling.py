"""Slice sampling with many walkers that lend each other directions.

A walker moves along the difference of two walkers of the other half of the ensemble (adaptive
direction sampling, Gilks, Roberts and George 1994), by a slice update with stepping out and
shrinkage (Neal 2003, Figures 3 and 5). The ensemble thereby learns the density's shape, and each
half moves as one batch. The joint density of the walkers stays invariant: the direction does not
depend on the walker that moves.

Notation (D dimensions, W walkers)
    log_density  of a batch, (m, D) -> (m,)
    level        log of the auxiliary height, uniform under the density at the walker
    t            position along the direction; the walker itself is at t = 0
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.problems.base import Array

LogDensity = Callable[[Array], Array]

# First extent of the interval, in differences of two walkers. These are sqrt(2) SDs long on
# average, and the slice of a normal 2 sqrt(2) SDs on average.
WIDTH = 2.0
MAX_STEPS = 20  # steps out, both sides together
MAX_SHRINKS = 100  # beyond them the interval holds nothing but the walker


def sample_ensemble(
    log_density: LogDensity,
    walkers: Array,
    box: tuple[Array, Array],
    n_draws: int,
    burn_in: int,
    thinning: int,
    generator: np.random.Generator,
) -> Array:
    """n_draws points of the density within the box, (n_draws, D).

    walkers: where they start, (W, D), inside the box and not all in one plane; burn_in and
    thinning: sweeps before the first and between the recorded states of the whole ensemble.
    """
    W = len(walkers)
    if W < 4:
        raise ValueError(f"an ensemble needs at least 4 walkers, not {W}")

    def bounded(points: Array) -> Array:
        inside = np.all((points >= box[0]) & (points <= box[1]), axis=1)
        values = np.full(len(points), -np.inf)
        if inside.any():
            values[inside] = log_density(points[inside])
        return np.where(np.isnan(values), -np.inf, values)

    walkers = np.array(walkers, dtype=np.float64)
    values = bounded(walkers)
    if not np.isfinite(values).all():
        raise ValueError("every walker must start where the density is positive and finite")
    draws = []
    for sweep in range(burn_in + thinning * -(-n_draws // W)):
        order = generator.permutation(W)
        halves = order[: W // 2], order[W // 2 :]
        for moving, lending in (halves, halves[::-1]):
            directions = _differences(walkers[lending], len(moving), generator)
            walkers[moving], values[moving] = _slice_move(
                bounded, walkers[moving], values[moving], directions, generator
            )
        if sweep >= burn_in and (sweep - burn_in + 1) % thinning == 0:
            draws.append(walkers.copy())
    return np.concatenate(draws)[:n_draws]


def _differences(walkers: Array, n: int, generator: np.random.Generator) -> Array:
    """Differences of pairs of distinct walkers, (n, D)."""
    first = generator.integers(len(walkers), size=n)
    shift = generator.integers(1, len(walkers), size=n)
    return walkers[first] - walkers[(first + shift) % len(walkers)]


def _slice_move(
    log_density: LogDensity,
    points: Array,
    values: Array,
    directions: Array,
    generator: np.random.Generator,
) -> tuple[Array, Array]:
    """One slice update of every point along its direction: new points and their log densities."""
    n = len(points)
    level = values - generator.standard_exponential(n)

    def above(index: NDArray[np.intp], t: Array) -> NDArray[np.bool_]:
        return log_density(points[index] + t[:, None] * directions[index]) > level[index]

    left = -WIDTH * generator.random(n)
    right = left + WIDTH
    steps_left = generator.integers(MAX_STEPS + 1, size=n)
    steps_right = MAX_STEPS - steps_left
    for edge, steps, sign in ((left, steps_left, -1.0), (right, steps_right, 1.0)):
        active = np.flatnonzero(steps > 0)
        while active.size:
            active = active[above(active, edge[active])]
            edge[active] += sign * WIDTH
            steps[active] -= 1
            active = active[steps[active] > 0]
    new_points, new_values = points.copy(), values.copy()
    active = np.arange(n)
    for _ in range(MAX_SHRINKS):
        t = left[active] + generator.random(active.size) * (right - left)[active]
        proposals = points[active] + t[:, None] * directions[active]
        found = log_density(proposals)
        accepted = found > level[active]
        new_points[active[accepted]] = proposals[accepted]
        new_values[active[accepted]] = found[accepted]
        active, t = active[~accepted], t[~accepted]
        if not active.size:
            break
        below = t < 0.0  # shrink towards the walker
        left[active[below]] = t[below]
        right[active[~below]] = t[~below]
    return new_points, new_values
