"""GARCH(1,1): returns whose variance follows its own past.

    r_t = mu + sqrt(v_t) e_t,  v_t = omega + alpha (r_{t-1} - mu)^2 + beta v_{t-1}

Parameters mu, omega, alpha and u in a hard box, with beta = (1 - alpha) u: the variance stays
stationary. The prior is uniform.
"""

from __future__ import annotations

import numpy as np

from benchmarks.problems.base import Array, HardBox
from benchmarks.problems.models.base import Model

RETURNS = (100, 300)
BOX = HardBox(
    np.array([-2.0, 0.0, 0.0, 0.0]),
    np.array([2.0, 5.0, 1.0, 1.0]),
    np.array([-0.5, 0.1, 0.1, 0.1]),
    np.array([0.5, 2.0, 0.6, 0.9]),
)


def garch(_: int, generator: np.random.Generator) -> Model:
    """A series of 100 to 300 returns."""
    n = int(generator.integers(*RETURNS))
    mu, omega = generator.uniform(-0.3, 0.3), generator.uniform(0.2, 1.0)
    alpha, u = generator.uniform(0.1, 0.4), generator.uniform(0.3, 0.9)
    beta = (1 - alpha) * u
    variance, returns = omega / (1 - alpha - beta), []
    for _ in range(n):
        returns.append(mu + np.sqrt(variance) * generator.standard_normal())
        variance = omega + alpha * (returns[-1] - mu) ** 2 + beta * variance
    first = float(np.var(returns))

    def log_likelihoods(theta: Array) -> Array:
        mu, omega, alpha, u = theta.T
        beta = (1 - alpha) * u
        v, total = np.full(len(theta), first), np.zeros(len(theta))
        for r in returns:
            square = (r - mu) ** 2
            total += np.log(v) + square / v
            v = omega + alpha * square + beta * v
        return -0.5 * (total + n * np.log(2 * np.pi))

    return Model.within(BOX, log_likelihoods)
