"""Where the density is not zero, learnt from the points at which it was.

A target may return -inf: a constraint, a solver that breaks down. No smooth surrogate can follow
such a cliff. The surrogate therefore describes the density up to the edge, and the support says
where the edge is: at f = 0, with f at least 1 at every evaluation inside, at most -1 at every one
outside, and as flat as that allows (a support vector machine). How well an edge is known differs
from place to place; the margin is f in units of how much other f that separate the evaluations as
well differ from it. Beyond 1 a side is known.

Edges are mostly simple, and what is assumed of them decides how many points they take: the first of
these that separates all evaluations is taken (docs/decisions/0015).

    a plane, up to three planes, a quadric, up to D + 2 planes, a quadric with bumps

In working coordinates a plane of the user's may be bent, and the other way round: both are tried.

Notation (D dimensions, N points, n evaluations near one surface)
    z, z_i     points in units of the spread of the evaluations, (N, D); those evaluations, (n, D)
    k(a, b)    kernel: 4 + a.b + p (a.b)^2 + r exp(-|a - b|^2 / 2)
    f(z)       sum_i c_i k(z_i, z) of one surface; the margin is the least over all of them
    B          steepness of f: c^T K c with K_ij = k(z_i, z_j)
    sd(z)      of functions with covariance B k that differ from f by |f(z_i)| at z_i
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, nnls
from scipy.spatial import KDTree

from sparing.numerics.arrays import Array
from sparing.problem.evaluations import Evaluation, Status
from sparing.problem.parameter_transform import ParameterTransform
from sparing.surrogate.training_data import working_values

BLOCK = 4096  # points at a time
CONSTANT, QUADRATIC, RADIAL = 4.0, 0.1, 0.005  # weights in the kernel, beside the linear part
JITTER = 1e-12  # of the kernel's matrix, to its diagonal
FEW_PLANES = 3
UNKNOWN_SDS = 1.5  # the side of a point is unknown where |f| is less than so many sds
N_NEAREST = 20, 6  # evaluations near a surface that its sd is computed from: 20 + 6 D
SMALLEST_GAP = 1e-7  # between what is inside and outside, to the largest coordinate
# Points near the posterior set the units: values so many nats below the highest, times D.
TYPICAL_DEPTH = 5.0
# A point outside that lies between points inside may be a target that fails now and then: it counts
# where so many of its nearest neighbours are outside as well.
N_NEIGHBOURS, N_CONFIRMING = 5, 2


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
    vectors: Array  # z_i of all surfaces
    coefficients: Array  # c_i
    surfaces: NDArray[np.int64]  # to which surface each belongs: 0, ..., 0, 1, ...
    quadratic: float  # p
    radial: float  # r

    def standardised(self, points: Array) -> Array:
        """z of points (N, D) in working coordinates."""
        seen = _seen(points, self.transform, self.in_user_coordinates)
        return (seen - self.centre) @ self.matrix.T

    @cached_property
    def _parts(self) -> list[tuple[slice, float, Array]]:
        """Of each surface its evaluations, B, and the inverse factor of B K + diag(f^2)."""
        ends = np.append(np.flatnonzero(np.diff(self.surfaces)) + 1, len(self.surfaces))
        found = []
        for own in map(slice, [0, *ends[:-1]], ends):
            gram = _kernel(self.vectors[own], self.vectors[own], self.quadratic, self.radial)
            f = gram @ self.coefficients[own]
            steepness = float(self.coefficients[own] @ f)
            factor = np.linalg.cholesky(steepness * gram + np.diag(f * f))
            found.append((own, steepness, np.asarray(np.linalg.inv(factor), dtype=np.float64)))
        return found

    def margin(self, points: Array) -> Array:
        """At points (N, D) in working coordinates, (N,); beyond 1 and -1 the side is known."""

        def margins(z: Array) -> Array:
            squares = (z * z).sum(axis=1)
            whole = CONSTANT + squares + self.quadratic * squares**2 + self.radial
            least = np.full(len(z), np.inf)
            for own, steepness, inverse in self._parts:
                kernel = _kernel(z, self.vectors[own], self.quadratic, self.radial)
                explained = steepness * ((kernel @ inverse.T) ** 2).sum(axis=1)
                variance = steepness * np.maximum(whole - explained, SMALLEST_GAP * whole)
                f = kernel @ self.coefficients[own]
                least = np.minimum(least, f / (UNKNOWN_SDS * np.sqrt(variance)))
            return least

        return self._in_blocks(margins, points)

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Whether points (N, D) are inside, as far as is known, (N,): the sign of the margin."""

        def signs(z: Array) -> Array:
            least = np.full(len(z), np.inf)
            for own, _, _ in self._parts:
                used = self.coefficients[own] != 0.0
                vectors, coefficients = self.vectors[own][used], self.coefficients[own][used]
                f = _kernel(z, vectors, self.quadratic, self.radial) @ coefficients
                least = np.minimum(least, f)
            return least

        return self._in_blocks(signs, points) > 0.0

    def _in_blocks(self, function: Callable[[Array], Array], points: Array) -> Array:
        starts = range(0, len(points), BLOCK)
        parts = [function(self.standardised(points[i : i + BLOCK])) for i in starts]
        return np.concatenate([np.empty(0), *parts])


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


