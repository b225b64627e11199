"""The points evaluated before there is a surrogate (Section 3.5).

n_init    number of points in the initial design
D         number of parameters
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparing.errors import ProblemError
from sparing.numerics.arrays import Array
from sparing.numerics.quasi_random import latin_hypercube
from sparing.problem.parameter_transform import ParameterTransform

INITIAL_DESIGN = "initial design"  # what a proposal says chose it
N_AT_ONCE, N_ROUNDS = 4096, 16  # points of the box that are tried where a support is declared
SMALLEST_WIDTH = 1e-10  # of the steps from points inside, to the plausible box


def design_size(n_points: int, dimension: int) -> int:
    """n_init, and more than D points from D = 10 on, so that no direction is left out."""
    return max(n_points, dimension + 1)


@dataclass(frozen=True)
class LatinHypercube:
    """Points spread so that every slice of the plausible box has one."""

    n_points: int = 10  # n_init, Section 3.5

    def draw(self, n: int, dimension: int, generator: np.random.Generator) -> Array:
        """n points of the unit cube, (n, D)."""
        return latin_hypercube(n, dimension, generator)


@dataclass(frozen=True)
class UniformDesign:
    """Independent uniform draws (Algorithm 1, line 7)."""

    n_points: int = 10  # n_init, Section 3.5

    def draw(self, n: int, dimension: int, generator: np.random.Generator) -> Array:
        """n points of the unit cube, (n, D)."""
        return generator.random((n, dimension))


InitialDesign = LatinHypercube | UniformDesign


def initial_design(
    transform: ParameterTransform,
    starting_points: Array,
    n_points: int,
    design: InitialDesign,
    generator: np.random.Generator,
) -> Array:
    """The user's starting points first, then points in the plausible box: (n, D).

    The box is filled in working coordinates, where it is [-1/2, 1/2]^D: a scale parameter known
    to a factor of a million is then explored evenly in its logarithm.
    """
    n_missing = max(n_points - len(starting_points), 0)
    unit = design.draw(n_missing, transform.dimension, generator)
    points = transform.to_user(unit - 0.5)
    if transform.declared is not None and not transform.declared.lost:
        points = points_within(transform, points, starting_points, generator)
    return np.vstack([starting_points, points])


def points_within(
    transform: ParameterTransform,
    points: Array,
    starting_points: Array,
    generator: np.random.Generator,
) -> Array:
    """Points x (n, D), with others in place of those outside the declared support.

    They are drawn from the plausible box; where hardly any of it is inside, they are steps from
    points that are.
    """
    n = len(points)
    found = points[transform.supports(points)]
    for _ in range(N_ROUNDS):
        if len(found) >= n:
            return found[:n]
        unit = generator.random((N_AT_ONCE, transform.dimension))
        more = transform.to_user(unit - 0.5)
        found = np.vstack([found, more[transform.supports(more)]])
    inside = np.vstack([starting_points, found])
    if not len(inside):
        raise ProblemError(
            [
                f"support is False at all of {N_ROUNDS * N_AT_ONCE} points of the plausible box: "
                "give x0 inside, or a smaller box"
            ]
        )
    width = 1.0
    while len(found) < n:
        if width < SMALLEST_WIDTH:
            raise ProblemError(["support has no other point near those that are known to be in it"])
        centres = transform.standardised(inside[generator.integers(len(inside), size=N_AT_ONCE)])
        steps = width * (generator.random(centres.shape) - 0.5)
        more = transform.to_user(np.clip(centres + steps, -0.5, 0.5))
        new = more[transform.supports(more)][: n - len(found)]
        found, inside, width = np.vstack([found, new]), np.vstack([inside, new]), 0.7 * width
    return found[:n]
