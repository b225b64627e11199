"""Every figure by name, and the command that writes them with their captions and the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.figures.control import control_figure
from benchmarks.figures.cost import cost_figure
from benchmarks.figures.demo import demo_figures
from benchmarks.figures.densities import density_figure
from benchmarks.figures.layout import RESOLUTION, Drawing
from benchmarks.figures.neurons import neuron_figure
from benchmarks.figures.posterior import posterior_figure
from benchmarks.figures.recorded_runs import Source
from benchmarks.figures.synthetic import full_figures, headline_figure
from benchmarks.figures.variability import variability_figures
from benchmarks.table import markdown_table

# In the paper's order; the last three may have to run something first.
FIGURES: Mapping[str, Callable[[Source], list[Drawing]]] = {
    "demo": demo_figures,
    "synthetic": headline_figure,
    "synthetic-full": full_figures,
    "neurons": neuron_figure,
    "densities": density_figure,
    "posterior": posterior_figure,
    "variability": variability_figures,
    "cost": cost_figure,
    "control": control_figure,
}
PAGE = "figures.md"


def write_figures(source: Source, out: Path, only: Sequence[str] = ()) -> list[Path]:
    """Write the figures and the page that shows them; return the files.

    A figure that cannot be drawn from this campaign is left out with its reason, unless it was
    asked for by name: then the reason is an error.
    """
    table = "" if only else markdown_table(source.directory)  # first: there may be no runs at all
    out.mkdir(parents=True, exist_ok=True)
    written, sections = [], []
    for name in only or FIGURES:
        try:
            drawings = FIGURES[name](source)
        except BenchmarkError as reason:
            if only:
                raise
            source.report(f"{name} left out: {reason}")
            continue
        for drawing in drawings:
            path = out / f"{drawing.name}.png"
            drawing.figure.savefig(path, dpi=RESOLUTION)
            source.report(f"wrote {path}")
            written.append(path)
            sections.append(f"![{name}]({path.name})\n\n{drawing.caption}")
    if not only:
        page = out / PAGE
        page.write_text("\n\n".join([*sections, table]) + "\n")
        source.report(f"wrote {page}")
        written.append(page)
    return written
