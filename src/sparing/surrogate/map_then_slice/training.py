"""Fitting the hyperparameters: maximum a posteriori, and samples by slice sampling (Section 3.4).

Notation (D dimensions, n training points)
    psi      hyperparameters, (3D + 3,); order in layout.py
    MAP      argmax of log p(y | X, psi) + log p(psi) within the prior's bounds

Values may carry a large offset (a log likelihood of -1e5): it is subtracted from values and m_0
inside and added back to what is returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from sparing.numerics.arrays import Array
from sparing.numerics.linear_algebra import solve_lower_rows
from sparing.numerics.slice_sampling import SliceBox, slice_sample
from sparing.surrogate.empirical_prior import EmpiricalPrior, require_positive
from sparing.surrogate.gaussian_process import (
    GaussianProcess,
    TrainingSet,
    condition,
    factorise_covariance,
    log_marginal_likelihood,
    log_marginal_likelihood_and_gradient,
)
from sparing.surrogate.hyperparameters import (
    HyperparameterPrior,
    high_posterior_density_set,
    shifted_to_zero,
    with_offset,
)
from sparing.surrogate.interface import Surrogate
from sparing.surrogate.layout import Hyperparameters, Layout
from sparing.surrogate.map_then_slice.log_posterior import HyperparameterPosterior
from sparing.surrogate.mean import mean_jacobian

# Stands in for an objective that overflowed: large, yet safe in the line search's arithmetic.
HUGE_OBJECTIVE = 1e100
# Spread of the random starting points, in the units of _units.
PERTURBATION = 1.0
# Relative decrease and projected gradient at which an ascent stops. The log posterior is of order
# n, and hyperparameters matter to two digits at most.
RELATIVE_TOLERANCE = 1e-9
GRADIENT_TOLERANCE = 1e-4
# Evaluations per round of an ascent, and the gain in nats below which no further round follows.
ROUND_EVALUATIONS = 60
SMALLEST_GAIN = 0.01


@dataclass(frozen=True)
class MapThenSlice:
    """Train as the paper does; an implementation of `SurrogateTraining`."""

    prior: EmpiricalPrior = field(default_factory=EmpiricalPrior.paper)
    # Maximum a posteriori fit: candidates scored by the posterior alone, then ascents from the
    # best of them, each of at most so many evaluations.
    n_map_candidates: int = 40
    n_map_starts: int = 2
    n_map_evaluations: int = 180
    # Slice sampling (Section 3.4 names the method only): sweeps over all coordinates before the
    # first sample and between samples.
    burn_in_sweeps: int = 25
    thinning: int = 5
    # How many widths a slice may be stepped out over (Neal 2003, Fig. 3): without a limit there.
    max_slice_widths: int = 1000

    def __post_init__(self) -> None:
        positive = ("n_map_starts", "n_map_evaluations", "thinning", "max_slice_widths")
        require_positive(self, *positive)
        negative = [n for n in ("burn_in_sweeps", "n_map_candidates") if getattr(self, n) < 0]
        if negative:
            raise ValueError(f"{', '.join(negative)} must not be negative")

    def train(
        self,
        training: TrainingSet,
        n_samples: int | None,
        generator: np.random.Generator,
        previous: Surrogate | None = None,
    ) -> GaussianProcess:
        """A process with n_samples samples of psi, or with None the best one."""
        training = self.of_use(training)
        prior = self.prior.of(training)
        earlier = None if previous is None else previous.parameters
        psi = fit_map(training, prior, self, generator, earlier)[None, :]
        if n_samples is not None:
            psi = sample_posterior(training, prior, self, psi[0], n_samples, generator)
        return condition(training, psi)

    def condition(self, training: TrainingSet, parameters: Array) -> GaussianProcess:
        """The process with hyperparameters that an earlier training found."""
        return condition(self.of_use(training), parameters)

    def of_use(self, training: TrainingSet) -> TrainingSet:
        """The values: the paper knows no gradients."""
        return training.values_alone()

    def score(self, surrogate: Surrogate, training: TrainingSet) -> float:
        """The largest log p(y | psi) + log p(psi) among the samples."""
        prior = self.prior.of(surrogate.training)
        offset, shifted, prior = shifted_to_zero(self.of_use(training), prior)
        samples = with_offset(surrogate.parameters, -offset)
        return max(_log_posterior(shifted, prior, psi) for psi in samples)


def fit_map(
    training: TrainingSet,
    prior: HyperparameterPrior,
    settings: MapThenSlice,
    generator: np.random.Generator,
    previous: Array | None = None,
) -> Array:
    """The maximum a posteriori psi, (3D + 3,); previous: earlier samples, (S0, 3D + 3)."""
    offset, training, prior = shifted_to_zero(training, prior)
    candidates = _starting_points(training, prior, settings, generator, previous, offset)
    scores = np.array([_log_posterior(training, prior, psi) for psi in candidates])
    best_psi, best_score = candidates[int(np.argmax(scores))], float(scores.max())
    for index in np.argsort(-scores, kind="stable")[: settings.n_map_starts]:
        psi = _ascend(training, prior, settings, candidates[index])
        score = _log_posterior(training, prior, psi)
        if score > best_score:
            best_psi, best_score = psi, score
    return with_offset(best_psi, offset)


def _ascend(
    training: TrainingSet, prior: HyperparameterPrior, settings: MapThenSlice, psi: Array
) -> Array:
    """Climb from psi by L-BFGS-B in rounds, each rescaled to the curvature where it starts.

    Without noise the likelihood is up to 1e6 times stiffer in the mean function than in the rest,
    and stiff where the fit ends rather than where it starts. At D = 6, n = 100 on a smooth target
    three rounds of 60 evaluations reach what one round of 400 misses by tens of nats.
    """
    units = _units(prior)
    score = _log_posterior(training, prior, psi)
    for _ in range(math.ceil(settings.n_map_evaluations / ROUND_EVALUATIONS)):
        found = minimize(
            _negative_log_posterior(training, prior, units),
            psi / units,
            jac=True,
            method="L-BFGS-B",
            bounds=np.column_stack([prior.lower / units, prior.upper / units]),
            options={
                "maxfun": ROUND_EVALUATIONS,
                "ftol": RELATIVE_TOLERANCE,
                "gtol": GRADIENT_TOLERANCE,
            },
        )
        risen = prior.clip(np.asarray(found.x) * units)
        new_score = _log_posterior(training, prior, risen)
        gain = new_score - score
        if gain > 0.0:
            psi, score = risen, new_score
        if gain < SMALLEST_GAIN:
            break
        units = _curvature_units(training, prior, psi)
    return psi


def sample_posterior(
    training: TrainingSet,
    prior: HyperparameterPrior,
    settings: MapThenSlice,
    start: Array,
    n_samples: int,
    generator: np.random.Generator,
) -> Array:
    """Slice samples of psi from start, (n_samples, 3D + 3)."""
    offset, training, prior = shifted_to_zero(training, prior)
    samples, _ = slice_sample(
        HyperparameterPosterior(training, prior),
        prior.clip(with_offset(np.asarray(start, dtype=np.float64), -offset)),
        _units(prior),
        SliceBox(prior.lower, prior.upper, settings.max_slice_widths),
        n_samples,
        settings.burn_in_sweeps,
        settings.thinning,
        generator,
    )
    return with_offset(samples, offset)


def _units(prior: HyperparameterPrior) -> Array:
    """The order of magnitude by which each entry moves, (3D + 3,)."""
    layout = Layout.of(prior.location)
    units = np.ones(layout.size)  # logarithms
    units[layout.mean_maximum] = max(1.0, 0.1 * float(prior.scale[layout.mean_maximum]))
    location = layout.mean_location
    # The bounds of x_m are three extents of the data apart.
    units[location] = (prior.upper[location] - prior.lower[location]) / 30.0
    return units


def _curvature_units(training: TrainingSet, prior: HyperparameterPrior, psi: Array) -> Array:
    """_units, made no longer than the likelihood's own scale along each of the mean's entries.

    The scale is H_ii^(-1/2) with the Gauss-Newton curvature H = J^T A^-1 J, J = dm(X) / d psi.
    """
    sample = Hyperparameters.from_vector(psi)
    lower = factorise_covariance(training, sample).lower
    half = solve_lower_rows(lower, mean_jacobian(sample, training.inputs))
    units = _units(prior)
    mean = slice(Layout.of(psi).mean_maximum, None)
    curvature = np.maximum((half * half).sum(axis=1), np.finfo(np.float64).tiny)
    units[mean] = np.minimum(units[mean], 1.0 / np.sqrt(curvature))
    return units


def _log_posterior(training: TrainingSet, prior: HyperparameterPrior, psi: Array) -> float:
    value = log_marginal_likelihood(training, psi) + prior.log_density(psi)
    return value if math.isfinite(value) else -HUGE_OBJECTIVE


def _negative_log_posterior(
    training: TrainingSet, prior: HyperparameterPrior, units: Array
) -> Callable[[Array], tuple[float, Array]]:
    """The objective and its gradient in psi / units."""

    def objective(scaled: Array) -> tuple[float, Array]:
        psi = prior.clip(scaled * units)  # rounding may step over a bound
        likelihood, gradient = log_marginal_likelihood_and_gradient(training, psi)
        value = -(likelihood + prior.log_density(psi))
        slope = -(gradient + prior.gradient(psi)) * units
        if math.isfinite(value) and np.isfinite(slope).all():
            return value, slope
        return HUGE_OBJECTIVE, np.zeros_like(slope)

    return objective


def _starting_points(
    training: TrainingSet,
    prior: HyperparameterPrior,
    settings: MapThenSlice,
    generator: np.random.Generator,
    previous: Array | None,
    offset: float,
) -> list[Array]:
    """Earlier samples, two guesses from the data, and random perturbations of them all."""
    guesses = [_guess(training, prior, settings, explained) for explained in (False, True)]
    if previous is not None:
        guesses.extend(with_offset(np.atleast_2d(previous), -offset))
    units = _units(prior)
    chosen = generator.integers(len(guesses), size=settings.n_map_candidates)
    steps = PERTURBATION * generator.standard_normal((settings.n_map_candidates, units.size))
    perturbed = [guesses[g] + step * units for g, step in zip(chosen, steps, strict=True)]
    return [prior.clip(psi) for psi in guesses + perturbed]


def _guess(
    training: TrainingSet,
    prior: HyperparameterPrior,
    settings: MapThenSlice,
    explained: bool,
) -> Array:
    """The prior's location with the mean function, and sigma_f, guessed from the data.

    explained: sigma_f from what a separable quadratic leaves of the values, else from their SD.
    """
    layout = Layout(training.dimension)
    inputs, values = high_posterior_density_set(training, settings.prior.hpd_fraction)
    centre = inputs.mean(axis=0)
    sd = inputs.std(axis=0)
    unit = np.where(sd > 0.0, sd, 1.0)
    u = (inputs - centre) / unit
    design = np.hstack([np.ones((values.size, 1)), u, u**2])
    coefficients = np.linalg.lstsq(design, values, rcond=1e-10)[0]
    slope = coefficients[1 : layout.dimension + 1]
    curvature = coefficients[layout.dimension + 1 :]
    peaked = curvature < 0.0
    safe_curvature = np.where(peaked, curvature, -0.5)
    psi = prior.location.copy()
    psi[layout.mean_location] = np.where(
        peaked, centre - 0.5 * unit * slope / safe_curvature, inputs[0]
    )
    psi[layout.log_mean_scales] = np.log(unit) - 0.5 * np.log(-2.0 * safe_curvature)
    spread = float(np.std(values - design @ coefficients) if explained else np.std(values))
    psi[layout.log_output_scale] = math.log(max(spread, 1e-2))
    return psi
