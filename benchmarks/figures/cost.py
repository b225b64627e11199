"""What methods cost beside the target: library CPU seconds per evaluation.

Notation: n evaluations, w the width of a window in evaluations, R runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.figures.layout import LABEL_SIZE, Drawing, add_legend, tidy
from benchmarks.figures.looks import look_of
from benchmarks.figures.recorded_runs import Source, failure_note, run_counts
from benchmarks.metrics import bootstrap_median_interval
from benchmarks.problems.base import Array
from benchmarks.versus.runs import Group, Run
from sparing.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = (10.0, 4.4)  # inches
WINDOW = 20  # evaluations; a multiple of the rounds of five and ten after which methods refit
SMALLEST = 1e-5  # seconds, drawn at the edge of the axis below
N_RESAMPLES = 2000
WIDEST_SHIFT = 0.25  # dimensions


def cost_figure(source: Source) -> list[Drawing]:
    """Cost by dimension over whole runs, and along the runs on one problem."""
    problem = source.featured()[0]
    figure = new_figure(*SIZE)
    by_dimension, along = figure.subplots(1, 2, sharey=True)
    shifts = np.linspace(-WIDEST_SHIFT, WIDEST_SHIFT, len(source.groups))
    for (method, by_problem), shift in zip(source.groups.items(), shifts, strict=True):
        _draw_by_dimension(by_dimension, method, list(by_problem.values()), shift)
    for group in source.on(problem):
        _draw_along(along, group)
    by_dimension.set_yscale("log")
    by_dimension.set_ylabel("library CPU seconds per evaluation", fontsize=LABEL_SIZE)
    by_dimension.set_xlabel("dimension D", fontsize=LABEL_SIZE)
    groups = [group for by in source.groups.values() for group in by.values()]
    dimensions = sorted({group.dimension for group in groups if group.finished})
    by_dimension.set_xticks(dimensions)
    by_dimension.set_xlim(dimensions[0] - 1, dimensions[-1] + 1)
    tidy(by_dimension, "A. whole runs, all problems")
    along.set_xlabel("likelihood evaluations", fontsize=LABEL_SIZE)
    along.set_xlim(left=0)
    tidy(along, f"B. along the run, {problem}")
    add_legend(figure, [figure], failure_note(groups))
    caption = (
        "Algorithmic cost per evaluation, the target's own time excluded. A: median over the runs "
        "of one dimension, total library CPU time over evaluations. B: median cost in windows of "
        f"{WINDOW} evaluations on {problem}, over {run_counts(source.on(problem))}. Bars and "
        "shaded: 95 % bootstrap interval of the median. As in the paper, the posterior that "
        "methods without one are given is not part of their cost."
    )
    return [Drawing("figure-s-cost", caption, figure)]


def _draw_by_dimension(ax: Axes, method: str, groups: Sequence[Group], shift: float) -> None:
    """Points beside each other: those of one dimension would hide one another."""
    costs: dict[int, list[float]] = defaultdict(list)
    for group in groups:
        finished = [run for run in group.finished if run.evaluations > 0]
        costs[group.dimension] += [run.cpu_seconds / run.evaluations for run in finished]
    dimensions = sorted(D for D in costs if costs[D])
    if not dimensions:
        return
    low, middle, high = median_interval([costs[D] for D in dimensions])
    look = look_of(method)
    bars = np.stack([middle - low, high - middle])
    places = np.array(dimensions) + shift
    ax.errorbar(places, middle, yerr=bars, label=look.label, capsize=2, **look.style)


def _draw_along(ax: Axes, group: Group) -> None:
    runs = [run for run in group.finished if len(run.cpu_before) > WINDOW]
    if not runs:
        return
    longest = int(np.median([len(run.cpu_before) for run in runs]))
    starts = range(0, longest - WINDOW, WINDOW)
    # A run that has ended leaves the median.
    costs = [[cost for run in runs if (cost := window_cost(run, n)) is not None] for n in starts]
    low, middle, high = median_interval(costs)
    look = look_of(group.method)
    centres = np.array(starts) + WINDOW / 2
    ax.fill_between(centres, low, high, color=look.colour, alpha=0.15, linewidth=0)
    ax.plot(centres, middle, label=look.label, markevery=max(1, len(starts) // 5), **look.style)


def window_cost(run: Run, n: int) -> float | None:
    """Seconds per evaluation from evaluation n to n + w; None where the run ended before."""
    if n + WINDOW >= len(run.cpu_before):
        return None
    return float(run.cpu_before[n + WINDOW] - run.cpu_before[n]) / WINDOW


def median_interval(values: Sequence[Sequence[float]]) -> Array:
    """Lower end, median and upper end (3, m) of m samples, none below SMALLEST."""
    rows = []
    for sample in values:
        low, high = bootstrap_median_interval(sample, n_resamples=N_RESAMPLES)
        rows.append((low, float(np.median(sample)), high))
    return np.maximum(np.transpose(rows), SMALLEST)
