"""Grids to draw densities on, and the densities of samples by smoothed histograms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.ndimage import gaussian_filter

from sparing.numerics.arrays import Array
from sparing.plots.style import View

GRID = 80  # points per axis
SMOOTHING = 1.5  # of histograms, in bins


def axis_grid(view: View, n: int = GRID) -> Array:
    """Points over the middle of the view's cells, so that none lies on a hard bound: (n,)."""
    edges = np.linspace(*view, n + 1)
    return 0.5 * (edges[1:] + edges[:-1])


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
