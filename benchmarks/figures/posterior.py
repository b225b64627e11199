"""The exact and an approximate posterior in one triangle of panels.

Unlike ``sparing.plots.plot_posterior``, which shows a run, the axes hold both posteriors: a tail
that the approximation misses is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.ndimage import gaussian_filter

from benchmarks.figures.exact_draws import WeightedDraws, exact_draws
from benchmarks.figures.layout import LABEL_SIZE, NOTE_SIZE, Drawing
from benchmarks.figures.looks import look_of
from benchmarks.figures.recorded_runs import Source
from benchmarks.figures.solutions import solution
from benchmarks.metrics import gskl, lml_error
from benchmarks.problems.base import Array, BenchmarkProblem
from sparing.plots import REGION_MASSES, new_figure, region_levels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    import sparing

METHOD = "sparing"
PREFERRED = "neuron-v2"  # the paper's choice
GREYS = ("#E3E3E3", "#BDBDBD", "#8C8C8C")  # regions that hold 95, 80 and 50 %
PANEL = 1.35  # inches
N_DRAWS = 20_000
BINS = 60
SMOOTHING = 1.5  # bins
VIEW_MASS = 0.998
VIEW_MARGIN = 0.1


def posterior_figure(source: Source) -> list[Drawing]:
    """A corner plot of the first of the featured problems, the V2 neuron if it is there."""
    featured = source.featured()
    name = PREFERRED if PREFERRED in featured else featured[0]
    problem = source.load(name)
    exact = exact_draws(source, problem)
    result = solution(source, problem, METHOD, source.budget(name))
    points = result.posterior.sample(N_DRAWS, seed=0)
    found = WeightedDraws(points, np.full(N_DRAWS, 1.0 / N_DRAWS))
    figure = _corner(problem.dimension, exact, found)
    label = look_of(METHOD).label
    _explain(figure, problem, result, label)
    caption = (
        f"Exact and approximate posterior of {name}. Grey: regions that hold 50, 80 and 95 % of "
        "the exact posterior, by importance sampling with an effective sample size of "
        f"{exact.effective_sample_size:,.0f}. Lines: the same regions of {label} after "
        f"{result.n_evaluations} evaluations. Diagonal: marginal densities. Coordinates are "
        "those in which inference is done."
    )
    return [Drawing("figure-s-posterior", caption, figure)]


def _corner(D: int, exact: WeightedDraws, found: WeightedDraws) -> Figure:
    size = max(PANEL * D + 0.6, 4.0)
    figure = new_figure(size, size)
    axes = figure.subplots(D, D, squeeze=False, sharex="col")
    views = [view(exact, found, d) for d in range(D)]
    colour = look_of(METHOD).colour
    for i in range(D):
        for j in range(D):
            ax = axes[i, j]
            if j > i:
                ax.set_axis_off()
                continue
            if j == i:
                _draw_marginals(ax, exact, found, i, views[i], colour)
            else:
                _draw_pair(ax, exact, found, (j, i), (views[j], views[i]), colour)
            _label(ax, i, j, D)
    return figure


def view(exact: WeightedDraws, found: WeightedDraws, d: int) -> tuple[float, float]:
    """The stretch of a coordinate that holds nearly all of both posteriors."""
    tail = 0.5 * (1.0 - VIEW_MASS)
    ends = [quantiles(each, d, [tail, 1.0 - tail]) for each in (exact, found)]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    margin = VIEW_MARGIN * (high - low)
    return float(low - margin), float(high + margin)


def quantiles(draws: WeightedDraws, d: int, probabilities: Sequence[float]) -> Array:
    """Weighted quantiles of coordinate d."""
    order = np.argsort(draws.points[:, d])
    cumulative = np.cumsum(draws.weights[order])
    return np.interp(probabilities, cumulative, draws.points[order, d])


def _draw_marginals(
    ax: Axes,
    exact: WeightedDraws,
    found: WeightedDraws,
    d: int,
    stretch: tuple[float, float],
    colour: str,
) -> None:
    for draws, filled in ((exact, True), (found, False)):
        mass, edges = np.histogram(draws.points[:, d], BINS, stretch, weights=draws.weights)
        density = gaussian_filter(mass, SMOOTHING) / (edges[1] - edges[0])
        centres = 0.5 * (edges[1:] + edges[:-1])
        if filled:
            ax.fill_between(centres, density, color=GREYS[1], linewidth=0)
        else:
            ax.plot(centres, density, color=colour, linewidth=1.3)
    ax.set_xlim(*stretch)
    ax.set_ylim(bottom=0)
    ax.set_yticks([])
    ax.spines[["top", "right", "left"]].set_visible(False)


def _draw_pair(
    ax: Axes,
    exact: WeightedDraws,
    found: WeightedDraws,
    pair: tuple[int, int],
    stretches: tuple[tuple[float, float], tuple[float, float]],
    colour: str,
) -> None:
    for draws, filled in ((exact, True), (found, False)):
        columns = draws.points[:, pair[0]], draws.points[:, pair[1]]
        mass, *edges = np.histogram2d(*columns, BINS, list(stretches), weights=draws.weights)
        density = gaussian_filter(mass, SMOOTHING).T
        levels = region_levels(density, REGION_MASSES)
        if levels is None:
            continue
        centres = [0.5 * (edge[1:] + edge[:-1]) for edge in edges]
        if filled:
            ax.contourf(*centres, density, levels=[*levels, np.inf], colors=list(GREYS))
        else:
            ax.contour(*centres, density, levels=levels, colors=colour, linewidths=0.9)
    ax.set_xlim(*stretches[0])
    ax.set_ylim(*stretches[1])


def _label(ax: Axes, i: int, j: int, D: int) -> None:
    ax.tick_params(labelsize=NOTE_SIZE - 2)
    ax.locator_params(axis="x", nbins=3)
    if j < i:
        ax.locator_params(axis="y", nbins=3)
    if i == D - 1:
        ax.set_xlabel(f"$x_{{{j + 1}}}$", fontsize=LABEL_SIZE)
        ax.tick_params(axis="x", labelrotation=45)
    if j == 0 and i > 0:
        ax.set_ylabel(f"$x_{{{i + 1}}}$", fontsize=LABEL_SIZE)
    elif j < i:
        ax.tick_params(axis="y", labelleft=False)


def _explain(figure: Figure, problem: BenchmarkProblem, result: sparing.Result, label: str) -> None:
    """What is what, in the empty corner."""
    from matplotlib.patches import Patch

    moments = result.posterior.mean, result.posterior.covariance
    divergence = gskl(*moments, problem.posterior_mean, problem.posterior_covariance)
    error = lml_error(result.log_evidence, problem.log_evidence)
    handles = [
        Patch(facecolor=GREYS[1], label="exact: 50, 80, 95 % of the mass"),
        Patch(
            facecolor="none",
            edgecolor=look_of(METHOD).colour,
            label=f"{label}, {result.n_evaluations} evaluations",
        ),
    ]
    title = f"{problem.name}\nLML error {error:.2g}, gsKL {divergence:.2g}"
    figure.legend(
        handles=handles, loc="upper right", title=title, frameon=False, fontsize=LABEL_SIZE
    )
