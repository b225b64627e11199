"""Where the circles of periodic parameters are cut open: far from the mass.

The working coordinates are a line, so a circle has a seam, at which what belongs together is torn
apart. Where it is does not matter as long as hardly any mass is there, so it is moved away from
the best points as soon as they are known. Mass that goes all the way round is cut somewhere; at the
seam it is then as at two bounds with a density that does not vanish there.

    theta_i    angles of the evaluations on a circle, y_i their values
    w_i        exp((y_i - y_max) / T)
    m(theta)   share of the weights near an angle: sum_i w_i exp(kappa (cos(theta - theta_i) - 1))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparing.numerics.arrays import Array
from sparing.problem.evaluations import Evaluation
from sparing.problem.parameter_transform import ParameterTransform
from sparing.variational.other_coordinates import carry_over
from sparing.vbmc.state import State

CONCENTRATION = 4.0  # kappa: what is within half a radian is near
N_SEAMS = 64  # places of the seam that are compared
# A seam stays where it is unless this share of the weights is near it, as if all of them were a
# quarter of the circle away, and so many times as much as at the best place for it.
LARGEST_SHARE = float(np.exp(-CONCENTRATION))
WORTHWHILE = 4.0


def with_best_seams(state: State, evaluations: Sequence[Evaluation]) -> State:
    """The state in coordinates whose seams are far from the mass: mostly as it is."""
    transform = state.transform
    if not np.isfinite(transform.periods).any():
        return state
    usable = [entry for entry in evaluations if entry.usable]
    if not usable:
        return state
    turns = best_turns(usable, transform)
    if np.array_equal(turns, transform.turns):
        return state
    turned = transform.turned(turns, -(state.iteration + 1))  # whitenings have positive numbers
    return replace(state, transform=turned, mixture=carry_over(state.mixture, transform, turned))


def best_turns(evaluations: Sequence[Evaluation], transform: ParameterTransform) -> Array:
    """Where the seams should be, (D,): those that do well stay."""
    x = np.array([entry.x for entry in evaluations])
    values = np.array([entry.value for entry in evaluations])
    weights = tempered_weights(values, transform.dimension)
    turns = transform.turns
    for i in np.flatnonzero(np.isfinite(transform.periods)):
        period = transform.periods[i]
        angles = 2.0 * np.pi * (x[:, i] - transform.lower[i]) / period
        seam = 2.0 * np.pi * turns[i] / period
        turns[i] = best_seam(angles, weights, seam) / (2.0 * np.pi) * period
    return turns


def tempered_weights(values: Array, dimension: int) -> Array:
    """Weights of the evaluations, (n,), with the sum one, of which at least D + 2 count.

    Close to the posterior's where it is known, and the best points on the way to it.
    """
    depths = values.max() - values
    few = min(dimension + 2, len(depths) - 1)
    temperature = max(float(dimension), float(np.partition(depths, few)[few]))
    weights = np.exp(-depths / temperature)
    return weights / weights.sum()


def best_seam(angles: Array, weights: Array, seam: float) -> float:
    """The seam, or the angle with the least weight near it where that is worth a move."""
    places = seam + 2.0 * np.pi * np.arange(N_SEAMS) / N_SEAMS  # the first one is the seam itself
    closeness = np.exp(CONCENTRATION * (np.cos(places[:, None] - angles) - 1.0))
    shares = closeness @ weights
    best = int(np.argmin(shares))
    if shares[0] <= max(LARGEST_SHARE, WORTHWHILE * shares[best]):
        return seam
    return float(np.mod(places[best], 2.0 * np.pi))
