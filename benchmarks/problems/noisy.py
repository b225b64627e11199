"""A problem whose log likelihood is an estimate: the exact value plus normal noise.

The noise at a point is a function of the point alone, so that runs repeat exactly; it is random in
that two points, however close, have nothing to do with each other.

    even      sd everywhere
    uneven    sd sqrt(1/2 + d^2 / 2), d^2 the mean over coordinates of the squared distance from the
              posterior's mean in its sds: small in the middle, large in the tails
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.problems.base import Array, BenchmarkProblem


@dataclass(frozen=True)
class EvenNoise:
    """The same standard deviation, in nats, everywhere."""

    sd: float

    def __call__(self, x: Array) -> float:  # it is the same everywhere
        return self.sd


@dataclass(frozen=True, eq=False)
class UnevenNoise:
    """More noise further out."""

    sd: float
    posterior_mean: Array
    posterior_sd: Array

    def __call__(self, x: Array) -> float:
        z = (x - self.posterior_mean) / self.posterior_sd
        return self.sd * float(np.sqrt(0.5 + 0.5 * np.mean(z * z)))


@dataclass(frozen=True)
class NoisyLikelihood:
    """The log likelihood plus noise of the given standard deviation, in nats."""

    exact: Callable[[Array], float]
    sd: Callable[[Array], float]

    def __call__(self, x: Array) -> float:
        digest = hashlib.sha256(np.ascontiguousarray(x, dtype=np.float64).tobytes()).digest()
        generator = np.random.default_rng(int.from_bytes(digest[:16], "little"))
        return self.exact(x) + self.sd(x) * float(generator.standard_normal())


def with_noise(problem: BenchmarkProblem, sd: float, name: str, *, even: bool) -> BenchmarkProblem:
    """The same problem and answers, its log likelihood observed with noise."""
    posterior_sd = np.sqrt(np.diag(problem.posterior_covariance))
    noise_sd = EvenNoise(sd) if even else UnevenNoise(sd, problem.posterior_mean, posterior_sd)
    return replace(
        problem,
        name=name,
        log_likelihood=NoisyLikelihood(problem.log_likelihood, noise_sd),
        noise_sd=noise_sd,
    )
