"""The points evaluated before there is a surrogate (Section 3.5).

n_init    number of points in the initial design
D         number of parameters
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from sparing.numerics.arrays import Array
from sparing.numerics.quasi_random import latin_hypercube
from sparing.problem.parameter_transform import ParameterTransform


class DesignKind(enum.Enum):
    """How the points beyond the user's own are spread over the plausible box."""

    UNIFORM = "uniform"  # independent uniform draws (Algorithm 1, line 7)
    SPACE_FILLING = "space filling"  # a Latin hypercube: every slice has a point


@dataclass(frozen=True)
class InitialDesignSettings:
    """How many points, and how they are spread."""

    n_points: int = 10  # n_init, Section 3.5
    kind: DesignKind = DesignKind.SPACE_FILLING

    @classmethod
    def paper(cls) -> InitialDesignSettings:
        """Section 3.5 and Algorithm 1."""
        return cls(kind=DesignKind.UNIFORM)

    def size(self, dimension: int) -> int:
        """n_init, and more than D points from D = 10 on, so that no direction is left out."""
        return max(self.n_points, dimension + 1)


def initial_design(
    transform: ParameterTransform,
    starting_points: Array,
    n_points: int,
    kind: DesignKind,
    generator: np.random.Generator,
) -> Array:
    """The user's starting points first, then points in the plausible box: (n, D).

    The box is filled in working coordinates, where it is [-1/2, 1/2]^D: a scale parameter known
    to a factor of a million is then explored evenly in its logarithm.
    """
    n_missing = max(n_points - len(starting_points), 0)
    if kind is DesignKind.UNIFORM:
        unit = generator.random((n_missing, transform.dimension))
    else:
        unit = latin_hypercube(n_missing, transform.dimension, generator)
    return np.vstack([starting_points, transform.to_user(unit - 0.5)])
