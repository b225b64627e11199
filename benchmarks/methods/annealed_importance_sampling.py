"""Annealed importance sampling (AIS).

R. M. Neal, "Annealed importance sampling", Statistics and Computing 11 (2001), 125-139.

A chain is led from the prior to the posterior along p(x) L(x)^beta with beta from 0 to 1. The
product of the ratios of successive densities at the chain's states is an unbiased estimate of the
evidence. Set up as in Gunter et al. 2014 and Osborne et al. 2012: one chain, as many temperatures
as evaluations, even in beta, one Metropolis step each with normal proposals of the prior's
covariance.

What an estimate after n evaluations would have been cannot be read off a longer chain, whose
temperatures are others. Each look back is therefore a chain of its own, of evaluations that do
not count as the run's.

Notation
--------
T          temperatures, evaluations
beta_t     t / T, t = 0..T
x_t        the chain's state, of density p L^beta_t once it has moved
log w      sum over t = 1..T of (beta_t - beta_t-1) log L(x_t-1)   (Neal 2001, Section 2)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from benchmarks.methods.base import Estimate, LibraryClock, Snapshot
from benchmarks.methods.recording import Record, estimate, look_counts, moments, posterior_counts
from benchmarks.methods.sampling import prior_quantile
from benchmarks.methods.surrogate_posterior import surrogate_draws
from benchmarks.problems.base import Array, BenchmarkProblem
from benchmarks.quadrature.evidence import Evidence
from sparing.numerics.random_streams import RandomStreams


def run_annealed_importance_sampling(
    problem: BenchmarkProblem,
    log_joint: Callable[[Array], float],
    x0: Array,  # noqa: ARG001 (the chain must start at a draw from the prior)
    seed: int,
    budget: int,
    clock: LibraryClock,
) -> Estimate:
    """One run, and a shorter one for each earlier look."""
    streams = RandomStreams(seed)

    def look(
        target: Callable[[Array], float], n: int, timer: LibraryClock
    ) -> tuple[Snapshot, Array]:
        record = Record(problem, target, n)
        with timer:
            log_weight = anneal(record, n, streams.generator("annealed chain", n))
        generator = streams.generator("surrogate posterior", n)
        draws = surrogate_draws(problem, record.points, record.log_joint, generator)
        return Snapshot(n, log_weight, *moments(draws)), draws

    *earlier, _ = posterior_counts(look_counts(budget))
    snapshots = [look(problem.log_joint, n, LibraryClock())[0] for n in earlier]
    last, draws = look(log_joint, budget, clock)
    return estimate(Evidence(last.log_evidence, math.nan), draws, [*snapshots, last])


def anneal(record: Record, n_temperatures: int, generator: np.random.Generator) -> float:
    """log w of one chain, whose evaluations go into the record."""
    problem = record.problem
    x = prior_quantile(problem, generator.random(problem.dimension))
    record.evaluate(x)
    log_prior, log_likelihood = problem.log_prior(x), record.log_likelihood[-1]
    log_weight = log_likelihood / n_temperatures
    for t in range(1, n_temperatures):
        proposal = x + problem.prior_sd * generator.standard_normal(problem.dimension)
        new_log_prior = problem.log_prior(proposal)
        log_uniform = -generator.standard_exponential()
        if new_log_prior > -math.inf:
            record.evaluate(proposal)
            new_log_likelihood = record.log_likelihood[-1]
            gain = _difference(new_log_likelihood, log_likelihood) * t / n_temperatures
            if new_log_prior - log_prior + gain > log_uniform:
                x, log_prior, log_likelihood = proposal, new_log_prior, new_log_likelihood
        log_weight += log_likelihood / n_temperatures
    return float(log_weight)


def _difference(new: float, old: float) -> float:
    """new - old, where neither may be finite: a chain leaves a zero and does not enter one."""
    if new == -math.inf:
        return -math.inf
    return math.inf if old == -math.inf else new - old
