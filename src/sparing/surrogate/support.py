"""Where the density is not zero, learnt from the points at which it was.

A target may return -inf: a constraint, a solver that breaks down. No smooth surrogate can follow
such a cliff. The surrogate therefore describes the density up to the edge, and the support says
where the edge is: where a function f is zero of which the evaluations tell the sign. All functions
with these signs are averaged, and what they have in common is known (a Bayes point machine, by
expectation propagation: Minka 2001).

Edges are mostly simple, and what is assumed of them decides how many points they take: the first of
these that separates all evaluations is taken (docs/decisions/0015).

    a plane, up to three planes, a quadric, up to D + 2 planes, a quadric with bumps

In working coordinates a plane of the user's may be bent, and the other way round: both are tried.

Notation (D dimensions, N points, F features, J surfaces)
    z           points in units of the spread of the evaluations, (N, D)
    phi(z)      features: 1 and z; for a quadric also z_i z_j, and bumps exp(-|z - b|^2 / 2)
    f = w.phi   one surface; inside, it is positive on all of them
    mu, C       mean and covariance of w given the signs, (J, F) and (J, F, F)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, nnls
from scipy.spatial import KDTree
from scipy.special import log_ndtr, ndtr

from sparing.numerics.arrays import Array
from sparing.problem.evaluations import Evaluation, Status
from sparing.problem.parameter_transform import ParameterTransform
from sparing.surrogate.training_data import working_values

BLOCK = 4096  # points at a time
PRIOR = 4.0, 1.0, 0.1, 0.1  # variances of w: of the constant, linear and quadratic part, and bumps
KNOWN_SDS = 2.0  # a side is known where the mean of f is so many of its sds from zero
FEW_PLANES = 3
MOST_BUMPS = 100
SMALLEST_GAP = 1e-7  # between what is inside and outside, to the largest coordinate
# Points near the posterior set the units: values so many nats below the highest, times D.
TYPICAL_DEPTH = 5.0
# A point outside that lies between points inside may be a target that fails now and then: it counts
# where so many of its nearest neighbours are outside as well.
N_NEIGHBOURS, N_CONFIRMING = 5, 2
# Expectation propagation: steps, what each of them goes of the way, when it is over (in sds), and
# the noise of a sign, in sds of the constant: nearly none, but signs may contradict each other.
N_STEPS, STEP, TOLERANCE, NOISE_SD = 100, 0.5, 1e-3, 1e-4

Contains = Callable[[Array], NDArray[np.bool_]]  # (N, D) -> (N,)


def everywhere(points: Array) -> NDArray[np.bool_]:
    """That all points (N, D) are inside, (N,)."""
    return np.ones(len(points), dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class Support:
    """A learnt support; ``margin`` takes the working coordinates of its transform."""

    transform: ParameterTransform
    in_user_coordinates: bool  # whether z is linear in the user's coordinates, or in working ones
    centre: Array  # z = matrix (point - centre)
    matrix: Array
    quadratic: bool  # whether there are features z_i z_j
    bumps: Array  # b, (., D)
    weights: Array  # mu
    factors: Array  # L with C = L^T L, (J, F, F)

    def features(self, points: Array) -> Array:
        """phi at points (N, D) in working coordinates: (N, F)."""
        seen = _seen(points, self.transform, self.in_user_coordinates)
        return _features((seen - self.centre) @ self.matrix.T, self.quadratic, self.bumps)

    def margin(self, points: Array) -> Array:
        """At points (N, D) in working coordinates, (N,); beyond 1 and -1 the side is known."""
        parts = [np.empty(0)]
        for i in range(0, len(points), BLOCK):
            features = self.features(points[i : i + BLOCK])
            sds = [np.linalg.norm(features @ factor.T, axis=1) for factor in self.factors]
            f = features @ self.weights.T
            parts.append((f / (KNOWN_SDS * np.transpose(sds))).min(axis=1))
        return np.concatenate(parts)

    def probability(self, points: Array) -> Array:
        """Of points (N, D) to be inside, (N,)."""
        return ndtr(KNOWN_SDS * self.margin(points))

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Whether points (N, D) are inside, as far as is known, (N,): the sign of the margin."""
        starts = range(0, len(points), BLOCK)
        blocks = [self.features(points[i : i + BLOCK]) @ self.weights.T for i in starts]
        return np.concatenate([everywhere(points[:0]), *((f > 0.0).all(axis=1) for f in blocks)])

    def alternatives(
        self, points: Array, n: int, generator: np.random.Generator
    ) -> NDArray[np.bool_]:
        """Whether points (N, D) are inside each of n supports that may as well be true: (N, n)."""
        z = generator.standard_normal((*self.weights.shape, n))
        weights = self.weights[:, :, None] + self.factors.transpose(0, 2, 1) @ z  # (J, F, n)
        return np.all(self.features(points) @ weights > 0.0, axis=0)


