"""The collapsed posterior against the dense formula, scipy, and quadrature of the mean function."""

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.stats import multivariate_normal
from tests.surrogate.support import HARD, dense_covariance, training_set, wide_prior

from sparing.surrogate import collapsed
from sparing.surrogate.collapsed import COEFFICIENT_RANGES, CollapsedPosterior
from sparing.surrogate.empirical_prior import EmpiricalPrior
from sparing.surrogate.hyperparameters import HyperparameterPrior
from sparing.surrogate.layout import Layout
from sparing.surrogate.training_set import TrainingSet


def shifted(training, noise_variance=0.0):
    """The training set with a maximum of zero."""
    noise = np.full(training.n_points, noise_variance) * np.arange(1, training.n_points + 1)
    return TrainingSet(training.inputs, training.values - training.values.max(), noise)


def low_prior(training):
    """The maximum of the mean function held two nats below the best value."""
    prior = wide_prior(training)
    upper = prior.upper.copy()
    upper[Layout(training.dimension).mean_maximum] = -2.0
    location = np.minimum(prior.location, upper)
    return HyperparameterPrior(location, prior.scale, prior.lower, upper)


def thetas(dimension, count, seed=0):
    """Log length scales, output scale and noise SD of ordinary size."""
    generator = np.random.default_rng(seed)
    centre = np.append(np.zeros(dimension + 1), np.log(0.1))
    return centre + 0.4 * generator.normal(size=(count, dimension + 2))


def within(prior, mean):
    margin = 1e-3
    lower, upper = prior.lower[-mean.size :], prior.upper[-mean.size :]
    return ((mean > lower + margin) & (mean < upper - margin)).all()


SIZES = [(1, 8), (2, 20), (4, 40)]


@pytest.mark.parametrize("noise_variance", [0.0, 0.01])
@pytest.mark.parametrize(("dimension", "n"), SIZES)
def test_likelihood_is_that_of_a_process_with_the_features_in_its_covariance(
    dimension, n, noise_variance
):
    training = shifted(training_set(dimension, n), noise_variance)
    prior = wide_prior(training)
    posterior = CollapsedPosterior(training, prior)
    coefficient_sd = COEFFICIENT_RANGES * np.ptp(training.values)
    differences = []
    for theta in thetas(dimension, 10):
        found = posterior.at(theta)
        assert within(prior, found.mean)
        covariance = dense_covariance(training, theta, coefficient_sd)
        dense = multivariate_normal.logpdf(training.values, cov=covariance)
        differences.append(found.value - dense - posterior.prior.log_density(theta))
    np.testing.assert_allclose(differences, differences[0], atol=1e-6)


def bounded_reference(training, prior, theta):
    """-F - log|A| / 2 - log|G| / 2 by plain NumPy, F by scipy's bounded least squares."""
    dimension = training.dimension
    scaled = training.inputs / np.exp(theta[:dimension])
    squared = ((scaled[:, None, :] - scaled) ** 2).sum(axis=2)
    covariance = np.exp(2.0 * theta[dimension] - 0.5 * squared)
    covariance += np.diag(np.exp(2.0 * theta[-1]) + training.noise_variance)
    root = np.linalg.cholesky(covariance)
    centre, unit = training.inputs.mean(axis=0), np.ptp(training.inputs, axis=0)
    sd = COEFFICIENT_RANGES * np.ptp(training.values)

    def residuals(p):
        location, widths = p[1 : dimension + 1], np.exp(p[dimension + 1 :])
        mean = p[0] - 0.5 * (((training.inputs - location) / widths) ** 2).sum(axis=1)
        mu, tau = (location - centre) / unit, (unit / widths) ** 2
        coefficients = np.concatenate([[p[0] - 0.5 * tau @ mu**2], tau * mu, -0.5 * tau])
        return np.append(np.linalg.solve(root, training.values - mean), coefficients / sd)

    lower, upper = prior.lower[dimension + 2 :], prior.upper[dimension + 2 :]
    starts = [np.concatenate([[-1.0], centre, np.log(w * unit)]) for w in (0.3, 1.0)]
    fits = [
        least_squares(
            residuals,
            np.clip(start, lower + 1e-3, upper - 1e-3),
            bounds=(lower, upper),
            x_scale="jac",
            ftol=1e-14,
            xtol=1e-14,
            gtol=1e-14,
            max_nfev=500,
        )
        for start in starts
    ]
    u = (training.inputs - centre) / unit
    features = np.linalg.solve(root, np.column_stack([np.ones(len(u)), u, u**2]))
    precision = features.T @ features + np.eye(features.shape[1]) / sd**2
    log_determinants = np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(precision)[1]
    return -min(fit.cost for fit in fits) - 0.5 * log_determinants


