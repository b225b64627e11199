"""The points evaluated before there is a surrogate (Section 3.5).

n_init    number of points in the initial design
D         number of parameters
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparing.numerics.arrays import Array
from sparing.numerics.quasi_random import latin_hypercube
from sparing.problem.parameter_transform import ParameterTransform

INITIAL_DESIGN = "initial design"  # what a proposal says chose it


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
    return np.vstack([starting_points, transform.to_user(unit - 0.5)])
