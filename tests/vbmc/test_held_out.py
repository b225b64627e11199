"""Held-out residuals and what they say about the surrogate's error bars."""

import numpy as np
import pytest

from sparing.surrogate.gaussian_process import TrainingSet, condition
from sparing.vbmc.held_out import (
    LARGEST_RESIDUAL,
    CalibrationSettings,
    standardised_residuals,
    variance_inflation,
)

SETTINGS = CalibrationSettings()


def small_gp():
    generator = np.random.default_rng(1)
    inputs = generator.normal(size=(15, 2))
    values = -0.5 * np.sum(inputs**2, axis=1)
    psi = np.array([-0.2, 0.0, -0.3, np.log(0.05), 0.0, 0.0, 0.0, 0.1, 0.1])
    return condition(TrainingSet(inputs, values), psi[None, :])


def test_residuals_of_the_surrogate_s_own_draws_have_variance_one():
    gp = small_gp()
    generator = np.random.default_rng(2)
    points = generator.normal(size=(200, 2))
    mean, _ = gp.predict(points)
    covariance = gp.covariance(points, points)[0] + 0.05**2 * np.eye(200)
    squares = []
    for _ in range(50):
        values = generator.multivariate_normal(mean, covariance)
        z = standardised_residuals(gp, points, values)
        squares.append(np.mean(z**2))
    assert np.mean(squares) == pytest.approx(1.0, abs=0.1)
    doubled = mean + 2.0 * (generator.multivariate_normal(mean, covariance) - mean)
    assert np.mean(standardised_residuals(gp, points, doubled) ** 2) > 2.0


def test_outliers_are_bounded():
    gp = small_gp()
    points = np.zeros((1, 2))
    mean, _ = gp.predict(points)
    far = mean + 1e6
    assert standardised_residuals(gp, points, far)[0] == LARGEST_RESIDUAL


def test_inflation_is_a_mean_square_of_the_recent_draws_and_never_below_one():
    assert variance_inflation([], [], SETTINGS) == 1.0
    assert variance_inflation([10], [1.0], SETTINGS) == 1.0
    expected = (80.0 + SETTINGS.n_prior) / (20 + SETTINGS.n_prior)
    assert variance_inflation([20], [80.0], SETTINGS) == pytest.approx(expected)
    # What happened before the last twenty draws is forgotten.
    assert variance_inflation([50, 20], [1e6, 80.0], SETTINGS) == pytest.approx(expected)
