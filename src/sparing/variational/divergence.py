"""Divergence between posteriors by their first two moments.

Notation
    KL(a ‖ b) = ½ [tr(C_b⁻¹ C_a) + (m_b - m_a)ᵀ C_b⁻¹ (m_b - m_a) - D + log |C_b| - log |C_a|]
    for normal distributions with means m (D,) and covariances C (D, D)
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from sparing.numerics.arrays import Array


def gaussianised_symmetric_kl(mean_a: Array, cov_a: Array, mean_b: Array, cov_b: Array) -> float:
    """Mean of KL(a ‖ b) and KL(b ‖ a) between moment-matched normals (gsKL, Eq. S26).

    The log determinants cancel in the sum. Infinite when a covariance is not positive definite
    or anything is not finite.
    """
    # In units of the two sds together, so that coordinates of any scale can be factorised.
    with np.errstate(all="ignore"):
        unit = np.sqrt(np.diagonal(cov_a) + np.diagonal(cov_b))
        difference = (np.asarray(mean_a) - np.asarray(mean_b)) / unit
        scaled_a = cov_a / np.outer(unit, unit)
        scaled_b = cov_b / np.outer(unit, unit)
    if not all(np.isfinite(item).all() for item in (difference, scaled_a, scaled_b)):
        return float("inf")
    try:
        factor_a = linalg.cho_factor(scaled_a, lower=True)
        factor_b = linalg.cho_factor(scaled_b, lower=True)
    except linalg.LinAlgError:
        return float("inf")
    both = np.column_stack([scaled_b, difference])
    solved = linalg.cho_solve(factor_a, both)
    both[:, :-1] = scaled_a
    other = linalg.cho_solve(factor_b, both)
    trace = np.trace(solved[:, :-1]) + np.trace(other[:, :-1]) - 2.0 * difference.size
    quadratic = difference @ (solved[:, -1] + other[:, -1])
    value = 0.25 * float(trace + quadratic)
    return max(value, 0.0) if np.isfinite(value) else float("inf")
