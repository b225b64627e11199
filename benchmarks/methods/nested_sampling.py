"""Nested sampling (Skilling 2006) as dynesty does it (Speagle 2020), for the evaluations it takes.

J. Skilling, "Nested sampling for general Bayesian computation", Bayesian Analysis 1 (2006), 833.
J. S. Speagle, "dynesty: a dynamic nested sampling package for estimating Bayesian posteriors and
evidences", MNRAS 493 (2020), 3132.

Notation
--------
m, M        dead points so far; live points
L_i         likelihood of the i-th dead point, rising with i
X_i         prior volume where the likelihood exceeds L_i; E[log X_i] = -i / M, X_0 = 1
w_i         prior mass given to a point: X_(i-1) - X_i when dead, X_m / M when alive
Z           evidence, the sum of w_i L_i over dead and live points (Skilling, Section 3)
H           information of posterior against prior, in nats; log Z has the sd sqrt(H / M)

dynesty chooses the points; evidence, weights and sd are computed here, so that they are had at any
moment of a run and not at its end alone. Its own sd, which counts the last live points with
their full shrinkage, is up to twice as large; its log Z agrees to a few thousandths.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.methods.base import Environment, Estimate, LibraryClock, Method, Snapshot
from benchmarks.methods.sampling import (
    N_SAMPLES,
    import_sampler,
    prior_quantile,
    snapshot_counts,
)
from benchmarks.problems.base import Array, BenchmarkProblem

N_LIVE = 500  # dynesty's default
# dynesty's default: stop when the live points could raise log Z by no more than this.
REMAINING_LOG_EVIDENCE = 1e-3 * (N_LIVE - 1) + 0.01


@dataclass(frozen=True, eq=False)
class WeightedPoints:
    """What nested sampling knows about evidence and posterior at some moment."""

    points: Array  # (m + M, D)
    weights: Array  # (m + M,), of the posterior; their sum is 1
    log_evidence: float
    log_evidence_sd: float

    @property
    def mean(self) -> Array:
        return self.weights @ self.points

    @property
    def covariance(self) -> Array:
        centred = self.points - self.mean
        return (self.weights[:, None] * centred).T @ centred

    def snapshot(self, n: int) -> Snapshot:
        """What was known after n evaluations."""
        return Snapshot(n, self.log_evidence, self.mean, self.covariance, self.log_evidence_sd)


def weigh(dead: Array, dead_log_l: Array, live: Array, live_log_l: Array) -> WeightedPoints:
    """Evidence and posterior from m dead points, in the order they died, and M live ones."""
    m, M = len(dead), len(live)
    log_x = -np.arange(m + 1) / M
    # log(X_(i-1) - X_i) = log X_(i-1) + log(1 - exp(-1 / M))
    dead_mass = log_x[:-1] + np.log(-np.expm1(-1.0 / M))
    live_mass = np.full(M, log_x[-1] - np.log(M))
    log_l = np.concatenate([dead_log_l, live_log_l])
    log_terms = np.concatenate([dead_mass, live_mass]) + log_l
    log_z = float(np.logaddexp.reduce(log_terms))
    weights = np.exp(log_terms - log_z)
    held = weights > 0.0  # a point where the likelihood is zero has no share in H
    information = float(weights[held] @ (log_l[held] - log_z))
    sd = float(np.sqrt(max(information, 0.0) / M))
    return WeightedPoints(np.concatenate([dead, live]), weights, log_z, sd)


def run_nested_sampling(
    problem: BenchmarkProblem,
    log_joint: Callable[[Array], float],
    x0: Array,  # noqa: ARG001 (the live points are drawn from the prior)
    seed: int,
    budget: int,
    clock: LibraryClock,
) -> Estimate:
    """One run with dynesty's default options, ended by its own criterion or by the budget."""
    dynesty = import_sampler("dynesty")
    if budget <= N_LIVE:
        raise BenchmarkError(
            f"nested sampling starts with {N_LIVE} live points: a budget of {budget} is too small"
        )
    n_calls = 0

    def log_likelihood(x: Array) -> float:
        nonlocal n_calls
        n_calls += 1
        return log_joint(x) - problem.log_prior(x)

    dead: list[Array] = []
    dead_log_l: list[float] = []

    @clock.exclude
    def weigh_now() -> WeightedPoints:
        return weigh(np.array(dead), np.array(dead_log_l), sampler.live_v, sampler.live_logl)

    snapshots: list[Snapshot] = []
    counts = iter(snapshot_counts(budget))
    with clock, warnings.catch_warnings():
        # The run says itself, by ``converged``, that the budget ended it.
        warnings.filterwarnings("ignore", message="The sampling was stopped short")
        sampler = dynesty.NestedSampler(
            log_likelihood,
            partial(prior_quantile, problem),
            problem.dimension,
            nlive=N_LIVE,
            rstate=np.random.default_rng(seed),
        )
        due = next(counts)
        for iteration in sampler.sample(maxcall=budget - N_LIVE, dlogz=REMAINING_LOG_EVIDENCE):
            dead.append(iteration.vstar)
            dead_log_l.append(iteration.loglstar)
            if n_calls >= due:
                snapshots.append(weigh_now().snapshot(n_calls))
                due = next((count for count in counts if count > n_calls), budget + 1)
        final = weigh_now()
    # What the live points could add to log Z if all were as likely as the best of them.
    best = np.max(sampler.live_logl) + iteration.logvol
    remaining = np.logaddexp(0.0, best - iteration.logz)
    picks = np.random.default_rng(seed).choice(len(final.weights), N_SAMPLES, p=final.weights)
    return Estimate(
        log_evidence=final.log_evidence,
        log_evidence_sd=final.log_evidence_sd,
        elbo=np.nan,
        elbo_sd=np.nan,
        mean=final.mean,
        covariance=final.covariance,
        samples=final.points[picks],
        converged=bool(remaining < REMAINING_LOG_EVIDENCE),
        snapshots=tuple(snapshots),
        version=version("dynesty"),
    )


NESTED_SAMPLING = Method("nested-sampling", Environment.PROJECT, run_nested_sampling)
