"""Acquisition functions, in log space (Section 3.3, S2.1).

Notation
    q(x)      current variational posterior, working coordinates
    f(x)      posterior mean of the surrogate at x, marginal over hyperparameters (Eq. 10)
    V(x)      posterior variance of the surrogate at x, likewise
    X         candidates, (m, D)

A criterion is any callable that gives log a(x) for a batch of candidates (m, D) -> (m,), up to a
constant: only the order of the candidates matters.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sparing.numerics.arrays import Array
from sparing.surrogate.gaussian_process import GaussianProcess, predict
from sparing.variational.mixture import GaussianMixture

Criterion = Callable[[Array], Array]


class UncertaintyRule(enum.Enum):
    """The two acquisition functions of Section 3.3."""

    VANILLA = "a_us"  # V q^2
    PROSPECTIVE = "a_pro"  # V q exp(f)


def log_uncertainty(variance: Array, log_q: Array) -> Array:
    """Log of a_us(x) = V(x) q(x)^2 (Section 3.3)."""
    return _log(variance) + 2.0 * log_q


def log_prospective(variance: Array, log_q: Array, mean: Array) -> Array:
    """Log of a_pro(x) = V(x) q(x) exp(f(x)) (Section 3.3, Eq. 9)."""
    return _log(variance) + log_q + mean


def log_regularisation(variance: Array, variance_floor: float) -> Array:
    """Log of the factor of Eq. S22: -(V_reg / V - 1) where V < V_reg, else 0."""
    safe = np.maximum(variance, np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        return np.where(variance < variance_floor, 1.0 - variance_floor / safe, 0.0)


@dataclass(frozen=True, eq=False)
class UncertaintySampling:
    """a_us or a_pro with the regularisation of Eq. S22."""

    rule: UncertaintyRule
    gp: GaussianProcess
    mixture: GaussianMixture
    variance_floor: float

    def __call__(self, candidates: Array) -> Array:
        """Log acquisition at the candidates: (m, D) -> (m,)."""
        mean, variance = predict(self.gp, candidates)
        log_q = self.mixture.log_density(candidates)
        if self.rule is UncertaintyRule.VANILLA:
            value = log_uncertainty(variance, log_q)
        else:
            value = log_prospective(variance, log_q, mean)
        return value + log_regularisation(variance, self.variance_floor)


@dataclass(frozen=True, eq=False)
class TemperedProspective:
    """a_pro with its density flattened, V (q exp(f))^temper: around the bulk, not at its peak.

    An upper confidence bound was tried and goes too far out: on heavy tails the surrogate then
    spends itself on regions without mass (docs/decisions/0007).
    """

    gp: GaussianProcess
    mixture: GaussianMixture
    temper: float

    def __call__(self, candidates: Array) -> Array:
        """Log acquisition at the candidates: (m, D) -> (m,)."""
        mean, variance = predict(self.gp, candidates)
        return _log(variance) + self.temper * (self.mixture.log_density(candidates) + mean)


def _log(positive: Array) -> Array:
    return np.log(np.maximum(positive, np.finfo(float).tiny))
