"""Control experiments: what of VBMC's accuracy is owed to its points (Section S4.3)."""

from __future__ import annotations

from benchmarks.figures.control_runs import control_groups
from benchmarks.figures.curves import Metric, draw_curves
from benchmarks.figures.layout import LABEL_SIZE, Drawing, add_legend, tidy
from benchmarks.figures.recorded_runs import Source, failure_note, run_counts
from sparing.plots import new_figure

COMPARED = "wsabi-l"
PANEL = (3.4, 2.6)  # inches
MARGIN = 0.8  # inches for legend and footnote
NARROWEST = 4.5  # inches; the legend's entries beside each other
MAX_COLUMNS = 3


def control_figure(source: Source) -> list[Drawing]:
    """A column for each of the featured problems with a normal prior."""
    problems = [name for name in source.featured() if source.load(name).hard_box is None]
    problems = problems[:MAX_COLUMNS]
    control = control_groups(source, problems)
    figure = new_figure(max(PANEL[0] * len(problems), NARROWEST), PANEL[1] * len(Metric) + MARGIN)
    axes = figure.subplots(len(Metric), len(problems), squeeze=False)
    shown = []
    for name, column in zip(problems, axes.T, strict=True):
        alone = [group for group in source.on(name) if group.method == COMPARED]
        shown += control[name] + alone
        for metric, ax in zip(Metric, column, strict=True):
            draw_curves(ax, control[name] + alone, metric)
            tidy(ax, name if metric is Metric.LML else "")
            ax.set_ylabel(metric.label, fontsize=LABEL_SIZE)
        column[-1].set_xlabel("likelihood evaluations", fontsize=LABEL_SIZE)
    add_legend(figure, [figure], failure_note(shown))
    caption = (
        "Control experiments. Top: LML error of WSABI-L computed from the points of VBMC-P "
        "(control), beside VBMC-P itself and WSABI-L on its own points. Bottom: gsKL of draws "
        "from a Gaussian process trained on the points of VBMC-P (control), beside the same two. "
        f"Medians over {run_counts(shown)}, shaded: 95 % bootstrap interval of the median."
    )
    return [Drawing("figure-s-control", caption, figure)]
