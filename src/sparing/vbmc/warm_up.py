"""The warm-up: finding the bulk of the posterior (Section 3.5).

ELCBO    ELBO - beta_lcb sd (Eq. 8)         D   dimension
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sparing.acquisition.rules import ProspectiveSampling, Rule, TemperedSampling
from sparing.acquisition.way_home import point_at_home
from sparing.numerics.arrays import Array
from sparing.problem.parameter_transform import ParameterTransform
from sparing.surrogate.interface import Surrogate
from sparing.surrogate.training_set import TrainingSet

TOLERANCE_ELCBO = 1.0  # an improvement below this... (Section 3.5)
FEWEST_BEST = 3  # points that must be alike before the bulk may be said to be found
N_ITERATIONS = 3  # ...in this many consecutive iterations ends the warm-up


@dataclass(frozen=True)
class Climbing:
    """Values count beside the ELCBO.

    The warm-up does not end while even the best points differ by more than those of one posterior
    do, and it also ends when the best value has gained less than a nat over as many iterations.
    """

    rules: tuple[Rule, ...] = (ProspectiveSampling(),)  # a_pro climbs
    # While other points are pending it cannot climb step by step: part of it explores.
    pending_rules: tuple[Rule, ...] = (ProspectiveSampling(), TemperedSampling())
    # Points per iteration while the best points still lie far apart in value: on the way up one
    # value can overturn what the others were chosen by.
    n_climbing: int = 1
    # Every so manieth point is sought within the plausible box, while the best of all lie outside
    # and fewer than so many (times D + 2) have been evaluated within: a climb may leave it before
    # it has been searched.
    home_every: int = 3
    home_enough: int = 8
    # Nothing is trimmed at its end: deep values are compressed, and say where no mode is.
    trimmed_depth: ClassVar[float] = math.inf

    def must_climb(self, surrogate: Surrogate) -> bool:
        """Whether even the best few points differ by more than points of one posterior do."""
        # As many as tell of a parabola along each axis.
        n_best = n_points_for(2 * surrogate.dimension + 2, surrogate.training)
        best = np.sort(surrogate.training.values)[-max(n_best, FEWEST_BEST) :]
        return float(np.ptp(best)) > 2.0 * surrogate.dimension

    def n_points(self, surrogate: Surrogate, n_active: int) -> int:
        """Evaluations of the coming iteration, n_active in the ordinary case."""
        return self.n_climbing if self.must_climb(surrogate) else n_active

    def way_home(
        self,
        surrogate: Surrogate,
        transform: ParameterTransform,
        identifier: int,
        generator: np.random.Generator,
    ) -> Array | None:
        """A point within the plausible box, (D,); None where it is another's turn."""
        if (identifier + 1) % self.home_every:
            return None
        enough = self.home_enough * (transform.dimension + 2)
        return point_at_home(surrogate, transform, enough, generator)

    def is_over(
        self, elcbo: Sequence[float], values: Array, surrogate: Surrogate, n_active: int
    ) -> bool:
        """Whether the bulk has been found.

        elcbo     of past iterations at least n_active evaluations apart, newest last
        values    log joints of all usable evaluations in working coordinates, in order
        """
        if self.must_climb(surrogate):
            return False
        if has_settled(elcbo):
            return True
        n_recent = n_points_for(N_ITERATIONS * n_active, surrogate.training)
        if len(values) < n_recent + n_points_for(surrogate.dimension + 2, surrogate.training):
            return False
        return bool(values.max() < values[:-n_recent].max() + TOLERANCE_ELCBO)


@dataclass(frozen=True)
class WatchingBound:
    """The ELCBO alone decides (the paper)."""

    rules: tuple[Rule, ...] = (ProspectiveSampling(),)
    trimmed_depth: ClassVar[float] = 10.0  # times D, below the maximum (Section 3.5)

    @property
    def pending_rules(self) -> tuple[Rule, ...]:
        """The same, whatever is pending."""
        return self.rules

    def must_climb(self, surrogate: Surrogate) -> bool:
        """Never said."""
        return False

    def n_points(self, surrogate: Surrogate, n_active: int) -> int:
        """n_active always."""
        return n_active

    def way_home(
        self,
        surrogate: Surrogate,
        transform: ParameterTransform,
        identifier: int,
        generator: np.random.Generator,
    ) -> Array | None:
        """None is known."""
        return None

    def is_over(
        self, elcbo: Sequence[float], values: Array, surrogate: Surrogate, n_active: int
    ) -> bool:
        """Whether the ELCBO has settled."""
        return has_settled(elcbo)


def n_points_for(n_values: int, training: TrainingSet) -> int:
    """How many points tell as much as so many values: a gradient tells as much as D of them."""
    rows_per_point = 1.0 + training.dimension * float(training.has_gradient.mean())
    return math.ceil(n_values / rows_per_point)


def has_settled(elcbo: Sequence[float]) -> bool:
    """Whether the ELCBO gained less than 1 in three consecutive iterations (Section 3.5)."""
    if len(elcbo) < N_ITERATIONS + 1:
        return False
    return bool(np.all(np.diff(np.asarray(elcbo[-N_ITERATIONS - 1 :])) < TOLERANCE_ELCBO))
