"""Kernels that draw the mean function given the covariance.

Notation as in mean_projection.py: p, its box [lower, upper], z, v, R and F.

The coefficients of 1, u and u^2 are normal, cut off where p leaves its box. Mostly a draw of the
whole normal lies within after a few attempts; where the bounds leave too little of it, slice moves
of p take over. The density of p is proportional to exp(-F) prod omega^-4.
"""

from __future__ import annotations

import numpy as np

from sparing.kernels.compilation import copy_into, inline, kernel, warm_up_elsewhere
from sparing.kernels.mean_projection import (
    write_coefficients,
    write_combination,
    write_image,
    write_mean,
)

# Slice sampling: the first interval in SDs, the most widths it is stepped out to, and the most
# draws while it shrinks.
WIDTH = 2.0
MAX_WIDTHS = 5
MAX_DRAWS = 16
UNIFORMS_AT_MOST = MAX_DRAWS + 3  # for one move


@inline
def _inside(lower, upper, p):
    inside = True
    for a in range(p.shape[0]):
        inside &= lower[a] <= p[a] <= upper[a]
    return inside


@kernel
def draw_mean(triangle, centre, unit, lower, upper, normals, p):
    """Write an exact draw into p by rejection; False when no row of normals led into the box.

    normals: standard ones, (attempts, 2D + 1).
    """
    dimension = centre.shape[0]
    z, trial = np.empty(p.shape[0]), np.empty(p.shape[0])
    for attempt in range(normals.shape[0]):
        write_coefficients(triangle, normals[attempt], z)
        if np.min(z[1 + dimension :]) > 0.0:
            write_mean(centre, unit, z, trial)
            if _inside(lower, upper, trial):
                copy_into(p, trial)
                return True
    return False


@inline
def _log_density(triangle, centre, unit, lower, upper, p, v, image):
    """-F - 4 sum log omega; -inf off the box."""
    dimension = centre.shape[0]
    if not _inside(lower, upper, p):
        return -np.inf
    write_combination(centre, unit, p, v)
    value = -write_image(triangle, v, image)
    for d in range(dimension):
        value -= 4.0 * p[1 + dimension + d]
    return value


@kernel
def sample_mean(triangle, centre, unit, lower, upper, directions, p, uniforms):
    """Move p (overwritten) by slice sampling along each row of directions in turn, over and over.

    directions: (2D + 1, 2D + 1), each of about one posterior SD; uniforms: (N,), as many moves as
    they are sure to last. Neal 2003, Figs. 3 and 5. Returns the number of moves.
    """
    size = p.shape[0]
    v, image = np.empty(size + 1), np.empty(size + 1)
    trial = np.empty(size)
    current = _log_density(triangle, centre, unit, lower, upper, p, v, image)
    used = 0
    move = 0
    while used + UNIFORMS_AT_MOST <= uniforms.shape[0]:
        direction = directions[move % size]
        move += 1
        level = current + np.log(uniforms[used])
        left = -WIDTH * uniforms[used + 1]
        right = left + WIDTH
        # Steps are dealt at random to the two sides, else the move would not be reversible.
        n_left = int(MAX_WIDTHS * uniforms[used + 2])
        used += 3
        for step in range(MAX_WIDTHS - 1):
            end = left if step < n_left else right
            for a in range(size):
                trial[a] = p[a] + end * direction[a]
            if _log_density(triangle, centre, unit, lower, upper, trial, v, image) >= level:
                if step < n_left:
                    left -= WIDTH
                else:
                    right += WIDTH
        for _ in range(MAX_DRAWS):
            shift = left + uniforms[used] * (right - left)
            used += 1
            for a in range(size):
                trial[a] = p[a] + shift * direction[a]
            density = _log_density(triangle, centre, unit, lower, upper, trial, v, image)
            if density >= level:
                copy_into(p, trial)
                current = density
                break
            if shift < 0.0:
                left = shift
            else:
                right = shift
    return move


@warm_up_elsewhere
def _warm_up() -> None:
    lower, upper = np.full(3, -1.0), np.full(3, 1.0)
    zero, one = np.zeros(1), np.ones(1)
    frame = np.eye(4), zero, one, lower, upper
    draw_mean(*frame, np.zeros((1, 3)), np.zeros(3))
    sample_mean(*frame, np.eye(3), np.zeros(3), np.full(30, 0.5))
