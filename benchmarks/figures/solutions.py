"""Single runs of sparing with all they hold, kept in the campaign's directory once made."""

from __future__ import annotations

from pathlib import Path

import sparing
from benchmarks.figures.looks import look_of
from benchmarks.figures.recorded_runs import Source
from benchmarks.methods.sparing_method import VARIANTS
from benchmarks.problems.base import Array, BenchmarkProblem
from sparing.errors import LoadError

FOLDER = "solutions"


def solution(source: Source, problem: BenchmarkProblem, method: str, budget: int) -> sparing.Result:
    """A typical run of the campaign, made again with its posteriors."""
    target = sparing.Problem(
        problem.log_joint,
        problem.plausible_lower,
        problem.plausible_upper,
        problem.lower,
        problem.upper,
    )
    seed = source.typical_seed(problem.name, method)
    start = problem.starting_point(seed)
    return kept_run(source, problem.name, target, method, seed, start, budget)


def kept_run(
    source: Source,
    name: str,
    problem: sparing.Problem,
    method: str,
    seed: int,
    x0: Array | None = None,
    budget: int | None = None,
) -> sparing.Result:
    """Run a variant of sparing, or read the run of that name, method, seed and budget."""
    limit = "" if budget is None else f"_budget{budget}"
    path = kept_path(source, f"{name}_{method}_seed{seed}{limit}.sparing")
    try:
        return sparing.load(path)
    except LoadError:  # not made yet, or by another version
        source.report(f"running {look_of(method).label} on {name}, seed {seed}")
    result = sparing.infer(
        problem,
        x0=x0,
        seed=seed,
        max_evaluations=budget,
        settings=VARIANTS[method](sparing),
        progress=False,
    )
    result.save(path)
    return result


def kept_path(source: Source, name: str) -> Path:
    """Where something made for a figure is kept."""
    folder = source.directory / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name
