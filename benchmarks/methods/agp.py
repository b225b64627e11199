"""Adaptive Gaussian process approximation (AGP).

H. Wang and J. Li, "Adaptive Gaussian process approximation for Bayesian inference with expensive
likelihood functions", Neural Computation 30 (2018), 3072-3094 (arXiv 1703.09930, 2017).

A Gaussian process of mean zero models the log joint less the log of a reference density, at first
the prior. Draws from the exponential of the process's mean times the reference are the posterior,
and a mixture of normals fitted to them is the next reference. Each point has the largest entropy of
the joint under the process, m + log r + log(2 pi e V) / 2.

Notation: r is the reference, m and V the process's mean and variance at a point.
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
    posterior_draws,
    scale_prior,
)
from benchmarks.methods.recording import Record
from benchmarks.problems.base import Array, BenchmarkProblem
from benchmarks.quadrature.mixture_fit import FittedMixture
from benchmarks.quadrature.process import condition_on, fit
from sparing.numerics.random_streams import RandomStreams
from sparing.surrogate.training_set import TrainingSet


def run_agp(
    problem: BenchmarkProblem,
    log_joint: Callable[[Array], float],
    x0: Array,
    seed: int,
    budget: int,
    clock: LibraryClock,
) -> Estimate:
    """One run; there is a posterior after every round."""
    streams = RandomStreams(seed)
    record = Record(problem, log_joint, budget)
    domain = Domain.of(problem)
    lower, upper = domain.plausible
    reference = FittedMixture.normal(0.5 * (lower + upper), 0.5 * (upper - lower))
    posteriors: list[ApproximatePosterior] = []
    theta = None
    with clock:
        initial_design(record, x0, budget, streams.generator("initial design"))
        while True:
            generator = streams.generator("AGP", record.n)
            usable = np.isfinite(record.log_joint)
            z = record.standardised[usable]
            values = record.log_joint[usable] - reference.log_density(z)
            prior = scale_prior(z, values, constant_mean=False)
            theta = fit(prior, TrainingSet(z, values), theta)
            gp = condition_on(prior, theta, z, values)
            final = record.n == budget
            draws = posterior_draws(gp, reference.log_density, domain, generator, final=final)
            posterior = ApproximatePosterior.from_draws(record, record.n, draws, generator)
            posteriors.append(posterior)
            if final:
                break
            n_points = min(N_PER_ROUND, budget - record.n)
            evaluate_round(
                record, gp, reference.log_density, log_entropy, domain, n_points, generator
            )
            reference = posterior.mixture
    return estimate_from(posteriors)


def log_entropy(mean: Array, variance: Array, log_reference: Array) -> Array:
    """The entropy of a log-normal joint up to a constant."""
    return mean + log_reference + 0.5 * np.log(np.maximum(variance, np.finfo(float).tiny))
