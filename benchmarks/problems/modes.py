"""Separate modes: 2 to 6 normals, each 4 to 20 sds from its nearest neighbours.

Weights and shapes are unequal. Half of the members have a normal prior as wide as the mixture, the
others a uniform one in a hard box that cuts off nothing.
"""

from __future__ import annotations

import numpy as np

from benchmarks.problems.answers import Answers, density_problem
from benchmarks.problems.base import Array, BenchmarkProblem, Modes
from benchmarks.problems.cigar import random_rotation
from benchmarks.problems.normal_mixture import NormalMixture

FEWEST, FEW, MOST = 2, 4, 6  # components
SEPARATION = (4.0, 20.0)  # sds along the line between two neighbours
AXES = (0.5, 1.5)
LEAST_WEIGHT = 0.08
MARGIN = 2.0  # sds between the outermost means and the plausible box
HARD_MARGIN = 10.0  # and the hard box


def generate_few_modes(name: str, D: int, generator: np.random.Generator) -> BenchmarkProblem:
    """A member with at most four modes."""
    return generate_modes(name, D, generator, FEW)


def generate_modes(
    name: str, D: int, generator: np.random.Generator, most: int = MOST
) -> BenchmarkProblem:
    """A member of the family."""
    K = int(generator.integers(FEWEST, most + 1))
    covariances = np.array([_random_covariance(D, generator) for _ in range(K)])
    means = _spread_means(covariances, generator)
    weights = LEAST_WEIGHT + (1 - K * LEAST_WEIGHT) * generator.dirichlet(np.ones(K))
    sds = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    lower, upper = np.min(means - MARGIN * sds, axis=0), np.max(means + MARGIN * sds, axis=0)
    if generator.uniform() < 0.5:
        return _normal_prior(name, weights, means, covariances, lower, upper)
    mixture = NormalMixture.from_weights(weights, means, covariances)
    offset = float(generator.uniform(-20, 20))
    answers = Answers(
        offset,
        mixture.mean,
        mixture.covariance,
        mixture.marginals(),
        Modes(weights, mixture.memberships),
    )
    bounds = np.min(means - HARD_MARGIN * sds, axis=0), np.max(means + HARD_MARGIN * sds, axis=0)
    return density_problem(
        name,
        lambda x: mixture.log_density(x) + offset,
        answers,
        lower,
        upper,
        bounds,
        mixture.gradient,
    )


def _normal_prior(
    name: str, weights: Array, means: Array, covariances: Array, lower: Array, upper: Array
) -> BenchmarkProblem:
    """Weights are those of the posterior: the likelihood makes up for what the prior takes."""
    prior_mean, prior_sd = 0.5 * (lower + upper), 0.5 * (upper - lower)
    equal = NormalMixture.from_weights(np.ones(len(weights)), means, covariances)
    _, tilted = equal.times_normal(prior_mean, prior_sd)
    likelihood = NormalMixture.from_weights(
        weights / np.exp(tilted.log_weights), means, covariances
    )
    log_evidence, posterior = likelihood.times_normal(prior_mean, prior_sd)
    return BenchmarkProblem(
        name=name,
        log_likelihood=likelihood.log_density,
        gradient=likelihood.gradient,
        prior_mean=prior_mean,
        prior_sd=prior_sd,
        log_evidence=log_evidence,
        posterior_mean=posterior.mean,
        posterior_covariance=posterior.covariance,
        marginals=posterior.marginals(),
        modes=Modes(np.exp(posterior.log_weights), posterior.memberships),
    )


def _random_covariance(D: int, generator: np.random.Generator) -> Array:
    rotation = random_rotation(D, generator)
    return rotation.T @ np.diag(generator.uniform(*AXES, size=D) ** 2) @ rotation


def _spread_means(covariances: Array, generator: np.random.Generator) -> Array:
    """Each mean at a random distance from an earlier one, and too near to none."""
    K, D = covariances.shape[:2]
    means = np.zeros((1, D))
    while len(means) < K:
        new = len(means)
        old = int(generator.integers(new))
        direction = generator.standard_normal(D)
        direction /= np.linalg.norm(direction)
        unit = _sd_along(direction, covariances[old], covariances[new])
        candidate = means[old] + generator.uniform(*SEPARATION) * unit * direction
        if all(
            _separation(candidate, means, covariances, new, k) >= SEPARATION[0] for k in range(new)
        ):
            means = np.vstack([means, candidate])
    return means


def _separation(candidate: Array, means: Array, covariances: Array, new: int, k: int) -> float:
    line = candidate - means[k]
    distance = float(np.linalg.norm(line))
    return distance / max(
        _sd_along(line / max(distance, 1e-12), covariances[k], covariances[new]), 1e-12
    )


def _sd_along(direction: Array, a: Array, b: Array) -> float:
    """Mean of two components' sds along a unit vector."""
    return float(0.5 * (np.sqrt(direction @ a @ direction) + np.sqrt(direction @ b @ direction)))
