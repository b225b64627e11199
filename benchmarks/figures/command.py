"""Draw the paper's figures from recorded runs, with their captions and the table of medians.

What a campaign does not record (posteriors, draws from exact ones, the control experiment) is run
once and kept in its directory.
"""

from __future__ import annotations

import argparse
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

# In the paper's order.
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


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that only this command has."""
    parser.add_argument("--out", type=Path, help="directory of the pictures (default: the same)")
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        choices=list(FIGURES),
        metavar="NAME",
        help="some of: " + ", ".join(FIGURES),
    )


def run(options: argparse.Namespace) -> int:
    """What the command line asks for; return the exit code."""
    source = Source(options.directory, options.data, options.control_seeds, options.jobs)
    write_figures(source, options.out or options.directory, options.only)
    return 0


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
