"""Where a mode may be that nobody has seen: on another hill, or where nothing was evaluated.

The surrogate cannot say: far from its points it knows nothing, and claims to. What was evaluated
can. A normal mode at c with covariance S and height h has at least the density
exp(h - |x - c|^2 / 2) at x, with the distance in units of S, so every value bounds its height:

    h(c) <= U(c) = min_i y_i + |x_i - c|^2 / 2

A deep value in the middle of nowhere thus excludes all the space up to the nearest mode.

Notation (working coordinates, n evaluations)
    x_i, y_i    points (n, D) and values (n,)         p, Z   the posterior and the evidence
    f, V        mean and variance of the surrogate    S      covariance of the known modes
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparing.numerics.arrays import Array
from sparing.problem.parameter_transform import ParameterTransform
from sparing.surrogate.interface import Surrogate
from sparing.variational.normal_mixture import NormalMixture

N_REFERENCES = 2048  # points of the plausible box in which modes are thought of
NARROWER = 0.5  # a hidden mode's width, at least, to that of the known ones
RELEVANT_DEPTH = 4.0  # nats below the highest value: a lower mode carries no mass
# Where V is below this share of what it would be without any data, f is believed.
LEARNT = 0.0003
VALLEY = 0.5  # nats: two parts with a deeper valley between them are two modes
N_ON_LINE = 7  # points at which a valley is looked for
# Steps of at most one region on the way uphill, the largest region in widths of the plausible box.
N_STEPS, LARGEST_REGION = 40, 0.15
DEEPEST_HILL = 25.0  # nats times D: deeper points are at the foot of nothing that is near
UNEXPLAINED = 3.0  # nats above the posterior's tail: a value that belongs to something else
# A hill is left alone where even f + 2 sd nearby is above its best value by less than this share
# of what is missing to the top of the posterior: then that is as high as it gets.
PROMISING_GAIN = 0.25
N_NEARBY = 512


@dataclass(frozen=True, eq=False)
class Known:
    """What a look elsewhere starts from."""

    transform: ParameterTransform
    surrogate: Surrogate
    posterior: NormalMixture
    log_evidence: float
    inputs: Array
    values: Array
    rules: tuple[str, ...] = ()  # by which the points were chosen

    @property
    def dimension(self) -> int:
        """D."""
        return self.inputs.shape[1]


def box_points(transform: ParameterTransform, widening: float, unit: Array) -> Array:
    """Points of the unit cube (m, D) in the plausible box, widened: working coordinates, (m, D)."""
    matrix, offset = transform.standardised_map()
    return (widening * (unit - 0.5) - offset) @ np.linalg.inv(matrix).T


def hiding_places(
    known: Known, n_points: int, generator: np.random.Generator
) -> tuple[float, Array]:
    """The share of the plausible box in which a mode may hide, and points to look at: (k, D)."""
    unit = generator.random((N_REFERENCES, known.dimension))
    references = box_points(known.transform, 1.0, unit)
    one = known.surrogate.subset(np.arange(1))
    mean, variance = one.predict(references)
    nowhere = references[:1] + 1e3 * np.abs(references).max()
    _, without_data = one.predict(nowhere)
    width = NARROWER * np.linalg.cholesky(covariance_within_modes(known.posterior))
    c, x = np.linalg.solve(width, references.T).T, np.linalg.solve(width, known.inputs.T).T
    squares = (c * c).sum(axis=1)[:, None] - 2.0 * c @ x.T + (x * x).sum(axis=1)
    bound = np.min(known.values + 0.5 * squares, axis=1)
    lowest = known.values.max() - RELEVANT_DEPTH
    hidden = (variance > LEARNT * without_data) & (bound > lowest)
    share = float(hidden.mean())
    chosen: list[int] = []
    while len(chosen) < n_points and hidden.any():
        best = int(np.argmax(np.where(hidden, bound, -np.inf)))
        chosen.append(best)
        expected = min(mean[best], lowest - RELEVANT_DEPTH)
        bound = np.minimum(bound, expected + 0.5 * ((c - c[best]) ** 2).sum(axis=1))
        hidden &= bound > lowest
    return share, references[chosen]


def covariance_within_modes(posterior: NormalMixture) -> Array:
    """S: the posterior's covariance within its modes, averaged over them, (D, D)."""
    total = np.zeros((posterior.dimension, posterior.dimension))
    labels = mode_labels(posterior)
    for mode in np.unique(labels):
        part = labels == mode
        weights, total_weight = posterior.weights[part], posterior.weights[part].sum()
        own = NormalMixture(weights / total_weight, posterior.means[part], posterior.factors[part])
        total += total_weight * own.covariance
    return total


