"""Densities with an edge inside the box, beyond which they are zero.

halfspace   a correlated normal under a normal prior, cut by a^T x <= b; b leaves a few per cent to
            most of it
simplex     Dirichlet: coordinates are positive and their sum is at most one, with a density that
            does not fall to zero at that face for half of the members
"""

from __future__ import annotations

import numpy as np
from scipy import stats
from scipy.special import gammaln

from benchmarks.problems.answers import Answers, Latent, density_problem, normal_given
from benchmarks.problems.base import Array, BenchmarkProblem, Marginal
from benchmarks.problems.cigar import random_rotation
from benchmarks.problems.normal_mixture import NormalMixture

REACH = 9.0
CUTS = (-1.5, 1.0)  # sds from the normal's mean to the edge; negative: the mean is cut off
PLAUSIBLE_SDS = 2.0
BETA_POINTS = 4001


def generate_halfspace(name: str, D: int, generator: np.random.Generator) -> BenchmarkProblem:
    """A normal cut by a half space."""
    rotation = random_rotation(D, generator)
    C = rotation.T @ np.diag(generator.uniform(0.3, 1.5, size=D) ** 2) @ rotation
    m = generator.normal(size=D)
    a = random_rotation(D, generator)[0] if generator.uniform() < 0.75 else np.eye(D)[0]
    variance = float(a @ C @ a)
    edge = float(a @ m + generator.uniform(*CUTS) * np.sqrt(variance))
    offset = float(generator.uniform(-20, 20))
    normal = NormalMixture(np.zeros(1), m[None], C[None])

    def log_density(x: Array) -> float:
        return normal.log_density(x) + offset if a @ x <= edge else -np.inf

    sd = np.sqrt(variance)
    latent = Latent.integrate(
        lambda t: stats.norm.logpdf(t, a @ m, sd), min(float(a @ m), edge) - REACH * sd, edge
    )
    slope = C @ a / variance
    means = m + np.outer(latent.nodes - a @ m, slope)
    within = C - np.outer(slope, slope) * variance
    covariances = np.broadcast_to(within, (len(means), D, D))
    answers = normal_given(latent, means, covariances, offset)
    half = PLAUSIBLE_SDS * np.sqrt(np.diag(C))
    return density_problem(name, log_density, answers, m - half, m + half)


def generate_simplex(name: str, D: int, generator: np.random.Generator) -> BenchmarkProblem:
    """A Dirichlet distribution of the first D of D + 1 parts."""
    alpha = generator.uniform(1.0, 5.0, size=D)
    rest = 1.0 if generator.uniform() < 0.5 else float(generator.uniform(1.0, 2.0))
    total = float(alpha.sum() + rest)
    offset = float(generator.uniform(-20, 20))
    constant = offset + float(gammaln(total) - gammaln(rest) - gammaln(alpha).sum())

    def log_density(x: Array) -> float:
        remainder = 1.0 - float(np.sum(x))
        if remainder <= 0 or np.any(x <= 0):
            return -np.inf
        return constant + float((alpha - 1) @ np.log(x)) + (rest - 1) * np.log(remainder)

    mean = alpha / total
    covariance = (np.diag(mean) - np.outer(mean, mean)) / (total + 1)
    levels = stats.norm.cdf(np.linspace(-8, 8, BETA_POINTS))
    levels[0], levels[-1] = 0.0, 1.0
    quantiles = [stats.beta.ppf(levels, part, total - part) for part in alpha]
    answers = Answers(
        offset, mean, covariance, tuple(Marginal.of_quantiles(grid, levels) for grid in quantiles)
    )
    half = PLAUSIBLE_SDS * answers.sd
    lower, upper = np.maximum(mean - half, 0.02), np.minimum(mean + half, 0.98)
    return density_problem(name, log_density, answers, lower, upper, (np.zeros(D), np.ones(D)))