@dataclass(frozen=True)
class LearntEdges:
    """The edge is learnt, and the surrogate describes what is inside."""

    def support(
        self, evaluations: Sequence[Evaluation], transform: ParameterTransform
    ) -> Support | None:
        """What the evaluations show; None where none was outside, or those are isolated."""
        return learnt_support(evaluations, transform)


@dataclass(frozen=True)
class StandIns:
    """The surrogate is taught a low value for every point outside (docs/decisions/0005)."""

    def support(
        self, evaluations: Sequence[Evaluation], transform: ParameterTransform
    ) -> Support | None:
        """None: it may be anywhere."""
        return None


def outside_points(evaluations: Sequence[Evaluation], transform: ParameterTransform) -> Array:
    """Points that were evaluated outside the support, in working coordinates: (m, D)."""
    points = [entry.x for entry in evaluations if entry.status is Status.OUT_OF_SUPPORT]
    return transform.to_working(np.reshape(points, (-1, transform.dimension)))


def learnt_support(
    evaluations: Sequence[Evaluation], transform: ParameterTransform
) -> Support | None:
    """The support that evaluations show; None where none was outside, or those are isolated."""
    usable = [entry for entry in evaluations if entry.usable]
    u_outside = outside_points(evaluations, transform)
    if not len(u_outside) or len(usable) <= transform.dimension:
        return None
    inputs, values = working_values(usable, transform)
    typical = np.argsort(-values)
    depth = values.max() - values[typical]
    n_typical = max(
        2 * transform.dimension + 2, int((depth < TYPICAL_DEPTH * transform.dimension).sum())
    )
    found = []
    for in_user_coordinates in (False,) if transform.is_linear else (True, False):
        points = _seen(inputs, transform, in_user_coordinates)
        centre, matrix = _units(points[typical[:n_typical]])
        inside = (points - centre) @ matrix.T
        beyond = (_seen(u_outside, transform, in_user_coordinates) - centre) @ matrix.T
        edge = _simplest_edge(inside, beyond)
        if edge is not None:
            means = np.array([surface.mean for surface in edge.surfaces])
            factors = np.array([surface.factor for surface in edge.surfaces])
            seen = transform, in_user_coordinates, centre, matrix
            found.append((edge.rank, Support(*seen, edge.quadratic, edge.bumps, means, factors)))
    return min(found, key=lambda item: item[0])[1] if found else None


def _seen(u: Array, transform: ParameterTransform, in_user_coordinates: bool) -> Array:
    """Points (N, D) in the user's coordinates, or in standardised ones."""
    if in_user_coordinates:
        return transform.to_user(u)
    return transform.to_standardised(u)


def _units(points: Array) -> tuple[Array, Array]:
    """The centre (D,) and the matrix (D, D) that make points (n, D) round."""
    centre = points.mean(axis=0)
    scale = np.maximum(points.std(axis=0), np.finfo(float).tiny)
    z = (points - centre) / scale
    correlation = z.T @ z / len(z) + 1e-6 * np.eye(len(scale))
    matrix = np.linalg.inv(np.linalg.cholesky(correlation)) / scale
    return centre, np.ascontiguousarray(matrix, dtype=np.float64)


def _features(z: Array, quadratic: bool, bumps: Array) -> Array:
    """phi at points (N, D): (N, F)."""
    columns = [np.ones((len(z), 1)), z]
    if quadratic:
        first, second = np.triu_indices(z.shape[1])
        columns.append(np.where(first == second, 1.0, np.sqrt(2.0)) * z[:, first] * z[:, second])
    if len(bumps):
        squares = (z * z).sum(axis=1)[:, None] - 2.0 * z @ bumps.T + (bumps * bumps).sum(axis=1)
        columns.append(np.exp(-0.5 * np.maximum(squares, 0.0)))
    return np.hstack(columns)


