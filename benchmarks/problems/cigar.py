"""The cigar family (Section 4.1): a rotated normal, one axis 100 times longer than the others.

Covariance C = R^T diag(axes^2) R with a rotation R; the plausible box is -+(2 sd + 1) about
zero, sd_i = sqrt(C_ii) and 1 the largest absolute coordinate of the mean.
"""

from __future__ import annotations

import numpy as np

from benchmarks.problems.base import Array, BenchmarkProblem
from benchmarks.problems.normal_mixture import NormalMixture

LONG_AXIS = 100.0


def cigar_problem(name: str, rotation: Array, mean: Array, axes: Array) -> BenchmarkProblem:
    """The problem with these numbers: rotation (D, D), mean (D,), axes (D,)."""
    covariance = rotation.T @ np.diag(axes**2) @ rotation
    likelihood = NormalMixture(np.zeros(1), mean[None], covariance[None])
    prior_mean = np.zeros(len(mean))
    prior_sd = 2 * np.sqrt(np.diag(covariance)) + 1
    log_evidence, posterior = likelihood.times_normal(prior_mean, prior_sd)
    return BenchmarkProblem(
        name=name,
        log_likelihood=likelihood.log_density,
        gradient=likelihood.gradient,
        prior_mean=prior_mean,
        prior_sd=prior_sd,
        log_evidence=log_evidence,
        posterior_mean=posterior.mean,
        posterior_covariance=posterior.covariance,
        marginals=posterior.marginals(),
    )


def random_rotation(D: int, generator: np.random.Generator) -> Array:
    """Haar-distributed orthogonal matrix: QR of normal draws with the signs of R fixed."""
    q, r = np.linalg.qr(generator.standard_normal((D, D)))
    return q * np.sign(np.diag(r))


def generate_cigar(name: str, D: int, generator: np.random.Generator) -> BenchmarkProblem:
    """A new member of the family."""
    axes = np.ones(D)
    axes[-1] = LONG_AXIS
    return cigar_problem(name, random_rotation(D, generator), np.linspace(-1, 1, D), axes)
