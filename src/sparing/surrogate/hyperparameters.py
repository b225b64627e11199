"""Settings of the surrogate, and the empirical Bayes prior of its hyperparameters (Section S2.2).

Notation (D dimensions, n training points)
    psi      hyperparameters, (3D + 3,); order in layout.py
    hpd      the high posterior density set: the fraction f_hpd of the points with highest values
    SD, diam sample standard deviation; largest minus smallest element
    extent   per dimension, the larger of the data's diameter and the plausible width, (D,)

Entries are independent: Student-t where the prior is informative, flat elsewhere, both cut off at
hard bounds. Each setting names its origin; where the default departs from the 2018 paper,
``SurrogateSettings.paper()`` gives the paper's value.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

import numpy as np

from sparing.numerics.arrays import Array
from sparing.surrogate.layout import Layout
from sparing.surrogate.training_set import TrainingSet

# Section S2.2: broad Student-t priors with nu = 3 degrees of freedom.
DEGREES_OF_FREEDOM = 3.0
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
LARGEST_NOISE_SD = 10.0
WIDEST_MEAN_MAXIMUM = 100.0


class LengthScalePrior(enum.Enum):
    """Where the prior of the input length scales ell comes from."""

    EMPIRICAL = "spread of the high posterior density points (Table S1)"
    PLAUSIBLE_BOX = "Student-t(3) around sqrt(D / 6) plausible widths"


class HyperparameterInference(enum.Enum):
    """How the hyperparameters are optimised and sampled."""

    SLICE = "maximum a posteriori, then slice sampling of all of them (Section 3.4)"
    COLLAPSED = "mean function integrated out, importance resampling (collapsed_training.py)"


@dataclass(frozen=True)
class SurrogateSettings:
    """How the Gaussian process is regularised, optimised and sampled."""

    inference: HyperparameterInference = HyperparameterInference.COLLAPSED
    # Section S2.2: fraction of the points, best first, that the empirical Bayes prior looks at.
    hpd_fraction: float = 0.8
    # The empirical prior of Table S1 follows the data into whatever region was explored first; the
    # plausible box is the user's statement of scale. It is what the strongest peer settled on.
    length_scale_prior: LengthScalePrior = LengthScalePrior.PLAUSIBLE_BOX
    # Student-t location and scale of log sigma_obs; the location is the log of this.
    noise_sd_location: float = math.sqrt(1e-5)
    noise_sd_scale: float = 0.5  # Table S1
    # Hard lower bound of sigma_obs. A noise variance of 1e-5 is far below any error in a log
    # density that matters, and keeps the condition number within reach of float64.
    noise_sd_floor: float = math.sqrt(1e-5)
    # Whether m_0 is kept near the best value seen: see _hard_bounds.
    bounded_mean_maximum: bool = True
    # Largest omega in units of the data's extent: beyond it the mean function is flat over the
    # data, and exp(mean) keeps mass far outside it.
    largest_mean_scale: float = 10.0
    # Maximum a posteriori fit: candidates scored by the posterior alone, then gradient ascents from
    # the best of them, each of at most so many evaluations.
    n_map_candidates: int = 40
    n_map_starts: int = 2
    n_map_evaluations: int = 180
    # Collapsed inference: random starting points scored beside the guesses, and candidates among
    # which the samples are chosen by their importance weights.
    n_random_starts: int = 4
    n_weighted_candidates: int = 40
    # Slice sampling (Section 3.4 names the method only): sweeps over all coordinates before the
    # first sample and between samples.
    burn_in_sweeps: int = 15
    thinning: int = 2
    # How many widths a slice may be stepped out over (Neal 2003, Fig. 3).
    max_slice_widths: int = 8

    def __post_init__(self) -> None:
        if not 0.0 < self.hpd_fraction <= 1.0:
            raise ValueError("hpd_fraction must lie in (0, 1]")
        positive = {
            "noise_sd_location": self.noise_sd_location,
            "noise_sd_scale": self.noise_sd_scale,
            "noise_sd_floor": self.noise_sd_floor,
            "largest_mean_scale": self.largest_mean_scale,
            "n_map_starts": self.n_map_starts,
            "n_map_evaluations": self.n_map_evaluations,
            "thinning": self.thinning,
            "max_slice_widths": self.max_slice_widths,
        }
        for name, value in positive.items():
            if not value > 0:
                raise ValueError(f"{name} must be positive, not {value}")
        counts = ("burn_in_sweeps", "n_map_candidates", "n_random_starts")
        negative = [name for name in counts if getattr(self, name) < 0]
        if negative:
            raise ValueError(f"{', '.join(negative)} must not be negative")
        if self.n_weighted_candidates < 1:
            raise ValueError("n_weighted_candidates must be at least 1")

    @classmethod
    def paper(cls) -> SurrogateSettings:
        """The 2018 algorithm: Table S1 to the letter."""
        return cls(
            inference=HyperparameterInference.SLICE,
            hpd_fraction=0.8,  # Section S2.2
            length_scale_prior=LengthScalePrior.EMPIRICAL,  # Table S1
            noise_sd_location=0.001,  # Table S1
            noise_sd_scale=0.5,  # Table S1
            # None in the paper, but on smooth targets the likelihood drives sigma_obs to zero
            # whatever the prior; below this it is rounding error that is being optimised.
            noise_sd_floor=1e-4,
            bounded_mean_maximum=False,  # Table S1 has no bounds
            largest_mean_scale=100.0,  # uniform in Table S1: for finiteness only
            burn_in_sweeps=25,  # not in the paper
            thinning=5,  # not in the paper
            max_slice_widths=1000,  # Section 3.4, citing Neal 2003: stepping out without a limit
        )


@dataclass(frozen=True, eq=False)
class HyperparameterPrior:
    """Independent Student-t or flat (scale = inf) priors within hard bounds, (3D + 3,) each."""

    location: Array
    scale: Array
    lower: Array
    upper: Array
    degrees_of_freedom: float = DEGREES_OF_FREEDOM

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
        nu = self.degrees_of_freedom
        kernel = -0.5 * (nu + 1.0) * np.log1p(t * t / nu)
        return float((kernel - np.log(scale)).sum()) + scale.size * _student_constant(nu)

    def gradient(self, psi: Array) -> Array:
        """Gradient of the log density inside the bounds, (3D + 3,)."""
        nu = self.degrees_of_freedom
        t = (psi - self.location) / self.scale
        return -(nu + 1.0) * t / (nu + t * t) / self.scale

    def coordinate_log_density(self, index: int, value: float) -> float:
        """The part of the log density that depends on one entry, up to a constant."""
        if not self.lower[index] <= value <= self.upper[index]:
            return -math.inf
        nu = self.degrees_of_freedom
        t = (value - float(self.location[index])) / float(self.scale[index])
        return -0.5 * (nu + 1.0) * math.log1p(t * t / nu)

    def clip(self, psi: Array) -> Array:
        """The nearest point within the bounds."""
        return np.clip(psi, self.lower, self.upper)

    def leading(self, count: int) -> HyperparameterPrior:
        """The prior of the first entries alone."""
        first = slice(count)
        return HyperparameterPrior(
            self.location[first],
            self.scale[first],
            self.lower[first],
            self.upper[first],
            self.degrees_of_freedom,
        )

    def shifted(self, offset: float) -> HyperparameterPrior:
        """The prior for values from which offset has been subtracted: only m_0 moves."""
        shift = np.zeros(self.location.size)
        shift[Layout.of(self.location).mean_maximum] = offset
        return HyperparameterPrior(
            self.location - shift,
            self.scale,
            self.lower - shift,
            self.upper - shift,
            self.degrees_of_freedom,
        )


def empirical_bayes_prior(
    training: TrainingSet, plausible_widths: Array, settings: SurrogateSettings
) -> HyperparameterPrior:
    """The prior of Table S1 with the settings' choices."""
    widths = np.asarray(plausible_widths, dtype=np.float64)
    if widths.shape != (training.dimension,):
        raise ValueError(f"plausible widths must be ({training.dimension},), not {widths.shape}")
    if not (np.isfinite(widths).all() and (widths > 0.0).all()):
        raise ValueError("plausible widths must be finite and positive")
    layout = Layout(training.dimension)
    inputs, values = high_posterior_density_set(training, settings.hpd_fraction)
    lower, upper = _hard_bounds(training, widths, float(np.ptp(values)), settings)
    # Flat entries keep a location inside the bounds: a starting point, nothing more.
    location = 0.5 * (lower + upper)
    scale = np.full(layout.size, np.inf)
    lengths = layout.log_lengths
    match settings.length_scale_prior:
        case LengthScalePrior.EMPIRICAL:
            location[lengths], scale[lengths] = _empirical_lengths(inputs, widths)
        case LengthScalePrior.PLAUSIBLE_BOX:
            # Typical distances between points of a box grow with sqrt(D / 6) of its width.
            location[lengths] = np.log(math.sqrt(layout.dimension / 6.0) * widths)
            scale[lengths] = 0.5 * math.log(1e3)
    location[layout.log_noise_sd] = math.log(settings.noise_sd_location)
    scale[layout.log_noise_sd] = settings.noise_sd_scale
    location[layout.mean_maximum] = values.max()
    scale[layout.mean_maximum] = max(float(np.ptp(values)), SMALLEST_VALUE_RANGE)
    return HyperparameterPrior(np.clip(location, lower, upper), scale, lower, upper)


