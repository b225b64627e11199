"""Errors against evaluations: the median over runs with its 95 % interval by bootstrap.

Notation
--------
n       number of evaluations
R, m    runs of one method on one problem; points of a curve
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.figures.looks import look_of
from benchmarks.metrics import bootstrap_median_interval
from benchmarks.problems.base import Array
from benchmarks.versus.runs import ERROR_NAMES, Group, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_POINTS = 40  # of a curve
N_RESAMPLES = 2000
DESIRABLE = 1.0  # "we consider a desirable threshold to be below one" (Figure 2)
WIDEST_RANGE = (1e-4, 1e4)  # of an axis; what lies outside is drawn at its edge
MARKERS_PER_LINE = 5
BAND_OPACITY = 0.12


class Metric(enum.IntEnum):
    """Its value is the column of ``Run.errors``."""

    LML = 0
    GSKL = 1

    @property
    def label(self) -> str:
        return ("|LML error| (nats)", f"{ERROR_NAMES[1]} (nats)")[self]


@dataclass(frozen=True, eq=False)
class Curve:
    """Median errors and their interval, (m,) each, after n (m,) evaluations.

    end: the median number of evaluations with which a run ended.
    """

    method: str
    n: Array
    median: Array
    low: Array
    high: Array
    end: float


def estimated(group: Group, metric: Metric) -> Group:
    """The runs that did not fail, with the moments at which they estimated the quantity.

    Methods without a posterior of their own get one at some of their snapshots only; between them
    the last one stands.
    """
    return replace(group, runs=[_with_estimates(run, metric) for run in group.finished])


def _with_estimates(run: Run, metric: Metric) -> Run:
    if metric is Metric.LML:  # given at every snapshot, however bad
        return run
    there = np.isfinite(run.trace_errors[:, metric])
    return replace(run, trace_n=run.trace_n[there], trace_errors=run.trace_errors[there])


def median_curve(group: Group, metric: Metric) -> Curve | None:
    """The curve from the first finite median on; None where there is none."""
    runs = estimated(group, metric)
    if not runs.runs:
        return None
    counts = thinned(np.union1d(runs.grid, [runs.evaluations]))
    errors = np.array([runs.errors_at(n)[:, metric] for n in counts])  # (m, R)
    middle = np.median(errors, axis=1)
    finite = np.flatnonzero(np.isfinite(middle))
    if not len(finite):
        return None
    kept = slice(finite[0], None)
    low, high = np.transpose(
        [bootstrap_median_interval(row, n_resamples=N_RESAMPLES) for row in errors[kept]]
    )
    return Curve(group.method, counts[kept], middle[kept], low, high, runs.evaluations)


def thinned(counts: Array) -> Array:
    """At most MAX_POINTS of the counts, the first and the last among them."""
    if len(counts) <= MAX_POINTS:
        return counts
    return counts[np.unique(np.linspace(0, len(counts) - 1, MAX_POINTS).round().astype(int))]


def draw_curves(ax: Axes, groups: Sequence[Group], metric: Metric) -> None:
    """Every method's median with its band, and the threshold; logarithmic in the error."""
    curves = [curve for group in groups if (curve := median_curve(group, metric)) is not None]
    ax.set_yscale("log")
    ax.set_ylim(*error_range(curves))
    ax.axhline(DESIRABLE, color="black", linestyle="--", linewidth=0.7, zorder=1)
    for curve in curves:
        _draw(ax, curve)
    ax.set_xlim(left=0)


def _draw(ax: Axes, curve: Curve) -> None:
    """Thick until half of the runs have ended, thin after it."""
    look = look_of(curve.method)
    low, middle, high = (np.clip(x, *ax.get_ylim()) for x in (curve.low, curve.median, curve.high))
    ax.fill_between(curve.n, low, high, color=look.colour, alpha=BAND_OPACITY, linewidth=0)
    running = curve.n <= curve.end
    step = max(1, int(running.sum()) // MARKERS_PER_LINE)
    marked = list(range(int(running.sum()) - 1, -1, -step))  # the end of the line among them
    ax.plot(curve.n[running], middle[running], label=look.label, markevery=marked, **look.style)
    later = curve.n >= curve.end
    ax.plot(curve.n[later], middle[later], color=look.colour, linewidth=0.6)


def error_range(curves: Sequence[Curve]) -> tuple[float, float]:
    """Whole decades that hold the finite medians and the threshold."""
    values = np.concatenate([curve.median for curve in curves]) if curves else np.empty(0)
    held = np.clip(values[np.isfinite(values)], *WIDEST_RANGE)
    exponents = np.log10(np.append(held, DESIRABLE))
    decades = np.array([np.floor(exponents.min() - 0.01), np.ceil(exponents.max() + 0.01)])
    low, high = np.clip(10.0**decades, *WIDEST_RANGE)
    return float(low), float(high)
