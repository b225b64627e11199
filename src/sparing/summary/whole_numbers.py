"""Does the log density round a parameter? It then has steps, which no smooth surrogate follows.

    x     evaluated points (n, D)        y    their log likelihoods (n,)
    z     the points with a parameter in the middle of its step, from one whole number to the next

A log density that rounds is a smooth function of z and not of x. So y is predicted at each point
from all others, once from x and once from z, by a simple Gaussian process. In two runs of each of
eleven targets that round, the errors were smaller by a factor of 20 or more with z; in those of
twenty that are smooth, kinked, noisy, flat in places, have other steps or do not know the
parameter, by no more than 1.6.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from sparing.numerics.arrays import Array
from sparing.vbmc.run_record import RunRecord

# Where the posterior is: the best evaluations, so many of them and so many nats from the best.
MOST_POINTS, WITHIN = 80, 20.0
FEWEST_POINTS = 20
SMALLEST_RANGE = 2.0  # of a parameter, for steps of 1 to show
# Errors without the steps of a parameter to those with them: between 0.05 and 0.6.
LARGEST_RATIO = 0.2
QUANTILE = 0.75  # of the errors: a few points far out are predicted badly by any process
LENGTHS = 0.5, 1.0, 2.0, 4.0, 8.0  # of the kernel, in standard deviations of the points
JITTER, PARABOLA = 1e-8, 100.0  # variances beside the kernel's 1, of values of unit variance

Steps = Callable[[Array], Array]


def rounded_parameters(record: RunRecord) -> tuple[str, ...]:
    """The names of those that the log density seems to round; none where it is not clear."""
    usable = [entry for entry in record.evaluations if entry.usable]
    # The prior, where it is known, does not round; without one its part is not a number.
    values = np.array([entry.value - np.nan_to_num(entry.log_prior) for entry in usable])
    best = np.argsort(-values, kind="stable")[:MOST_POINTS]
    best = best[values[best] > values[best[:1]] - WITHIN]
    x, y = np.array([usable[i].x for i in best]), values[best]
    if len(y) < FEWEST_POINTS or np.ptp(y) == 0.0:
        return ()
    wide = [int(i) for i in np.flatnonzero(np.ptp(x, axis=0) >= SMALLEST_RANGE)]

    def error(points: Array) -> float:
        return _error(record.posterior.transform.standardised(points), y)

    for steps in (np.round, np.floor):
        if found := _rounded(x, wide, steps, error):
            return tuple(record.problem.names[i] for i in found)
    return ()


def _rounded(
    x: Array, candidates: Collection[int], steps: Steps, error: Callable[[Array], float]
) -> list[int]:
    """The parameters without whose steps all errors are much larger; found one after the other."""
    chosen: list[int] = []
    smallest = error(x)
    while rest := [i for i in candidates if i not in chosen]:
        errors = {i: error(_stepped(x, [*chosen, i], steps)) for i in rest}
        best = min(rest, key=errors.__getitem__)
        if errors[best] >= smallest:
            break
        chosen, smallest = [*chosen, best], errors[best]
    z = _stepped(x, chosen, steps)
    without = [error(_stepped(x, [j for j in chosen if j != i], steps)) for i in chosen]
    # One that the log density does not know is as good with steps as without, and left out.
    absent = [error(np.where(np.arange(x.shape[1]) == i, x[0], z)) for i in chosen]
    limits = [LARGEST_RATIO * limit for limit in (*without, *absent)]
    return sorted(chosen) if all(smallest < limit for limit in limits) else []


def _stepped(x: Array, chosen: Collection[int], steps: Steps) -> Array:
    """z: these parameters in the middle of their steps, or as near as other points are."""
    z = x.copy()
    for i in chosen:
        lowest = steps(x[:, i])
        middle = lowest if steps is np.round else lowest + 0.5
        z[:, i] = np.clip(middle, x[:, i].min(), x[:, i].max())
    return z


def _error(points: Array, y: Array) -> float:
    """How far off predictions of each value from the others are, for the best kernel length."""
    sd = points.std(axis=0)
    points = (points - points.mean(axis=0)) / np.where(sd > 0.0, sd, 1.0)
    y = (y - y.mean()) / y.std()
    squares = np.sum((points[:, None] - points[None]) ** 2, axis=-1)
    parabola = PARABOLA * (1.0 + points @ points.T / 4.0) ** 2 + JITTER * np.eye(len(y))
    errors = []
    for length in LENGTHS:
        inverse = np.linalg.inv(np.exp(-0.5 * squares / length**2) + parabola)
        residuals = inverse @ y / np.diag(inverse)  # of leaving out one at a time
        errors.append(float(np.quantile(np.abs(residuals), QUANTILE)))
    return min(errors)
