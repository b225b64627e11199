"""A problem whose log likelihood is an estimate: the exact value plus normal noise.

The noise at a point is a function of the point alone, so that runs repeat exactly; it is random in
that two points, however close, have nothing to do with each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.problems.base import Array, BenchmarkProblem


@dataclass(frozen=True)
class NoisyLikelihood:
    """The log likelihood plus noise of the given standard deviation, in nats."""

    exact: Callable[[Array], float]
    sd: float

    def __call__(self, x: Array) -> float:
        digest = hashlib.sha256(np.ascontiguousarray(x, dtype=np.float64).tobytes()).digest()
        generator = np.random.default_rng(int.from_bytes(digest[:16], "little"))
        return self.exact(x) + self.sd * float(generator.standard_normal())


def with_noise(problem: BenchmarkProblem, sd: float, name: str) -> BenchmarkProblem:
    """The same problem and answers, its log likelihood observed with noise."""
    return replace(problem, name=name, log_likelihood=NoisyLikelihood(problem.log_likelihood, sd))
