"""One compartment of a body, a drug taken by mouth, and its concentration in blood.

D = 3   first-order elimination, known error: log ka, log CL, log V; a slow uptake with a fast
        elimination looks like its opposite
D = 4   elimination that saturates (Michaelis-Menten): log ka, log Km, log Vm, log sigma;
        dC/dt = dose ka exp(-ka t) / V - Vm C / (Km + C); Km and Vm make a ridge

Observations are log-normal with standard deviation sigma.
"""

from __future__ import annotations

import numpy as np

from benchmarks.problems.base import Array
from benchmarks.problems.models.base import Model, runge_kutta

DOSE, VOLUME = 30.0, 2.0
KNOWN_ERROR = 0.15
TIMES = np.array([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0])
SUBSTEPS = 10  # between two observations
LEAST = 1e-9  # concentration
FIRST_ORDER = np.array([0.0, 0.0, np.log(10.0)]), np.array([0.7, 0.7, 0.7])
SATURATING = np.array([0.0, np.log(3.0), np.log(3.0), np.log(0.2)]), np.array([0.7, 1.0, 0.7, 0.5])


def kinetics(D: int, generator: np.random.Generator) -> Model:
    """A patient with parameters near the prior's middle."""
    prior_mean, prior_sd = FIRST_ORDER if D == 3 else SATURATING
    truth = prior_mean + 0.5 * prior_sd * generator.standard_normal(D)
    clean, error = _curve(truth[None])
    y = clean[0] + error[0] * generator.standard_normal(len(TIMES) - 1)

    def log_likelihoods(theta: Array) -> Array:
        mean, sigma = _curve(theta)
        z = (y - mean) / sigma
        return -0.5 * np.sum(z * z + np.log(2 * np.pi * sigma**2), axis=1)

    return Model(log_likelihoods, prior_mean, prior_sd)


def _curve(theta: Array) -> tuple[Array, Array]:
    """Log concentrations (n, 10) after the dose, and the error's sd (n, 1)."""
    if theta.shape[1] == 3:
        return _first_order(theta), np.full((len(theta), 1), KNOWN_ERROR)
    return _saturating(theta), np.exp(theta[:, 3:4])


def _first_order(theta: Array) -> Array:
    ka, clearance, volume = (column[:, None] for column in np.exp(theta).T)
    gap = ka - clearance / volume
    gap = np.where(np.abs(gap) < 1e-6, 1e-6, gap)  # its limit
    t = TIMES[1:]
    # (exp(-k t) - exp(-ka t)) / (ka - k), without cancellation
    rise = np.exp(-clearance / volume * t) * -np.expm1(-gap * t) / gap
    return np.log(np.maximum(DOSE * ka / volume * rise, LEAST))


def _saturating(theta: Array) -> Array:
    ka, km, vm = np.exp(theta[:, :3]).T

    def slope(t: float, concentration: Array) -> Array:
        uptake = DOSE / VOLUME * ka * np.exp(-ka * t)
        positive = np.maximum(concentration, 0.0)
        return uptake - vm * positive / (km + positive)

    states = runge_kutta(slope, np.zeros(len(theta)), TIMES, SUBSTEPS)
    return np.log(np.maximum(states[1:].T, LEAST))
