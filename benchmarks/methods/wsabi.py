"""Warped sequential active Bayesian integration, WSABI-L and WSABI-M.

T. Gunter, M. A. Osborne, R. Garnett, P. Hennig and S. J. Roberts, "Sampling for inference in
probabilistic models with fast Bayesian quadrature", Advances in Neural Information Processing
Systems 27 (2014).

The model and its integrals are in quadrature/warped.py. The first point is x0; each next one has
the largest variance of the integrand, likelihood times prior (their "uncertainty sampling").
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.methods.base import Estimate, LibraryClock
from benchmarks.methods.sequential import run_sequentially
from benchmarks.problems.base import Array, BenchmarkProblem
from benchmarks.quadrature.warped import Moments, extended

REACH = 7.0  # the published benchmark searches within seven prior SDs of the mean


def run_wsabi(
    problem: BenchmarkProblem,
    log_joint: Callable[[Array], float],
    x0: Array,
    seed: int,
    budget: int,
    clock: LibraryClock,
    *,
    moments: Moments,
) -> Estimate:
    """One run of the variant with these moments."""
    return run_sequentially(
        problem,
        log_joint,
        x0,
        seed,
        budget,
        clock,
        name=moments.value,
        extend=lambda model, z, log_likelihood, _: extended(model, moments, z, log_likelihood),
        reach=REACH,
    )


run_wsabi_l = partial(run_wsabi, moments=Moments.LINEARISED)
run_wsabi_m = partial(run_wsabi, moments=Moments.MATCHED)
