"""Doubly-Bayesian quadrature, BBQ, and BBQ* that marginalises the length scales.

M. A. Osborne, D. Duvenaud, R. Garnett, C. E. Rasmussen, S. J. Roberts and Z. Ghahramani, "Active
learning of model evidence using Bayesian quadrature", Advances in Neural Information Processing
Systems 25 (2012).

The model and its integrals are in quadrature/doubly_bayesian.py. The first point is x0; each next
one minimises the variance of the evidence that is expected once it is known.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.methods.base import Estimate, LibraryClock
from benchmarks.methods.sequential import run_sequentially
from benchmarks.problems.base import Array, BenchmarkProblem
from benchmarks.quadrature.doubly_bayesian_fit import extended

REACH = 3.0  # the authors' program searches within three prior SDs of the mean


def run_doubly_bayesian(
    problem: BenchmarkProblem,
    log_joint: Callable[[Array], float],
    x0: Array,
    seed: int,
    budget: int,
    clock: LibraryClock,
    *,
    marginalise_scales: bool,
) -> Estimate:
    """One run."""
    return run_sequentially(
        problem,
        log_joint,
        x0,
        seed,
        budget,
        clock,
        name="doubly-Bayesian quadrature",
        extend=partial(extended, marginalise_scales=marginalise_scales),
        reach=REACH,
    )


run_bbq = partial(run_doubly_bayesian, marginalise_scales=False)
run_bbq_star = partial(run_doubly_bayesian, marginalise_scales=True)
