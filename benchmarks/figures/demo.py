"""Figure 1: a run on a curved posterior in two dimensions whose evidence is known.

Notation: T iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import sparing
from benchmarks.figures.layout import LABEL_SIZE, Drawing, add_legend, tidy
from benchmarks.figures.looks import look_of
from benchmarks.figures.recorded_runs import Source
from benchmarks.figures.solutions import kept_run
from benchmarks.problems.base import Array
from sparing.cli.demo_run import GRID, VIEW, Truth, exact_answer, log_posterior, make_problem
from sparing.plots import (
    BLUE,
    ORANGE,
    REGION_MASSES,
    REGION_SHADES,
    new_figure,
    region_levels,
)
from sparing.strategies import LowerBound
from sparing.vbmc.state import IterationInfo

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METHODS_SHOWN = ("sparing-paper", "sparing")
SEED = 1
N_SHOWN = 5  # iterations
SIZE = (10.5, 5.2)  # inches
TWO_SIDED = 1.96  # standard deviations of a 95 % interval
ELBO_VIEW = (-0.6, 0.3)  # nats from the exact LML; the first iterations are further away


def demo_figures(source: Source) -> list[Drawing]:
    """The paper's algorithm and sparing's default, one figure each."""
    truth = exact_answer()
    drawings = []
    for method in METHODS_SHOWN:
        result = kept_run(source, "demo", make_problem(), method, SEED)
        drawings.append(_figure(method, result, truth))
    return drawings


def _figure(method: str, result: sparing.Result, truth: Truth) -> Drawing:
    shown = spread_out(len(result.history), N_SHOWN)
    top = [f"iteration {t}" for t in shown]
    figure = new_figure(SIZE[0], SIZE[1])
    bottom = ["elbo"] * (len(shown) - 1) + ["exact"] if len(shown) > 1 else ["exact"]
    axes = figure.subplot_mosaic([top, bottom])
    grid = _grid()
    points = np.array([entry.x for entry in result.evaluations])
    for t, name in zip(shown, top, strict=True):
        info = result.history[t - 1]
        ax = axes[name]
        draw_regions(ax, *grid, info.posterior.density(_points(grid)).reshape(GRID, GRID))
        ax.plot(*points[: info.n_evaluations].T, ".", color="black", markersize=2.5)
        centres = info.posterior.transform.to_user(info.posterior.mixture.means)
        ax.plot(*centres.T, "+", color=ORANGE, markersize=7, markeredgewidth=1.4)
        letter = "A. " if t == shown[0] else ""
        _frame(ax, f"{letter}{name}\n({info.n_evaluations} evaluations)")
    axes[top[0]].set_ylabel("$x_2$", fontsize=LABEL_SIZE)
    exact = np.exp(log_posterior(_points(grid), truth)).reshape(GRID, GRID)
    draw_regions(axes["exact"], *grid, exact)
    _frame(axes["exact"], "C. exact posterior")
    if "elbo" in axes:
        _draw_elbo(axes["elbo"], result, truth, method)
    axes[top[0]].plot([], [], ".", color="black", label="evaluated points")
    axes[top[0]].plot([], [], "+", color=ORANGE, label="centres of the mixture's components")
    add_legend(figure, [figure])
    label = look_of(method).label
    caption = (
        f"A run of {label} in two dimensions. A: regions that hold 50, 80 and 95 % of the "
        "variational posterior at several iterations, with the evaluated points and the centres "
        "of the mixture's components. B: ELBO against iterations; shaded: its 95 % interval "
        "according to the surrogate, which is not the error. C: the exact posterior."
    )
    return Drawing(f"figure-1-demo-{method}", caption, figure)


def spread_out(n: int, wanted: int) -> list[int]:
    """At most so many of the numbers 1..n, the first and the last among them."""
    return sorted({round(value) for value in np.linspace(1, n, min(n, wanted))})


def draw_regions(ax: Axes, x: Array, y: Array, density: Array) -> None:
    """Regions that hold 50, 80 and 95 % of the mass; none where the density has no extent."""
    levels = region_levels(density, REGION_MASSES)
    if levels is not None:
        ax.contourf(x, y, density, levels=[*levels, np.inf], colors=list(REGION_SHADES))
        ax.contour(x, y, density, levels=levels, colors=BLUE, linewidths=0.6)


def _draw_elbo(ax: Axes, result: sparing.Result, truth: Truth, method: str) -> None:
    iterations = np.arange(1, len(result.history) + 1)
    colour = look_of(method).colour
    _draw_band(ax, iterations, result.history, "elbo", "ELBO", colour)
    if not isinstance(result.settings.evidence, LowerBound):
        label = "log evidence, corrected"
        _draw_band(ax, iterations, result.history, "log_evidence", label, "black")
    ax.axhline(truth.log_evidence, color="black", linewidth=1, label="exact LML")
    ax.set_ylim(*(truth.log_evidence + np.array(ELBO_VIEW)))
    ax.set_xlabel("iteration", fontsize=LABEL_SIZE)
    ax.set_ylabel("nats", fontsize=LABEL_SIZE)
    tidy(ax, f"B. {look_of(method).label}: log marginal likelihood (LML) and its bound")


def _draw_band(
    ax: Axes,
    iterations: Array,
    history: Sequence[IterationInfo],
    name: str,
    label: str,
    colour: str,
) -> None:
    """A line and its 95 % interval."""
    value = np.array([getattr(info, name) for info in history])
    reach = TWO_SIDED * np.array([getattr(info, f"{name}_sd") for info in history])
    line = "-" if name == "elbo" else ":"
    ax.plot(iterations, value, color=colour, linestyle=line, marker=".", label=label)
    ax.fill_between(iterations, value - reach, value + reach, color=colour, alpha=0.2, linewidth=0)


def _grid() -> tuple[Array, Array]:
    """Coordinates (GRID, GRID) of the view's points."""
    x, y = np.meshgrid(np.linspace(*VIEW[0], GRID), np.linspace(*VIEW[1], GRID))
    return x, y


def _points(grid: tuple[Array, Array]) -> Array:
    return np.stack(grid, axis=-1).reshape(-1, 2)


def _frame(ax: Axes, title: str) -> None:
    ax.set(xlim=VIEW[0], ylim=VIEW[1])
    ax.set_xlabel("$x_1$", fontsize=LABEL_SIZE)
    tidy(ax, title)
