"""From the user's coordinates to the unbounded working coordinates, and back (Section S2.3).

    x    point in the user's coordinates                                      (m, D)
    v    unbounded: v_i = g_i(x_i), increasing                                (m, D)
    s    standardised: s = (v - (g(PLB) + g(PUB)) / 2) / (g(PUB) - g(PLB)),
         so that the plausible box is [-1/2, 1/2]^D                           (m, D)
    u    working: u = A (s - b) after a whitening, u = s without, and then
         whatever bends make of it                                            (m, D)

The maps g_i are in `coordinate_maps`. A density in working coordinates is the user's
times |dx/du|, hence y(u) = y_user(x) + log_jacobian(u).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparing.numerics.arrays import Array
from sparing.problem.bending import Straightening, Whitening, rows_times
from sparing.problem.coordinate_maps import (
    LARGEST,
    LARGEST_SQUARABLE,
    BoundedMap,
    Coordinate,
    Periodic,
    Unbounded,
    coordinate_map,
    periodic_map,
)
from sparing.problem.declared_support import DeclaredSupport
from sparing.problem.problem import Problem

__all__ = ["BoundedMap", "ParameterTransform", "Whitening"]


@dataclass(frozen=True, eq=False)
class ParameterTransform:
    """The frozen map between the user's and the working coordinates, with its log-Jacobian.

    Every row of a batch is computed by itself, bit for bit as if it stood alone, so it does not
    matter when a point was transformed or with which others. ``number`` tells the coordinate
    systems of a run apart: 0 without whitening, and the number that each whitening was given, or
    each ``turning`` of the seams of periodic parameters.
    """

    coordinates: tuple[Coordinate, ...]
    lower: Array  # hard bounds (D,)
    upper: Array
    centre: Array  # (g(PLB) + g(PUB)) / 2  (D,)
    width: Array  # g(PUB) - g(PLB)  (D,)
    whitening: Whitening | None = None
    bends: tuple[Straightening, ...] = ()  # after the whitening, in this order
    number: int = 0
    turning: int = 0  # number of the coordinates without whitening
    declared: DeclaredSupport | None = None  # of the problem; None: it ends at its bounds only

    @classmethod
    def from_problem(
        cls, problem: Problem, bounded_map: BoundedMap = BoundedMap.PROBIT
    ) -> ParameterTransform:
        """The transform standardised by the problem's (inner) plausible box, without whitening."""
        low, high = problem.inner_plausible_box()
        coordinates = tuple(
            (periodic_map if name in problem.periodic else coordinate_map)(
                problem.lower[i], problem.upper[i], low[i], high[i], bounded_map
            )
            for i, name in enumerate(problem.names)
        )
        v_low = np.concatenate([g.to_unbounded(low[[i]]) for i, g in enumerate(coordinates)])
        v_high = np.concatenate([g.to_unbounded(high[[i]]) for i, g in enumerate(coordinates)])
        width = v_high - v_low
        bounds = problem.lower, problem.upper
        return cls(coordinates, *bounds, v_low + 0.5 * width, width, declared=problem.support)

    @property
    def dimension(self) -> int:
        """D, the number of parameters."""
        return len(self.coordinates)

    @property
    def is_linear(self) -> bool:
        """Whether x is a linear function of u: no parameter has a bound, and nothing is bent."""
        return not self.bends and all(isinstance(g, Unbounded) for g in self.coordinates)

    def whitened(self, centre: ArrayLike, matrix: ArrayLike, number: int = 1) -> ParameterTransform:
        """The transform to u' = A (u - b): centre b (D,), matrix A (D, D), u as it is now."""
        b = np.array(centre, dtype=np.float64)
        A = np.array(matrix, dtype=np.float64)
        D = self.dimension
        if b.shape != (D,) or A.shape != (D, D) or not np.all(np.isfinite(b + A)):
            raise ValueError(f"whitening needs a finite centre ({D},) and a matrix ({D}, {D})")
        M, offset = self.standardised_map()  # ValueError if bent
        # A (A_0 (s - b_0) - b) = A A_0 (s - (b_0 + A_0^-1 b))
        total = A if self.whitening is None else A @ self.whitening.matrix
        sign, log_determinant = np.linalg.slogdet(total)
        if sign == 0.0 or not np.isfinite(log_determinant):
            raise ValueError("the whitening matrix must be finite and invertible")
        inverse = np.asarray(np.linalg.inv(total), dtype=np.float64)
        combined = Whitening(total, inverse, offset + M @ b, float(log_determinant))
        return replace(self, whitening=combined, number=number)

    def bent(self, bends: Sequence[Straightening], number: int = 1) -> ParameterTransform:
        """The transform to u' = bends of u, u as it is now."""
        return replace(self, bends=(*self.bends, *bends), number=number)

    def unwhitened(self) -> ParameterTransform:
        """The transform to s, the coordinates without whitening."""
        return replace(self, whitening=None, bends=(), number=self.turning)

    @property
    def turns(self) -> Array:
        """How far the seam of each periodic parameter is above its lower bound, else 0: (D,)."""
        return np.array([g.turn if isinstance(g, Periodic) else 0.0 for g in self.coordinates])

    @property
    def periods(self) -> Array:
        """The length of the circle of each periodic parameter, else infinity: (D,)."""
        return np.array([g.period if isinstance(g, Periodic) else np.inf for g in self.coordinates])

    def turned(self, turns: Array, number: int) -> ParameterTransform:
        """The transform without whitening whose seams are there.

        The plausible box turns with them: it stays in the middle of the circle that is cut open.
        """
        coordinates = tuple(
            replace(g, turn=float(turn)) if isinstance(g, Periodic) else g
            for g, turn in zip(self.coordinates, turns, strict=True)
        )
        return replace(
            self, coordinates=coordinates, whitening=None, bends=(), number=number, turning=number
        )

    def to_working(self, x: ArrayLike) -> Array:
        """Points u (m, D) of points x (m, D), finite also on the bounds.

        A point beyond a bound counts as on it, unless the parameter is periodic.
        """
        return self.from_standardised(self.standardised(x))

    def to_user(self, u: ArrayLike) -> Array:
        """Points x (m, D) of points u (m, D), finite and within the closed bounds."""
        v = self._unbounded(u)
        x = np.empty_like(v)
        with np.errstate(over="ignore"):
            for i, g in enumerate(self.coordinates):
                x[:, i] = g.to_bounded(v[:, i].copy())
        return x

    def log_jacobian(self, u: ArrayLike) -> Array:
        """Log |det dx/du| at points u (m, D): (m,)."""
        v = self._unbounded(u)
        total = float(np.sum(np.log(self.width))) + self.standardised_log_jacobian(u)
        with np.errstate(over="ignore"):
            for i, g in enumerate(self.coordinates):
                total += g.log_derivative(v[:, i].copy())
        return total

    def working_gradient(self, u: ArrayLike, gradient: ArrayLike) -> Array:
        """The gradient of y(u) = y_user(x(u)) + log |det dx/du| at points u (m, D): (m, D).

        ``gradient`` (m, D) is that of y_user with respect to x, at the same points. Finite where
        it is, also next to a bound.
        """
        v, given = self._unbounded(u), self._batch(gradient)
        by_v = np.empty_like(v)
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            for i, g in enumerate(self.coordinates):
                at = v[:, i].copy()
                # dy/dx dx/dv: in logarithms one of them may be beyond what a double holds
                size = np.exp(np.log(np.abs(given[:, i])) + g.log_derivative(at))
                by_v[:, i] = np.copysign(size, given[:, i]) + g.log_derivative_slope(at)
            by_s = np.clip(by_v * self.width, -LARGEST, LARGEST)
            if self.whitening is None:
                gradient = by_s
            else:
                gradient = rows_times(self.whitening.inverse.T, by_s)
            for bend, at in zip(self.bends, self._after_each_bend(u), strict=True):
                gradient = np.clip(gradient, -LARGEST_SQUARABLE, LARGEST_SQUARABLE)
                gradient = bend.pulled_back(at, gradient)
            return np.clip(gradient, -LARGEST, LARGEST)

    def contains(self, x: ArrayLike) -> NDArray[np.bool_]:
        """Which points x (m, D) are finite and lie within the closed bounds: (m,).

        A periodic parameter has no end.
        """
        points = self._batch(x)
        inside = (points >= self.lower) & (points <= self.upper) | np.isfinite(self.periods)
        return np.all(inside & np.isfinite(points), axis=1)

    def mean(self, x: Array, scale: Array | float = 1.0) -> Array:
        """The mean of points x (m, D), of a periodic parameter the circular one: (D,).

        In units of ``scale`` (D,), where their sum would be beyond what a float can hold.
        """
        means = scale * (x / scale).mean(axis=0)
        for i in np.flatnonzero(np.isfinite(self.periods)):
            per_radian = self.periods[i] / (2.0 * np.pi)
            angles = (x[:, i] - self.lower[i]) / per_radian
            angle = np.arctan2(np.sin(angles).mean(), np.cos(angles).mean())
            means[i] = self.lower[i] + np.mod(angle, 2.0 * np.pi) * per_radian
        return means

    def unwrapped(self, x: Array, centre: Array) -> Array:
        """Points x (m, D) with periodic parameters within half a period of the centre (D,)."""
        x = x.copy()
        for i in np.flatnonzero(np.isfinite(self.periods)):
            half = 0.5 * self.periods[i]
            x[:, i] = centre[i] + np.mod(x[:, i] - centre[i] + half, 2.0 * half) - half
        return x

    def supports(self, x: Array) -> NDArray[np.bool_]:
        """Which points x (m, D) are in the support that the problem declares: (m,)."""
        if self.declared is None or not len(x):
            return np.ones(len(x), dtype=np.bool_)
        return self.declared.contains(x)

    def reachable_box(self) -> tuple[Array, Array]:
        """Standardised coordinates (D,) beyond which no point is worth an evaluation."""
        reach = [
            g.reach(c, w) for g, c, w in zip(self.coordinates, self.centre, self.width, strict=True)
        ]
        lower = (np.array([low for low, _ in reach]) - self.centre) / self.width
        upper = (np.array([high for _, high in reach]) - self.centre) / self.width
        return lower, upper

    def within_reach(self, u: Array) -> Array:
        """Points u (m, D) brought near the box: a density that never falls has no mass to find."""
        lower, upper = self.reachable_box()
        s = self.to_standardised(u)
        if np.all((s >= lower) & (s <= upper)):
            return u
        return self.from_standardised(np.clip(s, lower, upper))

    def standardised(self, x: ArrayLike) -> Array:
        """Points s (m, D) of points x (m, D): s_i depends on x_i alone."""
        points = self._batch(x)
        v = np.empty_like(points)
        for i, g in enumerate(self.coordinates):
            v[:, i] = g.to_unbounded(points[:, i].copy())
        with np.errstate(over="ignore"):
            return np.clip((v - self.centre) / self.width, -LARGEST, LARGEST)

    def to_standardised(self, u: ArrayLike) -> Array:
        """Points s of points u, (m, D)."""
        s = self._batch(u)
        for bend in reversed(self.bends):
            s = bend.backwards(s)
        return s if self.whitening is None else self.whitening.backwards(s)

    def from_standardised(self, s: Array) -> Array:
        """Points u of points s, (m, D)."""
        u = s if self.whitening is None else self.whitening.forwards(s)
        for bend in self.bends:
            u = bend.forwards(u)
        return u

    def standardised_log_jacobian(self, u: ArrayLike) -> Array:
        """Log |det ds/du| at points u (m, D): (m,)."""
        total = np.zeros(len(self._batch(u)))
        if self.whitening is not None:
            total -= self.whitening.log_determinant
        for bend, at in zip(self.bends, self._after_each_bend(u), strict=True):
            total += bend.log_jacobian(at)
        return total

    def _after_each_bend(self, u: ArrayLike) -> list[Array]:
        """Points u (m, D) as they are after each of the bends, the first one first."""
        after: list[Array] = []
        point = self._batch(u)
        for bend in reversed(self.bends):
            after.append(point)
            point = bend.backwards(point)
        return after[::-1]

    def standardised_map(self) -> tuple[Array, Array]:
        """(M, b) of s = M u + b; M is the identity and b zero without whitening."""
        if self.bends:
            raise ValueError("s is not a linear function of u: the coordinates are bent")
        if self.whitening is None:
            return np.eye(self.dimension), np.zeros(self.dimension)
        return self.whitening.inverse.copy(), self.whitening.centre.copy()

    def linear_map(self) -> tuple[Array, Array]:
        """(L, c) of x = L u + c; ValueError unless `is_linear`."""
        if not self.is_linear:
            raise ValueError("x is not a linear function of u: some parameter is bounded")
        M, b = self.standardised_map()
        return self.width[:, None] * M, self.width * b + self.centre

    def _unbounded(self, u: ArrayLike) -> Array:
        s = self.to_standardised(u)
        with np.errstate(over="ignore"):
            return np.clip(s * self.width + self.centre, -LARGEST, LARGEST)

    def _batch(self, points: ArrayLike) -> Array:
        batch = np.asarray(points, dtype=np.float64)
        if batch.ndim != 2 or batch.shape[1] != self.dimension:
            raise ValueError(f"expected points (m, {self.dimension}), got shape {batch.shape}")
        return batch
