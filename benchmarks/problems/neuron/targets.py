"""The inference problems posed by a cell's likelihood, under two priors.

Notation
--------
x, u, J     free parameters, their unbounded coordinates, log |dx/du| (``parameters``)
log L(x)    the cell's log likelihood
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.problems.base import Array, BenchmarkProblem, HardBox
from benchmarks.problems.neuron.likelihood import NeuronLikelihood
from benchmarks.problems.neuron.parameters import (
    LOWER,
    PLAUSIBLE_LOWER,
    PLAUSIBLE_UPPER,
    UPPER,
    from_unbounded,
    log_jacobian,
    to_unbounded,
)

# Where the uniform-prior variant departs: wider plausible intervals of rho and v.
UNIFORM_PLAUSIBLE_LOWER = PLAUSIBLE_LOWER.copy()
UNIFORM_PLAUSIBLE_LOWER[5:] = 1.01, 0.015


@dataclass(frozen=True, eq=False)
class Truth:
    """What methods are judged by, in the problem's own coordinates."""

    log_evidence: float
    mean: Array  # (7,)
    covariance: Array  # (7, 7)
    log_evidence_alternatives: Mapping[str, float] = field(default_factory=dict)


def normal_prior_problem(name: str, likelihood: NeuronLikelihood, truth: Truth) -> BenchmarkProblem:
    """The paper's problem: unbounded u with a normal prior, log likelihood log L(x(u)) - J(u).

    J is subtracted although a normal prior in u needs no such term: the published posterior
    moments and LML belong to this target.
    """
    lower, upper = to_unbounded(PLAUSIBLE_LOWER), to_unbounded(PLAUSIBLE_UPPER)
    return BenchmarkProblem(
        name=name,
        log_likelihood=lambda u: likelihood(from_unbounded(u)) - log_jacobian(u),
        prior_mean=0.5 * (lower + upper),
        prior_sd=0.5 * (upper - lower),
        log_evidence=truth.log_evidence,
        posterior_mean=truth.mean,
        posterior_covariance=truth.covariance,
        marginals=None,
        log_evidence_alternatives=truth.log_evidence_alternatives,
    )


def uniform_prior_problem(
    name: str, likelihood: NeuronLikelihood, truth: Truth
) -> BenchmarkProblem:
    """The variant of Acerbi (2020): x itself, with a uniform prior between the hard bounds."""
    box = HardBox(LOWER, UPPER, UNIFORM_PLAUSIBLE_LOWER, PLAUSIBLE_UPPER)
    return BenchmarkProblem(
        name=name,
        log_likelihood=likelihood,
        prior_mean=box.mean,
        prior_sd=box.sd,
        log_evidence=truth.log_evidence,
        posterior_mean=truth.mean,
        posterior_covariance=truth.covariance,
        marginals=None,
        hard_box=box,
        log_evidence_alternatives=truth.log_evidence_alternatives,
    )