def high_posterior_density_set(training: TrainingSet, fraction: float) -> tuple[Array, Array]:
    """Inputs and values of the best points, best first; at least D + 1 where there are so many."""
    count = max(math.ceil(fraction * training.n_points), training.dimension + 1)
    best = np.argsort(-training.values, kind="stable")[:count]
    return training.inputs[best], training.values[best]


def data_extent(training: TrainingSet, plausible_widths: Array) -> Array:
    """Per dimension, the larger of the data's diameter and the plausible width, (D,)."""
    return np.maximum(np.ptp(training.inputs, axis=0), plausible_widths)


def _empirical_lengths(inputs: Array, widths: Array) -> tuple[Array, Array]:
    """Table S1, first row: location log SD, scale max(2, log(diam / SD))."""
    n = inputs.shape[0]
    spread = inputs.std(axis=0, ddof=1) if n > 1 else np.zeros(widths.size)
    varies = spread > SMALLEST_SPREAD * widths
    sd = np.where(varies, spread, UNIFORM_SD * widths)
    diameter = np.where(varies, np.ptp(inputs, axis=0), widths)
    return np.log(sd), np.maximum(2.0, np.log(diameter / sd))


def _hard_bounds(
    training: TrainingSet, widths: Array, hpd_range: float, settings: SurrogateSettings
) -> tuple[Array, Array]:
    layout = Layout(training.dimension)
    lower, upper = np.empty(layout.size), np.empty(layout.size)
    extent = data_extent(training, widths)
    y_max = float(training.values.max())
    y_range = max(float(np.ptp(training.values)), 1.0)
    lower[layout.log_lengths] = np.log(SMALLEST_INPUT_SCALE * widths)
    upper[layout.log_lengths] = np.log(LARGEST_LENGTH_SCALE * extent)
    lower[layout.log_output_scale] = math.log(SMALLEST_OUTPUT_SCALE)
    upper[layout.log_output_scale] = math.log(LARGEST_OUTPUT_SCALE * y_range)
    lower[layout.log_noise_sd] = math.log(settings.noise_sd_floor)
    upper[layout.log_noise_sd] = math.log(LARGEST_NOISE_SD * y_range)
    lower[layout.mean_maximum] = y_max - WIDEST_MEAN_MAXIMUM * y_range
    # A draw from a D-dimensional normal lies D / 2 +- sqrt(D / 2) below its mode, so once the mass
    # is found the peak is no more than about D above the best value; and while values still differ
    # by less than that, no more than their own range. Unbounded, a steep edge of the data makes
    # the quadratic rise to a peak nobody has seen. Before the mass is found even the best few
    # points differ by more, and the peak may be as far above them as they are apart.
    rise = math.inf
    if settings.bounded_mean_maximum:
        best = np.sort(training.values)[-2 * layout.dimension - 2 :]
        rise = max(min(float(layout.dimension), hpd_range), float(np.ptp(best)))
    upper[layout.mean_maximum] = y_max + min(max(rise, 1.0), WIDEST_MEAN_MAXIMUM * y_range)
    lower[layout.mean_location] = training.inputs.min(axis=0) - extent
    upper[layout.mean_location] = training.inputs.max(axis=0) + extent
    lower[layout.log_mean_scales] = np.log(SMALLEST_INPUT_SCALE * widths)
    upper[layout.log_mean_scales] = np.log(settings.largest_mean_scale * extent)
    return lower, upper


def _student_constant(nu: float) -> float:
    """Log of the normalisation of a standard Student-t density."""
    return math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * nu) - 0.5 * math.log(math.pi * nu)
