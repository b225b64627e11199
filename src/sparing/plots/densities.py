"""Densities on grids: pairs of parameters in closed form, samples by smoothed histograms.

s        standardised coordinates: s_i depends on x_i alone, and is linear in the mixture's u
M, b     s = M u + b                             A   M's rows i and j times diag(lambda), (2, D)
L        Cholesky factor of A A^T, (2, 2): in t = L^-1 s every component of q is round
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.ndimage import gaussian_filter

from sparing.numerics.arrays import Array
from sparing.plots.style import View
from sparing.variational.mixture import GaussianMixture
from sparing.variational.posterior import Posterior

GRID = 80  # points per axis
SMOOTHING = 1.5  # of histograms, in bins


def axis_grid(view: View, n: int = GRID) -> Array:
    """Points over the middle of the view's cells, so that none lies on a hard bound: (n,)."""
    edges = np.linspace(*view, n + 1)
    return 0.5 * (edges[1:] + edges[:-1])


def pair_density(posterior: Posterior, i: int, j: int, x_i: Array, x_j: Array) -> Array:
    """Joint density of two parameters on a grid, (len(x_j), len(x_i)), the others integrated out.

    A linear map of a mixture of normals is one again, so nothing is sampled.
    """
    mixture, transform = posterior.mixture, posterior.transform
    matrix, offset = transform.standardised_map()
    pair = [i, j]
    A = matrix[pair] * mixture.lengths
    L = np.linalg.cholesky(A @ A.T)
    inverse = np.linalg.inv(L)
    means = mixture.means @ matrix[pair].T + offset[pair]
    round_mixture = GaussianMixture(mixture.weights, means @ inverse.T, mixture.scales, np.ones(2))
    s_i, log_slope_i = _standardised(posterior, i, x_i)
    s_j, log_slope_j = _standardised(posterior, j, x_j)
    s = np.stack(np.meshgrid(s_i, s_j), axis=-1).reshape(-1, 2)
    log_density = round_mixture.log_density(np.ascontiguousarray(s @ inverse.T))
    log_density = log_density.reshape(len(x_j), len(x_i)) - np.log(np.diag(L)).sum()
    return np.exp(log_density + log_slope_i + log_slope_j[:, None])


def _standardised(posterior: Posterior, i: int, x: Array) -> tuple[Array, Array]:
    """s_i and log ds_i/dx_i at values of one parameter, (m,) each."""
    transform = posterior.transform
    rows = np.tile(transform.to_user(posterior.mixture.mean[None, :]), (len(x), 1))
    rows[:, i] = x
    g = transform.coordinates[i]
    log_slope = -g.log_derivative(g.to_unbounded(x)) - np.log(transform.width[i])
    return transform.standardised(rows)[:, i], log_slope


def sample_density(samples: Array, view: View) -> Array:
    """Density of samples (m,) at `axis_grid(view)`: (GRID,)."""
    counts, edges = np.histogram(samples, bins=GRID, range=view)
    smooth = gaussian_filter(counts.astype(np.float64), SMOOTHING)
    return smooth / (max(len(samples), 1) * (edges[1] - edges[0]))


def sample_pair_density(samples: Array, views: tuple[View, View]) -> Array:
    """Density of samples (m, 2) on the grid of both views, up to a factor: (GRID, GRID)."""
    counts, _, _ = np.histogram2d(samples[:, 0], samples[:, 1], bins=GRID, range=list(views))
    return gaussian_filter(counts, SMOOTHING).T


def region_levels(density: Array, masses: Sequence[float]) -> Array | None:
    """Heights above which the density on a grid holds each mass; None if they coincide.

    ``masses`` come in falling order, so the heights rise, as contours want them.

    >>> from sparing.plots import region_levels
    >>> region_levels(np.array([[1.0, 2.0], [3.0, 4.0]]), masses=[0.9, 0.5])
    array([2., 3.])
    """
    falling = np.sort(density, axis=None)[::-1]
    total = falling.sum()
    if not total > 0.0:
        return None
    held = np.cumsum(falling) / total
    levels = falling[np.minimum(np.searchsorted(held, masses), falling.size - 1)]
    return levels if np.all(np.diff(levels) > 0.0) else None
