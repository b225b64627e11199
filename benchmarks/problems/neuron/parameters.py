"""The parameters of the neuronal model and their unbounded coordinates.

Notation
--------
x       (7,) free parameters in the order of ``FREE``
u       (7,) the same on the real line: logit of x between its hard bounds
J(u)    log |dx/du|
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit, logit

from benchmarks.problems.base import Array


@dataclass(frozen=True)
class FreeParameter:
    """A parameter that is inferred: hard bounds and plausible interval."""

    name: str
    lower: float
    upper: float
    plausible_lower: float
    plausible_upper: float


@dataclass(frozen=True)
class FixedParameters:
    """The parameters of a cell that are held at given values."""

    direction_selectivity: float  # delta, in [0, 1]
    log10_normalisation: float  # lam
    response_scale: float  # beta
    early_noise: float  # e0
    late_noise: float  # e1


FREE = (
    FreeParameter("preferred direction (deg)", 0.0, 360.0, 90.0, 270.0),
    FreeParameter("preferred spatial frequency (cycles/deg)", 0.05, 15.0, 0.5, 10.0),
    FreeParameter("aspect ratio", 0.1, 3.5, 0.3, 3.2),
    FreeParameter("spatial derivative order", 0.1, 3.5, 0.3, 3.2),
    FreeParameter("gain of inhibition", -1.0, 1.0, -0.3, 0.3),
    FreeParameter("response exponent", 1.0, 6.5, 2.0, 5.0),
    FreeParameter("variance of the response gain", 1e-3, 10.0, 1e-2, 1.0),
)

LOWER = np.array([parameter.lower for parameter in FREE])
UPPER = np.array([parameter.upper for parameter in FREE])
PLAUSIBLE_LOWER = np.array([parameter.plausible_lower for parameter in FREE])
PLAUSIBLE_UPPER = np.array([parameter.plausible_upper for parameter in FREE])


def to_unbounded(x: Array) -> Array:
    """u = ln(z / (1 - z)) with z = (x - lower) / (upper - lower)."""
    return logit((x - LOWER) / (UPPER - LOWER))


def from_unbounded(u: Array) -> Array:
    """x = lower + (upper - lower) / (1 + e^-u)."""
    return LOWER + (UPPER - LOWER) * expit(u)


def log_jacobian(u: Array) -> float:
    """J(u) = sum of ln(upper - lower) - u - 2 ln(1 + e^-u)."""
    return float(np.sum(np.log(UPPER - LOWER) + log_expit(u) + log_expit(-u)))
