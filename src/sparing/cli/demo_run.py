"""The demonstration: a curved posterior in two dimensions whose evidence is known.

One number y = b + a^2 is measured with normal noise, and both a and b are unknown:

    a ~ N(0, 1),   b ~ N(0, 2^2),   y | a, b ~ N(b + a^2, noise^2)

so the posterior follows the parabola b = y - a^2. Given a, everything is normal in b, which leaves
one-dimensional integrals over a for the exact evidence and moments.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats
from scipy.integrate import trapezoid

from sparing.numerics.arrays import Array
from sparing.plots import (
    GREY,
    ORANGE,
    REGION_MASSES,
    REGION_SHADES,
    evaluated_points,
    new_figure,
    region_levels,
)
from sparing.problem.problem import Problem
from sparing.running.infer import infer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sparing.results.result import Result

MEASURED = 1.0
NOISE = 0.4
PRIOR_SD_A = 1.0
PRIOR_SD_B = 2.0
VIEW = ((-3.0, 3.0), (-6.0, 2.6))  # of a and b in the picture
GRID = 200


@dataclass(frozen=True, eq=False)
class Truth:
    """The exact answer: log evidence, posterior mean (2,) and standard deviations (2,)."""

    log_evidence: float
    mean: Array
    sd: Array


def log_likelihood(x: Array) -> float:
    """Log density of the measurement given x = (a, b)."""
    a, b = x
    return float(stats.norm.logpdf(MEASURED, loc=b + a**2, scale=NOISE))


def make_problem() -> Problem:
    """The demonstration's problem: likelihood, prior and a box that holds most of the mass."""
    return Problem(
        log_likelihood,
        plausible_lower=[-2.0, -4.0],
        plausible_upper=[2.0, 2.0],
        names=["a", "b"],
        prior=[stats.norm(0.0, PRIOR_SD_A), stats.norm(0.0, PRIOR_SD_B)],
    )


def exact_answer() -> Truth:
    """Evidence and moments by quadrature over a, with b integrated out in closed form."""
    # The integrand is smooth and vanishes at both ends, where the trapezium rule is exact to
    # rounding.
    a = np.linspace(-12.0, 12.0, 4001)
    marginal_sd = np.hypot(PRIOR_SD_B, NOISE)
    joint = stats.norm.pdf(a, scale=PRIOR_SD_A)
    joint *= stats.norm.pdf(MEASURED - a**2, scale=marginal_sd)
    # Given a, b is normal: the prior and the measurement weighted by their precisions.
    shrinkage = PRIOR_SD_B**2 / marginal_sd**2
    mean_b = shrinkage * (MEASURED - a**2)
    variance_b = shrinkage * NOISE**2

    evidence = trapezoid(joint, a)
    mean = trapezoid(joint * np.stack([a, mean_b]), a) / evidence
    second = trapezoid(joint * np.stack([a**2, mean_b**2 + variance_b]), a) / evidence
    return Truth(float(np.log(evidence)), mean, np.sqrt(second - mean**2))


def log_posterior(points: Array, truth: Truth) -> Array:
    """Exact normalised log posterior at points (m, 2)."""
    a, b = points.T
    log_joint = stats.norm.logpdf(MEASURED, loc=b + a**2, scale=NOISE)
    log_joint += stats.norm.logpdf(a, scale=PRIOR_SD_A) + stats.norm.logpdf(b, scale=PRIOR_SD_B)
    return log_joint - truth.log_evidence


def run(output: Path, seed: int) -> None:
    """Infer the demonstration's posterior, print the numbers and write ``demo.png``."""
    figure = new_figure(7.0, 6.0)  # first: without matplotlib there is nothing to wait for
    truth = exact_answer()
    result = infer(make_problem(), seed=seed)

    console = Console()
    console.print(summary_table(result, truth))
    console.print(f"stopped: {result.stop_reason}", markup=False)
    for warning in result.warnings:
        console.print(f"warning: {warning}", markup=False)
    draw(figure, result, truth)
    output.mkdir(parents=True, exist_ok=True)
    picture = output / "demo.png"
    figure.savefig(picture, dpi=150)
    console.print(f"picture: {picture}", markup=False, soft_wrap=True)


def summary_table(result: Result, truth: Truth) -> Table:
    """What was found beside what is exact."""
    table = Table(title="A curved posterior: found and exact", title_justify="left")
    for heading in ("", "found", "exact"):
        table.add_column(heading, justify="left" if not heading else "right")
    evidence = f"{result.log_evidence:.3f} ± {result.log_evidence_sd:.3f}"
    table.add_row("log evidence", evidence, f"{truth.log_evidence:.3f}")
    table.add_row("ELBO (lower bound)", f"{result.elbo:.3f} ± {result.elbo_sd:.3f}", "")
    for i, name in enumerate(result.problem.names):
        table.add_row(
            f"{name}: mean, sd",
            f"{result.posterior.mean[i]:z.2f}, {result.posterior.sd[i]:.2f}",
            f"{truth.mean[i]:z.2f}, {truth.sd[i]:.2f}",
        )
    table.add_row("evaluations", str(result.n_evaluations), "")
    table.add_row("time in the library", f"{result.library_seconds:.1f} s", "")
    return table


def draw(figure: Figure, result: Result, truth: Truth) -> None:
    """The inferred posterior shaded, the exact one in outline, the evaluated points as dots."""
    a = np.linspace(*VIEW[0], GRID)
    b = np.linspace(*VIEW[1], GRID)
    grid = np.stack(np.meshgrid(a, b), axis=-1).reshape(-1, 2)
    inferred = np.exp(result.posterior.log_density(grid)).reshape(GRID, GRID)
    exact = np.exp(log_posterior(grid, truth)).reshape(GRID, GRID)

    ax = figure.subplots()
    inferred_levels = region_levels(inferred, REGION_MASSES)
    if inferred_levels is not None:
        ax.contourf(a, b, inferred, levels=[*inferred_levels, np.inf], colors=list(REGION_SHADES))
    exact_levels = region_levels(exact, REGION_MASSES)
    assert exact_levels is not None  # the exact posterior is smooth and inside the view
    ax.contour(a, b, exact, levels=exact_levels, colors=GREY, linewidths=1.0)
    points = evaluated_points(result)
    ax.scatter(points[:, 0], points[:, 1], s=14, color=ORANGE, linewidths=0, zorder=3)

    # Proxies, since filled contours have no entry of their own in a legend.
    ax.fill_between([], [], color=REGION_SHADES[1], label="inferred: 50, 80, 95 % of the mass")
    ax.plot([], [], color=GREY, label="exact: 50, 80, 95 % of the mass")
    ax.scatter([], [], s=14, color=ORANGE, label="evaluated points")
    ax.legend(frameon=False, loc="lower center")
    ax.set(xlim=VIEW[0], ylim=VIEW[1], xlabel="a", ylabel="b")
    ax.set_title(
        f"log evidence {result.log_evidence:.3f} ± {result.log_evidence_sd:.3f} "
        f"(exact {truth.log_evidence:.3f})",
        fontsize=11,
    )
    ax.spines[["top", "right"]].set_visible(False)
