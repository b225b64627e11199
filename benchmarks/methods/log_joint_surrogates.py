"""What BAPE and AGP share: where they look, how they search, and the evidence they are given.

Both model the log joint, agnostic of what is prior and what likelihood. As in the published
benchmark they start from x0 and 19 uniform draws from the plausible box, choose ten points between
two fits, and are kept from known points by Eq. S22. Both presuppose a bounded domain, here three
prior SDs about the prior mean: in a wider one they go for its corners, where the log joint is
unknown by hundreds of nats (BAPE on lumpy-2 ends at a gsKL of 0.0004, with seven SDs at 10).

Notation (D dimensions, n points): z are points in prior units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.methods.base import Estimate, Snapshot
from benchmarks.methods.recording import Record, estimate, look_counts, moments
from benchmarks.methods.surrogate_posterior import posterior_mean, scattered_start, thinning
from benchmarks.problems.base import Array, BenchmarkProblem
from benchmarks.quadrature.evidence import Evidence
from benchmarks.quadrature.mixture_fit import FittedMixture, fit_mixture
from benchmarks.quadrature.parallel_slice_sampling import sample_ensemble
from benchmarks.quadrature.process import ScalePrior
from benchmarks.quadrature.search import Box, Criterion, maximise
from sparing.acquisition.rules import log_regularisation
from sparing.surrogate.gaussian_process import GaussianProcess

# A log density to which the process is the correction, (m, D) -> (m,); zero for BAPE.
Reference = Callable[[Array], Array]
# Log acquisition from the process's mean and variance and the reference, (m,) each.
Acquisition = Callable[[Array, Array, Array], Array]

N_INITIAL = 20
N_PER_ROUND = 10
REACH = 3.0  # prior SDs
SEARCH_MARGIN = 0.1  # of the points' extent, by which the search box exceeds it
# Candidates over the search box, candidates near the best points, and the number of those.
N_UNIFORM, N_NEAR, N_ANCHORS = 1000, 200, 10
VARIANCE_FLOOR = 1e-4  # V_reg, Section S2.1
NOISE_SD = 0.01  # where the published benchmark's prior of it is centred
# Draws that a mixture of normals is fitted to, as many as in the published benchmark, draws from
# the last posterior, and sweeps before the first draw.
N_DRAWS = 5000
N_FINAL_DRAWS = 20_000
N_WALKERS = 200
BURN_IN = 60
TOP_FRACTION = 0.2  # Section 4, "Algorithms"


@dataclass(frozen=True, eq=False)
class Domain:
    """Bounds of the search and of the posterior, and the plausible box, in prior units."""

    hard: Box
    plausible: Box

    @classmethod
    def of(cls, problem: BenchmarkProblem) -> Domain:
        """Three prior SDs, or the problem's own bounds where they are narrower."""

        def standardised(x: Array) -> Array:
            return (x - problem.prior_mean) / problem.prior_sd

        lower = np.maximum(standardised(problem.lower), -REACH)
        upper = np.minimum(standardised(problem.upper), REACH)
        plausible = standardised(problem.plausible_lower), standardised(problem.plausible_upper)
        return cls((lower, upper), plausible)

    def search_box(self, z: Array) -> Box:
        """The points' extent with a margin, and the plausible box at least."""
        margin = SEARCH_MARGIN * np.ptp(z, axis=0)
        lower = np.minimum(z.min(axis=0) - margin, self.plausible[0])
        upper = np.maximum(z.max(axis=0) + margin, self.plausible[1])
        return np.maximum(lower, self.hard[0]), np.minimum(upper, self.hard[1])


def looks_after_rounds(budget: int) -> frozenset[int]:
    """The numbers of evaluations after a round that are the first past a look."""
    ends = [*range(min(N_INITIAL, budget), budget, N_PER_ROUND), budget]
    return frozenset(min(end for end in ends if end >= n) for n in look_counts(budget))


def initial_design(record: Record, x0: Array, budget: int, generator: np.random.Generator) -> None:
    """Evaluate x0 and uniform draws from the plausible box."""
    problem = record.problem
    record.evaluate(x0)
    for _ in range(1, min(N_INITIAL, budget)):
        record.evaluate(generator.uniform(problem.plausible_lower, problem.plausible_upper))


def scale_prior(z: Array, values: Array, *, constant_mean: bool) -> ScalePrior:
    """Lengths about the points' spread, as in Table S1; the height about the values' spread."""
    spread = np.append(z.std(axis=0, ddof=1), max(float(values.std()), 1.0))
    return ScalePrior(np.log(spread), np.full(spread.size, 2.0), NOISE_SD, constant_mean)


