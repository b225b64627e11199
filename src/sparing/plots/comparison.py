"""Several runs beside each other: their evidence, and their posterior of each parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from sparing.plots import style
from sparing.plots.style import AMBER, BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY
from sparing.summary.numbers import names_by_fixed
from sparing.vbmc.run_record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, AMBER, BLACK)
LINES = ("-", "--", ":", "-.")
MARGINAL_GRID = 300

Line = tuple[str, RunRecord, str, str]  # label, run, colour and kind of line


def plot_comparison(results: Mapping[str, RunRecord] | Sequence[RunRecord]) -> Figure:
    """Log evidence of each run with two standard deviations, and the marginals on each other.

    An open dot marks a run that did not converge. Give a mapping to name the runs, such as
    ``{"seed 1": first, "seed 2": second}``. Runs of different models may be compared too: they are
    named by what is fixed in them, and a panel shows every run that has its parameter.

    >>> from sparing.plots import plot_comparison
    >>> another = sparing.infer(problem, seed=2, max_evaluations=20, progress=False)
    >>> figure = plot_comparison({"seed 1": result, "seed 2": another})
    >>> [ax.get_xlabel() for ax in figure.axes]
    ['log evidence', 'slope', 'offset']
    """
    runs = results
    if not isinstance(runs, Mapping):
        numbered = [f"run {number}" for number in range(1, len(runs) + 1)]
        labels = names_by_fixed([run.problem.fixed for run in runs]) or numbered
        runs = dict(zip(labels, runs, strict=True))
    if not runs:
        raise ValueError("plot_comparison needs at least one result")
    most = len(COLOURS) * len(LINES)  # their lengths have no common factor
    if len(runs) > most:
        raise ValueError(f"{len(runs)} runs are too many for one picture: at most {most}")
    lines = list(zip(runs, runs.values(), cycle(COLOURS), cycle(LINES), strict=False))
    names = list(dict.fromkeys(name for run in runs.values() for name in run.problem.names))
    figure, axes = style.panel_grid(len(names) + 1, 3.2, 2.7)
    _draw_evidence(axes[0], lines)
    for name, ax in zip(names, axes[1:], strict=True):
        _draw_marginals(ax, name, lines)
    for ax in axes:
        ax.locator_params(axis="x", nbins=4)
    style.legend_above(figure, min(len(runs), 5))
    return figure


def _draw_evidence(ax: Axes, lines: Sequence[Line]) -> None:
    for place, (label, run, colour, line) in enumerate(lines):
        label = style.escape_dollars(label)
        error = 2.0 * run.log_evidence_sd
        ends = [run.log_evidence - error, run.log_evidence + error]
        ax.plot(ends, [place, place], color=colour, linestyle=line, label=label)
        # An open dot for a run that did not converge.
        fill = colour if run.converged else "white"
        ax.plot(run.log_evidence, place, "o", color=colour, markerfacecolor=fill)
    ax.set_ylim(len(lines) - 0.5, -0.5)
    ax.set_yticks([])
    ax.set_xlabel("log evidence")
    style.open_frame(ax, "left")


def _draw_marginals(ax: Axes, name: str, lines: Sequence[Line]) -> None:
    views = []
    for _, run, colour, line in lines:
        if name not in run.problem.names:
            continue
        index = run.problem.names.index(name)
        view = style.posterior_views(run.posterior)[index]
        period = run.posterior.transform.periods[index]
        if views and np.isfinite(period):  # the same way round as the first one
            turns = np.round((sum(views[0]) - sum(view)) / (2.0 * period))
            view = view[0] + turns * period, view[1] + turns * period
        x = style.axis_grid(view, MARGINAL_GRID)
        ax.plot(x, run.posterior.marginal_density(name, x), color=colour, linestyle=line)
        views.append(view)
    ax.set_xlim(min(low for low, _ in views), max(high for _, high in views))
    style.without_heights(ax)
    ax.set_xlabel(style.escape_dollars(name))