def active_cases():
    """A maximum held down, a mean function that cannot open upwards, and both."""
    peaked, hollow = shifted(training_set(2, 20)), shifted(HARD["a hollow"])
    default = EmpiricalPrior().of(hollow)
    return {
        "low": (peaked, low_prior(peaked)),
        "hollow": (hollow, default),
        "low and hollow": (hollow, low_prior(hollow)),
    }


ACTIVE = active_cases()


@pytest.mark.slow
@pytest.mark.parametrize("case", ACTIVE)
def test_bounded_fit_agrees_with_scipy(case):
    training, prior = ACTIVE[case]
    posterior = CollapsedPosterior(training, prior)
    for theta in thetas(2, 4):
        found = posterior.at(theta)
        assert not within(prior, found.mean)
        expected = bounded_reference(training, prior, theta) + posterior.prior.log_density(theta)
        assert found.value == pytest.approx(expected, abs=2e-4)


def finite_differences(posterior, theta, step=1e-4):
    shifts = step * np.eye(theta.size)
    return np.array(
        [
            (posterior.at(theta + s).value - posterior.at(theta - s).value) / (2 * step)
            for s in shifts
        ]
    )


@pytest.mark.parametrize("noise_variance", [0.0, 0.01])
@pytest.mark.parametrize(("dimension", "n"), SIZES)
def test_gradient_by_finite_differences(dimension, n, noise_variance):
    training = shifted(training_set(dimension, n), noise_variance)
    posterior = CollapsedPosterior(training, wide_prior(training))
    for theta in thetas(dimension, 3, seed=1):
        found, gradient = posterior.with_gradient(theta)
        assert found.value == posterior.at(theta).value
        expected = finite_differences(posterior, theta)
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", ACTIVE)
def test_gradient_by_finite_differences_at_active_bounds(case):
    training, prior = ACTIVE[case]
    posterior = CollapsedPosterior(training, prior)
    for theta in thetas(2, 3, seed=1):
        found, gradient = posterior.with_gradient(theta)
        assert not within(prior, found.mean)
        expected = finite_differences(posterior, theta, step=1e-3)
        np.testing.assert_allclose(gradient, expected, rtol=2e-3, atol=2e-3)


def test_only_the_prior_of_theta_enters():
    training = shifted(training_set(2, 20))
    prior = wide_prior(training)
    posterior = CollapsedPosterior(training, prior)
    assert posterior.prior.location.size == posterior.n_theta == 4
    theta = thetas(2, 1)[0]
    moved = HyperparameterPrior(prior.location, 2.0 * prior.scale, prior.lower, prior.upper)
    other = CollapsedPosterior(training, moved)
    difference = other.at(theta).value - posterior.at(theta).value
    first = np.arange(4)
    expected = moved.of_entries(first).log_density(theta)
    expected -= prior.of_entries(first).log_density(theta)
    assert difference == pytest.approx(expected, abs=1e-9)


def mean_moments(training, prior, theta):
    """Mean and SD of [m_0, x_m, log omega] given theta in one dimension, by quadrature.

    Coefficients of the quadratic are normal, cut off where the mean function leaves its bounds.
    """
    covariance = np.exp(
        2.0 * theta[1] - 0.5 * ((training.inputs - training.inputs.T) / np.exp(theta[0])) ** 2
    ) + np.exp(2.0 * theta[2]) * np.eye(training.n_points)
    centre, unit = training.inputs.mean(), np.ptp(training.inputs)
    u = ((training.inputs - centre) / unit)[:, 0]
    features = np.column_stack([np.ones(u.size), u, u**2])
    sd = COEFFICIENT_RANGES * np.ptp(training.values)
    precision = features.T @ np.linalg.solve(covariance, features) + np.eye(3) / sd**2
    best = np.linalg.solve(precision, features.T @ np.linalg.solve(covariance, training.values))
    axis = np.linspace(-6.0, 6.0, 121)
    noise = np.stack(np.meshgrid(axis, axis, axis, indexing="ij")).reshape(3, -1)
    spread = np.linalg.cholesky(np.linalg.inv(precision)) @ noise
    constant, linear, quadratic = best[:, None] + spread
    curved = np.where(quadratic < 0.0, quadratic, np.nan)
    mu = -0.5 * linear / curved
    p = np.array(
        [
            constant - curved * mu**2,
            centre + unit * mu,
            np.log(unit) - 0.5 * np.log(-2.0 * curved),
        ]
    )
    inside = ((p >= prior.lower[3:, None]) & (p <= prior.upper[3:, None])).all(axis=0)
    p, weights = p[:, inside], np.exp(-0.5 * (noise[:, inside] ** 2).sum(axis=0))
    mean = p @ weights / weights.sum()
    return mean, np.sqrt((p - mean[:, None]) ** 2 @ weights / weights.sum())