def n_features(dimension: int, *, quadratic: bool, n_bumps: int) -> int:
    """F."""
    return 1 + dimension + quadratic * dimension * (dimension + 1) // 2 + n_bumps


@dataclass(frozen=True, eq=False)
class _Surface:
    """mu (F,) and L (F, F) of one surface."""

    mean: Array
    factor: Array

    def heights(self, z: Array) -> Array:
        """How far points (N, D) are above it, if it is a plane: (N,)."""
        return (self.mean[0] + z @ self.mean[1:]) / np.linalg.norm(self.mean[1:])


@dataclass(frozen=True, eq=False)
class _Edge:
    """Surfaces that together separate inside from outside; a lower rank is a simpler edge."""

    rank: int
    quadratic: bool
    bumps: Array
    surfaces: list[_Surface]


def _simplest_edge(inside: Array, outside: Array) -> _Edge | None:
    """The first kind of edge that separates the points (n, D) and (m, D); None: all isolated."""
    if not len(outside):
        return None
    if _separable(inside, outside, quadratic=False):
        return _Edge(0, False, inside[:0], [_surface(inside, outside)])
    normals = _from_hull(inside, outside)
    between = np.linalg.norm(normals, axis=1) < SMALLEST_GAP
    kept = ~between | _confirmed(inside, outside)
    if not kept.all():
        return _simplest_edge(inside, outside[kept])
    return _bent_edge(inside, outside, None if between.any() else normals)


def _bent_edge(inside: Array, outside: Array, normals: Array | None) -> _Edge:
    """The simplest edge that is not one plane; ``normals`` from the hull, if all are beyond it."""
    most = inside.shape[1] + 2
    planes = None if normals is None else _planes(inside, outside, normals, most)
    if planes is not None and len(planes) <= FEW_PLANES:
        return _Edge(len(planes), False, inside[:0], planes)
    if _separable(inside, outside, quadratic=True):
        return _Edge(FEW_PLANES + 1, True, inside[:0], [_surface(inside, outside, quadratic=True)])
    if planes is not None:
        return _Edge(FEW_PLANES + 2, False, inside[:0], planes)
    bumps = np.vstack([outside, inside])[:MOST_BUMPS]
    surface = _surface(inside, outside, quadratic=True, bumps=bumps)
    return _Edge(FEW_PLANES + 3, True, bumps, [surface])


def _separable(inside: Array, outside: Array, *, quadratic: bool) -> bool:
    """Whether a plane, or a quadric, lies between the points: a linear programme."""
    z = np.vstack([inside, outside])
    columns = [np.ones((len(z), 1)), z]
    if quadratic:
        first, second = np.triu_indices(z.shape[1])
        columns.append(z[:, first] * z[:, second])
    features = np.hstack(columns)
    features /= np.abs(features).max(axis=0)
    features[len(inside) :] *= -1.0
    n, n_features = features.shape
    # The largest t with w.phi_i >= t inside, <= -t outside, and |w_j| <= 1.
    costs = np.append(np.zeros(n_features), -1.0)
    bounds = [(-1.0, 1.0)] * n_features + [(None, 1.0)]
    constraints = np.hstack([-features, np.ones((n, 1))])
    best = linprog(costs, A_ub=constraints, b_ub=np.zeros(n), bounds=bounds)
    return best.status == 0 and -best.fun > SMALLEST_GAP


