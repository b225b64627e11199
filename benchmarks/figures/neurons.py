"""Figure 3: errors on the neuronal model's cells against evaluations.

The published LML of the recorded cells is not exact: the last column compares the final errors from
it and from the value computed anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.figures.curves import DESIRABLE, WIDEST_RANGE, Metric, draw_curves
from benchmarks.figures.layout import LABEL_SIZE, Drawing, add_legend, tidy
from benchmarks.figures.looks import MARKER_SIZE, look_of
from benchmarks.figures.recorded_runs import Source, failure_note, run_counts
from benchmarks.metrics import bootstrap_median_interval
from benchmarks.problems.neuron import NEURON_PROBLEMS
from benchmarks.versus.runs import Group
from sparing.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL = (3.4, 2.6)  # inches
MARGIN = 0.9  # inches for legend and footnote


def neuron_figure(source: Source) -> list[Drawing]:
    """A row for each cell: LML error, gsKL, and final LML errors if it has several values."""
    cells = [name for name in source.problems if name in NEURON_PROBLEMS]
    if not cells:
        raise BenchmarkError(
            f"{source.directory} holds no run on a neuron: run with --problems neuron-v1 neuron-v2 "
            "--data DIR, or neuron-synthetic"
        )
    doubled = [name for name in cells if _origins(source, name)]
    columns = 3 if doubled else 2
    figure = new_figure(PANEL[0] * columns, PANEL[1] * len(cells) + MARGIN)
    axes = figure.subplots(len(cells), columns, squeeze=False)
    for name, row in zip(cells, axes, strict=True):
        groups = source.on(name)
        for metric, ax in zip(Metric, row, strict=False):
            draw_curves(ax, groups, metric)
            tidy(ax, name)
            ax.set_xlabel("likelihood evaluations", fontsize=LABEL_SIZE)
            ax.set_ylabel(metric.label, fontsize=LABEL_SIZE)
        if name in doubled:
            _draw_final_errors(row[2], source, name, groups)
        elif doubled:
            row[2].set_axis_off()
    groups = [group for name in cells for group in source.on(name)]
    add_legend(figure, [figure], failure_note(groups))
    caption = (
        "Neuronal model likelihoods. First column: median absolute error of the LML, for recorded "
        "cells from the published value, against the number of evaluations. Second: median gsKL. "
        f"Medians over {run_counts(groups)}, shaded: "
        "95 % bootstrap interval of the median, dashed: the threshold of one below which the "
        "paper calls an error desirable. "
    )
    if doubled:
        caption += (
            "Third: LML error at the end from the published value (filled) and from the one "
            "computed anew by importance sampling (open), with the same interval."
        )
    return [Drawing("figure-3-neurons", caption.strip(), figure)]


def _origins(source: Source, problem: str) -> list[str]:
    """Where other values of the LML of that problem come from."""
    found = (
        record.get("lml_error_alternatives", {})
        for key, record in source.records.items()
        if key.problem == problem
    )
    return sorted({origin for alternatives in found for origin in alternatives})


def _draw_final_errors(ax: Axes, source: Source, problem: str, groups: Sequence[Group]) -> None:
    """A line for each method, the best at the top, with a mark for each value of the LML."""
    errors = {
        group.method: [
            [float(run.errors[Metric.LML]) for run in group.finished],
            *(
                _alternative_errors(source, problem, group.method, origin)
                for origin in _origins(source, problem)
            ),
        ]
        for group in groups
        if group.finished
    }
    methods = sorted(errors, key=lambda name: -float(np.median(errors[name][0])))
    for height, method in enumerate(methods):
        for number, values in enumerate(errors[method]):
            place = height - 0.2 * number
            _draw_interval(ax, values, place, look_of(method).colour, filled=number == 0)
    ax.axvline(DESIRABLE, color="black", linestyle="--", linewidth=0.7)
    ax.set_xscale("log")
    ax.set_yticks(range(len(methods)), labels=[look_of(method).label for method in methods])
    tidy(ax, problem)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("final |LML error| (nats)", fontsize=LABEL_SIZE)


def _draw_interval(
    ax: Axes, errors: Sequence[float], height: float, colour: str, *, filled: bool
) -> None:
    """The median and its interval; nothing where the median is not finite."""
    middle = float(np.median(errors))
    if not np.isfinite(middle):
        return
    ends = np.minimum(bootstrap_median_interval(errors), max(middle, WIDEST_RANGE[1]))
    ax.plot(ends, [height, height], color=colour, linewidth=1.0)
    face = colour if filled else "white"
    ax.plot(middle, height, "o", color=colour, markerfacecolor=face, markersize=MARKER_SIZE)


def _alternative_errors(source: Source, problem: str, method: str, origin: str) -> list[float]:
    """Final errors from that value of the LML; infinite where not finite."""
    runs = source.finished(problem, method).values()
    found = [run.get("lml_error_alternatives", {}).get(origin) for run in runs]
    return [np.inf if error is None else error for error in found]
