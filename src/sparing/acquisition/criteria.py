"""Acquisition functions, in log space (Section 3.3, S2.1).

Notation
    q(x)      current posterior, working coordinates
    f(x)      posterior mean of the surrogate at x, marginal over hyperparameters (Eq. 10)
    V(x)      posterior variance of the surrogate at x, likewise

All are log a(x) at candidates (m,), up to a constant: only the order of the candidates matters.
"""

from __future__ import annotations

import numpy as np

from sparing.numerics.arrays import Array


def log_uncertainty(variance: Array, log_q: Array) -> Array:
    """Log of a_us(x) = V(x) q(x)^2 (Section 3.3)."""
    return log_positive(variance) + 2.0 * log_q


def log_prospective(variance: Array, log_q: Array, mean: Array) -> Array:
    """Log of a_pro(x) = V(x) q(x) exp(f(x)) (Section 3.3, Eq. 9)."""
    return log_positive(variance) + log_q + mean


def log_regularisation(variance: Array, variance_floor: float) -> Array:
    """Log of the factor of Eq. S22: -(V_reg / V - 1) where V < V_reg, else 0."""
    safe = np.maximum(variance, np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        return np.where(variance < variance_floor, 1.0 - variance_floor / safe, 0.0)


def log_positive(values: Array) -> Array:
    """Log of values that rounding may have taken to zero."""
    return np.log(np.maximum(values, np.finfo(float).tiny))
