"""An epidemic: susceptible, infected, recovered; weekly cases with more noise than Poisson's.

    dS/dt = -beta S I / N,  dI/dt = beta S I / N - gamma I;  cases of a week ~ negative binomial
    with mean rho times the infections of that week and dispersion phi

Parameters: log R0 (beta = R0 gamma), log gamma, log I(0), logit rho, log phi. Only part of the
curve is seen, so that reproduction number, recovery and reporting make a curved ridge.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, gammaln

from benchmarks.problems.base import Array
from benchmarks.problems.models.base import Model, runge_kutta

POPULATION = 10_000.0
SUBSTEPS = 4  # a week
PRIOR_MEAN = np.array([np.log(2.0), 0.0, np.log(10.0), -1.0, np.log(10.0)])
PRIOR_SD = np.array([0.5, 0.5, 1.0, 1.0, 1.0])


def epidemic(D: int, generator: np.random.Generator) -> Model:
    """A data set drawn from parameters near the prior's middle."""
    weeks = int(generator.integers(8, 16))
    truth = PRIOR_MEAN + 0.5 * PRIOR_SD * generator.standard_normal(D)
    mean, dispersion = expected_cases(truth[None], weeks)
    cases = generator.negative_binomial(dispersion, dispersion / (dispersion + mean))[0]

    def log_likelihoods(theta: Array) -> Array:
        mean, phi = expected_cases(theta, weeks)
        terms = gammaln(cases + phi) - gammaln(phi) - gammaln(cases + 1)
        terms += phi * np.log(phi / (phi + mean)) + cases * np.log(mean / (phi + mean))
        return terms.sum(axis=1)

    return Model(log_likelihoods, PRIOR_MEAN, PRIOR_SD)


def expected_cases(theta: Array, weeks: int) -> tuple[Array, Array]:
    """Mean of the reported cases (n, weeks) and their dispersion (n, 1)."""
    r0, gamma, infected, _, phi = np.exp(theta).T
    beta = r0 * gamma

    def slope(_: float, state: Array) -> Array:
        new, gone = beta * np.exp(state[0]) * state[1] / POPULATION, gamma * state[1]
        return np.array([-beta * state[1] / POPULATION, new - gone])

    # log S keeps S positive, whatever the step.
    start = np.array([np.log(np.maximum(POPULATION - infected, 1.0)), infected])
    states = runge_kutta(slope, start, np.arange(weeks + 1.0), SUBSTEPS)
    infections = -np.diff(np.exp(states[:, 0]), axis=0).T
    reported = expit(theta[:, 3:4]) * infections
    return np.maximum(reported, 1e-9), phi[:, None]
