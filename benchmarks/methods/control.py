"""Control experiments on the points another method chose (Section S4.3).

What part of a method's accuracy is owed to its points? WSABI-L's evidence and MCMC on VBMC's
surrogate are computed from them, as if the other methods had found them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.methods.base import Snapshot
from benchmarks.methods.recording import moments, require_normal_prior
from benchmarks.methods.surrogate_posterior import surrogate_draws
from benchmarks.problems.base import Array, BenchmarkProblem
from benchmarks.quadrature.evidence import Evidence
from benchmarks.quadrature.warped import Moments, fitted
from sparing.numerics.random_streams import RandomStreams


def wsabi_l_evidence(problem: BenchmarkProblem, points: Array, log_joint: Array) -> Evidence:
    """The evidence WSABI-L reads off points (n, D) and the log joint there (n,)."""
    require_normal_prior(problem, "WSABI-L")
    z = (points - problem.prior_mean) / problem.prior_sd
    log_likelihood = log_joint - np.array([problem.log_prior(x) for x in points])
    return fitted(Moments.LINEARISED, z, log_likelihood).evidence()


def control_snapshots(
    problem: BenchmarkProblem, points: Array, log_joint: Array, counts: Sequence[int], seed: int
) -> tuple[Snapshot, ...]:
    """After each of the counts of evaluations, WSABI-L's evidence and the surrogate's moments.

    points (n, D) and log_joint (n,), in the order in which they were evaluated.
    """
    snapshots = []
    for n in counts:
        generator = RandomStreams(seed).generator("control", n)
        evidence = wsabi_l_evidence(problem, points[:n], log_joint[:n])
        draws = surrogate_draws(problem, points[:n], log_joint[:n], generator)
        mean, covariance = moments(draws)
        snapshots.append(Snapshot(n, evidence.log_evidence, mean, covariance, evidence.sd))
    return tuple(snapshots)
