"""Heavy tails: a correlated Student's t with 2 to 4 degrees of freedom under a wide normal prior.

Student's t is a normal N(loc, S / w) with w ~ Gamma(nu / 2, rate nu / 2); given t = log w the
posterior is normal.
"""

from __future__ import annotations

import numpy as np
from scipy import stats
from scipy.special import gammaln

from benchmarks.problems.answers import Latent, normal_given
from benchmarks.problems.base import Array, BenchmarkProblem
from benchmarks.problems.cigar import random_rotation

DEGREES_OF_FREEDOM = (2.0, 4.0)
AXES = (0.3, 1.5)
PRIOR_WIDTHS = (3.0, 8.0)  # prior sd in units of the scale
LOG_PRECISIONS = (-30.0, 6.0)  # of t


def generate_tails(name: str, D: int, generator: np.random.Generator) -> BenchmarkProblem:
    """A member of the family."""
    nu = float(generator.uniform(*DEGREES_OF_FREEDOM))
    rotation = random_rotation(D, generator)
    S = rotation.T @ np.diag(generator.uniform(*AXES, size=D) ** 2) @ rotation
    prior_sd = generator.uniform(*PRIOR_WIDTHS, size=D) * np.sqrt(np.diag(S))
    prior_mean = generator.normal(size=D)
    loc = prior_mean + generator.uniform(-0.7, 0.7, size=D) * prior_sd
    likelihood = stats.multivariate_t(loc, S, df=nu)  # pyright: ignore[reportArgumentType]
    P = np.diag(prior_sd**2)

    def gradient(x: Array) -> Array:
        pull = np.linalg.solve(S, x - loc)
        return -(nu + D) * pull / (nu + (x - loc) @ pull)

    def spread(t: Array) -> Array:
        """Covariance of loc about the prior mean, given t."""
        return np.exp(-t)[:, None, None] * S + P

    def log_evidence_given(t: Array) -> Array:
        d = loc - prior_mean
        V = spread(t)
        fit = np.linalg.solve(V, np.broadcast_to(d[:, None], (len(t), D, 1)))[..., 0] @ d
        log_normal = -0.5 * (fit + np.linalg.slogdet(2 * np.pi * V)[1])
        log_gamma = 0.5 * nu * (t + np.log(0.5 * nu) - np.exp(t)) - gammaln(0.5 * nu)
        return log_normal + log_gamma

    latent = Latent.integrate(log_evidence_given, *LOG_PRECISIONS)
    gain = np.swapaxes(np.linalg.solve(spread(latent.nodes), P), 1, 2)  # P (S / w + P)^-1
    means = prior_mean + gain @ (loc - prior_mean)
    covariances = gain @ (np.exp(-latent.nodes)[:, None, None] * S)
    answers = normal_given(latent, means, covariances)
    return BenchmarkProblem(
        name=name,
        log_likelihood=lambda x: float(likelihood.logpdf(x)),
        gradient=gradient,
        prior_mean=prior_mean,
        prior_sd=prior_sd,
        log_evidence=answers.log_evidence,
        posterior_mean=answers.mean,
        posterior_covariance=answers.covariance,
        marginals=answers.marginals,
    )