def _surface(
    inside: Array,
    outside: Array,
    *,
    quadratic: bool = False,
    bumps: Array | None = None,
) -> _Surface:
    """Functions that are positive inside and negative outside.

    Expectation propagation, all signs at a time: t and h are the precision and the precision times
    the mean of what each of them says about f at its point.
    """
    z = np.vstack([inside, outside])
    bumps = z[:0] if bumps is None else bumps
    phi = _features(z, quadratic, bumps)
    phi[len(inside) :] *= -1.0  # now all are to be positive
    n_plane = 1 + z.shape[1]
    sizes = 1, n_plane - 1, phi.shape[1] - n_plane - len(bumps), len(bumps)
    prior = np.repeat(PRIOR, sizes)
    t, h, before = np.zeros(len(z)), np.zeros(len(z)), np.full(len(z), np.inf)
    mean, factor = np.empty(0), np.empty(0)
    for step in range(N_STEPS):
        precision = np.diag(1.0 / prior) + (phi.T * t) @ phi
        factor = np.asarray(np.linalg.inv(np.linalg.cholesky(precision)), dtype=np.float64)
        mean = factor.T @ (factor @ (phi.T @ h))
        f, variance = phi @ mean, ((phi @ factor.T) ** 2).sum(axis=1)
        if np.max(np.abs(f - before) / np.sqrt(variance)) < TOLERANCE:
            break
        before = f
        # What all others say about f at a point...
        others = np.maximum(1.0 / variance - t, 1e-9 / variance)
        mean_of_others = (f / variance - h) / others
        sd = np.sqrt(1.0 / others + PRIOR[0] * NOISE_SD**2)
        # ...and its moments once the sign is known.
        x = mean_of_others / sd  # the others' margin
        slope = np.exp(-0.5 * x * x - log_ndtr(x)) / np.sqrt(2.0 * np.pi)
        known_mean = mean_of_others + slope / (others * sd)
        known_variance = 1.0 / others - slope * (x + slope) / (others * sd) ** 2
        known = 1.0 / np.maximum(known_variance, 1e-9 / others)
        part = STEP * min(1.0, (step + 1.0) / 5.0)  # carefully at first
        t += part * (np.maximum(known - others, 0.0) - t)
        h += part * (known * known_mean - others * mean_of_others - h)
    return _Surface(mean, factor)


def _from_hull(inside: Array, outside: Array) -> Array:
    """From the convex hull of the points inside to each point outside, (m, D): zero within it."""
    weight = 10.0 * max(
        1.0, float(np.abs(outside).max())
    )  # of the condition that shares sum to one
    system = np.vstack([inside.T, np.full(len(inside), weight)])
    shares = np.array([nnls(system, np.append(point, weight))[0] for point in outside])
    return outside - shares @ inside / shares.sum(axis=1, keepdims=True)


def _confirmed(inside: Array, outside: Array) -> NDArray[np.bool_]:
    """Which points outside have neighbours outside, (m,)."""
    everything = np.vstack([inside, outside])
    _, neighbours = KDTree(everything).query(outside, k=N_NEIGHBOURS + 1)
    own = len(inside) + np.arange(len(outside))
    others = (neighbours >= len(inside)) & (neighbours != own[:, None])
    return (others & (neighbours < len(everything))).sum(axis=1) >= N_CONFIRMING


def _planes(inside: Array, outside: Array, normals: Array, most: int) -> list[_Surface] | None:
    """A few planes, each of which has all of the points inside on one side; None: it takes more.

    Of the planes that touch the hull, the one with most points beyond it comes first; it is turned
    so that more of them are. Small groups of points are then handed to the planes of others.
    """
    beyond = outside @ normals.T > (inside @ normals.T).max(axis=0)
    left = np.ones(len(outside), dtype=bool)
    groups: list[list[int]] = []
    while left.any():
        if len(groups) == most:
            return None
        behind = left & beyond[:, int(np.argmax(beyond[left].sum(axis=0)))]
        for _ in range(4):
            plane = _surface(inside, outside[behind])
            more = left & (plane.heights(outside) < plane.heights(inside).min())
            if not (more & ~behind).any():
                break
            behind |= more
        groups.append(np.flatnonzero(behind).tolist())
        left &= ~behind
    groups = _fewer(inside, outside, groups)
    planes = [_surface(inside, outside[group]) for group in groups]
    # Every point belongs to the plane it is furthest behind.
    labels = np.argmin([plane.heights(outside) for plane in planes], axis=0)
    return [_surface(inside, outside[labels == i]) for i in np.unique(labels)]


def _fewer(inside: Array, outside: Array, groups: list[list[int]]) -> list[list[int]]:
    """The groups without those whose points others can take, smallest first."""
    groups = sorted(groups, key=len)
    others = groups[1:]
    if not others:
        return groups
    for point in groups[0]:
        for i, group in enumerate(others):
            if _separable(inside, outside[[*group, point]], quadratic=False):
                others = [*others[:i], [*group, point], *others[i + 1 :]]
                break
        else:
            return groups
    return _fewer(inside, outside, others)
