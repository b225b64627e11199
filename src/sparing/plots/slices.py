"""The surrogate along each parameter through the posterior's mode, with its uncertainty.

f(x)   log joint density; the surrogate gives its mean and standard deviation
Z      evidence: log q(x) + log Z is what the posterior says f(x) is
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparing.numerics.arrays import Array
from sparing.plots import style
from sparing.plots.style import BLUE, GREEN, GREY, ORANGE
from sparing.vbmc.run_record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GRID = 400
DEPTH = 8.0  # nats below the top: what lies deeper holds less than a thousandth of the mass


def plot_slices(result: RunRecord) -> Figure:
    """The log joint density along each parameter, the others held at the posterior's mode.

    The band is the surrogate's mean with two standard deviations either way. The dashed line is
    the posterior on the same scale: where both agree, the mixture follows the surrogate. With one
    parameter the evaluated points are shown as well. A result that an older release saved has no
    surrogate: ValueError.

    >>> from sparing.plots import plot_slices
    >>> figure = plot_slices(result)
    >>> [ax.get_xlabel() for ax in figure.axes]
    ['slope', 'offset']
    """
    if result.surrogate is None:
        raise ValueError(
            "this result has no surrogate to draw: the release that saved it did not keep it"
        )
    names, posterior = result.problem.names, result.posterior
    mode = posterior.unwrapped(posterior.mode()[None, :])[0]
    figure, axes = style.panel_grid(len(names), *((6.0, 3.6) if len(names) == 1 else (3.0, 2.5)))
    views = style.posterior_views(posterior)
    for i, ax in enumerate(axes):
        x = style.axis_grid(views[i], GRID)
        points = np.tile(mode, (GRID, 1))
        points[:, i] = x
        mean, sd = result.surrogate.log_joint(points)
        log_joint = posterior.log_density(points) + result.log_evidence
        ax.fill_between(x, mean - 2 * sd, mean + 2 * sd, color=BLUE, alpha=0.25, linewidth=0)
        ax.plot(x, mean, color=BLUE, label="surrogate with its uncertainty")
        ax.plot(x, log_joint, color=GREEN, linestyle="--", label="posterior")
        ax.axvline(mode[i], color=GREY, linestyle=":", linewidth=1, label="mode")
        if len(names) == 1:
            values = [entry.value for entry in result.evaluations if np.isfinite(entry.value)]
            dots = style.evaluated_points(result)[:, 0]
            ax.plot(dots, values, "o", color=ORANGE, markersize=4, label="evaluated points")
        top = float(np.max(mean))
        highest = min(float(np.max(mean + 2 * sd)), top + 0.5 * DEPTH)
        ax.set_ylim(top - DEPTH, highest + 0.1 * DEPTH)
        ax.set_xlim(*_interesting(x, np.maximum(mean, log_joint), top))
        ax.set_xlabel(style.escape_dollars(names[i]))
        ax.locator_params(axis="x", nbins=4)
        style.open_frame(ax)
    axes[0].set_ylabel("log joint density")
    style.legend_above(figure, 4, font_size=9)
    return figure


def _interesting(x: Array, values: Array, top: float) -> tuple[float, float]:
    """The stretch of x where the values are not far below the top, with a little around it.

    With correlated parameters a slice is much narrower than the marginal.
    """
    inside = x[values > top - DEPTH]
    margin = 0.08 * (inside[-1] - inside[0]) or 0.5 * (x[-1] - x[0])
    return max(x[0], inside[0] - margin), min(x[-1], inside[-1] + margin)
