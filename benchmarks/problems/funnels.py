"""Funnels: coordinates whose width is itself a coordinate.

funnel      Neal's: v ~ N(0, s^2), the others N(0, exp(v))
hierarchy   a normal model of J = D - 2 groups, centred: mu ~ N(0, 5^2), log tau ~ N(0, 1.5^2),
            theta_j ~ N(mu, tau^2), observed as y_j with standard error e_j; x = (mu, log tau,
            theta)

Given v or log tau everything is normal.
"""

from __future__ import annotations

import numpy as np

from benchmarks.problems.answers import Latent, density_problem, normal_given
from benchmarks.problems.base import Array, BenchmarkProblem

REACH = 9.0
WIDTHS = (1.0, 2.5)  # s of Neal's funnel
MU_SD, LOG_TAU_SD = 5.0, 1.5
STANDARD_ERRORS = (0.3, 3.0)
PLAUSIBLE_SDS = 2.0


def generate_funnel(name: str, D: int, generator: np.random.Generator) -> BenchmarkProblem:
    """Neal's funnel with D - 1 coordinates of unknown width."""
    s = float(generator.uniform(*WIDTHS))
    offset = float(generator.uniform(-20, 20))
    constant = offset - 0.5 * D * np.log(2 * np.pi) - np.log(s)

    def log_density(x: Array) -> float:
        v, others = x[0], x[1:]
        with np.errstate(over="ignore"):  # far down the funnel the density is zero
            squares = float(np.exp(-v) * (others @ others))
        return constant - 0.5 * ((v / s) ** 2 + (D - 1) * v + squares)

    def gradient(x: Array) -> Array:
        v, others = x[0], x[1:]
        with np.errstate(over="ignore"):
            pull = np.exp(-v) * others
        return np.append(0.5 * (others @ pull - (D - 1)) - v / s**2, -pull)

    latent = Latent.integrate(
        lambda v: -0.5 * (v / s) ** 2 - 0.5 * np.log(2 * np.pi * s * s), -REACH * s, REACH * s
    )
    v = latent.nodes
    means = np.column_stack([v, np.zeros((len(v), D - 1))])
    covariances = np.exp(v)[:, None, None] * np.diag(np.append(0.0, np.ones(D - 1)))
    answers = normal_given(latent, means, covariances, offset)
    # The user knows the middle of v and where most of the others are.
    half = np.append(PLAUSIBLE_SDS * s, np.full(D - 1, PLAUSIBLE_SDS * np.exp(0.5 * s)))
    return density_problem(name, log_density, answers, -half, half, gradient=gradient)


def generate_hierarchy(name: str, D: int, generator: np.random.Generator) -> BenchmarkProblem:
    """A hierarchical model of D - 2 groups with data drawn from it."""
    J = D - 2
    errors = np.exp(generator.uniform(*np.log(STANDARD_ERRORS), size=J))
    mu, tau = generator.normal(scale=MU_SD), float(np.exp(generator.uniform(-1.5, 1.5)))
    y = mu + tau * generator.standard_normal(J) + errors * generator.standard_normal(J)
    constant = -np.sum(np.log(errors)) - (J + 1) * np.log(2 * np.pi) - np.log(MU_SD * LOG_TAU_SD)

    def log_density(x: Array) -> float:
        mu, log_tau, theta = x[0], x[1], x[2:]
        misfit, apart = (y - theta) / errors, theta - mu
        with np.errstate(over="ignore"):
            squares = float(np.exp(-2 * log_tau) * (apart @ apart))
        prior = (mu / MU_SD) ** 2 + (log_tau / LOG_TAU_SD) ** 2
        return float(constant) - J * log_tau - 0.5 * (float(misfit @ misfit) + squares + prior)

    def observed(log_tau: Array) -> Array:
        """Covariance of y given log tau, (n, J, J)."""
        return MU_SD**2 + np.exp(2 * log_tau)[:, None, None] * np.eye(J) + np.diag(errors**2)

    def log_posterior(log_tau: Array) -> Array:
        C = observed(log_tau)
        fit = np.einsum(
            "j,nj->n", y, np.linalg.solve(C, np.broadcast_to(y[:, None], (len(C), J, 1)))[..., 0]
        )
        log_determinant = np.linalg.slogdet(2 * np.pi * C)[1]
        prior = (log_tau / LOG_TAU_SD) ** 2 + np.log(2 * np.pi * LOG_TAU_SD**2)
        return -0.5 * (fit + log_determinant + prior)

    latent = Latent.integrate(log_posterior, -REACH * LOG_TAU_SD, REACH * LOG_TAU_SD)
    log_tau = latent.nodes
    # Prior covariance of (mu, theta) given log tau, and what y makes of it.
    prior = np.full((len(log_tau), J + 1, J + 1), MU_SD**2)
    prior[:, 1:, 1:] += np.exp(2 * log_tau)[:, None, None] * np.eye(J)
    gain = np.swapaxes(np.linalg.solve(observed(log_tau), prior[:, 1:, :]), 1, 2)
    inner = prior - gain @ prior[:, 1:, :]
    rest = np.delete(np.arange(D), 1)
    means, covariances = np.empty((len(log_tau), D)), np.zeros((len(log_tau), D, D))
    means[:, 1], means[:, rest] = log_tau, gain @ y
    covariances[:, rest[:, None], rest] = 0.5 * (inner + np.swapaxes(inner, 1, 2))
    answers = normal_given(latent, means, covariances)
    spread = max(float(np.std(y)), float(np.mean(errors)))
    middle = np.concatenate([[float(np.mean(y)), 0.0], y])
    half = np.concatenate([[2 * spread, 2 * LOG_TAU_SD], PLAUSIBLE_SDS * errors])
    return density_problem(name, log_density, answers, middle - half, middle + half)
