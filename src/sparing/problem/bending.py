"""A bend: the map that straightens a curved ridge, or evens out a funnel; and a stretch.

Along one direction t the others are moved by a parabola and scaled by an exponential; a normal
distribution in the straight coordinates is a banana, a crescent or a funnel in the others.

    w    point before the bend                                                (m, D)
    t    w . e, with e the bent direction in units of one sd                  (m,)
    r    r(t) = t / (1 + (t / R)^4)^(1/4): t where a posterior is, R far away
    v    straight: v = exp(-r S) (w - c (r^2 - 1)), with S symmetric, S e = 0 and c . e = 0
    u    u = A (v - b), a whitening after it                                  (m, D)

t is the same on both sides, so the inverse has the same form: w = exp(r S) v + c (r^2 - 1).

A stretch takes a skewed or heavy tail off each coordinate by itself (Jones and Pewsey 2009):

    h    h(w) = sinh(d asinh z - e) with z = (w - l) / a; e skewness, d > 1: the tails were light

Where nothing is known, far from a posterior, one that is levelled is a straight line:

    t    coordinates stretched by h, in sds of the posterior from its mean there, n and o
    w    w = h^-1(n + o r(t)) + m (t - r(t)), m the slope of the first part at t = R (or -R)
    u    u = A (t - b), a whitening after it                                  (m, D)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sparing.numerics.arrays import Array

SHARPNESS = 4  # how sharply r turns away from t: surrogates have to follow it
FURTHEST = 1e30  # the power of more is no number
LARGEST_ARGUMENT = 300.0  # of a hyperbolic sine that can be squared
SMALLEST_RATIO = 1e-12  # of variances
# Of Newton's method, with halves of what is left where it fails; after a step as small as this
# nothing is left but rounding, since the error is as its square.
MOST_STEPS, SMALL_STEP = 100, 1e-9


@dataclass(frozen=True, eq=False)
class Whitening:
    """u = A (s - b), with s = A^-1 u + b."""

    matrix: Array  # A (D, D)
    inverse: Array  # A^-1 (D, D)
    centre: Array  # b (D,)
    log_determinant: float  # log |det A|

    @classmethod
    def nothing(cls, dimension: int) -> Whitening:
        """u = s."""
        identity = np.eye(dimension)
        return cls(identity, identity, np.zeros(dimension), 0.0)

    @classmethod
    def of_points(cls, points: Array, width: float) -> Whitening:
        """The one that gives points (m, D) this sd in all directions; axes turn the least."""
        variances, axes = np.linalg.eigh(np.cov(points, rowvar=False))
        sds = np.sqrt(np.maximum(variances, SMALLEST_RATIO * variances[-1])) / width
        matrix, inverse = (axes / sds) @ axes.T, (axes * sds) @ axes.T
        return cls(matrix, inverse, points.mean(axis=0), -float(np.log(sds).sum()))

    def forwards(self, s: Array) -> Array:
        """Points u of points s, (m, D)."""
        return rows_times(self.matrix, s - self.centre)

    def backwards(self, u: Array) -> Array:
        """Points s of points u, (m, D)."""
        return rows_times(self.inverse, u) + self.centre


@dataclass(frozen=True, eq=False)
class Bend:
    """u of w, and back."""

    direction: Array  # e (D,)
    shift: Array  # c (D,)
    axes: Array  # eigenvectors of S, columns, (D, D)
    rates: Array  # its eigenvalues, (D,)
    reach: float  # R
    whitening: Whitening  # A, b

    def forwards(self, w: Array) -> Array:
        """Points u of points w, (m, D)."""
        r = self._along(w)[0]
        straight = w - np.outer(r * r - 1.0, self.shift)
        return self.whitening.forwards(self._scaled(straight, -r))

    def backwards(self, u: Array) -> Array:
        """Points w of points u, (m, D)."""
        v = self.whitening.backwards(u)
        r = self._along(v)[0]
        return self._scaled(v, r) + np.outer(r * r - 1.0, self.shift)

    def whitened(self, points: Array, width: float) -> Bend:
        """The bend followed by the whitening that gives points (m, D) this sd in all directions."""
        after = self.forwards(points)
        return replace(self, whitening=Whitening.of_points(after, width))

    @property
    def n_parameters(self) -> int:
        """A direction, and a shift or a rate for each of the others."""
        return 2 * (len(self.direction) - 1)

    def log_jacobian(self, u: Array) -> Array:
        """Log |det dw/du| at points u (m, D): (m,)."""
        r = self._along(self.whitening.backwards(u))[0]
        return r * self.rates.sum() - self.whitening.log_determinant

    def pulled_back(self, u: Array, gradient: Array) -> Array:
        """The gradient by u of y(w(u)) + log |det dw/du|, given that of y by w: (m, D) each."""
        v = self.whitening.backwards(u)
        r, slope = self._along(v)
        moved = self._scaled(v, r)
        by_r = rows_times((self.axes * self.rates) @ self.axes.T, moved)
        by_r += np.outer(2.0 * r, self.shift)
        along = slope * ((by_r * gradient).sum(axis=1) + self.rates.sum())
        by_v = self._scaled(gradient, r) + np.outer(along, self.direction)
        return rows_times(self.whitening.inverse.T, by_v)

    def _along(self, points: Array) -> tuple[Array, Array]:
        """R and dr/dt, (m,) each."""
        return reach_of((points * self.direction).sum(axis=1), self.reach)

    def _scaled(self, rows: Array, r: Array) -> Array:
        """exp(r S) times each row."""
        if not self.rates.any():
            return rows
        return rows_times(
            self.axes, np.exp(np.outer(r, self.rates)) * rows_times(self.axes.T, rows)
        )


@dataclass(frozen=True, eq=False)
class Stretch:
    """u = h(w), and back, coordinate by coordinate; (D,) each."""

    location: Array  # l
    scale: Array  # a
    skewness: Array  # e
    tail: Array  # d

    def forwards(self, w: Array) -> Array:
        """Points u of points w, (m, D)."""
        z = (w - self.location) / self.scale
        return _sinh(self.tail * np.arcsinh(z) - self.skewness)

    def backwards(self, u: Array) -> Array:
        """Points w of points u, (m, D)."""
        return self.location + self.scale * self._z(u)

    @property
    def n_parameters(self) -> int:
        """How skewed and how heavy-tailed coordinates are, and where, of those that are."""
        is_skewed, has_tails = self.skewness != 0.0, self.tail != 1.0
        return int(is_skewed.sum() + has_tails.sum() + (is_skewed | has_tails).sum())

    def log_jacobian(self, u: Array) -> Array:
        """Log |det dw/du| at points u (m, D): (m,)."""
        return np.log(self.slopes(u)[0]).sum(axis=1)

    def pulled_back(self, u: Array, gradient: Array) -> Array:
        """The gradient by u of y(w(u)) + log |det dw/du|, given that of y by w: (m, D) each."""
        slope, relative = self.slopes(u)
        return gradient * slope + relative

    def slopes(self, u: Array) -> tuple[Array, Array]:
        """dw/du and the derivative of its logarithm, (m, D) each."""
        z = self._z(u)  # cosh(asinh z) is the root of 1 + z^2
        log_slope = np.log(self.scale / self.tail) + 0.5 * (np.log1p(z * z) - np.log1p(u * u))
        slope = np.exp(log_slope)
        return slope, z / (1.0 + z * z) * slope / self.scale - u / (1.0 + u * u)

    def _z(self, u: Array) -> Array:
        return _sinh((np.arcsinh(u) + self.skewness) / self.tail)


@dataclass(frozen=True, eq=False)
class LevelledStretch:
    """A stretch that becomes a straight line far from the posterior it was made for."""

    stretch: Stretch  # h
    middle: Array  # n, (D,)
    spread: Array  # o, (D,)
    reach: float  # R
    whitening: Whitening  # A, b

    @classmethod
    def of_points(
        cls, stretch: Stretch, points: Array, reach: float, width: float
    ) -> LevelledStretch:
        """The one with the sds of points (m, D), whitened so that they have this sd all around."""
        h = stretch.forwards(points)
        nothing = Whitening.nothing(points.shape[1])
        plain = cls(stretch, h.mean(axis=0), h.std(axis=0), reach, nothing)
        return replace(plain, whitening=Whitening.of_points(plain.forwards(points), width))

    @property
    def n_parameters(self) -> int:
        """Those of the stretch."""
        return self.stretch.n_parameters

    def forwards(self, w: Array) -> Array:
        """Points u of points w, (m, D): each number is found by itself."""
        origin, near = self._curve(np.zeros_like(w))[0], self.stretch.forwards(w)
        is_above = w > origin
        # The straight parts alone, |t - r| <= |w - origin| / m, say how far it can be.
        furthest = self.reach + np.abs(w - origin) / self._end_slopes(np.where(is_above, 1.0, -1.0))
        furthest = np.minimum(furthest, FURTHEST)
        low, high = np.where(is_above, 0.0, -furthest), np.where(is_above, furthest, 0.0)
        t = np.clip((near - self.middle) / self.spread, low, high)
        moving = np.ones(w.shape, dtype=np.bool_)
        for _ in range(MOST_STEPS):
            found, slope, _ = self._curve(t)
            low, high = np.where(found <= w, t, low), np.where(found >= w, t, high)
            step = t - (found - w) / slope
            is_within = (step >= low) & (step <= high)
            is_last = is_within & (np.abs(step - t) <= SMALL_STEP * (1.0 + np.abs(t)))
            t = np.where(moving, np.where(is_within, step, 0.5 * (low + high)), t)
            moving &= ~is_last
            if not moving.any():
                break
        return self.whitening.forwards(t)

    def backwards(self, u: Array) -> Array:
        """Points w of points u, (m, D)."""
        return self._curve(self.whitening.backwards(u))[0]

    def log_jacobian(self, u: Array) -> Array:
        """Log |det dw/du| at points u (m, D): (m,)."""
        slope = self._curve(self.whitening.backwards(u))[1]
        return np.log(slope).sum(axis=1) - self.whitening.log_determinant

    def pulled_back(self, u: Array, gradient: Array) -> Array:
        """The gradient by u of y(w(u)) + log |det dw/du|, given that of y by w: (m, D) each."""
        _, slope, relative = self._curve(self.whitening.backwards(u))
        return rows_times(self.whitening.inverse.T, gradient * slope + relative)

    def _curve(self, t: Array) -> tuple[Array, Array, Array]:
        """At t, (m, D) each: w, its derivative, and the derivative of that one's logarithm."""
        t = np.clip(t, -FURTHEST, FURTHEST)
        r, along = reach_of(t, self.reach)
        h = self.middle + self.spread * r
        slope, relative = self.stretch.slopes(h)
        inner, end = self.spread * slope, self._end_slopes(t)
        # The second derivative of r
        turn = -(SHARPNESS + 1.0) * (t / self.reach) ** (SHARPNESS - 1) / self.reach
        turn *= along ** ((2.0 * SHARPNESS + 1.0) / (SHARPNESS + 1.0))
        total = inner * along + end * (1.0 - along)
        curvature = inner * relative * self.spread * along**2 + (inner - end) * turn
        return self.stretch.backwards(h) + end * (t - r), total, curvature / total

    def _end_slopes(self, t: Array) -> Array:
        """Slopes m beyond the ends, that of the side of each t."""
        ends = np.array([[-self.reach], [self.reach]])
        below, above = self.spread * self.stretch.slopes(self.middle + self.spread * ends)[0]
        return np.where(t < 0.0, below, above)


# What coordinates may consist of, beside a whitening.
Straightening = Bend | Stretch | LevelledStretch


def _sinh(argument: Array) -> Array:
    return np.sinh(np.clip(argument, -LARGEST_ARGUMENT, LARGEST_ARGUMENT))


def reach_of(t: Array, reach: float) -> tuple[Array, Array]:
    """R of t, and dr/dt, (m,) each."""
    near = np.clip(t, -FURTHEST, FURTHEST)
    growth = 1.0 + (near / reach) ** SHARPNESS
    return near * growth ** (-1.0 / SHARPNESS), growth ** (-1.0 - 1.0 / SHARPNESS)


def rows_times(matrix: Array, rows: Array) -> Array:
    """Matrix times each row. BLAS would round differently for different numbers of rows."""
    result = np.zeros_like(rows)
    for j in range(rows.shape[1]):
        result += rows[:, j, None] * matrix[:, j]
    return result
