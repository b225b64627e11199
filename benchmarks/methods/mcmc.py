"""MCMC by the affine-invariant ensemble of Goodman and Weare (2010), as emcee does it.

J. Goodman and J. Weare, "Ensemble samplers with affine invariance", Communications in Applied
Mathematics and Computational Science 5 (2010), 65.
D. Foreman-Mackey, D. W. Hogg, D. Lang and J. Goodman, "emcee: the MCMC hammer", PASP 125 (2013),
306.

Markov chains give the posterior and no evidence: those fields are NaN.

Notation
--------
D, W, T     dimensions, walkers, steps taken; W (T + 1) evaluations so far
tau         integrated autocorrelation time, in steps
"""

from __future__ import annotations

from collections.abc import Callable
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

WALKERS_PER_DIMENSION = 4  # emcee asks for at least two
# emcee's advice: the autocorrelation time can be trusted, and the chain with it, when the chain
# is longer than this many of them.
AUTOCORRELATION_TIMES = 50


def run_mcmc(
    problem: BenchmarkProblem,
    log_joint: Callable[[Array], float],
    x0: Array,
    seed: int,
    budget: int,
    clock: LibraryClock,
) -> Estimate:
    """One run of emcee with its default move; it ends when the budget does.

    One walker starts at x0 and the others at draws from the prior; the first half of the steps
    is left out of every estimate.
    """
    emcee = import_sampler("emcee")
    D = problem.dimension
    W = WALKERS_PER_DIMENSION * D
    n_steps = budget // W - 1
    if n_steps < 1:
        raise BenchmarkError(f"{W} walkers need a budget of at least {2 * W}, not {budget}")
    generator = np.random.default_rng(seed)
    start = prior_quantile(problem, generator.uniform(size=(W, D)))
    start[0] = x0
    # emcee draws from the older kind of generator, seeded by its state.
    state = emcee.State(start, random_state=np.random.RandomState(seed).get_state())
    sampler = emcee.EnsembleSampler(W, D, log_joint)

    @clock.exclude
    def snapshot() -> Snapshot:
        kept = later_half(sampler.get_chain())
        return Snapshot(W * (sampler.iteration + 1), np.nan, kept.mean(axis=0), _covariance(kept))

    snapshots: list[Snapshot] = []
    due = {max(1, count // W - 1) for count in snapshot_counts(budget)}
    with clock:
        for _ in sampler.sample(state, iterations=n_steps):
            if sampler.iteration in due:
                snapshots.append(snapshot())
    kept = later_half(sampler.get_chain())
    tau = sampler.get_autocorr_time(tol=0)
    return Estimate(
        log_evidence=np.nan,
        log_evidence_sd=np.nan,
        elbo=np.nan,
        elbo_sd=np.nan,
        mean=kept.mean(axis=0),
        covariance=_covariance(kept),
        samples=kept[generator.integers(len(kept), size=N_SAMPLES)],
        converged=bool(np.all(n_steps > AUTOCORRELATION_TIMES * tau)),
        snapshots=tuple(snapshots),
        version=version("emcee"),
    )


def later_half(chain: Array) -> Array:
    """The steps that count as the posterior's: chain (T, W, D) to points (about T W / 2, D)."""
    return chain[len(chain) // 2 :].reshape(-1, chain.shape[-1])


def _covariance(points: Array) -> Array:
    return np.atleast_2d(np.cov(points, rowvar=False))


MCMC = Method("mcmc", Environment.PROJECT, run_mcmc)
