"""Pictures of a run: its posterior, how it went, what the surrogate believes.

Every function returns a ``matplotlib.figure.Figure`` that no window or global state holds on to:
``figure.savefig("posterior.png")`` writes it. matplotlib is an optional extra (``sparing[plots]``).
Colours are told apart with every common colour blindness.

    plot_posterior     marginals, pairs and the evaluated points, and reference samples if given
    plot_evidence      the log evidence against the number of evaluations
    plot_reliability   how stable the solution was, and whether the error bars are honest
    plot_trace         evidence, reliability and number of components in one picture
    plot_slices        the surrogate through the posterior's mode, with its uncertainty
    plot_predictive    data simulated at draws from the posterior, and those observed
    plot_derived       what the problem derives from its parameters
    plot_comparison    several runs beside each other
"""

from sparing.plots.comparison import plot_comparison
from sparing.plots.corner import plot_posterior, region_levels
from sparing.plots.derived import plot_derived
from sparing.plots.history import plot_evidence, plot_reliability, plot_trace
from sparing.plots.predictive import plot_predictive
from sparing.plots.slices import plot_slices
from sparing.plots.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    REGION_MASSES,
    REGION_SHADES,
    evaluated_points,
    new_figure,
)

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "REGION_MASSES",
    "REGION_SHADES",
    "evaluated_points",
    "new_figure",
    "plot_comparison",
    "plot_derived",
    "plot_evidence",
    "plot_posterior",
    "plot_predictive",
    "plot_reliability",
    "plot_slices",
    "plot_trace",
    "region_levels",
]