def evaluate_round(
    record: Record,
    gp: GaussianProcess,
    reference: Reference,
    log_acquisition: Acquisition,
    domain: Domain,
    n_points: int,
    generator: np.random.Generator,
) -> None:
    """Choose and evaluate so many points one after the other, hyperparameters held.

    The process models the log joint less the reference; each point joins it, one outside the
    support does not.
    """
    for _ in range(n_points):

        def criterion(z: Array, gp: GaussianProcess = gp) -> Array:
            mean, variance = gp.predict(z)
            value = log_acquisition(mean, variance, reference(z))
            return value + log_regularisation(variance, VARIANCE_FLOOR)

        chosen = _search(criterion, gp, reference, domain, generator)
        record.evaluate(record.problem.prior_mean + record.problem.prior_sd * chosen)
        value = float(record.log_joint[-1])
        if math.isfinite(value):
            gp = gp.append(chosen, value - float(reference(chosen[None])[0]))


def _search(
    criterion: Criterion,
    gp: GaussianProcess,
    reference: Reference,
    domain: Domain,
    generator: np.random.Generator,
) -> Array:
    """Where the criterion is largest, (D,): uniform candidates and some near the best points."""
    z = gp.training.inputs
    box = domain.search_box(z)
    uniform = generator.uniform(*box, size=(N_UNIFORM, z.shape[1]))
    log_joint = gp.training.values + reference(z)
    best = z[np.argsort(log_joint, kind="stable")[-N_ANCHORS:]]
    centres = best[generator.integers(len(best), size=N_NEAR)]
    scale = np.minimum(gp.sample(0).length_scales, z.std(axis=0))
    near = centres + scale * generator.standard_normal(centres.shape)
    return maximise(criterion, np.vstack([uniform, near]), scale, box, generator)


def posterior_draws(
    gp: GaussianProcess,
    reference: Reference,
    domain: Domain,
    generator: np.random.Generator,
    *,
    final: bool,
) -> Array:
    """Draws from the exponential of the process's mean times the reference, (m, D)."""
    z = gp.training.inputs
    log_joint = gp.training.values + reference(z)
    walkers = scattered_start(z, log_joint, N_WALKERS, generator)
    return sample_ensemble(
        lambda queries: posterior_mean(gp, queries) + reference(queries),
        np.clip(walkers, *domain.hard),
        domain.hard,
        N_FINAL_DRAWS if final else N_DRAWS,
        BURN_IN,
        thinning(z.shape[1]),
        generator,
    )


@dataclass(frozen=True, eq=False)
class ApproximatePosterior:
    """A posterior after so many evaluations, and the evidence that goes with it.

    draws (m, D) in the user's coordinates; mixture: its density in prior units.
    """

    n_evaluations: int
    draws: Array
    mixture: FittedMixture
    evidence: Evidence

    @classmethod
    def from_draws(
        cls, record: Record, n: int, draws: Array, generator: np.random.Generator
    ) -> ApproximatePosterior:
        """From draws in prior units, (m, D)."""
        problem = record.problem
        mixture = fit_mixture(draws[:: max(1, len(draws) // N_DRAWS)], generator)
        log_posterior = mixture.log_density(record.standardised[:n])
        log_posterior -= np.sum(np.log(problem.prior_sd))  # dz / dx
        evidence = crude_evidence(record.log_joint[:n], log_posterior)
        return cls(n, problem.prior_mean + problem.prior_sd * draws, mixture, evidence)


def crude_evidence(log_joint: Array, log_posterior: Array) -> Evidence:
    """The mean of log joint minus log approximate posterior over the top 20 % of the points.

    Section 4, "Algorithms". The top is by the sum of the two: points that both take for likely.
    """
    order = np.argsort(-(log_joint + log_posterior), kind="stable")
    top = order[: math.ceil(TOP_FRACTION * len(order))]
    differences = (log_joint - log_posterior)[top]
    differences = differences[np.isfinite(differences)]
    if not differences.size:
        return Evidence(math.nan, math.nan)
    error = float(differences.std()) / math.sqrt(differences.size)
    return Evidence(float(differences.mean()), error)


def estimate_from(posteriors: Sequence[ApproximatePosterior]) -> Estimate:
    """The last posterior, with the others as what came before."""
    snapshots = [
        Snapshot(
            each.n_evaluations, each.evidence.log_evidence, *moments(each.draws), each.evidence.sd
        )
        for each in posteriors
    ]
    return estimate(posteriors[-1].evidence, posteriors[-1].draws, snapshots)
