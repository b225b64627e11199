"""Make the table of answers for the generated cell, by importance sampling.

``python -m benchmarks.problems.neuron.make_synthetic_truth`` writes ``synthetic_truth.json`` in
five minutes; run it after any change of ``synthetic.py``. Accuracy, also written in the table: the
SE of log Z is 0.003 under the normal prior and 0.002 under the uniform one, the effective sample
size 64,000 and 123,000. Only the neighbourhood of one mode is sampled, with its long left tail in
the gain's variance; under the normal prior, local searches (Nelder-Mead, not part of this script)
from 24 points of the plausible box ended there or more than 200 nats below.

Notation
--------
u       (7,) unbounded coordinates, in which draws are made
q(u)    proposal: Student's t, location and shape adapted to the target over a few rounds
w       (m,) importance weights p(u) / q(u); Z is their mean, the SE of log Z their relative SD
        over sqrt(m), the effective sample size (ESS) (sum w)^2 / sum w^2
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import minimize

from benchmarks.problems.base import Array
from benchmarks.problems.neuron.likelihood import NeuronLikelihood
from benchmarks.problems.neuron.parameters import from_unbounded, log_jacobian, to_unbounded
from benchmarks.problems.neuron.synthetic import TRUE_PARAMETERS, generate_cell
from benchmarks.problems.neuron.synthetic_truth import TABLE
from benchmarks.problems.neuron.targets import Truth, normal_prior_problem, uniform_prior_problem

DEGREES_OF_FREEDOM = 5.0
ADAPTATION_ROUNDS, ADAPTATION_DRAWS = 8, 10_000
FINAL_DRAWS = 200_000


@dataclass(frozen=True, eq=False)
class WeightedDraws:
    """Draws u (m, 7) from a proposal and their log weights (m,)."""

    points: Array
    log_weights: Array

    @property
    def weights(self) -> Array:
        """Normalised to a sum of one."""
        weights = np.exp(self.log_weights - self.log_weights.max())
        return weights / weights.sum()

    @property
    def log_evidence(self) -> float:
        return float(np.logaddexp.reduce(self.log_weights) - np.log(len(self.log_weights)))

    @property
    def log_evidence_se(self) -> float:
        return float(np.std(self.weights) * np.sqrt(len(self.weights)))

    @property
    def effective_sample_size(self) -> float:
        return float(1 / np.sum(self.weights**2))

    def moments(self, transform: Callable[[Array], Array]) -> tuple[Array, Array]:
        """Mean and covariance of transform(u)."""
        points = transform(self.points)
        mean = self.weights @ points
        centred = points - mean
        return mean, (self.weights[:, None] * centred).T @ centred


def sample_posterior(
    log_density: Callable[[Array], float], start: Array, generator: np.random.Generator
) -> WeightedDraws:
    """Weighted draws from an unnormalised density whose main mode is found from start."""
    mode = minimize(lambda u: -log_density(u), start, method="BFGS", options={"gtol": 0.1})
    mean, covariance = mode.x, mode.hess_inv
    for _ in range(ADAPTATION_ROUNDS):
        draws = _draw(log_density, mean, covariance, ADAPTATION_DRAWS, generator)
        mean, covariance = draws.moments(lambda u: u)
    return _draw(log_density, mean, covariance, FINAL_DRAWS, generator)


def _draw(
    log_density: Callable[[Array], float],
    mean: Array,
    covariance: Array,
    n: int,
    generator: np.random.Generator,
) -> WeightedDraws:
    proposal = stats.multivariate_t(mean, covariance, df=DEGREES_OF_FREEDOM, seed=generator)
    points = proposal.rvs(n)
    log_densities = np.array([log_density(u) for u in points])
    return WeightedDraws(points, log_densities - proposal.logpdf(points))


def make_table() -> dict[str, Any]:
    """The answers under both priors, with their accuracy."""
    likelihood = NeuronLikelihood.of(generate_cell())
    nothing = Truth(np.nan, np.empty(0), np.empty(0))  # not known yet
    normal = normal_prior_problem("", likelihood, nothing)
    uniform = uniform_prior_problem("", likelihood, nothing)

    def uniform_density(u: Array) -> float:
        return uniform.log_joint(from_unbounded(u)) + log_jacobian(u)

    start = to_unbounded(TRUE_PARAMETERS)
    generator = np.random.default_rng(0)
    return {
        "log_likelihood_at_true_parameters": likelihood(TRUE_PARAMETERS),
        "normal_prior": _summary(sample_posterior(normal.log_joint, start, generator), lambda u: u),
        "uniform_prior": _summary(
            sample_posterior(uniform_density, start, generator), from_unbounded
        ),
    }


def _summary(draws: WeightedDraws, transform: Callable[[Array], Array]) -> dict[str, Any]:
    mean, covariance = draws.moments(transform)
    return {
        "log_evidence": draws.log_evidence,
        "log_evidence_se": draws.log_evidence_se,
        "effective_sample_size": draws.effective_sample_size,
        "largest_weight": float(draws.weights.max()),
        "mean": mean.tolist(),
        "covariance": covariance.tolist(),
    }


if __name__ == "__main__":
    TABLE.write_text(json.dumps(make_table(), indent=1) + "\n")
