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

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sparing.numerics.arrays import Array
from sparing.problem.parameter_transform import ParameterTransform
from sparing.surrogate.interface import Surrogate
from sparing.surrogate.known_support import AnySupport
from sparing.surrogate.support import Contains, everywhere
from sparing.variational.normal_mixture import NormalMixture

CLIMB = "climb of another hill"  # recorded with the points that a climb asks for

N_REFERENCES = 2048  # points of the plausible box in which modes are thought of
NARROWER = 0.5  # a hidden mode's width, at least, to that of the known ones
RELEVANT_DEPTH = 4.0  # nats below the highest value: a lower mode carries no mass
# Where V is below this share of what it would be without any data, f is believed.
LEARNT = 0.0003
VALLEY = 0.5  # nats: two parts with a deeper valley between them are two modes
DEEP_VALLEY = 3.0
N_ON_LINE = 7  # points at which a valley is looked for
# Steps of at most one region on the way uphill, the largest region in widths of the plausible box.
N_STEPS, LARGEST_REGION = 40, 0.15
BOX_STEP = 1e-3  # of the box, by which its width is told in other coordinates
DEEPEST_HILL = 25.0  # nats times D: deeper points are at the foot of nothing that is near
UNEXPLAINED = 15.0  # nats above the posterior's tail: a value that belongs to something else
ONE_HILL = 3.0  # widths: points as near as this are taken to be on the same hill
# Of a hill's quadratic to what it says, as a standard deviation, and at least.
MISFIT, SMALLEST_MISFIT = 0.8, 0.1
LEAST_CURVATURE = 0.1
LARGEST_STEP = 5.0  # widths
LEAST_GAIN = 0.5  # nats
ASCENT = 0.75  # what a climb leaves of the depth of its hill, at most, if it is a success
SURE = 5.0  # standard deviations by which the surrogate excludes a gain
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
    rules: tuple[str, ...]  # by which the points were chosen...
    other_rules: tuple[str, ...] = ()  # ...and those that turned out to be outside the support
    support: AnySupport | None = None
    outside: Array = field(default_factory=lambda: np.empty((0, 0)))  # evaluated outside it, (k, D)
    edge_is_proven: bool = True  # whether the support has predicted the last points at its edge
    gradients: Array | None = None  # (n, D), NaN where not known; None: nowhere

    @property
    def dimension(self) -> int:
        """D."""
        return self.inputs.shape[1]

    def share(self, *rules: str) -> float:
        """Of all evaluations those that one of the rules has asked for."""
        everything = (*self.rules, *self.other_rules)
        return sum(rule in rules for rule in everything) / len(everything)

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Which points (m, D) are in the support, as far as is known: (m,)."""
        return everywhere(points) if self.support is None else self.support.contains(points)


def box_points(transform: ParameterTransform, widening: float, unit: Array) -> Array:
    """Points of the unit cube (m, D) in the plausible box, widened: working coordinates, (m, D)."""
    return transform.from_standardised(widening * (unit - 0.5))


def box_widths(transform: ParameterTransform, centre: Array) -> Array:
    """Widths of the plausible box in working coordinates, as they are about a point (D,): (D,)."""
    D = transform.dimension
    step = BOX_STEP * np.vstack([np.eye(D), -np.eye(D)])
    ends = transform.from_standardised(transform.to_standardised(centre[None]) + step)
    return np.linalg.norm(ends[:D] - ends[D:], axis=0) / (2.0 * BOX_STEP)


def hiding_places(
    known: Known, threshold: float, n_points: int, generator: np.random.Generator
) -> tuple[float, Array]:
    """The share of the plausible box in which a mode may hide, and points to look at: (k, D).

    Not where p is above the threshold: there draws from it are evaluated all along.
    """
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
    hidden = (variance > LEARNT * without_data) & (bound > lowest) & known.contains(references)
    hidden &= known.posterior.log_density(references) < threshold
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
    for mass, mode in separate_modes(posterior):
        total += mass * mode.covariance
    return total


def n_far_modes(posterior: NormalMixture) -> int:
    """How many modes there are with a valley between them that nobody overlooks."""
    return len(np.unique(mode_labels(posterior, DEEP_VALLEY)))


def separate_modes(
    posterior: NormalMixture, valley: float = VALLEY
) -> list[tuple[float, NormalMixture]]:
    """The parts that no way without a deep valley connects, each with its mass."""
    labels, parts = mode_labels(posterior, valley), []
    for mode in np.unique(labels):
        part = labels == mode
        weights, mass = posterior.weights[part], float(posterior.weights[part].sum())
        own = NormalMixture(weights / mass, posterior.means[part], posterior.factors[part])
        parts.append((mass, own))
    return parts


def mode_labels(posterior: NormalMixture, valley: float = VALLEY) -> NDArray[np.intp]:
    """Which mode each component belongs to, (K,).

    Ways lead from one component's mean to another's, the highest first. What a way joins is one
    mode, unless it lies deep below the tops on both its sides: a component in a valley, which is on
    the way to either hill, does not make them one.
    """
    means = posterior.means
    heights = posterior.log_density(means)
    i, j = np.triu_indices(len(means), 1)
    steps = np.linspace(0.0, 1.0, N_ON_LINE + 2)[1:-1, None, None]
    line = (means[i] + steps * (means[j] - means[i])).reshape(-1, posterior.dimension)
    lowest = posterior.log_density(line).reshape(N_ON_LINE, -1).min(axis=0)
    lowest = np.minimum(lowest, np.minimum(heights[i], heights[j]))
    labels, tops = np.arange(len(means)), heights.copy()
    for way in np.argsort(-lowest):
        a, b = labels[i[way]], labels[j[way]]
        if a != b and min(tops[a], tops[b]) - lowest[way] < valley:
            labels[labels == b] = a
            tops[a] = max(tops[a], tops[b])
    return labels


def n_ascents(known: Known, threshold: float) -> int:
    """How many climbs have led well above all that was known around them, and not home."""
    shape = np.linalg.cholesky(covariance_within_modes(known.posterior))
    z = np.linalg.solve(shape, known.inputs.T).T
    depths, found = known.values.max() - known.values, 0
    climbed = np.array([rule == CLIMB for rule in known.rules], dtype=bool)
    for i in np.flatnonzero(climbed & (known.posterior.log_density(known.inputs) < threshold)):
        near = ((z[:i] - z[i]) ** 2).sum(axis=1) < LARGEST_STEP**2
        found += bool(near.any() and depths[i] <= ASCENT * depths[:i][near].min())
    return found


def other_hills(
    known: Known, threshold: float, n_points: int, generator: np.random.Generator
) -> Array:
    """Points to evaluate on hills that are not the posterior's: (k, D), one for each.

    A value far above the posterior's tail belongs to another hill, unless the way uphill leads
    home: to where p is above the threshold. Its climb goes on until it promises nothing more.
    """
    u, y = known.inputs, known.values
    log_p = known.posterior.log_density(u)
    tail = known.log_evidence + log_p
    high = y > y.max() - DEEPEST_HILL * known.dimension
    unexplained = np.flatnonzero((log_p < threshold) & (y > tail + UNEXPLAINED) & high)
    if not len(unexplained):
        return np.empty((0, known.dimension))
    unexplained = unexplained[np.argsort(-y[unexplained])]
    widths = box_widths(known.transform, known.posterior.mean)
    region = np.minimum(known.surrogate.length_scales, LARGEST_REGION * widths)
    ends = uphill(known.surrogate, u[unexplained], region, known.contains)
    away = known.posterior.log_density(ends) < threshold
    shape = np.linalg.cholesky(known.posterior.typical_covariance())
    z = np.linalg.solve(shape, u.T).T
    slopes = None if known.gradients is None else known.gradients @ shape
    climbed = np.array([rule == CLIMB for rule in known.rules], dtype=bool)
    chosen: list[Array] = []
    seen: list[Array] = []
    for best in unexplained[away]:
        if len(chosen) == n_points:
            break
        steps = z - z[best]
        squares = (steps * steps).sum(axis=1)
        if any(squares[other] < ONE_HILL**2 for other in seen):
            continue
        seen.append(best)
        near = squares < LARGEST_STEP**2
        if np.sum(near[best + 1 :] & climbed[best + 1 :]) > known.dimension + 1:
            continue  # all these led nowhere
        depth = y.max() - y[best]
        candidates, promise = next_steps(steps, y - y[best], depth, generator, slopes)
        points = u[best] + candidates @ shape.T
        # The surrogate has a say, but it is too sure far from its points.
        mean, variance = known.surrogate.predict(points)
        at_home = known.posterior.log_density(points) > threshold
        nowhere = at_home | ~known.contains(points)
        hoped = np.where(nowhere, -np.inf, mean + SURE * np.sqrt(variance))
        if hoped.max() < y.max() - RELEVANT_DEPTH:
            continue
        promise = np.where(hoped < y[best] + LEAST_GAIN, -np.inf, promise)
        if promise.max() > LEAST_GAIN:
            chosen.append(points[int(np.argmax(promise))])
    return np.array(chosen) if chosen else np.empty((0, known.dimension))


def next_steps(
    steps: Array,
    gains: Array,
    depth: float,
    generator: np.random.Generator,
    slopes: Array | None = None,
) -> tuple[Array, Array]:
    """Where to climb from the best point of a hill, (m, D), and the gain that each promises, (m,).

    Its values are taken for a quadratic's, gain = g^T d - k |d|^2 / 2 at a step d, which other
    points (steps (n, D), gains (n,)) tell roughly, and their slopes g - k d where these are known
    (n, D); k is about one where modes are alike. Promised is the mean, and a standard deviation
    where the best point's slope is not known; -inf where even three do not lead near the top,
    ``depth`` above.
    """
    dimension = steps.shape[1]
    squares = (steps * steps).sum(axis=1)
    nearest = np.argsort(squares)[: 1 + 3 * (dimension + 1)]
    near = nearest[1:]
    d, half = steps[near], 0.5 * squares[near]
    noise = SMALLEST_MISFIT + MISFIT * half
    design, told = np.column_stack([d, -half]) / noise[:, None], gains[near] / noise
    if slopes is not None:
        known = nearest[np.isfinite(slopes[nearest]).all(axis=1)]
        noise = np.repeat(SMALLEST_MISFIT + MISFIT * np.sqrt(squares[known]), dimension)
        of_slopes = np.tile(np.eye(dimension), (len(known), 1))
        of_slopes = np.column_stack([of_slopes, -steps[known].ravel()]) / noise[:, None]
        design = np.vstack([design, of_slopes])
        told = np.append(told, slopes[known].ravel() / noise)
    prior_precision = np.append(np.full(dimension, 0.5 / max(depth, 1.0)), 1.0)
    right = design.T @ told
    right[-1] += prior_precision[-1]  # k has the mean one
    factor = np.linalg.cholesky(design.T @ design + np.diag(prior_precision))
    coefficients = np.linalg.solve(factor.T, np.linalg.solve(factor, right))
    coefficients[-1] = max(coefficients[-1], LEAST_CURVATURE)
    directions = generator.standard_normal((N_NEARBY, dimension))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    lengths = LARGEST_STEP * generator.random((N_NEARBY, 1))
    top = coefficients[:-1] / coefficients[-1]
    top /= max(1.0, float(np.linalg.norm(top)) / LARGEST_STEP)
    anywhere = lengths * directions
    candidates = np.vstack([top, top + 0.3 * anywhere, anywhere])
    features = np.column_stack([candidates, -0.5 * (candidates**2).sum(axis=1)])
    sd = np.linalg.norm(np.linalg.solve(factor, features.T), axis=0)
    mean = features @ coefficients
    hopeless = (mean + 3.0 * sd).max() < depth - RELEVANT_DEPTH
    if hopeless:
        return candidates, np.full(len(mean), -np.inf)
    knows_the_way = slopes is not None and np.isfinite(slopes[nearest[0]]).all()
    return candidates, mean + (0.0 if knows_the_way else 1.0) * sd


def uphill(
    surrogate: Surrogate, points: Array, region: Array, contains: Contains = everywhere
) -> Array:
    """Where following f uphill leads from points (m, D), in steps of at most a region: (m, D)."""
    x, step = points, np.full(len(points), 0.5)
    f = surrogate.expansion.values(x).mean(axis=0)
    for _ in range(N_STEPS):
        direction = surrogate.expansion.gradient(x) * region
        length = np.linalg.norm(direction, axis=1)
        direction = direction / np.maximum(length, np.finfo(float).tiny)[:, None]
        moved = x + step[:, None] * region * direction
        higher = surrogate.expansion.values(moved).mean(axis=0)
        better = (higher > f) & contains(moved)
        x, f = np.where(better[:, None], moved, x), np.where(better, higher, f)
        step = np.where(better, np.minimum(1.3 * step, 1.0), 0.4 * step)
    return x
