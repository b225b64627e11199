"""How a method looks in every figure: its label, colour, marker and line, fixed by its name.

Kin share a colour (VBMC-P and VBMC-U, WSABI-L and WSABI-M, ...): the first of them has a solid line
and filled markers, the second a dashed line and open ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.methods import METHODS
from benchmarks.versus.plots import COLOURS
from sparing.plots import GREY

BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, BLACK = COLOURS
MARKER_SIZE = 4.0  # points
# With seven colours, eight markers tell 56 further methods apart.
OTHER_MARKERS = ("1", "2", "3", "4", "+", "x", "|", "_")


@dataclass(frozen=True)
class Look:
    """What a method's line and its entry in a legend are drawn with."""

    label: str
    colour: str
    marker: str
    line: str = "-"
    filled: bool = True
    width: float = 1.3  # points
    height: float = 2.0  # lines of larger height are drawn over others

    @property
    def style(self) -> dict[str, Any]:
        """As matplotlib's plotting functions take it."""
        return {
            "color": self.colour,
            "linestyle": self.line,
            "linewidth": self.width,
            "zorder": self.height,
            "marker": self.marker,
            "markersize": MARKER_SIZE,
            "markerfacecolor": self.colour if self.filled else "white",
        }


LOOKS: Mapping[str, Look] = {
    "sparing": Look("sparing", BLUE, "o", width=2.0, height=3.0),
    "sparing-paper": Look("VBMC-P", ORANGE, "s"),
    "sparing-paper-u": Look("VBMC-U", ORANGE, "s", "--", filled=False),
    "pyvbmc": Look("PyVBMC", BLACK, "^"),
    "wsabi-l": Look("WSABI-L", GREEN, "D"),
    "wsabi-m": Look("WSABI-M", GREEN, "D", "--", filled=False),
    "bbq": Look("BBQ", PINK, "v"),
    "bbq-star": Look("BBQ*", PINK, "v", "--", filled=False),
    "bape": Look("BAPE", YELLOW, "P"),
    "agp": Look("AGP", YELLOW, "X", "--", filled=False),
    "bmc": Look("BMC", SKY, "<"),
    "smc": Look("SMC", GREY, ">", ":"),
    "ais": Look("AIS", GREY, "*", "-.", filled=False),
    "control": Look("control", SKY, "h", "--"),
}


def look_of(method: str) -> Look:
    """The look of that name; methods that the paper does not have are dotted."""
    if method in LOOKS:
        return LOOKS[method]
    number = list(METHODS).index(method)
    marker = OTHER_MARKERS[number % len(OTHER_MARKERS)]
    return Look(method, COLOURS[number % len(COLOURS)], marker, ":")
