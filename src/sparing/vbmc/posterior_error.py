"""How far the posterior may be from the truth, by the surrogate's own uncertainty.

The surrogate is a distribution over log joints. Functions drawn from it, each exponentiated and
normalised, are posteriors the truth may have; the error is how far they typically lie from the
mean one, as the gsKL of the paper (Eq. S26). With the variance inflated by what held-out draws
show it is within a factor of two of the true gsKL over four orders of magnitude
(docs/decisions/0010).

Notation (N points drawn from q, S hyperparameter samples)
    f, C     posterior mean (N,) and covariance (N, N) of the surrogate at the points, for one psi
    q        variational posterior
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparing.numerics.arrays import Array
from sparing.numerics.linear_algebra import robust_cholesky
from sparing.surrogate.gaussian_process import GaussianProcess, posterior_covariance, predict_each
from sparing.variational.divergence import gaussianised_symmetric_kl
from sparing.variational.mixture import GaussianMixture


@dataclass(frozen=True)
class PosteriorErrorSettings:
    """Points, functions and hyperparameter samples of the estimate; cost grows as n_points^3."""

    n_points: int = 200
    n_functions: int = 16
    n_hyperparameter_samples: int = 2


def expected_posterior_error(
    mixture: GaussianMixture,
    gp: GaussianProcess,
    inflation: float,
    settings: PosteriorErrorSettings,
    generator: np.random.Generator,
) -> float:
    """The median gsKL between the posterior of a random function and that of the mean."""
    n_samples = min(settings.n_hyperparameter_samples, gp.n_samples)
    gp = gp.subset(generator.choice(gp.n_samples, size=n_samples, replace=False))
    points = mixture.sample(settings.n_points, generator)
    log_q = mixture.log_density(points)
    means, _ = predict_each(gp, points)
    log_mean = np.logaddexp.reduce([_normalised(row - log_q) for row in means])
    centre = _moments(points, log_mean)
    errors = []
    for s, covariance in enumerate(posterior_covariance(gp, points, points)):
        lower = np.tril(robust_cholesky(inflation * 0.5 * (covariance + covariance.T)).lower)
        for _ in range(settings.n_functions // n_samples):
            values = means[s] + lower @ generator.standard_normal(settings.n_points)
            errors.append(gaussianised_symmetric_kl(*centre, *_moments(points, values - log_q)))
    return float(np.median(errors))


def _moments(points: Array, log_weights: Array) -> tuple[Array, Array]:
    """Weighted mean (D,) and covariance (D, D)."""
    weights = np.exp(_normalised(log_weights))
    mean = weights @ points
    offsets = points - mean
    return mean, (weights[:, None] * offsets).T @ offsets


def _normalised(log_weights: Array) -> Array:
    return log_weights - np.logaddexp.reduce(log_weights)
