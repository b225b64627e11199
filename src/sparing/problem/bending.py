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

    u    u = sinh(d asinh z - e) with z = (w - l) / a; e skewness, d > 1: the tails were light (D,)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sparing.numerics.arrays import Array

SHARPNESS = 4  # how sharply r turns away from t: surrogates have to follow it
FURTHEST = 1e30  # the power of more is no number
LARGEST_ARGUMENT = 300.0  # of a hyperbolic sine that can be squared
SMALLEST_RATIO = 1e-12  # of variances


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
    """u of w, and back, coordinate by coordinate; (D,) each."""

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
        """Where, how wide, how skewed and how heavy-tailed each coordinate is."""
        return 4 * len(self.location)

    def log_jacobian(self, u: Array) -> Array:
        """Log |det dw/du| at points u (m, D): (m,)."""
        return self._log_slopes(u).sum(axis=1)

    def pulled_back(self, u: Array, gradient: Array) -> Array:
        """The gradient by u of y(w(u)) + log |det dw/du|, given that of y by w: (m, D) each."""
        z, slope = self._z(u), np.exp(self._log_slopes(u))
        return gradient * slope + z / (1.0 + z * z) * slope / self.scale - u / (1.0 + u * u)

    def _z(self, u: Array) -> Array:
        return _sinh((np.arcsinh(u) + self.skewness) / self.tail)

    def _log_slopes(self, u: Array) -> Array:
        """Log dw/du, (m, D): cosh(asinh z) is the root of 1 + z^2."""
        z = self._z(u)
        return np.log(self.scale / self.tail) + 0.5 * (np.log1p(z * z) - np.log1p(u * u))


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
