"""Several runs beside each other: their evidence, and their posterior of each parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sparing.plots import style
from sparing.plots.densities import axis_grid
from sparing.plots.style import AMBER, BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY
from sparing.vbmc.run_record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, AMBER, BLACK)
LINES = ("-", "--", ":", "-.")
MARGINAL_GRID = 300


def plot_comparison(results: Mapping[str, RunRecord] | Sequence[RunRecord]) -> Figure:
    """Log evidence of each run with two standard deviations, and the marginals on each other.

    An open dot marks a run that did not converge. Give a mapping to name the runs, such as
    ``{"seed 1": first, "seed 2": second}``. Runs of different models may be compared too: a panel
    shows every run that has its parameter.

    >>> from sparing.plots import plot_comparison
    >>> another = sparing.infer(problem, seed=2, max_evaluations=20, progress=False)
    >>> figure = plot_comparison({"seed 1": result, "seed 2": another})
    >>> [ax.get_xlabel() for ax in figure.axes]
    ['log evidence', 'slope', 'offset']
    """
    runs = results
    if not isinstance(runs, Mapping):
        runs = {f"run {number}": run for number, run in enumerate(runs, start=1)}
    if not runs:
        raise ValueError("plot_comparison needs at least one result")
    names = list(dict.fromkeys(name for run in runs.values() for name in run.problem.names))
    styles = _styles(runs)
    figure, axes = style.panel_grid(len(names) + 1, 3.2, 2.7)
    _draw_evidence(axes[0], runs, styles)
    for name, ax in zip(names, axes[1:], strict=True):
        _draw_marginals(ax, name, runs, styles)
    style.legend_above(figure, min(len(runs), 5))
    return figure


def _styles(runs: Mapping[str, RunRecord]) -> dict[str, tuple[str, str]]:
    """A colour and a line for each run, both different from one run to the next."""
    most = len(COLOURS) * len(LINES)  # their lengths have no common factor
    if len(runs) > most:
        raise ValueError(f"{len(runs)} runs are too many for one picture: at most {most}")
    return {
        label: (COLOURS[number % len(COLOURS)], LINES[number % len(LINES)])
        for number, label in enumerate(runs)
    }


def _draw_evidence(
    ax: Axes, runs: Mapping[str, RunRecord], styles: Mapping[str, tuple[str, str]]
) -> None:
    for place, (label, run) in enumerate(runs.items()):
        colour, line = styles[label]
        error = 2.0 * run.log_evidence_sd
        ends = [run.log_evidence - error, run.log_evidence + error]
        ax.plot(
            ends, [place, place], color=colour, linestyle=line, label=style.escape_dollars(label)
        )
        # An open dot for a run that did not converge.
        fill = colour if run.converged else "white"
        ax.plot(run.log_evidence, place, "o", color=colour, markerfacecolor=fill)
    ax.set_ylim(len(runs) - 0.5, -0.5)
    ax.set_yticks([])
    ax.set_xlabel("log evidence")
    ax.locator_params(axis="x", nbins=4)
    style.open_frame(ax, "left")


def _draw_marginals(
    ax: Axes,
    name: str,
    runs: Mapping[str, RunRecord],
    styles: Mapping[str, tuple[str, str]],
) -> None:
    views = []
    for label, run in runs.items():
        if name not in run.problem.names:
            continue
        view = style.posterior_views(run.posterior)[run.problem.names.index(name)]
        x = axis_grid(view, MARGINAL_GRID)
        colour, line = styles[label]
        ax.plot(x, run.posterior.marginal_density(name, x), color=colour, linestyle=line)
        views.append(view)
    ax.set_xlim(min(low for low, _ in views), max(high for _, high in views))
    style.without_heights(ax)
    ax.set_xlabel(style.escape_dollars(name))
    ax.locator_params(axis="x", nbins=4)
