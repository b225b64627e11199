"""The empirical Bayes prior of the surrogate's hyperparameters (Section S2.2, Table S1).

Notation (D dimensions, n training points)
    hpd      the high posterior density set: the fraction f_hpd of the points with highest values
    SD, diam sample standard deviation; largest minus smallest element
    extent   per dimension, the larger of the data's diameter and the plausible width, (D,)

Inputs are in working coordinates, in which the plausible box has width one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sparing.numerics.arrays import Array
from sparing.surrogate.hyperparameters import HyperparameterPrior, high_posterior_density_set
from sparing.surrogate.training_set import TrainingSet

# Range of values below which the data say nothing about scale (a single point, equal values).
SMALLEST_VALUE_RANGE = 1e-3
# Spread of points, in plausible widths, below which a coordinate counts as constant.
SMALLEST_SPREAD = 1e-6
# SD of a uniform draw from an interval of width 1: the spread of the initial design.
UNIFORM_SD = 1.0 / math.sqrt(12.0)
# Hard bounds that keep every matrix finite and that the posterior does not reach otherwise:
# ell and omega against the plausible width and the extent, sigma_f against the range of y.
SMALLEST_INPUT_SCALE = 1e-6
LARGEST_LENGTH_SCALE = 100.0
SMALLEST_OUTPUT_SCALE = 1e-4  # in nats: a process this small has no bearing on any result
LARGEST_OUTPUT_SCALE = 100.0
# What a factorisation's rounding may be of the smallest noise variance, where gradients are known.
ROUNDING_SHARE, EPSILON = 0.01, float(np.finfo(np.float64).eps)
LARGEST_NOISE_SD = 10.0
WIDEST_MEAN_MAXIMUM = 100.0


@dataclass(frozen=True)
class LengthsFromBox:
    """Length scales around sqrt(D / 6) plausible widths, whatever was explored first.

    The plausible box is the user's statement of scale, and typical distances between points of a
    box grow with sqrt(D / 6) of its width. It is what the strongest peer settled on.
    """

    def location_and_scale(self, inputs: Array) -> tuple[Array, Array]:
        """Of the Student-t prior of log ell, (D,) each; inputs (n, D): the best points."""
        dimension = inputs.shape[1]
        location = np.log(math.sqrt(dimension / 6.0) * np.ones(dimension))
        return location, np.full(dimension, 0.5 * math.log(1e3))


@dataclass(frozen=True)
class LengthsFromPoints:
    """Length scales from the spread of the high posterior density points (Table S1, first row)."""

    def location_and_scale(self, inputs: Array) -> tuple[Array, Array]:
        """Location log SD, scale max(2, log(diam / SD)), (D,) each; inputs (n, D)."""
        n, dimension = inputs.shape
        spread = inputs.std(axis=0, ddof=1) if n > 1 else np.zeros(dimension)
        varies = spread > SMALLEST_SPREAD
        sd = np.where(varies, spread, UNIFORM_SD)
        diameter = np.where(varies, np.ptp(inputs, axis=0), 1.0)
        return np.log(sd), np.maximum(2.0, np.log(diameter / sd))


@dataclass(frozen=True)
class PeakNearBest:
    """The mean function's maximum stays near the best value seen.

    A draw from a D-dimensional normal lies D / 2 +- sqrt(D / 2) below its mode, so once the mass is
    found the peak is no more than about D above the best value; and while values still differ by
    less than that, no more than their own range. Unbounded, a steep edge of the data makes the
    quadratic rise to a peak nobody has seen. Before the mass is found even the best few points
    differ by more, and the peak may be as far above them as they are apart.
    """

    def largest_rise(self, values: Array, hpd_range: float, dimension: int) -> float:
        """How far m_0 may lie above the best of the values (n,), in nats."""
        best = np.sort(values)[-2 * dimension - 2 :]
        return max(min(float(dimension), hpd_range), float(np.ptp(best)))


@dataclass(frozen=True)
class PeakAnywhere:
    """The mean function's maximum has no bound (Table S1) but one for finiteness."""

    def largest_rise(self, values: Array, hpd_range: float, dimension: int) -> float:
        """No limit."""
        return math.inf


