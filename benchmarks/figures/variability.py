"""How much runs differ: every run's errors against evaluations, with percentiles over the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.figures.curves import (
    DESIRABLE,
    WIDEST_RANGE,
    Metric,
    estimated,
    thinned,
)
from benchmarks.figures.layout import LABEL_SIZE, Drawing, add_legend, tidy
from benchmarks.figures.looks import look_of
from benchmarks.figures.recorded_runs import Source, failure_note, run_counts
from benchmarks.versus.runs import Group
from sparing.plots import GREY, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METHODS_SHOWN = ("sparing", "sparing-paper")
PERCENTILES = {50: ("-", 2.2), 75: ("--", 1.7), 90: (":", 1.7)}  # line and its width in points
PANEL = (3.4, 2.5)  # inches
MARGIN = 0.8  # inches for legend and footnote
MAX_COLUMNS = 4


def variability_figures(source: Source) -> list[Drawing]:
    """One figure for each of the methods recorded, on at most MAX_COLUMNS problems."""
    shown = [name for name in METHODS_SHOWN if name in source.groups]
    if not shown:
        raise BenchmarkError(
            f"{source.directory} holds no run of {' or '.join(METHODS_SHOWN)}: run with --methods "
            + " ".join(METHODS_SHOWN)
        )
    return [drawing for name in shown for drawing in _figure(source, name)]


def _figure(source: Source, method: str) -> list[Drawing]:
    by_problem = source.groups[method]
    groups = [by_problem[name] for name in source.featured() if name in by_problem]
    groups = [group for group in groups if group.finished][:MAX_COLUMNS]
    if not groups:
        return []
    figure = new_figure(PANEL[0] * len(groups), PANEL[1] * len(Metric) + MARGIN)
    axes = figure.subplots(len(Metric), len(groups), squeeze=False, sharey="row", sharex="col")
    for metric, row in zip(Metric, axes, strict=True):
        for group, ax in zip(groups, row, strict=True):
            _draw(ax, group, metric, look_of(method).colour)
            tidy(ax, f"{group.problem}, {run_counts([group])}" if metric is Metric.LML else "")
        row[0].set_ylabel(metric.label, fontsize=LABEL_SIZE)
    for ax in axes[-1]:
        ax.set_xlabel("likelihood evaluations", fontsize=LABEL_SIZE)
    label = look_of(method).label
    add_legend(figure, [figure], failure_note(groups))
    caption = (
        f"Variability of {label}: LML error (top) and gsKL (bottom) of every run against the "
        "number of evaluations, grey, with percentiles over the runs; dashed: the threshold of one."
    )
    return [Drawing(f"figure-s-variability-{method}", caption, figure)]


def _draw(ax: Axes, group: Group, metric: Metric, colour: str) -> None:
    runs = estimated(group, metric)
    counts = thinned(runs.grid)
    errors = np.array([runs.errors_at(n)[:, metric] for n in counts])  # (m, R)
    ax.set_yscale("log")
    for number, column in enumerate(errors.T):
        label = "one run" if number == 0 else None
        shown = np.where(np.isfinite(column), np.clip(column, *WIDEST_RANGE), np.nan)
        ax.plot(counts, shown, color=GREY, alpha=0.5, linewidth=0.6, label=label)
    # Values that occur: interpolating beside infinity gives NaN.
    levels = np.quantile(errors, [p / 100 for p in PERCENTILES], axis=1, method="inverted_cdf")
    for percentile, level in zip(PERCENTILES, levels, strict=True):
        line, width = PERCENTILES[percentile]
        shown = np.where(np.isfinite(level), np.clip(level, *WIDEST_RANGE), np.nan)
        label = f"{percentile}th percentile"
        ax.plot(counts, shown, color=colour, linestyle=line, linewidth=width, label=label)
    ax.axhline(DESIRABLE, color="black", linestyle="--", linewidth=0.7)
    ax.set_xlim(left=0)
