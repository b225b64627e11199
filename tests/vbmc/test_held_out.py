"""Held-out residuals and what they say about the surrogate's error bars."""

import numpy as np
import pytest

from sparing.surrogate.gaussian_process import TrainingSet, condition
from sparing.vbmc.held_out import (
    LARGEST_RESIDUAL,
    HeldOutCalibration,
    TrackRecord,
    standardised_residuals,
)


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


def inflation(n_held_out, squares, unproven_variance=1.0):
    record = TrackRecord(n_held_out=tuple(n_held_out), squares=tuple(squares))
    return HeldOutCalibration().variance_inflation(record, unproven_variance)


def test_inflation_is_a_mean_square_of_the_recent_draws_and_never_below_one():
    n_prior = HeldOutCalibration().n_prior
    assert inflation([], []) == 1.0
    assert inflation([10], [1.0]) == 1.0
    expected = (80.0 + n_prior) / (20 + n_prior)
    assert inflation([20], [80.0]) == pytest.approx(expected)
    # What happened before the last twenty draws is forgotten.
    assert inflation([50, 20], [1e6, 80.0]) == pytest.approx(expected)
    assert inflation([50, 19], [1e6, 80.0]) > 1e4


def test_what_was_not_drawn_is_not_believed_to_be_right():
    assert inflation([], [], unproven_variance=4.0) == 4.0
    assert inflation([12], [12.0], unproven_variance=4.0) == pytest.approx((12 + 16) / 16)


def test_the_track_record_teaches_two_inflations_and_the_last_estimates():
    strategy = HeldOutCalibration(n_prior=4.0, unproven_variance=4.0, n_estimates=3)
    record = TrackRecord(
        n_held_out=(0, 0, 2, 2, 2),
        squares=(0.0, 0.0, 10.0, 10.0, 10.0),
        estimates=(-9.0, -5.0, -4.0, -3.9, -3.8),
        sds=(np.inf, np.inf, 1.5, 0.9, 0.1),
        n_evaluations=(10, 20, 30, 40, 50),
    )
    found = strategy.calibration(record)
    assert found.inflation == pytest.approx((30 + 4) / 10)
    assert found.error_inflation == pytest.approx((30 + 16) / 10)
    assert found.recent == (-3.9, -3.8)  # the one before did not know itself


@pytest.mark.parametrize(
    ("n_evaluations", "n_recent"),
    [
        ((5, 10, 15, 20, 25), 3),  # at least as many as these
        ((70, 76, 82, 88, 94), 4),  # 94 less a quarter is 70.5
        ((100, 103, 106, 109, 112), 5),
        ((10, 20), 2),
        ((), 0),
    ],
)
def test_estimates_of_the_last_quarter_of_the_evaluations_count(n_evaluations, n_recent):
    estimates = tuple(float(n) for n in n_evaluations)
    sds = (0.1,) * len(estimates)
    record = TrackRecord(estimates=estimates, sds=sds, n_evaluations=n_evaluations)
    found = HeldOutCalibration().calibration(record).recent
    assert found == estimates[len(estimates) - n_recent :]


def test_known_noise_is_no_error_of_the_surrogate():
    gp = small_gp()
    points = np.zeros((1, 2))
    mean, variance = gp.predict(points)
    z = standardised_residuals(gp, points, mean + 1.0, np.array([3.0]))
    expected = 1.0 / np.sqrt(variance + gp.noise_variance + 3.0)
    np.testing.assert_allclose(z, expected)
