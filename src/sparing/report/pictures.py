"""The report's pictures as SVG that can stand in an HTML page."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from sparing.errors import TargetError
from sparing.numerics.arrays import Array
from sparing.plots import (
    plot_derived,
    plot_evidence,
    plot_posterior,
    plot_predictive,
    plot_reliability,
    plot_slices,
)
from sparing.vbmc.run_record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Matplotlib numbers the elements of each picture from 1; on one page the numbers would clash.
IDENTIFIER = re.compile(r'( id="| xlink:href="#|url\(#)')
NO_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}
# Pixels per inch below which a picture's text cannot be read; a narrow screen scrolls instead.
FEWEST_PIXELS_PER_INCH, MOST_PIXELS_PER_INCH = 50, 100
PAGE_WIDTH = 900  # pixels that a page on a desk has


@dataclass(frozen=True)
class Picture:
    """A picture with its words, and the widths in pixels between which it is easily read."""

    key: str
    title: str
    caption: str
    svg: str
    smallest_width: int
    largest_width: int


def draw_posterior(record: RunRecord, reference: ArrayLike | None) -> Picture:
    """The picture that comes first."""
    outline = " Black lines are the reference samples." if reference is not None else ""
    return _picture(
        "posterior",
        "Posterior",
        "Each parameter by itself and each pair, with the points at which the function was "
        "evaluated. Shades hold 50, 80 and 95 % of the posterior." + outline,
        plot_posterior(record, reference=reference),
    )


def draw_pictures(record: RunRecord, data: tuple[Array, Array] | None) -> list[Picture]:
    """Every other picture of the report, in reading order."""
    pictures = []
    if data is not None:
        caption = (
            "Data simulated at draws from the posterior, and those that were observed. Where most "
            "of these lie outside the bands the model does not describe them."
        )
        title = "The data under the model"
        pictures.append(_picture("predictive", title, caption, plot_predictive(*data)))
    pictures += [
        _picture(
            "evidence",
            "Log evidence against evaluations",
            "Bands are two standard deviations either way; the diamond is what was returned. In "
            "the grey part the run was still searching for the posterior. A trustworthy run ends "
            "with a level line inside a narrow band.",
            plot_evidence(record),
        ),
        _picture(
            "reliability",
            "Stability, and the test of the error bars",
            "Above: what must fall below 1 before the run may end. Below: how far predictions of "
            "posterior draws were off, in units of the error they claimed. Dots within the grey "
            "bars mean that the claim is right; the line is the factor by which the reported "
            "error was widened.",
            plot_reliability(record),
        ),
    ]
    if _derives(record):
        caption = "The posterior of each quantity that follows from the parameters."
        pictures.insert(0, _picture("derived", "Derived", caption, plot_derived(record)))
    if record.surrogate is not None:
        caption = (
            "The log joint density along each parameter, the others held at the posterior's mode: "
            "the surrogate with two standard deviations either way, and the reported posterior on "
            "the same scale. They should agree near the top."
        )
        title = "The surrogate around the mode"
        pictures.append(_picture("slices", title, caption, plot_slices(record)))
    return pictures


def _derives(record: RunRecord) -> bool:
    try:
        return bool(record.derived)
    except TargetError:  # the table says why
        return False


def _picture(key: str, title: str, caption: str, figure: Figure) -> Picture:
    inches = figure.get_size_inches()[0]
    smallest = min(int(inches * FEWEST_PIXELS_PER_INCH), PAGE_WIDTH)
    largest = int(inches * MOST_PIXELS_PER_INCH)
    return Picture(key, title, caption, inline_svg(figure, key), smallest, largest)


def inline_svg(figure: Figure, prefix: str) -> str:
    """The figure as an SVG element whose identifiers start with the prefix.

    Text stays text, in the fonts of the reader; equal figures give equal SVG.
    """
    from matplotlib import rc_context

    content = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "sparing"}):
        figure.savefig(content, format="svg", metadata=NO_METADATA)
    text = content.getvalue()
    element = text[text.index("<svg") :]
    return IDENTIFIER.sub(rf"\g<1>{prefix}-", element)
