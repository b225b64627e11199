"""The pictures of "How it works", drawn from real runs.

f       log joint of the example in one dimension, a mixture of two normals: its evidence is 1
q       posterior of a run: a mixture of normals
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

import sparing
from sparing.cli import demo_run as demo
from sparing.numerics.arrays import Array
from sparing.plots import BLUE, GREEN, GREY, ORANGE, new_figure
from sparing.surrogate.training_set import TrainingSet
from sparing.variational.normal_mixture import unchanged
from sparing.vbmc.evidence import LowerBound
from sparing.vbmc.state import TrainedSurrogate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WEIGHTS, MEANS, SDS = np.array([0.65, 0.35]), np.array([-0.7, 1.3]), np.array([0.6, 0.9])
VIEW = (-4.0, 5.0)
N_SHOWN_DRAWS = 2000
GRID = np.linspace(*VIEW, 400)
# Where the surrogate is shown after 3, 5 and 9 evaluations; the first ones come first.
SHOWN_POINTS = np.array([-2.6, 0.9, 3.6, -0.9, 2.2, -1.7, -0.1, 1.6, 2.9])
SHOWN_COUNTS = (3, 5, 9)
SEED, DEMO_SEED = 1, 6
WIDTH = 7.2


def example_log_joint(x: Array) -> float:
    """f at one point (1,)."""
    return float(_log_joint_on(np.asarray(x))[0])


def _log_joint_on(points: Array) -> Array:
    z = (points[:, None] - MEANS) / SDS
    return logsumexp(-0.5 * z**2 - np.log(SDS) - 0.5 * np.log(2 * np.pi), b=WEIGHTS, axis=1)


@cache
def example_run() -> sparing.Result:
    """A run on the example in one dimension."""
    problem = sparing.Problem(example_log_joint, -3.0, 4.0, names=["x"])
    return sparing.infer(problem, seed=SEED, progress=False)


@cache
def demo_run() -> sparing.Result:
    """A run on the curved posterior of ``sparing demo``, whose evidence is known."""
    return sparing.infer(demo.make_problem(), seed=DEMO_SEED, progress=False)


def surrogate_figure() -> Figure:
    """The surrogate after a few evaluations: it is sure where it was told, unsure elsewhere."""
    figure = new_figure(WIDTH, 2.9)
    for ax, n in zip(figure.subplots(1, len(SHOWN_COUNTS), sharey=True), SHOWN_COUNTS, strict=True):
        points = SHOWN_POINTS[:n]
        _draw_surrogate(ax, _told(points), points)
        ax.set_title(f"{n} evaluations", fontsize=10)
        ax.set(ylim=(-14, 3), xlabel="parameter")
        if n == SHOWN_COUNTS[0]:
            ax.set_ylabel("log joint density")
    _legend_below(figure, ax)
    return figure


def coordinates_figure() -> Figure:
    """The curved posterior as the user sees it, and as the surrogate does at the end."""
    result = demo_run()
    transform = result.posterior.transform
    x = np.array([entry.x for entry in result.evaluations])
    draws = result.posterior.sample(N_SHOWN_DRAWS, seed=SEED)
    figure = new_figure(WIDTH, 3.2)
    left, right = figure.subplots(1, 2)
    seen = (
        (left, draws, x, "parameters", "a", "b"),
        (
            right,
            transform.to_working(draws),
            transform.to_working(x),
            "working coordinates",
            "",
            "",
        ),
    )
    for ax, cloud, points, title, first, second in seen:
        ax.scatter(*cloud.T, color=BLUE, s=3, alpha=0.25, lw=0)
        ax.scatter([], [], color=BLUE, s=14, label="posterior")
        ax.scatter(*points.T, color=ORANGE, s=14, zorder=3, label="evaluations")
        middle, spread = cloud.mean(axis=0), 4.5 * cloud.std(axis=0)
        ax.set(xlim=(middle[0] - spread[0], middle[0] + spread[0]), xlabel=first, ylabel=second)
        ax.set_ylim(middle[1] - spread[1], middle[1] + spread[1])
        ax.set_title(title, fontsize=10)
        _plain(ax)
    _legend_below(figure, left)
    return figure


def mixture_figure() -> Figure:
    """q and its components, early in a run and at its end; nothing else is sampled."""
    settings = replace(sparing.Settings(), evidence=LowerBound())
    problem = sparing.Problem(example_log_joint, -3.0, 4.0, names=["x"])
    history = sparing.infer(problem, seed=SEED, settings=settings, progress=False).history
    figure = new_figure(WIDTH, 2.9)
    axes = figure.subplots(1, 2, sharey=True)
    truth = np.exp(_log_joint_on(GRID))
    for ax, info in zip(axes, (history[0], history[-1]), strict=True):
        density = info.posterior.density(GRID[:, None])
        ax.fill_between(GRID, density, color=BLUE, alpha=0.25, lw=0)
        for curve in _components(info.posterior):
            ax.plot(GRID, curve, color=BLUE, lw=0.7)
        ax.plot(GRID, truth, color=GREY, ls="--", lw=1.3, label="true posterior")
        words = f"{info.n_evaluations} evaluations, {info.n_components} components"
        ax.set_title(words, fontsize=10)
        ax.set(xlabel="parameter", xlim=VIEW)
        _plain(ax)
    axes[0].set(ylabel="posterior density", ylim=(0, None))
    axes[1].fill_between([], [], color=BLUE, alpha=0.25, label="mixture q")
    axes[1].plot([], [], color=BLUE, lw=0.7, label="its components")
    _legend_below(figure, axes[1])
    return figure


def acquisition_figure() -> Figure:
    """How much an evaluation would teach, before and after the best point was evaluated."""
    posterior = example_run().posterior
    figure = new_figure(WIDTH, 4.2)
    axes = figure.subplots(2, 2, sharex=True, sharey="row", height_ratios=[2, 1])
    points = SHOWN_POINTS[: SHOWN_COUNTS[1]]
    top = 0.0
    for column, title in enumerate(("before", "after the evaluation there")):
        surrogate = _told(points)
        gain = _variance_reduction(surrogate)
        best = GRID[np.argmax(gain)]
        top = max(top, gain.max())
        _draw_surrogate(axes[0, column], surrogate, points)
        axes[0, column].set_title(title, fontsize=10)
        axes[0, column].set(ylim=(-10, 3))
        density = posterior.density(GRID[:, None])
        axes[1, column].fill_between(
            GRID, density / density.max(), color=BLUE, alpha=0.25, lw=0, label="posterior so far"
        )
        axes[1, column].plot(GRID, gain / top, color=GREEN, lw=1.5, label="what it would teach")
        axes[1, column].axvline(best, color=ORANGE, lw=1.0, ls=":")
        axes[1, column].set(xlabel="parameter", yticks=[])
        _plain(axes[1, column])
        points = np.append(points, best)
    axes[0, 0].set_ylabel("log joint density")
    axes[0, 0].axvline(points[-2], color=ORANGE, lw=1.0, ls=":", label="next evaluation")
    _legend_below(figure, axes[0, 0], axes[1, 0], columns=3)
    return figure


def evidence_figure() -> Figure:
    """Lower bound and corrected evidence of the curved posterior, against the exact value."""
    result, exact = demo_run(), demo.exact_answer().log_evidence
    rows = [info for info in result.history if not info.warm_up]
    n = np.array([info.n_evaluations for info in rows])
    evidence = np.array([info.log_evidence for info in rows])
    sd = np.array([info.log_evidence_sd for info in rows])
    figure = new_figure(WIDTH, 3.0)
    ax = figure.subplots()
    ax.axhline(exact, color=GREY, ls="--", lw=1.3, label="exact")
    ax.plot(n, [info.elbo for info in rows], color=ORANGE, marker="o", ms=3, label="lower bound")
    ax.plot(n, evidence, color=BLUE, marker="o", ms=3, label="corrected")
    ax.fill_between(n, evidence - 2 * sd, evidence + 2 * sd, color=BLUE, alpha=0.2, lw=0)
    ax.set(xlabel="evaluations", ylabel="log evidence", ylim=(exact - 0.4, exact + 0.25))
    _plain(ax)
    ax.legend(frameon=False, fontsize=9)
    return figure


def stopping_figure() -> Figure:
    """What must fall below 1 before a run ends."""
    result = demo_run()
    rows = [info for info in result.history if info.features is not None]
    limit = result.settings.accuracy.limit(result.problem.dimension)
    n = [info.n_evaluations for info in rows]
    figure = new_figure(WIDTH, 3.0)
    ax = figure.subplots()
    ax.axhspan(1e-4, 1.0, color=GREEN, alpha=0.08, lw=0)
    ax.plot(n, [info.reliability for info in rows], color=BLUE, label="reliability index")
    errors = [info.posterior_error / limit for info in rows]
    ax.plot(n, errors, color=ORANGE, ls="--", label="expected error of the posterior / limit")
    stable = [(info.n_evaluations, info.reliability) for info in rows if info.stable]
    ax.scatter(*zip(*stable, strict=True), color=BLUE, s=28, zorder=3, label="called stable")
    lowest = min(value for value in [info.reliability for info in rows] + errors if value > 0)
    ax.set(xlabel="evaluations", ylabel="must be below 1", yscale="log", ylim=(lowest / 2, None))
    _plain(ax)
    ax.legend(frameon=False, fontsize=9)
    return figure


FIGURES = {
    "how-surrogate.svg": surrogate_figure,
    "how-coordinates.svg": coordinates_figure,
    "how-mixture.svg": mixture_figure,
    "how-acquisition.svg": acquisition_figure,
    "how-evidence.svg": evidence_figure,
    "how-stopping.svg": stopping_figure,
}


def draw_all(directory: Path) -> None:
    """Write every picture."""
    for name, draw in FIGURES.items():
        draw().savefig(directory / name, metadata={"Date": None})


def _told(points: Array) -> TrainedSurrogate:
    """A surrogate that was told f at the points, with hyperparameters a whole run has learned."""
    settings, last = example_run().settings, example_run().surrogate
    assert last is not None
    inputs = last.transform.to_working(points[:, None])
    values = _log_joint_on(points) + last.transform.log_jacobian(inputs)
    learned = last.surrogate.parameters[:1]
    return replace(
        last, surrogate=settings.surrogate.condition(TrainingSet(inputs, values), learned)
    )


def _variance_reduction(trained: TrainedSurrogate) -> Array:
    """The criterion on the grid, for the posterior of the run."""
    references = example_run().posterior.mixture.sample(500, np.random.default_rng(SEED))
    reduction = trained.surrogate.variance_reduction(references)
    return reduction(trained.transform.to_working(GRID[:, None]))


def _components(posterior: sparing.Posterior) -> list[Array]:
    """Weighted densities of the components on the grid, in the user's coordinate."""
    u = posterior.transform.to_working(GRID[:, None])
    jacobian = np.exp(-posterior.transform.log_jacobian(u))
    terms = unchanged(posterior.mixture).component_log_densities(u)
    return list((np.exp(terms) * jacobian[:, None]).T)


def _draw_surrogate(ax: Axes, trained: TrainedSurrogate, points: Array) -> None:
    mean, sd = trained.log_joint(GRID[:, None])
    ax.fill_between(
        GRID, mean - 2 * sd, mean + 2 * sd, color=BLUE, alpha=0.2, lw=0, label="two sds"
    )
    ax.plot(GRID, _log_joint_on(GRID), color=GREY, ls="--", lw=1.3, label="truth (unknown)")
    ax.plot(GRID, mean, color=BLUE, lw=1.5, label="surrogate")
    ax.scatter(points, _log_joint_on(points), color=ORANGE, s=22, zorder=3, label="evaluations")
    ax.set_xlim(*VIEW)
    _plain(ax)


def _legend_below(figure: Figure, *axes: Axes, columns: int = 4) -> None:
    entries = [ax.get_legend_handles_labels() for ax in axes]
    handles = [handle for part, _ in entries for handle in part]
    labels = [label for _, part in entries for label in part]
    place = "outside lower center"
    figure.legend(handles, labels, loc=place, ncols=columns, frameon=False, fontsize=9)


def _plain(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
