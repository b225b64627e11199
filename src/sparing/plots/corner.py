"""The posterior: marginals on the diagonal, pairs below it, and the evaluated points.

D   number of parameters
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import gaussian_filter

from sparing.numerics.arrays import Array
from sparing.plots import style
from sparing.plots.style import BLACK, BLUE, GREY, ORANGE, REGION_MASSES, REGION_SHADES
from sparing.summary.numbers import rounded
from sparing.variational.posterior import Posterior
from sparing.vbmc.run_record import RunRecord

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LARGEST_SIZE = 20.0  # inches
MANY_PARAMETERS = 6  # beyond, panels are too small for numbers of their own
MARGINAL_GRID = 300
SMOOTHING = 1.5  # of histograms of samples, in bins
# More dots than this make a vector file slow to open: they are embedded as pixels then.
MOST_VECTOR_DOTS = 4000


@dataclass(frozen=True, eq=False)
class _Content:
    """What the panels show, in the user's coordinates."""

    record: RunRecord
    views: list[style.View]
    points: Array  # (n, D)
    without_value: Array  # (n, D)
    reference: Array | None  # (m, D)

    @property
    def dimension(self) -> int:
        return len(self.views)

    @property
    def as_pixels(self) -> bool:
        n_dots = len(self.points) + len(self.without_value)
        return n_dots * self.dimension**2 / 2 > MOST_VECTOR_DOTS


def plot_posterior(result: RunRecord, *, reference: ArrayLike | None = None) -> Figure:
    """Marginals on the diagonal, pairs below it, and the evaluated points as dots.

    The shaded regions hold 50, 80 and 95 % of each pair's posterior mass. Evaluated points outside
    the region where the posterior lives are not shown. A prior that each parameter has of its own
    is drawn beside the marginals. ``reference`` (m, D) are samples to compare with, such as those
    of a long MCMC run: they are drawn in outline.

    >>> from sparing.plots import plot_posterior
    >>> figure = plot_posterior(result, reference=[[1.1, -0.4], [1.3, -0.6]])
    >>> figure.savefig("posterior.png")
    """
    dimension = len(result.problem.names)
    size = min(2.1 * dimension + 1.0, LARGEST_SIZE)
    figure = style.new_figure(5.5, 3.6) if dimension == 1 else style.new_figure(size, size)
    grid = figure.add_gridspec(dimension, dimension)
    content = _Content(
        result,
        style.posterior_views(result.posterior),
        style.evaluated_points(result),
        style.points_without_value(result),
        _reference_samples(reference, result.posterior),
    )
    for row in range(dimension):
        for column in range(row + 1):
            ax = figure.add_subplot(grid[row, column])
            if column == row:
                _draw_marginal(ax, content, row)
            else:
                _draw_pair(ax, content, row, column)
            _label(ax, content, row, column)
    _add_legend(figure, content)
    return figure


def _reference_samples(reference: ArrayLike | None, posterior: Posterior) -> Array | None:
    if reference is None:
        return None
    names = posterior.names
    samples = np.asarray(reference, dtype=np.float64)
    if samples.ndim != 2 or samples.shape[1] != len(names) or not np.all(np.isfinite(samples)):
        raise ValueError(
            f"reference must be finite samples of shape (m, {len(names)}), one column for each of "
            f"{', '.join(names)}; got shape {samples.shape}"
        )
    return posterior.unwrapped(samples)


def _draw_marginal(ax: Axes, content: _Content, index: int) -> None:
    view, posterior = content.views[index], content.record.posterior
    x = style.axis_grid(view, MARGINAL_GRID)
    density = posterior.marginal_density(index, x)
    ax.fill_between(x, density, color=REGION_SHADES[0], linewidth=0)
    ax.plot(x, density, color=BLUE, linewidth=1.5)
    if (prior := style.prior_density(content.record, index, x)) is not None:
        ax.plot(x, prior, color=GREY, linestyle=":", linewidth=1.2)
    if content.reference is not None:
        outline = sample_density(content.reference[:, index], view)
        ax.plot(style.axis_grid(view), outline, color=BLACK, linestyle="--", linewidth=1.0)
    # A tick for every evaluated point, at the foot of the panel.
    points = content.points[:, index]
    ax.plot(points, np.zeros(len(points)), "|", color=ORANGE, markersize=7, alpha=0.6)
    ax.set_xlim(*view)
    style.without_heights(ax)


