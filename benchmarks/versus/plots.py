"""Pictures of the comparison: errors and time against evaluations, and calibration.

n           number of evaluations
R           runs of one method on one problem
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from benchmarks.methods import SAMPLERS
from benchmarks.problems.base import Array
from benchmarks.table import covered
from benchmarks.versus.figures import BLUNDER, TOLERANCE
from benchmarks.versus.runs import ERROR_NAMES, Group, Groups
from sparing.plots import BLUE, GREEN, GREY, ORANGE, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, told apart with every common colour blindness, and line styles beside.
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", ":")
Look = dict[str, Any]  # colour and line style, as matplotlib takes them
COLUMNS = 3
PANEL = (3.6, 2.7)  # inches
RESOLUTION = 130  # dots per inch
ERROR_RANGE = (1e-4, 30.0)  # what lies outside is drawn at the edge
RATIO_RANGE = (1e-2, 300.0)
MIN_TIMED = 20  # evaluations; the mean over fewer is that of the initial design


def write_plots(groups: Groups, problems: Sequence[str], directory: Path) -> dict[str, str]:
    """Write every plot; return title and file name of each."""
    few = {name: groups[name] for name in groups if name not in SAMPLERS}
    figures = {
        **_error_figures(few, problems, "against evaluations", ""),
        "Reported against actual errors": ("calibration.png", _calibration(groups, problems)),
        "Library time per evaluation": ("cpu.png", _cpu(few, problems)),
    }
    if len(few) < len(groups):
        figures |= _error_figures(groups, problems, "with the samplers", "_samplers")
    for name, figure in figures.values():
        figure.savefig(directory / name, dpi=RESOLUTION)
    return {title: name for title, (name, _) in figures.items()}


def _error_figures(
    groups: Groups, problems: Sequence[str], what: str, suffix: str
) -> dict[str, tuple[str, Figure]]:
    """Title, file name and figure for the LML error and for gsKL."""
    return {
        f"{name} {what}": (f"{stem}{suffix}.png", _errors(groups, problems, column))
        for column, (name, stem) in enumerate(zip(ERROR_NAMES, ("lml_error", "gskl"), strict=True))
    }


def _errors(groups: Groups, problems: Sequence[str], column: int) -> Figure:
    """One panel per problem: the median over the runs, and the band of the middle half of them."""
    figure = _panels(groups, problems, lambda ax, group, look: _error_line(ax, group, column, look))
    for ax in figure.axes:
        ax.set_ylim(*ERROR_RANGE)
        for threshold in (TOLERANCE, BLUNDER):
            ax.axhline(threshold, color=GREY, linestyle=":", linewidth=0.8)
        if any(name in SAMPLERS for name in groups):
            ax.set_xscale("log")
        else:
            ax.set_xlim(left=0)
    figure.supylabel(ERROR_NAMES[column], fontsize=10)
    return figure


def _error_line(ax: Axes, group: Group, column: int, look: Look) -> None:
    if not len(group.grid):
        return
    errors = np.array([group.errors_at(n)[:, column] for n in group.grid])  # (m, R)
    if np.all(np.isnan(errors)):
        return
    low, middle, high = np.clip(quartiles(errors), *ERROR_RANGE)
    ax.plot(group.grid, middle, drawstyle="steps-post", label=group.method, linewidth=1.5, **look)
    ax.fill_between(group.grid, low, high, step="post", color=look["color"], alpha=0.2, linewidth=0)
    end = np.clip(group.median_errors_at(group.evaluations)[column], *ERROR_RANGE)
    ax.plot(group.evaluations, end, "o", color=look["color"], markersize=5)


def quartiles(values: Array) -> Array:
    """Lower quartile, median and upper quartile (3, m) of the rows of values (m, R)."""
    # Interpolating beside infinity gives NaN, hence values that occur for the outer two.
    low, high = np.quantile(values, [0.25, 0.75], axis=1, method="inverted_cdf")
    return np.stack([low, np.median(values, axis=1), high])


def _cpu(groups: Groups, problems: Sequence[str]) -> Figure:
    """Library CPU seconds per evaluation, over the first n evaluations."""
    figure = _panels(groups, problems, _cpu_line)
    for ax in figure.axes:
        ax.set_xlim(left=0)
    figure.supylabel("library CPU s per evaluation", fontsize=10)
    return figure


def _cpu_line(ax: Axes, group: Group, look: Look) -> None:
    runs = [run for run in group.finished if len(run.cpu_before) > MIN_TIMED]
    if not runs:
        return
    n_last = int(np.median([len(run.cpu_before) for run in runs]))
    counts = np.arange(MIN_TIMED, n_last)
    # A run that has ended leaves the median: its last seconds are of another kind.
    middle = [
        np.median([run.cpu_before[n] for run in runs if n < len(run.cpu_before)]) / n
        for n in counts
    ]
    ax.plot(counts, middle, label=group.method, linewidth=1.5, **look)


def _calibration(groups: Groups, problems: Sequence[str]) -> Figure:
    """|LML error| / reported sd of every run, in order, against half-normal quantiles."""
    figure = new_figure(5.0, 4.6)
    ax = figure.subplots()
    for method, look in zip(groups, _looks(), strict=False):
        runs = [
            run
            for problem in problems
            if problem in groups[method]
            for run in groups[method][problem].finished
            if np.isfinite(run.sd)
        ]
        if not runs:
            continue
        ratios = np.sort([run.errors[0] / run.sd if run.sd > 0 else np.inf for run in runs])
        share = np.mean([covered(float(run.errors[0]), run.sd) for run in runs])
        quantiles = half_normal_quantiles(len(ratios))
        label = f"{method}: {share:.0%} of {len(runs)} runs within 2 sd"
        ax.plot(quantiles, np.clip(ratios, *RATIO_RANGE), ".", label=label, color=look["color"])
    ax.plot(RATIO_RANGE, RATIO_RANGE, color=GREY, linewidth=1, label="calibrated")
    ax.axhline(2.0, color=GREY, linestyle=":", linewidth=0.8)
    ax.set(xscale="log", yscale="log", xlim=(RATIO_RANGE[0], 4.0), ylim=RATIO_RANGE)
    ax.set_xlabel("quantile of the half-normal distribution")
    ax.set_ylabel("|LML error| / reported sd")
    ax.legend(frameon=False, loc="upper left", fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def half_normal_quantiles(n: int) -> Array:
    """Where n ordered draws of |z| are expected, z standard normal (Hazen's positions)."""
    return ndtri(0.5 + 0.5 * (np.arange(1, n + 1) - 0.5) / n)


def _panels(
    groups: Groups,
    problems: Sequence[str],
    draw: Callable[[Axes, Group, Look], None],
) -> Figure:
    """One panel per problem with a line per method, on a logarithmic vertical axis."""
    rows = -(-len(problems) // COLUMNS)
    columns = min(COLUMNS, len(problems))
    figure = new_figure(PANEL[0] * columns, PANEL[1] * rows + 0.5)
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for ax, problem in zip(axes, problems, strict=False):
        for method, look in zip(groups, _looks(), strict=False):
            if problem in groups[method]:
                draw(ax, groups[method][problem], look)
        ax.set_yscale("log")
        ax.set_title(problem, fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)
    for ax in axes[len(problems) :]:
        ax.remove()
    handles = {
        label: line
        for ax in figure.axes
        for line, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(), handles.keys(), loc="outside upper center", ncols=4, frameon=False
    )
    figure.supxlabel("evaluations", fontsize=10)
    return figure


def _looks() -> Iterator[Look]:
    """Colour and line style of the first, second, ... method; 28 of them differ."""
    for number in count():
        yield {
            "color": COLOURS[number % len(COLOURS)],
            "linestyle": STYLES[number % len(STYLES)],
        }
