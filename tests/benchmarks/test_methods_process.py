"""The flat-mean process: its fit, and its predictions against scikit-learn's."""

import numpy as np
import pytest
from benchmarks.quadrature.process import (
    GROWTH_TO_REFIT,
    LastFit,
    ScalePrior,
    condition_on,
    fit,
    with_values,
)
from scipy.optimize import check_grad
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from sparing.surrogate.training_set import TrainingSet

NOISE_SD = 0.05


def data(n=25):
    generator = np.random.default_rng(3)
    z = generator.standard_normal((n, 2))
    return z, 3.0 + np.sin(2 * z[:, 0]) + 0.5 * z[:, 1] ** 2


def prior(*, constant_mean=False):
    return ScalePrior(np.zeros(3), np.array([1.0, 0.8, 2.0]), NOISE_SD, constant_mean)


@pytest.mark.parametrize("constant_mean", [False, True])
def test_the_gradient_of_the_log_posterior(constant_mean):
    training = TrainingSet(*data())
    flat = prior(constant_mean=constant_mean)
    theta = np.array([0.2, -0.3, 0.4, 1.7])[: flat.n_fitted]
    error = check_grad(
        lambda t: flat.log_posterior(training, t)[0],
        lambda t: flat.log_posterior(training, t)[1],
        theta,
    )
    assert error < 1e-4


@pytest.mark.parametrize("constant_mean", [False, True])
def test_predictions_agree_with_another_library(constant_mean):
    z, values = data()
    flat = prior(constant_mean=constant_mean)
    theta = np.array([0.2, -0.3, 0.4, 1.7])[: flat.n_fitted]
    mean_0 = 1.7 if constant_mean else 0.0
    kernel = ConstantKernel(np.exp(0.8)) * RBF(np.exp([0.2, -0.3]))
    other = GaussianProcessRegressor(kernel, alpha=NOISE_SD**2, optimizer=None)
    other.fit(z, values - mean_0)
    queries = np.random.default_rng(4).standard_normal((7, 2))
    expected, sd = other.predict(queries, return_std=True)
    mean, variance = condition_on(flat, theta, z, values).predict(queries)
    np.testing.assert_allclose(mean, expected + mean_0, rtol=1e-8)
    np.testing.assert_allclose(variance, sd**2, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("constant_mean", [False, True])
def test_the_fit_is_a_maximum(constant_mean):
    training = TrainingSet(*data())
    flat = prior(constant_mean=constant_mean)
    theta = fit(flat, training)
    best, gradient = flat.log_posterior(training, theta)
    assert np.abs(gradient).max() < 0.05
    generator = np.random.default_rng(5)
    for step in 0.3 * generator.standard_normal((20, theta.size)):
        assert flat.log_posterior(training, theta + step)[0] < best


def test_other_values_on_the_same_points():
    z, values = data()
    flat = prior(constant_mean=True)
    theta = np.array([0.2, -0.3, 0.4, 1.7])
    moved = with_values(condition_on(flat, theta, z, np.zeros(len(z))), values)
    fresh = condition_on(flat, theta, z, values)
    np.testing.assert_allclose(moved.alpha, fresh.alpha, rtol=1e-9)
    np.testing.assert_array_equal(moved.training.values, values)


def test_a_fit_is_stale_when_points_or_the_scale_have_grown():
    last = LastFit(100, -5.0)
    enough = round(100 * (1 + GROWTH_TO_REFIT))
    assert not last.is_stale(enough - 1, -5.0)
    assert last.is_stale(enough, -5.0)
    assert last.is_stale(101, -3.9)
    assert not LastFit(1, -50.0).is_stale(3, 0.0)
