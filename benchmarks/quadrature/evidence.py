"""Likelihoods in units of the largest, and the log evidence from moments in such units."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from benchmarks.problems.base import Array


def scaled_likelihoods(log_likelihoods: Array) -> tuple[Array, float]:
    """Likelihoods over their largest, and its logarithm; where all are zero, zeros and 0."""
    log_scale = float(np.max(log_likelihoods))
    if log_scale == -math.inf:
        return np.zeros(len(log_likelihoods)), 0.0
    return np.exp(log_likelihoods - log_scale), log_scale


@dataclass(frozen=True)
class Evidence:
    """The log evidence and its standard deviation; NaN where a method arrived at none."""

    log_evidence: float
    sd: float

    @classmethod
    def from_moments(cls, mean: float, variance: float, log_scale: float) -> Evidence:
        """From E[Z] and V[Z] in units of exp(log_scale), to first order in the error.

        The mean of a process without a sign constraint may be negative, which is no evidence at
        all; a variance below zero is rounding.
        """
        if not mean > 0.0:
            return cls(math.nan, math.nan)
        return cls(log_scale + math.log(mean), math.sqrt(max(variance, 0.0)) / mean)
