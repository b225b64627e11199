"""Bayesian Monte Carlo (BMC): a Gaussian process of the likelihood, integrated.

C. E. Rasmussen and Z. Ghahramani, "Bayesian Monte Carlo", Advances in Neural Information Processing
Systems 15 (2003).

The likelihood itself is the process, with mean zero and a squared exponential kernel. Points are x0
and draws from the prior, as in the published benchmark. Nothing keeps the process positive: where
the estimate is negative there is no log evidence.

Notation (D dimensions, n points)
---------------------------------
X, l     inputs in prior units (n, D), likelihoods over their largest (n,)
w        integrals of k(z, x_i) N(z; 0, I) dz, (n,)
A        noisy Gram matrix
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from benchmarks.methods.base import Estimate, LibraryClock
from benchmarks.methods.recording import (
    Look,
    Record,
    estimate_with_surrogate,
    look_counts,
    require_normal_prior,
)
from benchmarks.methods.sampling import prior_quantile
from benchmarks.problems.base import Array, BenchmarkProblem
from benchmarks.quadrature.evidence import Evidence, scaled_likelihoods
from benchmarks.quadrature.integrals import kernel_double_mean, kernel_mean
from benchmarks.quadrature.process import (
    ScalePrior,
    condition_on,
    fit,
    half_solve,
    precisions,
    variance,
)
from sparing.numerics.random_streams import RandomStreams
from sparing.surrogate.gaussian_process import GaussianProcess
from sparing.surrogate.training_set import TrainingSet


def run_bayesian_monte_carlo(
    problem: BenchmarkProblem,
    log_joint: Callable[[Array], float],
    x0: Array,
    seed: int,
    budget: int,
    clock: LibraryClock,
) -> Estimate:
    """One run; hyperparameters are fitted at every look."""
    require_normal_prior(problem, "Bayesian Monte Carlo")
    generator = RandomStreams(seed).generator("Bayesian Monte Carlo")
    record = Record(problem, log_joint, budget)
    prior = scale_prior(problem.dimension)
    looks = []
    theta = None
    with clock:
        record.evaluate(x0)
        for _ in range(1, budget):
            record.evaluate(prior_quantile(problem, generator.random(problem.dimension)))
        for n in look_counts(budget):
            inputs = record.standardised[:n]
            likelihood, log_scale = scaled_likelihoods(record.log_likelihood[:n])
            theta = fit(prior, TrainingSet(inputs, likelihood), theta)
            gp = condition_on(prior, theta, inputs, likelihood)
            looks.append(Look(n, Evidence.from_moments(*integral(gp), log_scale)))
    return estimate_with_surrogate(record, looks, seed)


def scale_prior(dimension: int) -> ScalePrior:
    """As for WSABI (quadrature/warped.py), with sigma_f about the largest likelihood, one."""
    location = np.append(np.full(dimension, math.log(2.0 / math.sqrt(10.0))), 0.0)
    return ScalePrior(location, np.full(dimension + 1, 1.0), noise_sd=1e-3)


def integral(gp: GaussianProcess) -> tuple[float, float]:
    """Mean and variance of the integral of the process against N(z; 0, I).

    w^T A^-1 l, and the integral of k(z, z') less w^T A^-1 w (Rasmussen and Ghahramani 2003).
    """
    p, s2 = precisions(gp), variance(gp)
    w = s2 * kernel_mean(gp.training.inputs, p)
    shadow = half_solve(gp, w)
    return float(w @ gp.alpha[0]), s2 * kernel_double_mean(p) - float(shadow @ shadow)
