"""What the evaluations themselves say of the posterior's shape, before q has found it.

Coordinates in which it is round are worth most on the way up, while nothing but the points is
known (docs/decisions/0021).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparing.numerics.arrays import Array
from sparing.problem.evaluations import Evaluation
from sparing.problem.parameter_transform import ParameterTransform
from sparing.surrogate.parabola import Parabola, nearest_parabola
from sparing.surrogate.training_data import working_gradients, working_values

# Best points for each dimension, at least; and what is added to their variances, of each.
FEWEST_BEST, SMALLEST_SHARE = 2, 1e-3


@dataclass(frozen=True, eq=False)
class BestPoints:
    """Where the best points are, and how they are spread: mean (D,) and covariance (D, D)."""

    mean: Array
    covariance: Array


def known_parabola(
    evaluations: Sequence[Evaluation], transform: ParameterTransform
) -> Parabola | None:
    """The parabola of gradients or values in working coordinates; None where they show none."""
    usable = [entry for entry in evaluations if entry.usable]
    if not usable:
        return None
    inputs, values = working_values(usable, transform)
    return nearest_parabola(inputs, values, working_gradients(usable, transform))


def best_points(
    evaluations: Sequence[Evaluation], transform: ParameterTransform
) -> BestPoints | None:
    """Of the better half, in working coordinates; None where they are too few.

    Weighted by their ranks as in CMA-ES: on a long ridge they lie along it.
    """
    usable = [entry for entry in evaluations if entry.usable]
    n_best = max(len(usable) // 2, FEWEST_BEST * transform.dimension)
    if len(usable) < n_best:
        return None
    inputs, values = working_values(usable, transform)
    best = inputs[np.argsort(-values, kind="stable")[:n_best]]
    if not np.all(np.ptp(best, axis=0) > 0.0):
        return None
    weights = np.log(n_best + 0.5) - np.log(np.arange(1, n_best + 1))
    covariance = np.atleast_2d(np.cov(best, rowvar=False, aweights=weights))
    covariance += SMALLEST_SHARE * np.diag(np.diag(covariance))
    return BestPoints(np.average(best, axis=0, weights=weights), covariance)
