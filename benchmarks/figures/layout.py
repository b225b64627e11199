"""What every figure shares: its file, panels, legend and footnote."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

RESOLUTION = 150  # dots per inch
TITLE_SIZE, LABEL_SIZE, NOTE_SIZE = 10, 9, 8  # points
ENTRY_WIDTH = 1.2  # inches of an entry in the legend


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure, the name of its file, and the text below it."""

    name: str
    caption: str
    figure: Figure


def tidy(ax: Axes, title: str = "") -> None:
    """No upper and right spine, no minor ticks, small numbers, and a title."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.minorticks_off()
    ax.tick_params(labelsize=NOTE_SIZE)
    if title:
        ax.set_title(title, fontsize=TITLE_SIZE)


def add_legend(figure: Figure, parts: Sequence[Figure | SubFigure], footnote: str = "") -> None:
    """One entry for every label in the parts' panels, above them; the footnote below."""
    entries = {
        label: handle
        for part in parts
        for ax in part.axes
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    if entries:
        rows = math.ceil(len(entries) * ENTRY_WIDTH / figure.get_figwidth())
        figure.legend(
            entries.values(),
            entries.keys(),
            loc="outside upper center",
            ncols=math.ceil(len(entries) / rows),
            frameon=False,
            fontsize=LABEL_SIZE,
        )
    if footnote:
        # An empty legend is text that the layout leaves room for.
        note = figure.legend([], [], loc="outside lower left", title=footnote, frameon=False)
        note.get_title().set_fontsize(NOTE_SIZE)