@dataclass(frozen=True)
class EmpiricalPrior:
    """The empirical Bayes prior of the hyperparameters (Section S2.2, Table S1)."""

    # Section S2.2: fraction of the points, best first, that the prior looks at.
    hpd_fraction: float = 0.8
    length_scales: LengthsFromBox | LengthsFromPoints = LengthsFromBox()
    # Student-t location and scale of log sigma_obs; the location is the log of this.
    noise_sd_location: float = math.sqrt(1e-5)
    noise_sd_scale: float = 0.5  # Table S1
    # Hard lower bound of sigma_obs. A noise variance of 1e-5 is far below any error in a log
    # density that matters, and keeps the condition number within reach of float64.
    noise_sd_floor: float = math.sqrt(1e-5)
    peak: PeakNearBest | PeakAnywhere = PeakNearBest()
    # Largest omega in units of the data's extent: beyond it the mean function is flat over the
    # data, and exp(mean) keeps mass far outside it.
    largest_mean_scale: float = 10.0

    def __post_init__(self) -> None:
        if not 0.0 < self.hpd_fraction <= 1.0:
            raise ValueError("hpd_fraction must lie in (0, 1]")
        positive = ("noise_sd_location", "noise_sd_scale", "noise_sd_floor", "largest_mean_scale")
        require_positive(self, *positive)

    @classmethod
    def paper(cls) -> EmpiricalPrior:
        """Table S1 to the letter."""
        return cls(
            length_scales=LengthsFromPoints(),
            noise_sd_location=0.001,
            # None in the paper, but on smooth targets the likelihood drives sigma_obs to zero
            # whatever the prior; below this it is rounding error that is being optimised.
            noise_sd_floor=1e-4,
            peak=PeakAnywhere(),
            largest_mean_scale=100.0,  # uniform in Table S1: for finiteness only
        )

    def of(self, training: TrainingSet) -> HyperparameterPrior:
        """The prior that these data give."""
        layout = training.layout
        inputs, values = high_posterior_density_set(training, self.hpd_fraction)
        lower, upper = self._hard_bounds(training, float(np.ptp(values)))
        # Flat entries keep a location inside the bounds: a starting point, nothing more.
        location = 0.5 * (lower + upper)
        scale = np.full(layout.size, np.inf)
        lengths = layout.log_lengths
        location[lengths], scale[lengths] = self.length_scales.location_and_scale(inputs)
        location[layout.log_noise_sd] = math.log(self.noise_sd_location)
        scale[layout.log_noise_sd] = self.noise_sd_scale
        location[layout.log_gradient_noise_sd] = location[layout.log_noise_sd]
        scale[layout.log_gradient_noise_sd] = self.noise_sd_scale
        location[layout.mean_maximum] = values.max()
        scale[layout.mean_maximum] = max(float(np.ptp(values)), SMALLEST_VALUE_RANGE)
        return HyperparameterPrior(np.clip(location, lower, upper), scale, lower, upper)

    def _hard_bounds(self, training: TrainingSet, hpd_range: float) -> tuple[Array, Array]:
        layout = training.layout
        lower, upper = np.empty(layout.size), np.empty(layout.size)
        extent = np.maximum(np.ptp(training.inputs, axis=0), 1.0)
        y_max = float(training.values.max())
        y_range = max(float(np.ptp(training.values)), 1.0)
        lower[layout.log_lengths] = np.log(SMALLEST_INPUT_SCALE)
        upper[layout.log_lengths] = np.log(LARGEST_LENGTH_SCALE * extent)
        lower[layout.log_output_scale] = math.log(SMALLEST_OUTPUT_SCALE)
        upper[layout.log_output_scale] = math.log(LARGEST_OUTPUT_SCALE * y_range)
        lower[layout.log_noise_sd] = math.log(self.noise_sd_floor)
        upper[layout.log_noise_sd] = math.log(LARGEST_NOISE_SD * y_range)
        if training.gradients is not None:
            largest = float(np.nanmax(np.abs(training.gradients), initial=1.0))
            lower[layout.log_gradient_noise_sd] = math.log(self.noise_sd_floor)
            upper[layout.log_gradient_noise_sd] = math.log(LARGEST_NOISE_SD * largest)
            # Long and high, the process is a polynomial of any degree, but for rounding.
            exact = self.noise_sd_floor * math.sqrt(ROUNDING_SHARE / (training.n_rows * EPSILON))
            highest = min(max(exact, y_range), LARGEST_OUTPUT_SCALE * y_range)
            upper[layout.log_output_scale] = math.log(highest)
        lower[layout.mean_maximum] = y_max - WIDEST_MEAN_MAXIMUM * y_range
        rise = self.peak.largest_rise(training.values, hpd_range, layout.dimension)
        upper[layout.mean_maximum] = y_max + min(max(rise, 1.0), WIDEST_MEAN_MAXIMUM * y_range)
        lower[layout.mean_location] = training.inputs.min(axis=0) - extent
        upper[layout.mean_location] = training.inputs.max(axis=0) + extent
        lower[layout.log_mean_scales] = np.log(SMALLEST_INPUT_SCALE)
        upper[layout.log_mean_scales] = np.log(self.largest_mean_scale * extent)
        return lower, upper


def require_positive(settings: object, *names: str) -> None:
    """ValueError, naming the field, unless all of these are above zero."""
    for name in names:
        value = getattr(settings, name)
        if not value > 0:
            raise ValueError(f"{name} must be positive, not {value}")
