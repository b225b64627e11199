"""Predators and prey (Lotka and Volterra), both counted with log-normal error.

    dx/dt = (a - b y) x,  dy/dt = (c x - d) y,  in log x and log y

Parameters log a, log b, log c, log d, with normal priors; the starting numbers and the error are
known. The gradient is that of the sensitivities S = dz / dtheta of z = (log x, log y), which obey
dS/dt = (df/dz) S + df/dtheta and take the same Runge-Kutta steps.
"""

from __future__ import annotations

import numpy as np

from benchmarks.problems.base import Array
from benchmarks.problems.models.base import Model, runge_kutta

PRIOR_MEAN = np.log([0.5, 0.03, 0.025, 0.8])
PRIOR_SD = np.full(4, 0.5)
START = np.log([30.0, 8.0])
ERROR = 0.3
SUBSTEPS = 6  # a year


def predators(D: int, generator: np.random.Generator) -> Model:
    """Counts of 8 to 15 years."""
    years = int(generator.integers(8, 16))
    truth = PRIOR_MEAN + 0.4 * PRIOR_SD * generator.standard_normal(D)
    counts = _log_numbers(truth[None], years)[..., 0]
    counts = counts + ERROR * generator.standard_normal(counts.shape)

    def log_likelihoods(theta: Array) -> Array:
        z = (counts[..., None] - _log_numbers(theta, years)) / ERROR
        return -0.5 * np.sum(z * z + np.log(2 * np.pi * ERROR**2), axis=(0, 1))

    def gradient(theta: Array) -> Array:
        with np.errstate(all="ignore"):  # absurd parameters overflow
            states = _with_sensitivities(theta, years)
            pull = (counts - states[:, :, 0]) / ERROR**2
            return np.einsum("ts,tsp->p", pull, states[:, :, 1:])

    return Model(log_likelihoods, PRIOR_MEAN, PRIOR_SD, gradient=gradient)


def _log_numbers(theta: Array, years: int) -> Array:
    """(years, 2, n) after the first."""
    a, b, c, d = np.exp(theta).T

    def slope(_: float, state: Array) -> Array:
        prey, hunters = np.exp(state)
        return np.array([a - b * hunters, c * prey - d])

    start = np.tile(START[:, None], (1, len(theta)))
    return runge_kutta(slope, start, np.arange(years + 1.0), SUBSTEPS)[1:]


def _with_sensitivities(theta: Array, years: int) -> Array:
    """(years, 2, 1 + D) after the first: log numbers, and their derivatives, of one point."""
    a, b, c, d = np.exp(theta)

    def slope(_: float, state: Array) -> Array:
        prey, hunters = np.exp(state[:, 0])
        eaten, fed = b * hunters, c * prey
        by_state = np.array([[0.0, -eaten], [fed, 0.0]])
        by_theta = np.array([[a, -eaten, 0.0, 0.0], [0.0, 0.0, fed, -d]])
        return np.column_stack([[a - eaten, fed - d], by_state @ state[:, 1:] + by_theta])

    start = np.column_stack([START, np.zeros((2, len(theta)))])
    return runge_kutta(slope, start, np.arange(years + 1.0), SUBSTEPS)[1:]