def _draw_pair(ax: Axes, content: _Content, row: int, column: int) -> None:
    views = content.views[column], content.views[row]
    x, y = style.axis_grid(views[0]), style.axis_grid(views[1])
    density = content.record.posterior.pair_density(column, row, x, y)
    levels = region_levels(density, REGION_MASSES)
    if levels is not None:
        ax.contourf(x, y, density, levels=[*levels, np.inf], colors=list(REGION_SHADES))
    if content.reference is not None:
        outline = sample_pair_density(content.reference[:, [column, row]], views)
        heights = region_levels(outline, REGION_MASSES)
        if heights is not None:
            ax.contour(x, y, outline, levels=heights, colors=BLACK, linewidths=0.8)
    small = content.dimension > MANY_PARAMETERS
    shared: dict[str, Any] = {"alpha": 0.4 if small else 0.8, "rasterized": content.as_pixels}
    dots, crosses = content.points[:, [column, row]].T, content.without_value[:, [column, row]].T
    # Small enough that many of them along a narrow ridge do not hide it.
    ax.scatter(*dots, s=2 if small else 4, color=ORANGE, linewidths=0.0, **shared)
    ax.scatter(*crosses, s=14, color=GREY, linewidths=0.8, marker="x", **shared)
    ax.set_xlim(*views[0])
    ax.set_ylim(*views[1])


def _label(ax: Axes, content: _Content, row: int, column: int) -> None:
    """Names and numbers at the left and lower edge only; fewer ticks in many small panels."""
    names, posterior = content.record.problem.names, content.record.posterior
    small = content.dimension > MANY_PARAMETERS
    ax.tick_params(labelsize=7 if small else 8)
    ax.locator_params(axis="x", nbins=3)
    font_size = 9 if small else 10
    if column == row and not small:
        mean, sd = posterior.mean[row], posterior.sd[row]
        name = style.escape_dollars(names[row])
        ax.set_title(f"{name}: {rounded(mean, sd)} ± {rounded(sd, sd)}", fontsize=9)
    if column < row:
        ax.locator_params(axis="y", nbins=3)
    if row == content.dimension - 1:
        ax.set_xlabel(style.escape_dollars(names[column]), fontsize=font_size)
        ax.tick_params(axis="x", labelrotation=45)
    else:
        ax.tick_params(axis="x", labelbottom=False)
    if column == 0 and row > 0:
        ax.set_ylabel(style.escape_dollars(names[row]), fontsize=font_size)
    elif column < row:
        ax.tick_params(axis="y", labelleft=False)


def _add_legend(figure: Figure, content: _Content) -> None:
    """Stand-ins for what is drawn, in the empty corner; in the panel itself where D = 1."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    def dots(marker: str, colour: str, label: str) -> Line2D:
        return Line2D([], [], linestyle="none", marker=marker, color=colour, label=label)

    alone = content.dimension == 1
    entries: list[Artist] = [Line2D([], [], color=BLUE, label="posterior")]
    if not alone:
        shades = zip(reversed(REGION_MASSES), reversed(REGION_SHADES), strict=True)
        words = "% of the posterior"
        entries = [Patch(color=shade, label=f"{100 * mass:.0f} {words}") for mass, shade in shades]
    if style.prior_density(content.record, 0, np.zeros(1)) is not None:
        entries.append(Line2D([], [], color=GREY, linestyle=":", label="prior"))
    entries.append(dots("|" if alone else ".", ORANGE, "evaluated points"))
    if len(content.without_value) and not alone:
        entries.append(dots("x", GREY, "without a value"))
    if content.reference is not None:
        line = "--" if alone else "-"
        entries.append(Line2D([], [], color=BLACK, linestyle=line, label="reference samples"))
    if alone:
        figure.axes[0].legend(handles=entries, frameon=False, fontsize=8)
    else:
        size = 9 if content.dimension <= MANY_PARAMETERS else 14
        figure.legend(handles=entries, loc="upper right", frameon=False, fontsize=size)


def sample_density(samples: Array, view: style.View) -> Array:
    """Density of samples (m,) at `axis_grid(view)`: (GRID,)."""
    counts, edges = np.histogram(samples, bins=style.GRID, range=view)
    smooth = gaussian_filter(counts.astype(np.float64), SMOOTHING)
    return smooth / (max(len(samples), 1) * (edges[1] - edges[0]))


def sample_pair_density(samples: Array, views: tuple[style.View, style.View]) -> Array:
    """Density of samples (m, 2) on the grid of both views, up to a factor: (GRID, GRID)."""
    counts, _, _ = np.histogram2d(samples[:, 0], samples[:, 1], bins=style.GRID, range=list(views))
    return gaussian_filter(counts, SMOOTHING).T


def region_levels(density: Array, masses: Sequence[float]) -> Array | None:
    """Heights above which the density on a grid holds each mass; None if they coincide.

    ``masses`` come in falling order, so the heights rise, as contours want them.

    >>> from sparing.plots import region_levels
    >>> region_levels(np.array([[1.0, 2.0], [3.0, 4.0]]), masses=[0.9, 0.5])
    array([2., 3.])
    """
    falling = np.sort(density, axis=None)[::-1]
    with np.errstate(over="ignore"):
        total = falling.sum()
    if not 0.0 < total < np.inf:  # beyond what a float can hold
        return None
    held = np.cumsum(falling) / total
    levels = falling[np.minimum(np.searchsorted(held, masses), falling.size - 1)]
    return levels if np.all(np.diff(levels) > 0.0) else None
