"""Pictures of a result: the posterior with the evaluated points, and how the run went.

Both return a ``matplotlib.figure.Figure`` that no window or global state holds on to:
``figure.savefig("posterior.png")`` writes it. matplotlib is an optional extra (``sparing[plots]``).

    D   number of parameters        K   number of mixture components
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from sparing.errors import MissingExtraError
from sparing.linear_algebra import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sparing.result import Result

# From the palette of Okabe and Ito, told apart with every common colour blindness.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"
# Shades from light to dark: regions that hold 95, 80 and 50 % of the posterior mass.
REGION_MASSES = (0.95, 0.80, 0.50)
REGION_SHADES = ("#D6E6F2", "#9CC6E3", "#5AA2CF")
BINS = 60
SMOOTHING = 1.5  # in bins
# The axes show this central mass of each marginal, widened by VIEW_MARGIN on both sides.
VIEW_MASS = 0.998
VIEW_MARGIN = 0.15
DOT_SIZE = 8.0
LARGEST_SIZE = 22.0  # inches


def plot_posterior(result: Result, *, n_samples: int = 20_000, seed: int = 0) -> Figure:
    """Marginals on the diagonal, pairs below it, and the evaluated points as dots.

    The shaded regions hold 50, 80 and 95 % of each pair's posterior mass. Evaluated points outside
    the region where the posterior lives are not shown.
    """
    names = result.problem.names
    dimension = len(names)
    size = 5.0 if dimension == 1 else min(2.2 * dimension + 1.0, LARGEST_SIZE)
    figure = new_figure(size, size if dimension > 1 else 3.5)
    axes = figure.subplots(dimension, dimension, squeeze=False)
    samples = result.posterior.sample(n_samples, seed=seed)
    points = evaluated_points(result)
    views = [_view(samples[:, d]) for d in range(dimension)]

    for row in range(dimension):
        for column in range(dimension):
            ax = axes[row, column]
            if column > row:
                ax.set_axis_off()
            elif column == row:
                _draw_marginal(ax, samples[:, row], points[:, row], views[row])
            else:
                pair = [column, row]
                _draw_pair(ax, samples[:, pair], points[:, pair], (views[column], views[row]))
            if column <= row:
                _label(ax, names, row, column, dimension)
    return figure


def plot_trace(result: Result) -> Figure:
    """ELBO and log evidence, reliability index and K against the number of evaluations.

    Bands are two standard deviations either way; the grey part is the warm-up. The axis of the
    evidence follows the iterations after the warm-up, since those before it can be far away.
    """
    figure = new_figure(7.0, 7.0)
    evidence_ax, reliability_ax, components_ax = figure.subplots(
        3, 1, sharex=True, gridspec_kw={"height_ratios": (2, 1, 1)}
    )
    history = result.history
    evaluations = np.array([info.n_evaluations for info in history], dtype=np.float64)
    warm_up = np.array([info.warm_up for info in history], dtype=bool)

    bands = []
    for label, attribute, colour, line in (
        ("ELBO", "elbo", BLUE, "-"),
        ("log evidence", "log_evidence", ORANGE, "--"),
    ):
        value = np.array([getattr(info, attribute) for info in history], dtype=np.float64)
        sd = np.array([getattr(info, f"{attribute}_sd") for info in history], dtype=np.float64)
        evidence_ax.plot(evaluations, value, color=colour, linestyle=line, marker=".", label=label)
        evidence_ax.fill_between(
            evaluations, value - 2 * sd, value + 2 * sd, color=colour, alpha=0.2, linewidth=0
        )
        bands += [value - 2 * sd, value + 2 * sd]
    _limit_to(evidence_ax, bands, warm_up)
    evidence_ax.set_ylabel("nats")
    evidence_ax.legend(frameon=False, loc="best")

    reliability = np.array([info.reliability for info in history], dtype=np.float64)
    shown = np.where(np.isfinite(reliability) & (reliability > 0), reliability, np.nan)
    reliability_ax.plot(evaluations, shown, color=GREEN, marker=".")
    reliability_ax.axhline(1.0, color=GREY, linestyle=":", linewidth=1)
    if np.any(np.isfinite(shown)):
        reliability_ax.set_yscale("log")
    reliability_ax.set_ylabel("reliability index")

    components = [info.n_components for info in history]
    components_ax.step(evaluations, components, where="post", color=BLUE, marker=".")
    components_ax.yaxis.get_major_locator().set_params(integer=True)
    components_ax.set_ylabel("components K")
    components_ax.set_xlabel("evaluations")

    for ax in (evidence_ax, reliability_ax, components_ax):
        if np.any(warm_up):
            ax.axvspan(evaluations[0], evaluations[warm_up][-1], color=GREY, alpha=0.1, linewidth=0)
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, or the error that names the missing extra."""
    try:
        from matplotlib.figure import Figure
    except ImportError as problem:
        raise MissingExtraError("matplotlib", "plots") from problem
    return Figure(figsize=(width, height), layout="constrained")


