"""Bayesian active posterior estimation (BAPE).

K. Kandasamy, J. Schneider and B. Poczos, "Bayesian active learning for posterior estimation",
International Joint Conference on Artificial Intelligence (2015).

A Gaussian process with a constant mean models the log joint. Each point has the largest variance
of the joint itself, which is log-normal: exp(2 m + V) (exp(V) - 1), their "exponentiated
variance". The posterior is the exponential of the process's mean. With a constant mean it is proper
only because the domain is bounded.

Notation: m, V are the process's mean and variance at a point.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.methods.base import Estimate, LibraryClock
from benchmarks.methods.log_joint_surrogates import (
    N_PER_ROUND,
    ApproximatePosterior,
    Domain,
    estimate_from,
    evaluate_round,
    initial_design,
    looks_after_rounds,
    posterior_draws,
    scale_prior,
)
from benchmarks.methods.recording import Record
from benchmarks.problems.base import Array, BenchmarkProblem
from benchmarks.quadrature.process import condition_on, fit
from sparing.numerics.random_streams import RandomStreams
from sparing.surrogate.gaussian_process import GaussianProcess
from sparing.surrogate.training_set import TrainingSet


def run_bape(
    problem: BenchmarkProblem,
    log_joint: Callable[[Array], float],
    x0: Array,
    seed: int,
    budget: int,
    clock: LibraryClock,
) -> Estimate:
    """One run; the posterior at each look is drawn from after it, as the run does not need it."""
    streams = RandomStreams(seed)
    record = Record(problem, log_joint, budget)
    domain = Domain.of(problem)
    looks = looks_after_rounds(budget)
    processes: dict[int, GaussianProcess] = {}
    theta = None
    with clock:
        initial_design(record, x0, budget, streams.generator("initial design"))
        while True:
            usable = np.isfinite(record.log_joint)
            z, values = record.standardised[usable], record.log_joint[usable]
            prior = scale_prior(z, values, constant_mean=True)
            theta = fit(prior, TrainingSet(z, values), theta)
            gp = condition_on(prior, theta, z, values)
            if record.n in looks:
                processes[record.n] = gp
            if record.n == budget:
                break
            n_points = min(N_PER_ROUND, budget - record.n)
            generator = streams.generator("BAPE", record.n)
            evaluate_round(
                record, gp, constant, exponentiated_variance, domain, n_points, generator
            )
    posteriors = []
    for n, gp in processes.items():
        generator = streams.generator("BAPE posterior", n)
        draws = posterior_draws(gp, constant, domain, generator, final=n == budget)
        posteriors.append(ApproximatePosterior.from_draws(record, n, draws, generator))
    return estimate_from(posteriors)


def exponentiated_variance(mean: Array, variance: Array, _: Array) -> Array:
    """log [exp(2 m + V) (exp(V) - 1)], without overflow for a large variance."""
    tiny = np.finfo(float).tiny
    return 2.0 * (mean + variance) + np.log(-np.expm1(-variance) + tiny)


def constant(z: Array) -> Array:
    """The process models the log joint itself."""
    return np.zeros(len(z))
