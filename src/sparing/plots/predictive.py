"""Data simulated at draws from the posterior, and the data that were observed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sparing.plots import style
from sparing.plots.style import BLUE, ORANGE, REGION_MASSES, REGION_SHADES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_predictive(simulated: ArrayLike, observed: ArrayLike) -> Figure:
    """Bands that hold 50, 80 and 95 % of the simulated data, and the observed ones as dots.

    ``simulated`` (n, ...) is what `sparing.posterior_predictive` returns, ``observed`` (...) has
    the shape of one data set. Several axes of the data are put one after the other.

    >>> from sparing.plots import plot_predictive
    >>> data = np.random.default_rng(1).normal(size=(100, 5))
    >>> figure = plot_predictive(data, np.zeros(5))
    >>> figure.savefig("predictive.png")
    """
    draws, seen = np.asarray(simulated, dtype=np.float64), np.asarray(observed, dtype=np.float64)
    if draws.shape[1:] != seen.shape:
        raise ValueError(
            f"observed has shape {seen.shape}, but each simulated data set {draws.shape[1:]}: "
            "simulate must return data like those that were observed"
        )
    draws, seen = draws.reshape(len(draws), -1), seen.ravel()
    figure = style.new_figure(7.0, 3.6)
    ax = figure.subplots()
    x = np.arange(1, seen.size + 1)
    edges = np.concatenate([x - 0.5, [seen.size + 0.5]])  # steps: the data need not be a curve
    for mass, shade in zip(REGION_MASSES, REGION_SHADES, strict=True):
        low, high = np.quantile(draws, [0.5 - mass / 2.0, 0.5 + mass / 2.0], axis=0)
        label = f"{100 * mass:.0f} % of the simulated data"
        ax.stairs(high, edges, baseline=low, fill=True, color=shade, label=label)
    ax.hlines(np.median(draws, axis=0), x - 0.5, x + 0.5, color=BLUE, label="their median")
    ax.plot(x, seen, "o", color=ORANGE, markersize=4, label="observed")
    ax.set_xlim(edges[0], edges[-1])
    ax.set_xlabel("datum")
    ax.locator_params(axis="x", integer=True)
    ax.legend(frameon=False, fontsize=8)
    style.open_frame(ax)
    return figure
