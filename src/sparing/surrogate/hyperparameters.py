"""Priors of the surrogate's hyperparameters, and the values they are about.

Notation (D dimensions, n training points)
    psi      hyperparameters, (3D + 3,); order in layout.py
    hpd      the high posterior density set: the fraction f_hpd of the points with highest values

Entries are independent: Student-t where the prior is informative, flat elsewhere, both cut off at
hard bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sparing.numerics.arrays import Array
from sparing.surrogate.layout import Layout
from sparing.surrogate.training_set import TrainingSet

# Section S2.2: broad Student-t priors with nu = 3 degrees of freedom.
DEGREES_OF_FREEDOM = 3.0
# Log of the normalisation of a standard Student-t density.
LOG_NORMALISATION = (
    math.lgamma(0.5 * (DEGREES_OF_FREEDOM + 1.0))
    - math.lgamma(0.5 * DEGREES_OF_FREEDOM)
    - 0.5 * math.log(math.pi * DEGREES_OF_FREEDOM)
)


@dataclass(frozen=True, eq=False)
class HyperparameterPrior:
    """Independent Student-t or flat (scale = inf) priors within hard bounds, (3D + 3,) each."""

    location: Array
    scale: Array
    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        shapes = {a.shape for a in (self.location, self.scale, self.lower, self.upper)}
        if len(shapes) != 1 or self.location.ndim != 1:
            raise ValueError(f"location, scale and bounds must be vectors alike, not {shapes}")
        if not ((self.scale > 0.0).all() and (self.lower < self.upper).all()):
            raise ValueError("scales must be positive and lower bounds below upper bounds")
        finite = np.isfinite(self.location) & np.isfinite(self.lower) & np.isfinite(self.upper)
        if not finite.all():
            raise ValueError("prior locations and bounds must be finite")

    def log_density(self, psi: Array) -> float:
        """Log prior up to the constant of the flat entries; -inf outside the bounds."""
        if not ((psi >= self.lower) & (psi <= self.upper)).all():
            return -math.inf
        informed = np.isfinite(self.scale)
        scale = self.scale[informed]
        t = (psi[informed] - self.location[informed]) / scale
        kernel = -0.5 * (DEGREES_OF_FREEDOM + 1.0) * np.log1p(t * t / DEGREES_OF_FREEDOM)
        return float((kernel - np.log(scale)).sum()) + scale.size * LOG_NORMALISATION

    def gradient(self, psi: Array) -> Array:
        """Gradient of the log density inside the bounds, (3D + 3,)."""
        t = (psi - self.location) / self.scale
        return -(DEGREES_OF_FREEDOM + 1.0) * t / (DEGREES_OF_FREEDOM + t * t) / self.scale

    def coordinate_log_density(self, index: int, value: float) -> float:
        """The part of the log density that depends on one entry, up to a constant."""
        if not self.lower[index] <= value <= self.upper[index]:
            return -math.inf
        t = (value - float(self.location[index])) / float(self.scale[index])
        return -0.5 * (DEGREES_OF_FREEDOM + 1.0) * math.log1p(t * t / DEGREES_OF_FREEDOM)

    def clip(self, psi: Array) -> Array:
        """The nearest point within the bounds."""
        return np.clip(psi, self.lower, self.upper)

    def of_entries(self, entries: NDArray[np.intp]) -> HyperparameterPrior:
        """The prior of some entries alone, by their positions."""
        parts = (self.location, self.scale, self.lower, self.upper)
        return HyperparameterPrior(*(part[entries] for part in parts))

    def shifted(self, offset: float) -> HyperparameterPrior:
        """The prior for values from which offset has been subtracted: only m_0 moves."""
        shift = np.zeros(self.location.size)
        shift[Layout.of(self.location).mean_maximum] = offset
        moved = {name: getattr(self, name) - shift for name in ("location", "lower", "upper")}
        return replace(self, **moved)


def high_posterior_density_set(training: TrainingSet, fraction: float) -> tuple[Array, Array]:
    """Inputs and values of the best points, best first; at least D + 1 where there are so many."""
    count = max(math.ceil(fraction * training.n_points), training.dimension + 1)
    best = np.argsort(-training.values, kind="stable")[:count]
    return training.inputs[best], training.values[best]


def shifted_to_zero(
    training: TrainingSet, prior: HyperparameterPrior
) -> tuple[float, TrainingSet, HyperparameterPrior]:
    """The best value, and data and prior with it subtracted.

    Values may carry a large offset (a log likelihood of -1e5), in which digits would be lost.
    """
    offset = float(training.values.max())
    shifted = replace(training, values=training.values - offset)
    return offset, shifted, prior.shifted(offset)


def with_offset(psi: Array, offset: float) -> Array:
    """psi (or rows of it) with offset added to m_0."""
    moved = psi.copy()
    moved[..., Layout.of(psi).mean_maximum] += offset
    return moved
