"""What a run evaluated, when its estimate is looked at, and the estimate put together.

Methods without a posterior of their own get one from VBMC's surrogate (surrogate_posterior.py).
It is not part of what they cost (Section S4.2), so it is computed after the run, and as it costs
more than the rest, at every fourth look only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.methods.base import Estimate, Snapshot
from benchmarks.methods.surrogate_posterior import surrogate_draws
from benchmarks.problems.base import Array, BenchmarkProblem
from benchmarks.quadrature.evidence import Evidence
from sparing.numerics.random_streams import RandomStreams

SMALLEST_STEP = 10  # evaluations between looks
N_LOOKS = 20
LOOKS_PER_POSTERIOR = 4


class Record:
    """The points a run asked for and what the target said, in order."""

    def __init__(
        self, problem: BenchmarkProblem, log_joint: Callable[[Array], float], budget: int
    ) -> None:
        self.problem = problem
        self._log_joint = log_joint
        self._points = np.empty((budget, problem.dimension))
        self._log_joints = np.empty(budget)
        self._log_likelihoods = np.empty(budget)
        self.n = 0

    def evaluate(self, x: Array) -> None:
        """Call the target at x (D,); NaN, which no method can use, counts as minus infinity."""
        value = float(self._log_joint(x))
        value = -math.inf if math.isnan(value) else value
        self._points[self.n] = x
        self._log_joints[self.n] = value
        finite = math.isfinite(value)
        self._log_likelihoods[self.n] = value - self.problem.log_prior(x) if finite else value
        self.n += 1

    @property
    def points(self) -> Array:
        """The user's coordinates, (n, D)."""
        return self._points[: self.n]

    @property
    def standardised(self) -> Array:
        """Prior units, (n, D)."""
        return (self.points - self.problem.prior_mean) / self.problem.prior_sd

    @property
    def log_joint(self) -> Array:
        """(n,)."""
        return self._log_joints[: self.n]

    @property
    def log_likelihood(self) -> Array:
        """(n,)."""
        return self._log_likelihoods[: self.n]


@dataclass(frozen=True)
class Look:
    """The evidence after so many evaluations."""

    n_evaluations: int
    evidence: Evidence


def look_counts(budget: int) -> list[int]:
    """Numbers of evaluations at which a run's evidence is estimated; the last is the budget."""
    step = max(SMALLEST_STEP, budget // N_LOOKS)
    return [*range(step, budget, step), budget]


def posterior_counts(counts: Sequence[int]) -> list[int]:
    """Those of the counts at which there is a posterior too; the last among them."""
    return list(counts[::-1][::LOOKS_PER_POSTERIOR][::-1])


def estimate_with_surrogate(record: Record, looks: Sequence[Look], seed: int) -> Estimate:
    """The estimate of a method that gives an evidence and points, and no posterior."""
    streams = RandomStreams(seed)
    posteriors = {}
    for n in posterior_counts([look.n_evaluations for look in looks]):
        generator = streams.generator("surrogate posterior", n)
        points, values = record.points[:n], record.log_joint[:n]
        posteriors[n] = surrogate_draws(record.problem, points, values, generator)
    snapshots = []
    for look in looks:
        n, evidence = look.n_evaluations, look.evidence
        mean, covariance = moments(posteriors[n]) if n in posteriors else (None, None)
        snapshots.append(Snapshot(n, evidence.log_evidence, mean, covariance, evidence.sd))
    last = looks[-1]
    return estimate(last.evidence, posteriors[last.n_evaluations], snapshots)


def estimate(evidence: Evidence, draws: Array, snapshots: Sequence[Snapshot]) -> Estimate:
    """A run's result: its evidence, draws from its posterior (n, D), and what came before."""
    mean, covariance = moments(draws)
    return Estimate(
        log_evidence=evidence.log_evidence,
        log_evidence_sd=evidence.sd,
        elbo=math.nan,
        elbo_sd=math.nan,
        mean=mean,
        covariance=covariance,
        samples=draws,
        converged=False,  # none of these methods has a rule for stopping: they use their budget
        snapshots=tuple(snapshots),
        version=version("sparing"),
    )


def moments(draws: Array) -> tuple[Array, Array]:
    """Mean (D,) and covariance (D, D) of the draws."""
    return draws.mean(axis=0), np.atleast_2d(np.cov(draws, rowvar=False))


def require_normal_prior(problem: BenchmarkProblem, method: str) -> None:
    """Quadrature against a normal is what these methods are: another prior has no closed form."""
    if problem.hard_box is not None:
        raise BenchmarkError(
            f"{method} integrates against a normal prior, and that of {problem.name} is uniform: "
            "leave the method or the problem out"
        )
