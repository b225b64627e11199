"""Regressions with correlated predictors: the posteriors most people have, nearly normal and long.

    y_i ~ Bernoulli(logistic(a_i^T x)), Poisson(exp(a_i^T x)), or t_4(a_i^T b, e^s) with x = (b, s)

under a normal prior. Answers come from importance sampling with a t distribution at the mode.

Notation
--------
A       (n, D) predictors, the first one constant
b, s    coefficients (D - 1,) and the logarithm of the scale of the errors
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.stats as st
from scipy.optimize import minimize
from scipy.special import expit, gammaln

from benchmarks.problems.base import Array, BenchmarkProblem, Marginal

OBSERVATIONS = (30, 120)
PRIOR_SD = 2.0
DEGREES_OF_FREEDOM = 4.0  # of the errors
N_DRAWS, PROPOSAL_DEGREES, WIDENING = 2**17, 8.0, 1.1

# Log likelihoods of many points, (m, D) -> (m,), and the gradient of one, (D,) -> (D,).
LogLikelihoods = Callable[[Array], Array]
Gradient = Callable[[Array], Array]


def generate_regression(name: str, D: int, generator: np.random.Generator) -> BenchmarkProblem:
    """A logistic, a Poisson or a robust linear regression."""
    kind = (logistic, poisson, robust)[int(generator.integers(3))]
    log_likelihoods, gradient = kind(D, generator)

    def loss(x: Array) -> tuple[float, Array]:
        value = float(log_likelihoods(x[None])[0]) - 0.5 * float(x @ x) / PRIOR_SD**2
        return -value, x / PRIOR_SD**2 - gradient(x)

    mode = minimize(loss, np.zeros(D), jac=True, method="BFGS", options={"gtol": 1e-6}).x
    step = 1e-4 * np.eye(D)
    curvature = np.array([loss(mode + h)[1] - loss(mode - h)[1] for h in step]) / 2e-4
    proposal = st.multivariate_t(
        mode, WIDENING * np.linalg.inv(0.5 * (curvature + curvature.T)), PROPOSAL_DEGREES
    )
    draws = proposal.rvs(N_DRAWS, random_state=generator)
    prior = st.norm(0.0, PRIOR_SD)
    log_weights = log_likelihoods(draws) + prior.logpdf(draws).sum(axis=1) - proposal.logpdf(draws)
    log_sum = float(np.logaddexp.reduce(log_weights))
    weights = np.exp(log_weights - log_sum)
    mean = weights @ draws
    centred = draws - mean
    return BenchmarkProblem(
        name=name,
        log_likelihood=lambda x: float(log_likelihoods(x[None])[0]),
        prior_mean=np.zeros(D),
        prior_sd=np.full(D, PRIOR_SD),
        log_evidence=log_sum - float(np.log(N_DRAWS)),
        posterior_mean=mean,
        posterior_covariance=(weights[:, None] * centred).T @ centred,
        marginals=tuple(Marginal.of_draws(column, weights) for column in draws.T),
        gradient=gradient,
    )


def predictors(n_columns: int, generator: np.random.Generator) -> Array:
    """A constant, and columns that share a factor, each in units of its own."""
    n = int(generator.integers(*OBSERVATIONS))
    shared = generator.uniform(0.5, 3.0)
    columns = generator.standard_normal((n, n_columns - 1))
    columns += shared * generator.standard_normal((n, 1))
    units = np.exp(generator.uniform(-0.7, 0.7, n_columns - 1))
    return np.column_stack([np.ones(n), units * columns / np.hypot(1.0, shared)])


def logistic(D: int, generator: np.random.Generator) -> tuple[LogLikelihoods, Gradient]:
    A = predictors(D, generator)
    y = generator.uniform(size=len(A)) < expit(A @ generator.standard_normal(D))
    sign = np.where(y, 1.0, -1.0)

    def log_likelihoods(x: Array) -> Array:
        return -np.logaddexp(0.0, -sign * (x @ A.T)).sum(axis=1)

    return log_likelihoods, lambda x: A.T @ (sign * expit(-sign * (A @ x)))


def poisson(D: int, generator: np.random.Generator) -> tuple[LogLikelihoods, Gradient]:
    A = predictors(D, generator)
    y = generator.poisson(np.exp(np.minimum(A @ (0.5 * generator.standard_normal(D)), 5.0)))
    constant = float(gammaln(y + 1.0).sum())

    def log_likelihoods(x: Array) -> Array:
        linear = np.minimum(x @ A.T, 300.0)  # where exp is still a number
        return linear @ y - np.exp(linear).sum(axis=1) - constant

    return log_likelihoods, lambda x: A.T @ (y - np.exp(np.minimum(A @ x, 300.0)))


def robust(D: int, generator: np.random.Generator) -> tuple[LogLikelihoods, Gradient]:
    A = predictors(D - 1, generator)
    errors = generator.standard_t(DEGREES_OF_FREEDOM, len(A))
    y = A @ generator.standard_normal(D - 1) + np.exp(generator.uniform(-1.5, 0.5)) * errors

    def log_likelihoods(x: Array) -> Array:
        residuals = y - x[:, :-1] @ A.T
        return st.t(DEGREES_OF_FREEDOM, scale=np.exp(x[:, -1:])).logpdf(residuals).sum(axis=1)

    def gradient(x: Array) -> Array:
        z = (y - A @ x[:-1]) / np.exp(x[-1])
        pull = (DEGREES_OF_FREEDOM + 1.0) * z / (DEGREES_OF_FREEDOM + z * z)
        return np.append(A.T @ pull / np.exp(x[-1]), pull @ z - len(z))

    return log_likelihoods, gradient