def learnt_support(
    evaluations: Sequence[Evaluation], transform: ParameterTransform
) -> Support | None:
    """The support that evaluations show; None where none was outside, or those are isolated."""
    usable = [entry for entry in evaluations if entry.usable]
    outside = [entry for entry in evaluations if entry.status is Status.OUT_OF_SUPPORT]
    if not outside or len(usable) <= transform.dimension:
        return None
    inputs, values = working_values(usable, transform)
    typical = np.argsort(-values)
    depth = values.max() - values[typical]
    n_typical = max(
        2 * transform.dimension + 2, int((depth < TYPICAL_DEPTH * transform.dimension).sum())
    )
    u_outside = transform.to_working(np.array([entry.x for entry in outside]))
    found: list[tuple[int, float, Support]] = []
    for in_user_coordinates in (False,) if transform.is_linear else (True, False):
        points = _seen(inputs, transform, in_user_coordinates)
        centre, matrix = _units(points[typical[:n_typical]])
        inside = (points - centre) @ matrix.T
        beyond = (_seen(u_outside, transform, in_user_coordinates) - centre) @ matrix.T
        edge = _simplest_edge(inside, beyond)
        if edge is None:
            continue
        surfaces = np.repeat(np.arange(len(edge.surfaces)), [len(s.vectors) for s in edge.surfaces])
        support = Support(
            transform,
            in_user_coordinates,
            centre,
            matrix,
            np.vstack([s.vectors for s in edge.surfaces]),
            np.concatenate([s.coefficients for s in edge.surfaces]),
            surfaces.astype(np.int64),
            edge.surfaces[0].quadratic,
            edge.surfaces[0].radial,
        )
        found.append((edge.rank, edge.steepness, support))
    return min(found, key=lambda item: item[:2])[2] if found else None


def _seen(u: Array, transform: ParameterTransform, in_user_coordinates: bool) -> Array:
    """Points (N, D) in the user's coordinates, or in standardised ones."""
    if in_user_coordinates:
        return transform.to_user(u)
    matrix, offset = transform.standardised_map()
    return u @ matrix.T + offset


def _units(points: Array) -> tuple[Array, Array]:
    """The centre (D,) and the matrix (D, D) that make points (n, D) round."""
    centre = points.mean(axis=0)
    scale = np.maximum(points.std(axis=0), np.finfo(float).tiny)
    z = (points - centre) / scale
    correlation = z.T @ z / len(z) + 1e-6 * np.eye(len(scale))
    matrix = np.linalg.inv(np.linalg.cholesky(correlation)) / scale
    return centre, np.ascontiguousarray(matrix, dtype=np.float64)


def _kernel(a: Array, b: Array, quadratic: float, radial: float) -> Array:
    """k between points (N, D) and (n, D): (N, n)."""
    products = a @ b.T
    values = CONSTANT + products
    if quadratic:
        values += quadratic * products * products
    if radial:
        squares = (a * a).sum(axis=1)[:, None] - 2.0 * products + (b * b).sum(axis=1)
        values += radial * np.exp(-0.5 * np.maximum(squares, 0.0))
    return values


@dataclass(frozen=True, eq=False)
class _Surface:
    """One surface of an edge; steepness is the square of the margin's slope."""

    vectors: Array
    coefficients: Array
    quadratic: float
    radial: float
    steepness: float

    def margin(self, z: Array) -> Array:
        return _kernel(z, self.vectors, self.quadratic, self.radial) @ self.coefficients