@pytest.mark.slow
@pytest.mark.parametrize("attempts", [0, 200])
@pytest.mark.parametrize("highest", [0.0, 4.0])
def test_draws_of_the_mean_function_follow_its_posterior(highest, attempts, monkeypatch):
    """By rejection, and without it after a walk from the best one."""
    monkeypatch.setattr(collapsed, "MEAN_ATTEMPTS", attempts)
    training = shifted(training_set(1, 8))
    prior = wide_prior(training)
    lower, upper = prior.lower.copy(), prior.upper.copy()
    lower[3:], upper[3:] = [-5.0, -2.0, np.log(0.3)], [highest, 2.0, np.log(4.0)]
    location = np.clip(prior.location, lower, upper)
    prior = HyperparameterPrior(location, prior.scale, lower, upper)
    posterior = CollapsedPosterior(training, prior)
    theta = np.array([-0.2, -0.3, np.log(0.3)])
    mean, sd = mean_moments(training, prior, theta)
    found, generator = posterior.at(theta), np.random.default_rng(0)
    draws = np.array([posterior.draw_mean(found, generator) for _ in range(4000)])
    # A walk this short is a little narrower.
    tolerance = 0.08 if attempts else 0.25
    np.testing.assert_allclose((draws.mean(axis=0) - mean) / sd, 0.0, atol=tolerance)
    np.testing.assert_allclose(draws.std(axis=0) / sd, 1.0, atol=tolerance)


def test_draws_repeat_and_leave_what_was_found_alone():
    training = shifted(training_set(2, 20))
    posterior = CollapsedPosterior(training, wide_prior(training))
    found = posterior.at(thetas(2, 1)[0])
    before = found.mean.copy()
    one, other = (posterior.draw_mean(found, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(found.mean, before)
    assert not np.allclose(one, before)


@pytest.mark.parametrize("case", HARD)
def test_hard_data_gives_finite_values_gradients_and_draws(case):
    training = shifted(HARD[case])
    prior = EmpiricalPrior().of(training)
    posterior = CollapsedPosterior(training, prior)
    corners = prior.of_entries(np.arange(4))
    for theta in (corners.location, corners.lower, corners.upper):
        found, gradient = posterior.with_gradient(theta)
        assert np.isfinite(found.value)
        assert np.isfinite(gradient).all()
        draw = posterior.draw_mean(found, np.random.default_rng(0))
        assert ((draw >= prior.lower[4:]) & (draw <= prior.upper[4:])).all()


@pytest.mark.parametrize(("dimension", "n"), SIZES)
def test_correlation_with_the_nearest_point(dimension, n):
    training = shifted(training_set(dimension, n))
    posterior = CollapsedPosterior(training, wide_prior(training))
    (theta,) = thetas(dimension, 1)
    theta[dimension] = 0.0  # sigma_f = 1: covariances are correlations
    correlations = dense_covariance(training, theta, sd=0.0) * (1.0 - np.eye(n))
    expected = correlations.max(axis=1).mean()
    assert posterior.correlation_with_nearest(theta) == pytest.approx(expected, abs=1e-12)


def test_a_single_point_has_no_neighbour_to_be_apart_from():
    training = TrainingSet(np.zeros((1, 2)), np.zeros(1))
    posterior = CollapsedPosterior(training, wide_prior(training))
    assert posterior.correlation_with_nearest(np.zeros(4)) == 1.0
