"""What follows from the parameters: the distribution of each derived quantity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparing.plots import style
from sparing.plots.corner import sample_density
from sparing.plots.style import BLUE, REGION_SHADES
from sparing.summary.numbers import rounded
from sparing.vbmc.run_record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_derived(result: RunRecord) -> Figure:
    """The posterior of each quantity that the problem derives from its parameters.

    ValueError for a problem that derives none.

    >>> from sparing.plots import plot_derived
    >>> area = sparing.Problem(
    ...     log_density, [0, -1], [2, 1], derived=lambda x: {"product": x[0] * x[1]}
    ... )
    >>> found = sparing.infer(area, seed=1, max_evaluations=20, progress=False)
    >>> [ax.get_xlabel() for ax in plot_derived(found).axes]
    ['product']
    """
    derived = result.derived
    if not derived:
        raise ValueError("this problem derives nothing: give it derived=...")
    figure, axes = style.panel_grid(len(derived), 3.0, 2.5)
    for ax, (name, values) in zip(axes, derived.items(), strict=True):
        finite = values[np.isfinite(values)]
        if len(finite):
            view = style.sample_view(finite)
            x, density = style.axis_grid(view), sample_density(finite, view)
            ax.fill_between(x, density, color=REGION_SHADES[0], linewidth=0)
            ax.plot(x, density, color=BLUE, linewidth=1.5)
            ax.set_xlim(*view)
            mean, sd = float(finite.mean()), float(finite.std())
            ax.set_title(f"{rounded(mean, sd)} ± {rounded(sd, sd)}", fontsize=9)
        ax.set_xlabel(style.escape_dollars(name))
        ax.locator_params(axis="x", nbins=4)
        style.without_heights(ax)
    return figure