@dataclass(frozen=True, eq=False)
class _Edge:
    """Surfaces that together separate inside from outside; a lower rank is a simpler edge."""

    rank: int
    surfaces: list[_Surface]

    @property
    def steepness(self) -> float:
        return sum(surface.steepness for surface in self.surfaces)


def _simplest_edge(inside: Array, outside: Array) -> _Edge | None:
    """The first kind of edge that separates the points (n, D) and (m, D); None: all isolated."""
    if _separable(inside, outside, quadratic=False):
        return _Edge(0, [_surface(inside, outside)])
    normals = _from_hull(inside, outside)
    between = np.linalg.norm(normals, axis=1) < SMALLEST_GAP
    kept = ~between | _confirmed(inside, outside)
    if not kept.all():
        return _simplest_edge(inside, outside[kept]) if kept.any() else None
    dimension = inside.shape[1]
    planes = None if between.any() else _planes(inside, outside, normals, dimension + 2)
    if planes is not None and len(planes) <= FEW_PLANES:
        return _Edge(len(planes), planes)
    if _separable(inside, outside, quadratic=True):
        return _Edge(FEW_PLANES + 1, [_surface(inside, outside, QUADRATIC)])
    if planes is not None:
        return _Edge(FEW_PLANES + 2, planes)
    return _Edge(FEW_PLANES + 3, [_surface(inside, outside, QUADRATIC, RADIAL)])


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
    inside: Array, outside: Array, quadratic: float = 0.0, radial: float = 0.0
) -> _Surface:
    """The flattest margin that is 1 inside and -1 outside, and beyond."""
    z = np.vstack([inside, outside])
    signs = np.concatenate([np.ones(len(inside)), -np.ones(len(outside))])
    gram = _kernel(z, z, quadratic, radial) * np.outer(signs, signs)
    gram[np.diag_indices(len(z))] += JITTER * np.trace(gram) / len(z)
    multipliers = _multipliers(gram)
    distances = gram @ multipliers  # f times the sign: at least 1 but for rounding
    multipliers /= max(float(distances.min()), 1e-3)
    used = multipliers > 0.0
    n_nearest = max(int(used.sum()), N_NEAREST[0] + N_NEAREST[1] * z.shape[1])
    chosen = np.argsort(np.where(used, 0.0, distances), kind="stable")[:n_nearest]
    steepness = float(multipliers @ gram @ multipliers)
    coefficients = (signs * multipliers)[chosen]
    return _Surface(z[chosen], coefficients, quadratic, radial, steepness)


def _multipliers(gram: Array) -> Array:
    """The a >= 0 of the largest sum(a) - a^T G a / 2, (n,): an active set (Lawson and Hanson)."""
    multipliers, active = np.zeros(len(gram)), np.zeros(len(gram), dtype=bool)
    for _ in range(10 * len(gram)):
        slack = 1.0 - gram[:, active] @ multipliers[active]
        slack[active] = -np.inf
        worst = int(np.argmax(slack))
        if slack[worst] <= 1e-6:
            break
        active[worst] = True
        while True:
            chosen = np.flatnonzero(active)
            target = np.linalg.solve(gram[np.ix_(chosen, chosen)], np.ones(len(chosen)))
            falling = target <= 0.0
            if not falling.any():
                multipliers[:] = 0.0
                multipliers[chosen] = target
                break
            current = multipliers[chosen]
            steps = np.where(falling, current / np.where(falling, current - target, 1.0), np.inf)
            step = steps.min()
            multipliers[chosen] = np.maximum(current + step * (target - current), 0.0)
            multipliers[chosen[steps <= step]] = 0.0
            active &= multipliers > 0.0
    return multipliers


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
        best = int(np.argmax(beyond[left].sum(axis=0)))
        behind = left & beyond[:, best]
        for _ in range(4):
            plane = _surface(inside, outside[behind])
            more = left & (plane.margin(outside) < 0.999)
            if not (more & ~behind).any():
                break
            behind |= more
        groups.append(np.flatnonzero(behind).tolist())
        left &= ~behind
    groups = _fewer(inside, outside, groups)
    planes = [_surface(inside, outside[group]) for group in groups]
    # Every point belongs to the plane it is furthest behind.
    depths = [plane.margin(outside) / np.sqrt(plane.steepness) for plane in planes]
    labels = np.argmin(depths, axis=0)
    return [_surface(inside, outside[labels == label]) for label in np.unique(labels)]


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
