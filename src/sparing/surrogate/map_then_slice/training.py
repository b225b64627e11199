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

import numpy as np
from scipy.optimize import minimize

from sparing.numerics.arrays import Array
from sparing.numerics.linear_algebra import solve_lower_rows
from sparing.numerics.slice_sampling import SliceBox, slice_sample
from sparing.surrogate.collapsed import CollapsedPosterior
from sparing.surrogate.collapsed_training import train as train_collapsed
from sparing.surrogate.gaussian_process import (
    TrainingSet,
    factorise_covariance,
    log_marginal_likelihood,
    log_marginal_likelihood_and_gradient,
)
from sparing.surrogate.hyperparameters import (
    HyperparameterInference,
    HyperparameterPrior,
    SurrogateSettings,
    high_posterior_density_set,
)
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


def train(
    training: TrainingSet,
    prior: HyperparameterPrior,
    settings: SurrogateSettings,
    n_samples: int | None,
    generator: np.random.Generator,
    previous: Array | None = None,
) -> Array:
    """Samples of psi, (n_samples, 3D + 3), or with None the best one, (1, 3D + 3).

    previous: samples of an earlier training, (S0, 3D + 3).
    """
    if settings.inference is HyperparameterInference.COLLAPSED:
        offset, training, prior = _shift(training, prior)
        before = None if previous is None else _shift_psi(np.atleast_2d(previous), -offset)
        found = train_collapsed(training, prior, settings, n_samples, generator, before)
        return _shift_psi(found, offset)
    best = fit_map(training, prior, settings, generator, previous)
    if n_samples is None:
        return best[None, :]
    return sample_posterior(training, prior, settings, best, n_samples, generator)


def best_log_posterior(
    training: TrainingSet, prior: HyperparameterPrior, settings: SurrogateSettings, samples: Array
) -> float:
    """The largest log p(y | psi) + log p(psi) among samples of psi, (S, 3D + 3).

    Up to a constant that does not depend on the coordinates of the inputs, so that it tells in
    which of two coordinate systems the surrogate describes the values better.
    """
    offset, training, prior = _shift(training, prior)
    if settings.inference is HyperparameterInference.COLLAPSED:
        posterior = CollapsedPosterior(training, prior)
        return max(posterior.at(psi[: posterior.n_covariance]).value for psi in samples)
    return max(_log_posterior(training, prior, psi) for psi in _shift_psi(samples, -offset))


def fit_map(
    training: TrainingSet,
    prior: HyperparameterPrior,
    settings: SurrogateSettings,
    generator: np.random.Generator,
    previous: Array | None = None,
) -> Array:
    """The maximum a posteriori psi, (3D + 3,); previous: earlier samples, (S0, 3D + 3)."""
    offset, training, prior = _shift(training, prior)
    candidates = _starting_points(training, prior, settings, generator, previous, offset)
    scores = np.array([_log_posterior(training, prior, psi) for psi in candidates])
    best_psi, best_score = candidates[int(np.argmax(scores))], float(scores.max())
    for index in np.argsort(-scores, kind="stable")[: settings.n_map_starts]:
        psi = _ascend(training, prior, settings, candidates[index])
        score = _log_posterior(training, prior, psi)
        if score > best_score:
            best_psi, best_score = psi, score
    return _shift_psi(best_psi, offset)


def _ascend(
    training: TrainingSet, prior: HyperparameterPrior, settings: SurrogateSettings, psi: Array
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
    settings: SurrogateSettings,
    start: Array,
    n_samples: int,
    generator: np.random.Generator,
    widths: Array | None = None,
) -> Array:
    """Slice samples of psi from start, (n_samples, 3D + 3); widths: first guess, (3D + 3,)."""
    offset, training, prior = _shift(training, prior)
    samples = slice_sample(
        HyperparameterPosterior(training, prior),
        prior.clip(_shift_psi(np.asarray(start, dtype=np.float64), -offset)),
        _units(prior) if widths is None else widths,
        SliceBox(prior.lower, prior.upper, settings.max_slice_widths),
        n_samples,
        settings.burn_in_sweeps,
        settings.thinning,
        generator,
    )
    return _shift_psi(samples.points, offset)


def _shift(
    training: TrainingSet, prior: HyperparameterPrior
) -> tuple[float, TrainingSet, HyperparameterPrior]:
    """The best value, and the problem with it subtracted."""
    offset = float(training.values.max())
    shifted = TrainingSet(training.inputs, training.values - offset, training.noise_variance)
    return offset, shifted, prior.shifted(offset)


def _shift_psi(psi: Array, offset: float) -> Array:
    """psi (or rows of it) with offset added to m_0."""
    shifted = psi.copy()
    shifted[..., Layout.of(psi).mean_maximum] += offset
    return shifted


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
    settings: SurrogateSettings,
    generator: np.random.Generator,
    previous: Array | None,
    offset: float,
) -> list[Array]:
    """Earlier samples, two guesses from the data, and random perturbations of them all."""
    guesses = [_guess(training, prior, settings, explained) for explained in (False, True)]
    if previous is not None:
        guesses.extend(_shift_psi(np.atleast_2d(previous), -offset))
    units = _units(prior)
    chosen = generator.integers(len(guesses), size=settings.n_map_candidates)
    steps = PERTURBATION * generator.standard_normal((settings.n_map_candidates, units.size))
    perturbed = [guesses[g] + step * units for g, step in zip(chosen, steps, strict=True)]
    return [prior.clip(psi) for psi in guesses + perturbed]


def _guess(
    training: TrainingSet,
    prior: HyperparameterPrior,
    settings: SurrogateSettings,
    explained: bool,
) -> Array:
    """The prior's location with the mean function, and sigma_f, guessed from the data.

    explained: sigma_f from what a separable quadratic leaves of the values, else from their SD.
    """
    layout = Layout(training.dimension)
    inputs, values = high_posterior_density_set(training, settings.hpd_fraction)
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