def mode_labels(posterior: NormalMixture) -> NDArray[np.intp]:
    """Which mode each component belongs to, (K,): no deep valley on the line between two."""
    means, n = posterior.means, posterior.n_components
    heights = posterior.log_density(means)
    steps = np.linspace(0.0, 1.0, N_ON_LINE + 2)[1:-1, None]
    labels = np.arange(n)
    for i in range(n):
        for j in range(i):
            if labels[i] == labels[j]:
                continue
            line = posterior.log_density(means[i] + steps * (means[j] - means[i]))
            if line.min() > min(heights[i], heights[j]) - VALLEY:
                labels[labels == labels[i]] = labels[j]
    return labels


def other_hills(
    known: Known, threshold: float, n_points: int, generator: np.random.Generator
) -> Array:
    """Points to evaluate on hills that are not the posterior's: (k, D), one for each.

    A value far above the posterior's tail belongs to another hill, unless the way uphill leads
    home: to where p is above the threshold. The best point of such a hill is where its climb goes
    on, until nothing near it promises much more.
    """
    u, y = known.inputs, known.values
    log_p = known.posterior.log_density(u)
    tail = known.log_evidence + log_p
    high = y > y.max() - DEEPEST_HILL * known.dimension
    unexplained = np.flatnonzero((log_p < threshold) & (y > tail + UNEXPLAINED) & high)
    chosen: list[Array] = []
    if not len(unexplained):
        return np.empty((0, known.dimension))
    unexplained = unexplained[np.argsort(-y[unexplained])]
    matrix, _ = known.transform.standardised_map()
    widths = np.linalg.norm(np.linalg.inv(matrix), axis=1)  # of the box
    region = np.minimum(known.surrogate.length_scales, LARGEST_REGION * widths)
    ends = uphill(known.surrogate, u[unexplained], region)
    away = known.posterior.log_density(ends) < threshold
    seen: list[Array] = []
    for best in unexplained[away]:
        if len(chosen) == n_points:
            break
        if any(np.all(np.abs(u[best] - other) < 2.0 * region) for other in seen):
            continue
        seen.append(u[best])
        n_near = int(np.all(np.abs(u - u[best]) < region, axis=1).sum()) - 1
        nearby = u[best] + region * generator.uniform(-1.0, 1.0, (N_NEARBY, known.dimension))
        mean, variance = known.surrogate.predict(nearby)
        hoped = mean + 2.0 * np.sqrt(variance)
        gain, depth = hoped.max() - y[best], y.max() - y[best]
        if gain > PROMISING_GAIN * depth and n_near <= known.dimension + 2:
            chosen.append(nearby[int(np.argmax(hoped))])
    return np.array(chosen) if chosen else np.empty((0, known.dimension))


def uphill(surrogate: Surrogate, points: Array, region: Array) -> Array:
    """Where following f uphill leads from points (m, D), in steps of at most a region: (m, D)."""
    x, step = points, np.full(len(points), 0.5)
    f = surrogate.expansion.values(x).mean(axis=0)
    for _ in range(N_STEPS):
        direction = surrogate.expansion.gradient(x) * region
        length = np.linalg.norm(direction, axis=1)
        direction = direction / np.maximum(length, np.finfo(float).tiny)[:, None]
        moved = x + step[:, None] * region * direction
        higher = surrogate.expansion.values(moved).mean(axis=0)
        better = higher > f
        x, f = np.where(better[:, None], moved, x), np.where(better, higher, f)
        step = np.where(better, np.minimum(1.3 * step, 1.0), 0.4 * step)
    return x
