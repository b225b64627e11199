"""Contours of the two-dimensional targets and of the solutions found for them.

The grid follows the exact posterior's principal axes, so that the long and thin cigar is resolved.

Notation: z points in the exact posterior's standard coordinates.
"""

from __future__ import annotations

import numpy as np

import sparing
from benchmarks.figures.demo import draw_regions
from benchmarks.figures.layout import LABEL_SIZE, NOTE_SIZE, Drawing, tidy
from benchmarks.figures.looks import look_of
from benchmarks.figures.recorded_runs import FAMILIES, Source
from benchmarks.figures.solutions import solution
from benchmarks.metrics import gskl, lml_error
from benchmarks.problems.base import Array, BenchmarkProblem
from sparing.plots import new_figure

METHODS_SHOWN = ("sparing-paper", "sparing")
PANEL = (3.4, 2.7)  # inches
GRID = 141
REACH = 4.0  # standard deviations


def density_figure(source: Source) -> list[Drawing]:
    """Targets in the first row, solutions below; a column for each family."""
    problems = [source.load(_member(source, family)) for family in FAMILIES]
    rows = 1 + len(METHODS_SHOWN)
    figure = new_figure(PANEL[0] * len(problems), PANEL[1] * rows)
    axes = figure.subplots(rows, len(problems), squeeze=False, sharex="col", sharey="col")
    for problem, column in zip(problems, axes.T, strict=True):
        x = _grid(problem)
        points = x.reshape(-1, 2)
        exact = np.exp([problem.log_joint(point) - problem.log_evidence for point in points])
        draw_regions(column[0], x[..., 0], x[..., 1], exact.reshape(GRID, GRID))
        tidy(column[0], f"{problem.name}: exact")
        for method, ax in zip(METHODS_SHOWN, column[1:], strict=True):
            result = solution(source, problem, method, problem.budget)
            density = result.posterior.density(points).reshape(GRID, GRID)
            draw_regions(ax, x[..., 0], x[..., 1], density)
            tidy(ax)
            ax.set_title(_description(problem, method, result), fontsize=NOTE_SIZE)
        reach = REACH * np.sqrt(np.diag(problem.posterior_covariance))
        low, high = problem.posterior_mean - reach, problem.posterior_mean + reach
        column[0].set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        column[-1].set_xlabel("$x_1$", fontsize=LABEL_SIZE)
    for ax in axes[:, 0]:
        ax.set_ylabel("$x_2$", fontsize=LABEL_SIZE)
    caption = (
        "Synthetic target densities in two dimensions (top) and example solutions below, with the "
        "iterations and evaluations until they ended, their LML error and their gsKL. Regions "
        "hold 50, 80 and 95 % of the mass."
    )
    return [Drawing("figure-s1-densities", caption, figure)]


def _member(source: Source, family: str) -> str:
    """The published member when the data is there, else a generated one."""
    return f"{family}-2" if source.data is not None else f"{family}-2-g1"


def _grid(problem: BenchmarkProblem) -> Array:
    """Points (GRID, GRID, 2) about the exact posterior."""
    variances, axes = np.linalg.eigh(problem.posterior_covariance)
    z = np.stack(np.meshgrid(*[np.linspace(-REACH, REACH, GRID)] * 2), axis=-1)
    return problem.posterior_mean + (z * np.sqrt(variances)) @ axes.T


def _description(problem: BenchmarkProblem, method: str, result: sparing.Result) -> str:
    error = lml_error(result.log_evidence, problem.log_evidence)
    moments = result.posterior.mean, result.posterior.covariance
    divergence = gskl(*moments, problem.posterior_mean, problem.posterior_covariance)
    ended = "" if result.converged else " (the budget)"
    effort = f"{len(result.history)} iterations, {result.n_evaluations} evaluations{ended}"
    return f"{look_of(method).label}: {effort}\nLML error {error:.2g}, gsKL {divergence:.2g}"
