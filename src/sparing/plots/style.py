"""What all pictures share: colours, empty figures, names as text, the stretch of an axis to show.

D   number of parameters
"""

from __future__ import annotations

import io
import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from sparing.errors import MissingExtraError
from sparing.numerics.arrays import Array
from sparing.problem.priors import IndependentPrior
from sparing.variational.posterior import Posterior
from sparing.vbmc.run_record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# From the palette of Okabe and Ito, told apart with every common colour blindness.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"
PURPLE, SKY, AMBER, BLACK = "#CC79A7", "#56B4E9", "#E69F00", "#222222"
# Shades from light to dark: regions that hold 95, 80 and 50 % of the posterior mass.
REGION_MASSES = (0.95, 0.80, 0.50)
REGION_SHADES = ("#D6E6F2", "#9CC6E3", "#5AA2CF")
# The axes show this central mass of each marginal, widened by VIEW_MARGIN on both sides.
VIEW_MASS = 0.998
VIEW_MARGIN = 0.15

GRID = 80  # points per axis
View = tuple[float, float]


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, or the error that names the missing extra.

    >>> from sparing.plots import BLUE, evaluated_points, new_figure
    >>> figure = new_figure(4.0, 3.0)
    >>> ax = figure.subplots()
    >>> dots = ax.plot(*evaluated_points(result).T, ".", color=BLUE)
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as problem:
        raise MissingExtraError("matplotlib", "plots") from problem
    return _shown(Figure)(figsize=(width, height), layout="constrained")


@cache
def _shown(base: type[Figure]) -> type[Figure]:
    """Figures that a notebook shows as the last line of a cell, whatever its backend."""

    class ShownFigure(base):
        """A figure that draws itself where it is the value of a cell."""

        def _repr_png_(self) -> bytes:
            picture = io.BytesIO()
            self.savefig(picture, format="png", dpi=100)
            return picture.getvalue()

    return ShownFigure


def panel_grid(n_panels: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure with panels of this size in inches, at most four beside each other."""
    n_columns = min(n_panels, 4)
    n_rows = math.ceil(n_panels / n_columns)
    figure = new_figure(width * n_columns, height * n_rows + 0.4)  # and a line for the legend
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel().tolist()
    for ax in axes[n_panels:]:
        ax.set_axis_off()
    return figure, axes[:n_panels]


def open_frame(ax: Axes, *others: str) -> None:
    """No frame on the sides without numbers: the top, the right and others."""
    ax.spines[["top", "right", *others]].set_visible(False)


def without_heights(ax: Axes) -> None:
    """A density from zero on: nobody reads numbers off its height."""
    ax.set_ylim(bottom=0.0)
    ax.set_yticks([])
    open_frame(ax, "left")


def legend_above(figure: Figure, n_columns: int, font_size: float | None = None) -> None:
    """What the first panel shows, above all panels."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    place = "outside upper left"
    figure.legend(handles, labels, loc=place, ncols=n_columns, frameon=False, fontsize=font_size)


def escape_dollars(name: str) -> str:
    """The name as it is shown: a dollar sign without a partner does not start a formula."""
    return name if name.count("$") % 2 == 0 else name.replace("$", r"\$")


def evaluated_points(record: RunRecord) -> Array:
    """Points with a finite value (n, D), in the user's coordinates.

    Those of a periodic parameter are within half a period of its mean.

    >>> from sparing.plots import evaluated_points
    >>> evaluated_points(result).shape == (result.n_evaluations, 2)
    True
    """
    usable = [entry.x for entry in record.evaluations if math.isfinite(entry.value)]
    return _points(usable, record)


def points_without_value(record: RunRecord) -> Array:
    """Points that failed or have density zero (n, D), in the user's coordinates."""
    others = [entry.x for entry in record.evaluations if not math.isfinite(entry.value)]
    return _points(others, record)


def _points(rows: list[Array], record: RunRecord) -> Array:
    points = np.array(rows, dtype=np.float64).reshape(-1, len(record.problem.names))
    return record.posterior.unwrapped(points)


def prior_density(record: RunRecord, index: int, x: Array) -> Array | None:
    """The prior of one parameter at values x (m,); None where it has none of its own."""
    prior, problem = record.problem.prior, record.problem
    if not isinstance(prior, IndependentPrior):
        return None
    period = record.posterior.transform.periods[index]
    if np.isfinite(period):
        x = problem.lower[index] + np.mod(x - problem.lower[index], period)
    with np.errstate(all="ignore"):
        return np.asarray(prior.distributions[index].pdf(x), dtype=np.float64)


def axis_grid(view: View, n: int = GRID) -> Array:
    """Points over the middle of the view's cells, so that none lies on a hard bound: (n,)."""
    edges = np.linspace(*view, n + 1)
    return 0.5 * (edges[1:] + edges[:-1])


def posterior_views(posterior: Posterior) -> list[View]:
    """The stretch of each axis worth showing, within the hard bounds or once round the circle."""
    outside = (1.0 - VIEW_MASS) / 2.0
    low, high = posterior.quantile([outside, 1.0 - outside])
    transform = posterior.transform
    wraps, half = np.isfinite(transform.periods), 0.5 * transform.periods
    lower = np.where(wraps, posterior.mean - half, transform.lower)
    upper = np.where(wraps, posterior.mean + half, transform.upper)
    return list(map(_widened, low, high, lower, upper))


def sample_view(samples: Array) -> View:
    """The stretch of an axis worth showing, of samples (m,)."""
    outside = (1.0 - VIEW_MASS) / 2.0
    low, high = np.quantile(samples, [outside, 1.0 - outside])
    return _widened(low, high, -np.inf, np.inf)


def _widened(low: float, high: float, lower: float, upper: float) -> View:
    width = high - low
    if not width > 0.0:  # a marginal narrower than its numbers can tell
        width = max(abs(low), 1.0) * 1e-6
    left, right = low - VIEW_MARGIN * width, high + VIEW_MARGIN * width
    return max(float(left), float(lower)), min(float(right), float(upper))
