"""The parabola that gradients and values describe best.

A gradient tells of D slopes, so D + 2 of them show a posterior's whole shape, correlations
included, long before values do.

Notation (D dimensions, n points)
    X, y, g   inputs (n, D), values (n,) and gradients (n, D; NaN where not known)
    c, a, H   g = a - H (x - c), by least squares; H = E diag(h) E^T made symmetric
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparing.numerics.arrays import Array

# Where points share a coordinate: small, yet squares over it do not overflow.
SMALLEST_VARIANCE = 1e-100


@dataclass(frozen=True, eq=False)
class Parabola:
    """height - 1/2 |E^T (x - mean)|^2 / variances: (D,) each but the axes E, (D, D)."""

    mean: Array
    axes: Array
    variances: Array
    height: float

    @property
    def covariance(self) -> Array:
        """Of the normal density that it is the logarithm of, (D, D)."""
        return (self.axes * self.variances) @ self.axes.T

    def values(self, points: Array) -> Array:
        """At points (m, D): (m,)."""
        return self.height - _half_squares(points - self.mean, self.axes, self.variances)


def parabola_of(inputs: Array, values: Array, gradients: Array) -> Parabola | None:
    """The parabola nearest to the gradients; None where fewer than D + 2 are known.

    High points count most: squared slopes of a parabola grow with the depth. Where the gradients
    do not bend down it is as wide as the points are spread.
    """
    known = np.isfinite(gradients).all(axis=1)
    inputs, values, gradients = inputs[known], values[known], gradients[known]
    n, dimension = inputs.shape
    if n < dimension + 2:
        return None
    weights = 1.0 / (dimension + values.max() - values)
    centre = np.average(inputs, axis=0, weights=weights)
    roots = np.sqrt(weights)[:, None]
    design = np.column_stack([np.ones(n), inputs - centre])
    solution = np.linalg.lstsq(design * roots, gradients * roots, rcond=None)[0]
    curvatures, axes = np.linalg.eigh(-0.5 * (solution[1:] + solution[1:].T))
    spread = np.var((inputs - centre) @ axes, axis=0)
    bends = curvatures * spread > 1.0
    variances = np.where(bends, 1.0 / np.where(bends, curvatures, 1.0), spread)
    variances = np.maximum(variances, SMALLEST_VARIANCE)
    mean = centre + axes @ np.where(bends, variances * (axes.T @ solution[0]), 0.0)
    heights = values + _half_squares(inputs - mean, axes, variances)
    return Parabola(mean, axes, variances, float(np.average(heights, weights=weights**2)))


def _half_squares(offsets: Array, axes: Array, variances: Array) -> Array:
    return 0.5 * ((offsets @ axes) ** 2 / variances).sum(axis=1)
