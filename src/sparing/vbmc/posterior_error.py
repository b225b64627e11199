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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparing.numerics.arrays import Array
from sparing.numerics.linear_algebra import robust_cholesky
from sparing.surrogate.interface import Surrogate
from sparing.variational.divergence import gaussianised_symmetric_kl
from sparing.variational.normal_mixture import Mixture


@dataclass(frozen=True)
class ExpectedError:
    """The posterior's expected error is estimated, and a run stops only when it is small."""

    # Points, functions and hyperparameter samples of the estimate; cost grows as n_points^3.
    n_points: int = 200
    n_functions: int = 16
    n_hyperparameter_samples: int = 2
    # The expected gsKL, averaged over so many iterations, must be below this times D: 0.02 is what
    # an error of 0.2 sds in the mean of each parameter amounts to.
    tolerance: float = 0.02
    n_iterations: int = 2

    def estimate(
        self,
        mixture: Mixture,
        surrogate: Surrogate,
        inflation: float,
        generator: np.random.Generator,
    ) -> float:
        """The median gsKL between the posterior of a random function and that of the mean."""
        n_samples = min(self.n_hyperparameter_samples, surrogate.n_samples)
        chosen = generator.choice(surrogate.n_samples, size=n_samples, replace=False)
        few = surrogate.subset(chosen)
        points = mixture.sample(self.n_points, generator)
        log_q = mixture.log_density(points)
        means, _ = few.predict_each(points)
        log_mean = np.logaddexp.reduce([_normalised(row - log_q) for row in means])
        centre = _moments(points, log_mean)
        errors = []
        for s, covariance in enumerate(few.covariance(points, points)):
            lower = np.tril(robust_cholesky(inflation * 0.5 * (covariance + covariance.T)).lower)
            for _ in range(self.n_functions // n_samples):
                values = means[s] + lower @ generator.standard_normal(self.n_points)
                moments = _moments(points, values - log_q)
                errors.append(gaussianised_symmetric_kl(*centre, *moments))
        return float(np.median(errors))

    def recent(self, errors: Sequence[float]) -> float:
        """The average of the last estimates, newest last."""
        return float(np.mean(errors[-self.n_iterations :]))

    def limit(self, dimension: int) -> float:
        """What counts as small, a gsKL."""
        return self.tolerance * dimension

    def is_small(self, errors: Sequence[float], dimension: int) -> bool:
        """Whether the last estimates are small on average."""
        return self.recent(errors) <= self.limit(dimension)  # NaN is not


@dataclass(frozen=True)
class Untested:
    """The posterior's error is not estimated (the paper)."""

    def estimate(
        self,
        mixture: Mixture,
        surrogate: Surrogate,
        inflation: float,
        generator: np.random.Generator,
    ) -> float:
        """Not a number."""
        return float("nan")

    def recent(self, errors: Sequence[float]) -> float:
        """Not a number."""
        return float("nan")

    def limit(self, dimension: int) -> float:
        """Not a number."""
        return float("nan")

    def is_small(self, errors: Sequence[float], dimension: int) -> bool:
        """Nothing stands in the way."""
        return True


def _moments(points: Array, log_weights: Array) -> tuple[Array, Array]:
    """Weighted mean (D,) and covariance (D, D)."""
    weights = np.exp(_normalised(log_weights))
    mean = weights @ points
    offsets = points - mean
    return mean, (weights[:, None] * offsets).T @ offsets


def _normalised(log_weights: Array) -> Array:
    return log_weights - np.logaddexp.reduce(log_weights)
