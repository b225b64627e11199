"""What a model with data is, and the Runge-Kutta steps that two of them take.

Notation
--------
n, D    points, parameters
theta   (n, D) parameters of many points at once: one step of an ODE then serves all of them
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from benchmarks.problems.base import Array, HardBox

LogLikelihoods = Callable[[Array], Array]  # (n, D) -> (n,)
Gradient = Callable[[Array], Array]  # of one log likelihood, (D,) -> (D,)


@dataclass(frozen=True, eq=False)
class Model:
    """Log likelihoods of many points, and a prior: independent normals, or one within a hard box.

    A prior in a box that is not uniform is a factor of the likelihood: log_prior_ratios is the log
    of the prior's density over the uniform one.
    """

    log_likelihoods: LogLikelihoods
    prior_mean: Array
    prior_sd: Array
    box: HardBox | None = None
    log_prior_ratios: LogLikelihoods | None = None
    gradient: Gradient | None = None  # of the log likelihood; None where nobody has written it down

    @classmethod
    def within(
        cls,
        box: HardBox,
        log_likelihoods: LogLikelihoods,
        log_prior_ratios: LogLikelihoods | None = None,
    ) -> Model:
        return cls(log_likelihoods, box.mean, box.sd, box, log_prior_ratios)

    def log_factors(self, theta: Array) -> Array:
        """What the normal or the uniform prior is multiplied by, logarithm; never NaN."""
        with np.errstate(all="ignore"):  # absurd parameters overflow and have no likelihood
            values = self.log_likelihoods(theta)
            if self.log_prior_ratios is not None:
                values = values + self.log_prior_ratios(theta)
        return np.where(np.isfinite(values), values, -np.inf)

    def log_priors(self, theta: Array) -> Array:
        """Of the normal prior, or of the uniform one."""
        if self.box is None:
            z = (theta - self.prior_mean) / self.prior_sd
            return -0.5 * np.sum(z * z + np.log(2 * np.pi * self.prior_sd**2), axis=1)
        inside = np.all((theta >= self.box.lower) & (theta <= self.box.upper), axis=1)
        volume = float(np.sum(np.log(self.box.upper - self.box.lower)))
        return np.where(inside, -volume, -np.inf)

    def log_joints(self, theta: Array) -> Array:
        """The model is asked only within the box."""
        values = self.log_priors(theta)
        inside = np.isfinite(values)
        values[inside] += self.log_factors(theta[inside])
        return values

    def sample_prior(self, n: int, generator: np.random.Generator) -> Array:
        """Draws of the normal or the uniform prior, (n, D)."""
        shape = (n, len(self.prior_mean))
        if self.box is None:
            return self.prior_mean + self.prior_sd * generator.standard_normal(shape)
        return generator.uniform(self.box.lower, self.box.upper, size=shape)


def runge_kutta(
    slope: Callable[[float, Array], Array], state: Array, times: Array, substeps: int
) -> Array:
    """States at the times (m,), from the state at times[0]: (m, ...) by the classical method."""
    states = [state]
    for begin, end in pairwise(times):
        h = (end - begin) / substeps
        for i in range(substeps):
            t = begin + i * h
            k1 = slope(t, state)
            k2 = slope(t + h / 2, state + h / 2 * k1)
            k3 = slope(t + h / 2, state + h / 2 * k2)
            k4 = slope(t + h, state + h * k3)
            state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        states.append(state)
    return np.array(states)
