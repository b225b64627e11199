"""The methods the paper compares with (Section 4, "Algorithms"), by name.

Where their papers leave a choice open, settings are those of the program that the paper's results
come from (github.com/lacerbi/infbench); modules call it the published benchmark, and say where they
differ. All know of the problem what the paper allows, the prior's mean and diagonal covariance.

Their modules need the library, which not every environment that reads this list has: each is
imported when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from benchmarks.methods.base import Environment, Estimate, LibraryClock, Method, Run
from benchmarks.problems.base import Array, BenchmarkProblem


def deferred(module: str, entry: str) -> Run:
    """The entry point of a module of this package."""

    def run(
        problem: BenchmarkProblem,
        log_joint: Callable[[Array], float],
        x0: Array,
        seed: int,
        budget: int,
        clock: LibraryClock,
    ) -> Estimate:
        from sparing.kernels.compilation import compile_all

        compile_all()  # once per machine; not a cost of the run
        entry_point: Run = getattr(import_module(f"benchmarks.methods.{module}"), entry)
        return entry_point(problem, log_joint, x0, seed, budget, clock)

    return run


COMPARISON_METHODS = tuple(
    Method(name, Environment.PROJECT, deferred(module, entry))
    for name, module, entry in (
        ("smc", "simple_monte_carlo", "run_simple_monte_carlo"),
        ("ais", "annealed_importance_sampling", "run_annealed_importance_sampling"),
        ("bmc", "bayesian_monte_carlo", "run_bayesian_monte_carlo"),
        ("bbq", "bbq", "run_bbq"),
        ("bbq-star", "bbq", "run_bbq_star"),
        ("wsabi-l", "wsabi", "run_wsabi_l"),
        ("wsabi-m", "wsabi", "run_wsabi_m"),
        ("bape", "bape", "run_bape"),
        ("agp", "agp", "run_agp"),
    )
)
