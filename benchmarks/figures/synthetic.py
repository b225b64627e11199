"""Figure 2 and its full version: errors on the synthetic families against evaluations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.errors import BenchmarkError
from benchmarks.figures.curves import Metric, draw_curves
from benchmarks.figures.layout import LABEL_SIZE, TITLE_SIZE, Drawing, add_legend, tidy
from benchmarks.figures.recorded_runs import (
    Cells,
    Row,
    Source,
    failure_note,
    run_counts,
    synthetic_cells,
)
from sparing.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

HEADLINE_DIMENSIONS = (2, 6, 10)
SMALL_PANEL, LARGE_PANEL = (2.1, 1.8), (2.7, 2.2)  # inches
MARGIN = 1.0  # inches for legend and footnote
NAMES = {Metric.LML: "LML error", Metric.GSKL: "gsKL"}


def headline_figure(source: Source) -> list[Drawing]:
    """Figure 2: both errors side by side for D = 2, 6, 10, or for what there is of them."""
    cells = _cells(source)
    chosen = {place: cells[place] for place in cells if place[1] in HEADLINE_DIMENSIONS} or cells
    rows, dimensions = _grid(chosen)
    width = 2 * SMALL_PANEL[0] * len(dimensions) + 0.8
    figure = new_figure(max(width, 7.0), SMALL_PANEL[1] * len(rows) + MARGIN)
    parts = figure.subfigures(1, 2)
    for part, metric, letter in zip(parts, Metric, "AB", strict=True):
        _draw_panels(part, chosen, metric)
        part.suptitle(f"{letter}. {NAMES[metric]}", fontsize=TITLE_SIZE + 1, fontweight="bold")
    add_legend(figure, parts, _footnote(chosen))
    caption = (
        "Synthetic likelihoods. A: median absolute error of the LML against the number of "
        "evaluations. B: median gsKL between the approximate and the exact posterior. "
        + _explanation(chosen)
    )
    return [Drawing("figure-2-synthetic", caption, figure)]


def full_figures(source: Source) -> list[Drawing]:
    """The full version: one figure for each error, with every dimension."""
    cells = _cells(source)
    rows, dimensions = _grid(cells)
    drawings = []
    for metric, stem in zip(Metric, ("lml", "gskl"), strict=True):
        width = LARGE_PANEL[0] * len(dimensions) + 0.5
        figure = new_figure(max(width, 6.0), LARGE_PANEL[1] * len(rows) + MARGIN)
        _draw_panels(figure, cells, metric)
        add_legend(figure, [figure], _footnote(cells))
        caption = (
            f"Full results on synthetic likelihoods: median {NAMES[metric]} against the number of "
            f"evaluations. {_explanation(cells)} Vertical axes differ."
        )
        drawings.append(Drawing(f"figure-2-full-{stem}", caption, figure))
    return drawings


def _cells(source: Source) -> Cells:
    cells = synthetic_cells(source.groups)
    if not cells:
        raise BenchmarkError(
            f"{source.directory} holds no run on a synthetic problem: "
            "run with --problems lumpy-2 student-2 cigar-2 ..."
        )
    return cells


def _grid(cells: Cells) -> tuple[list[Row], list[int]]:
    return sorted({row for row, _ in cells}), sorted({D for _, D in cells})


def _draw_panels(figure: Figure | SubFigure, cells: Cells, metric: Metric) -> None:
    rows, dimensions = _grid(cells)
    axes = figure.subplots(len(rows), len(dimensions), squeeze=False)
    for row, of_row in zip(rows, axes, strict=True):
        for D, ax in zip(dimensions, of_row, strict=True):
            groups = cells.get((row, D))
            if groups is None:
                ax.set_axis_off()
                continue
            draw_curves(ax, groups, metric)
            tidy(ax, f"{row.label}, D = {D}")
    for ax in axes[-1]:
        ax.set_xlabel("likelihood evaluations", fontsize=LABEL_SIZE)
    figure.supylabel(metric.label, fontsize=LABEL_SIZE)


def _explanation(cells: Cells) -> str:
    groups = [group for of_cell in cells.values() for group in of_cell]
    return (
        f"Medians over {run_counts(groups)}, shaded: 95 % bootstrap interval of the median, "
        "dashed: the threshold of one below which the paper calls an error desirable. A line "
        "turns thin where half of the runs have ended. What lies outside an axis is drawn at "
        "its edge."
    )


def _footnote(cells: Cells) -> str:
    return failure_note(group for of_cell in cells.values() for group in of_cell)