def evaluated_points(result: Result) -> Array:
    """Points with a finite value (n, D), in the user's coordinates."""
    usable = [entry.x for entry in result.evaluations if math.isfinite(entry.value)]
    return np.array(usable, dtype=np.float64).reshape(-1, len(result.problem.names))


def _view(samples: Array) -> tuple[float, float]:
    """The stretch of an axis worth showing."""
    outside = (1.0 - VIEW_MASS) / 2.0
    low, high = np.quantile(samples, (outside, 1.0 - outside))
    width = high - low
    if not width > 0.0:  # a marginal narrower than its numbers can tell
        width = max(abs(low), 1.0) * 1e-6
    return float(low - VIEW_MARGIN * width), float(high + VIEW_MARGIN * width)


def _draw_marginal(ax: Axes, samples: Array, points: Array, view: tuple[float, float]) -> None:
    counts, edges = np.histogram(samples, bins=BINS, range=view)
    width = edges[1] - edges[0]
    density = gaussian_filter(counts.astype(np.float64), SMOOTHING) / (len(samples) * width)
    centres = 0.5 * (edges[1:] + edges[:-1])
    ax.fill_between(centres, density, color=REGION_SHADES[0], linewidth=0)
    ax.plot(centres, density, color=BLUE, linewidth=1.5)
    # A tick for every evaluated point, at the foot of the panel.
    ax.plot(points, np.zeros(len(points)), "|", color=ORANGE, markersize=6, alpha=0.6)
    ax.set_xlim(*view)
    ax.set_ylim(bottom=0.0)
    ax.set_yticks([])
    ax.spines[["top", "right", "left"]].set_visible(False)


def _draw_pair(
    ax: Axes,
    samples: Array,
    points: Array,
    views: tuple[tuple[float, float], tuple[float, float]],
) -> None:
    counts, x_edges, y_edges = np.histogram2d(
        samples[:, 0], samples[:, 1], bins=BINS, range=list(views)
    )
    density = gaussian_filter(counts, SMOOTHING).T
    x_centres = 0.5 * (x_edges[1:] + x_edges[:-1])
    y_centres = 0.5 * (y_edges[1:] + y_edges[:-1])
    levels = region_levels(density, REGION_MASSES)
    if levels is not None:
        ax.contourf(
            x_centres, y_centres, density, levels=[*levels, np.inf], colors=list(REGION_SHADES)
        )
    ax.scatter(points[:, 0], points[:, 1], s=DOT_SIZE, color=ORANGE, linewidths=0, alpha=0.8)
    ax.set_xlim(*views[0])
    ax.set_ylim(*views[1])


def region_levels(density: Array, masses: Sequence[float]) -> Array | None:
    """Heights above which the density on a grid holds each mass; None if they coincide.

    ``masses`` come in falling order, so the heights rise, as contours want them.
    """
    falling = np.sort(density, axis=None)[::-1]
    total = falling.sum()
    if not total > 0.0:
        return None
    held = np.cumsum(falling) / total
    levels = falling[np.minimum(np.searchsorted(held, masses), falling.size - 1)]
    return levels if np.all(np.diff(levels) > 0.0) else None


def _label(ax: Axes, names: Sequence[str], row: int, column: int, dimension: int) -> None:
    """Names and numbers at the left and lower edge only; fewer ticks in many small panels."""
    small = dimension > 6
    ax.tick_params(labelsize=6 if small else 8)
    ax.locator_params(axis="x", nbins=3)
    if column < row:
        ax.locator_params(axis="y", nbins=3)
    font_size = 8 if small else 10
    if row == dimension - 1:
        ax.set_xlabel(_plain(names[column]), fontsize=font_size)
        ax.tick_params(axis="x", labelrotation=45)
    else:
        ax.tick_params(axis="x", labelbottom=False)
    if column == 0 and row > 0:
        ax.set_ylabel(_plain(names[row]), fontsize=font_size)
    elif column < row:
        ax.tick_params(axis="y", labelleft=False)


def _plain(name: str) -> str:
    """A dollar sign in a parameter's name is not the start of a formula unless it has a partner."""
    return name if name.count("$") % 2 == 0 else name.replace("$", r"\$")


def _limit_to(ax: Axes, bands: Sequence[Array], warm_up: NDArray[np.bool_]) -> None:
    """Choose the vertical axis from the iterations after the warm-up, or all if there are none."""
    chosen = np.stack(bands)[:, ~warm_up] if not np.all(warm_up) else np.stack(bands)
    finite = chosen[np.isfinite(chosen)]
    if finite.size == 0:
        return
    low, high = finite.min(), finite.max()
    margin = 0.1 * (high - low) or 0.5
    ax.set_ylim(low - margin, high + margin)
