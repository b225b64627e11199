"""The lumpy family (Section 4.1): a mildly multimodal mixture of 12 axis-aligned normals.

Component means in the unit hypercube, SDs spread over [0.2, 0.6], Dirichlet(1) weights. The
plausible box is [-1, 2]^D.
"""

from __future__ import annotations

import numpy as np

from benchmarks.problems.base import Array, BenchmarkProblem
from benchmarks.problems.normal_mixture import NormalMixture

N_COMPONENTS = 12
SD_RANGE = (0.2, 0.6)
PLAUSIBLE_BOX = (-1.0, 2.0)


def lumpy_problem(name: str, weights: Array, means: Array, sds: Array) -> BenchmarkProblem:
    """The problem with these numbers: weights (K,), means (K, D), sds (K, D)."""
    likelihood = NormalMixture.from_weights(weights, means, np.stack([np.diag(s**2) for s in sds]))
    D = means.shape[1]
    lower, upper = PLAUSIBLE_BOX
    prior_mean = np.full(D, 0.5 * (lower + upper))
    prior_sd = np.full(D, 0.5 * (upper - lower))
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


def generate_lumpy(name: str, D: int, generator: np.random.Generator) -> BenchmarkProblem:
    """A new member of the family."""
    means = generator.uniform(size=(N_COMPONENTS, D))
    sds = np.stack([generator.permutation(np.linspace(*SD_RANGE, D)) for _ in range(N_COMPONENTS)])
    weights = generator.dirichlet(np.ones(N_COMPONENTS))
    return lumpy_problem(name, weights, means, sds)
