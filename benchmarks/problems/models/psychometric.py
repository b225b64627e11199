"""A psychometric function with lapses: how often a stimulus is reported.

    P(yes | s) = guess + (1 - guess - lapse) logistic((s - threshold) exp(log slope))

Bounded parameters: threshold and log slope uniform, guess and lapse Beta(1, 10) cut at 0.5, so
that the last two lean on zero.
"""

from __future__ import annotations

import numpy as np
from scipy import stats
from scipy.special import betainc, betaln, expit, xlog1py, xlogy

from benchmarks.problems.base import Array, HardBox
from benchmarks.problems.models.base import Model

STIMULI = np.linspace(-3, 3, 9)
RATE_PRIOR = (1.0, 10.0)
LARGEST_RATE = 0.5
BOX = HardBox(
    np.array([-4.0, -2.0, 0.0, 0.0]),
    np.array([4.0, 4.0, LARGEST_RATE, LARGEST_RATE]),
    np.array([-2.0, -0.5, 0.01, 0.01]),
    np.array([2.0, 2.0, 0.15, 0.15]),
)


def psychometric(_: int, generator: np.random.Generator) -> Model:
    """An observer with 10 to 30 trials a stimulus."""
    trials = int(generator.integers(10, 31))
    truth = np.array(
        [
            generator.uniform(-1.5, 1.5),
            generator.uniform(-0.3, 1.5),
            generator.uniform(0.0, 0.15),
            generator.uniform(0.0, 0.15),
        ]
    )
    yes = generator.binomial(trials, _probability(truth[None])[0])
    constant = float(np.sum(stats.binom.logpmf(yes, trials, 0.5)) + yes.size * trials * np.log(2))

    def log_likelihoods(theta: Array) -> Array:
        p = _probability(theta)
        return constant + np.sum(xlogy(yes, p) + xlog1py(trials - yes, -p), axis=1)

    return Model.within(BOX, log_likelihoods, _log_rate_prior)


def _probability(theta: Array) -> Array:
    threshold, log_slope, guess, lapse = (column[:, None] for column in theta.T)
    rise = expit((STIMULI - threshold) * np.exp(log_slope))
    return np.clip(guess + (1 - guess - lapse) * rise, 1e-12, 1 - 1e-12)


def _log_rate_prior(theta: Array) -> Array:
    """Log density of the cut beta prior over the uniform one, both rates together."""
    a, b = RATE_PRIOR
    mass = np.log(betainc(a, b, LARGEST_RATE)) + betaln(a, b) - np.log(LARGEST_RATE)
    rates = theta[:, 2:]
    return np.sum(xlogy(a - 1, rates) + xlog1py(b - 1, -rates) - mass, axis=1)
