"""Draws from a density with several parts, by tempered sequential Monte Carlo.

Particles start from a distribution that is everywhere, and follow densities that lead from it to
the target,

    log pi_b(x) = (1 - b) log p_0(x) + b log pi(x),    b from 0 to 1,

reweighted and resampled in steps of even loss, and moved by differential evolution (ter Braak
2006), which learns sizes and directions from the particles themselves.

Notation (N particles, D dimensions)
    p_0, pi    normalised start; target, up to a factor
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sparing.numerics.arrays import Array

LogDensity = Callable[[Array], Array]  # (N, D) -> (N,)

EFFECTIVE_SHARE = 0.6  # of the particles after each step of b
N_MOVES = 4  # after each resampling
JUMP_ODDS, JUMP, HALF_JUMP = 0.3, 1.0, 0.5  # every third move may go from one part to another
MOVED_COORDINATES = 0.9  # the share of them that one move changes
NUDGE = 1e-4  # of a particle, in sds
N_BISECTIONS = 40
SMALLEST_STEP = 1e-6


def tempered_sample(
    log_target: LogDensity, log_start: LogDensity, start: Array, generator: np.random.Generator
) -> Array:
    """Particles of the target, (N, D), from draws of the start, (N, D)."""
    x, b = start.copy(), 0.0
    target, origin = log_target(x), log_start(x)
    while b < 1.0:
        gain = target - origin
        b, step = _next(b, gain), b
        chosen = _resampled((b - step) * gain, generator)
        x, target, origin = x[chosen], target[chosen], origin[chosen]
        for move in range(N_MOVES):
            proposed = _moved(x, move, generator)
            new_target, new_origin = log_target(proposed), log_start(proposed)
            with np.errstate(invalid="ignore"):  # where both densities are zero
                gain = b * (new_target - target) + (1.0 - b) * (new_origin - origin)
            accepted = np.log(generator.random(len(x))) < gain
            x = np.where(accepted[:, None], proposed, x)
            target = np.where(accepted, new_target, target)
            origin = np.where(accepted, new_origin, origin)
    return x


def _next(b: float, gain: Array) -> float:
    """The largest b that leaves the wanted share of the particles effective."""

    def share(candidate: float) -> float:
        log_weights = (candidate - b) * gain
        weights = np.exp(log_weights - log_weights.max())
        return float(weights.sum() ** 2 / (weights @ weights) / len(gain))

    if share(1.0) >= EFFECTIVE_SHARE:
        return 1.0
    low, high = b, 1.0
    for _ in range(N_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if share(middle) >= EFFECTIVE_SHARE else (low, middle)
    return min(1.0, max(low, b + SMALLEST_STEP))


def _resampled(log_weights: Array, generator: np.random.Generator) -> NDArray[np.intp]:
    """Indices of particles, (N,), each as often as its weight says (systematic resampling)."""
    weights = np.exp(log_weights - log_weights.max())
    cumulative = np.cumsum(weights)
    n = len(weights)
    even = (np.arange(n) + generator.random()) / n * cumulative[-1]
    return np.minimum(np.searchsorted(cumulative, even), n - 1)


def _moved(x: Array, move: int, generator: np.random.Generator) -> Array:
    """Each particle moved along the difference of two others."""
    n, dimension = x.shape
    length = 2.38 / np.sqrt(2.0 * dimension)
    if move % 3 == 0:
        length = JUMP if generator.random() < JUMP_ODDS else HALF_JUMP
    a, b = generator.integers(n, size=(2, n))
    mask = generator.random((n, dimension)) < MOVED_COORDINATES
    nudge = NUDGE * x.std(axis=0) * generator.standard_normal((n, dimension))
    return x + length * (x[a] - x[b]) * mask + nudge
