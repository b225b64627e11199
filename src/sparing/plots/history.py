"""How a run went: estimates and their errors, stability, and the test of the error bars.

rho_1..3, rho   reliability features and their mean (S2.4.1); stable when below 1
z               residual of a held-out draw over its predicted standard deviation
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from sparing.numerics.arrays import Array
from sparing.plots import style
from sparing.plots.style import AMBER, BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE
from sparing.vbmc.run_record import RunRecord
from sparing.vbmc.state import IterationInfo

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

History = Sequence[IterationInfo]
FEATURES = (
    ("change of the lower bound", "change_of_elbo", BLUE, "--"),
    ("error of the log evidence", "uncertainty_of_elbo", ORANGE, "-."),
    ("change of the posterior", "change_of_posterior", PURPLE, ":"),
)


def plot_evidence(result: RunRecord) -> Figure:
    """Log evidence and its lower bound (ELBO) against the number of evaluations.

    Bands are two standard deviations either way; the diamond is what the run returned. In the
    grey part the run was still searching for the posterior: estimates there mean little. The
    vertical axis shows what the later half of the others settle on.

    >>> from sparing.plots import plot_evidence
    >>> figure = plot_evidence(result)
    >>> figure.axes[0].get_ylabel()
    'log evidence (nats)'
    """
    return _panels(result, 3.6, {_draw_evidence: 1})


def plot_reliability(result: RunRecord) -> Figure:
    """Above, what must fall below 1 before the run may end; below, whether its errors are honest.

    Posterior draws are predicted before they are evaluated. The lower panel shows how far the
    predictions of each iteration were off, in units of the error they claimed; the bars reach
    over what 95 in 100 iterations show when the claim is right.

    >>> from sparing.plots import plot_reliability
    >>> figure = plot_reliability(result)
    >>> [ax.get_ylabel() for ax in figure.axes]
    ['stable when below 1', 'error / claimed error']
    """
    return _panels(result, 5.6, {_draw_features: 1, _draw_held_out: 1})


def plot_trace(result: RunRecord) -> Figure:
    """Log evidence, reliability index and number of components against the evaluations.

    >>> from sparing.plots import plot_trace
    >>> figure = plot_trace(result)
    >>> len(figure.axes)
    3
    """
    return _panels(result, 7.0, {_draw_evidence: 2, _draw_reliability: 1, _draw_components: 1})


def _panels(
    result: RunRecord, height: float, panels: Mapping[Callable[[Axes, RunRecord], None], float]
) -> Figure:
    """What draws each panel, with its share of the height; evaluations along the common axis."""
    figure = style.new_figure(7.0, height)
    shares = list(panels.values())
    figure.subplots(len(panels), 1, sharex=True, height_ratios=shares)
    evaluations, warm_up = _column(result.history, "n_evaluations"), _warm_up(result.history)
    for ax, draw in zip(figure.axes, panels, strict=True):
        draw(ax, result)
        if np.any(warm_up):
            ax.axvspan(evaluations[0], evaluations[warm_up][-1], color=GREY, alpha=0.1, linewidth=0)
        style.open_frame(ax)
    figure.axes[-1].set_xlabel("evaluations")
    figure.axes[-1].locator_params(axis="x", integer=True)
    return figure


def _draw_evidence(ax: Axes, record: RunRecord) -> None:
    history, warm_up = record.history, _warm_up(record.history)
    evaluations = _column(history, "n_evaluations")
    bands = []
    for label, name, colour, line in (
        ("lower bound (ELBO)", "elbo", BLUE, "--"),
        ("log evidence", "log_evidence", ORANGE, "-"),
    ):
        value, sd = _column(history, name), _column(history, f"{name}_sd")
        low, high = value - 2 * sd, value + 2 * sd
        # Before the posterior is found estimates and errors mean little: faint, without a band.
        ax.plot(evaluations[warm_up], value[warm_up], color=colour, linestyle=line, alpha=0.35)
        x, after = evaluations[~warm_up], ~warm_up
        ax.plot(x, value[after], color=colour, linestyle=line, marker=".", label=label)
        ax.fill_between(x, low[after], high[after], color=colour, alpha=0.2, linewidth=0)
        bands += [low, high]
    value, error = record.log_evidence, 2 * record.log_evidence_sd
    n = record.n_evaluations
    ax.errorbar([n], [value], [error], fmt="D", markersize=4, color=BLACK, label="returned")
    bands += [np.full(len(history), value - error), np.full(len(history), value + error)]
    _limit_to(ax, bands, warm_up)
    ax.set_ylabel("log evidence (nats)")
    ax.legend(frameon=False, loc="best", fontsize=9)


def _draw_features(ax: Axes, record: RunRecord) -> None:
    history = record.history
    for label, name, colour, line in FEATURES:
        values = np.array([getattr(info.features, name, np.nan) for info in history])  # or none
        _logarithmic(ax, history, values, color=colour, linestyle=line, linewidth=1.4, label=label)
    error = _column(history, "posterior_error")
    if np.any(np.isfinite(error)):  # it is not asked for in the paper
        share = error / record.settings.accuracy.limit(len(record.problem.names))
        _logarithmic(ax, history, share, color=AMBER, label="error of the posterior")
    _draw_reliability(ax, record, linewidth=2.0, label="reliability index")
    ax.set_ylabel("stable when below 1")
    # Above the panel: five lines leave no place for their names within it.
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, fontsize=8)


def _draw_reliability(ax: Axes, record: RunRecord, **line: object) -> None:
    index = _column(record.history, "reliability")
    _logarithmic(ax, record.history, index, color=GREEN, marker=".", **line)
    ax.axhline(1.0, color=GREY, linestyle=":", linewidth=1)
    ax.set_ylabel("reliability index")


def _draw_components(ax: Axes, record: RunRecord) -> None:
    evaluations, components = (
        _column(record.history, n) for n in ("n_evaluations", "n_components")
    )
    ax.step(evaluations, components, where="post", color=BLUE, marker=".")
    ax.locator_params(axis="y", integer=True)
    ax.set_ylabel("components K")


def _draw_held_out(ax: Axes, record: RunRecord) -> None:
    """Root mean square of z by iteration, with the 95 % interval of its distribution."""
    history = record.history
    tested = [info for info in history if info.n_held_out > 0]
    ax.axhline(1.0, color=GREY, linestyle=":", linewidth=1)
    ax.set_ylabel("error / claimed error")
    if not tested:
        text = "no posterior draw has been predicted before its evaluation yet"
        ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="bottom", color=GREY)
        return
    evaluations, n = _column(tested, "n_evaluations"), _column(tested, "n_held_out")
    # n z_rms^2 has a chi-squared distribution with n degrees of freedom when the claim is right.
    low, high = (np.sqrt(chdtri(n, upper_tail) / n) for upper_tail in (0.975, 0.025))
    ax.vlines(evaluations, low, high, color=GREY, alpha=0.3, linewidth=5, label="95 % if honest")
    rms = np.sqrt(_column(tested, "held_out_squares") / n)
    ax.plot(evaluations, rms, "o", color=ORANGE, markersize=5, label="posterior draws (rms)")
    inflation = [np.sqrt(info.evidence.inflation) for info in history]
    ax.plot(_column(history, "n_evaluations"), inflation, color=AMBER, label="factor on the error")
    ax.set_ylim(0.0, 1.2 * max(*rms, *high, *inflation))
    ax.legend(frameon=False, loc="upper left", fontsize=8)


def _logarithmic(ax: Axes, history: History, values: Array, **line: object) -> None:
    """A line on a logarithmic axis, with gaps where there is no positive finite value."""
    shown = np.where(np.isfinite(values) & (values > 0), values, np.nan)
    ax.plot(_column(history, "n_evaluations"), shown, **line)  # pyright: ignore[reportArgumentType]
    if np.any(np.isfinite(shown)):
        ax.set_yscale("log")


def _column(history: History, name: str) -> Array:
    return np.array([getattr(info, name) for info in history], dtype=np.float64)


def _warm_up(history: History) -> NDArray[np.bool_]:
    return np.array([info.warm_up for info in history], dtype=bool)


def _limit_to(ax: Axes, bands: Sequence[Array], warm_up: NDArray[np.bool_]) -> None:
    """Choose the vertical axis from the later half of the iterations after the warm-up, or of all.

    What they settle on is what matters, and is seen best without the way there.
    """
    shown = np.flatnonzero(np.ones_like(warm_up) if np.all(warm_up) else ~warm_up)
    chosen = np.stack(bands)[:, shown[len(shown) // 2 :]]
    finite = chosen[np.isfinite(chosen)]
    if finite.size == 0:
        return
    low, high = finite.min(), finite.max()
    margin = 0.1 * (high - low) or 0.5
    ax.set_ylim(low - margin, high + margin)
