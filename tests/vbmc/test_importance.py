"""Importance weights: Pareto smoothing against ArviZ, the corrected mixture against moments."""

import warnings

import numpy as np
import pytest

from sparing.variational.divergence import gaussianised_symmetric_kl
from sparing.variational.mixture import GaussianMixture
from sparing.vbmc.importance import WeightedDraws, corrected_mixture, pareto_smooth

Q = GaussianMixture(
    np.array([0.5, 0.3, 0.2]),
    np.array([[0.0, 0.0], [1.0, -0.5], [-0.8, 0.9]]),
    np.array([0.7, 0.5, 0.9]),
    np.array([1.0, 1.4]),
)


def draws_for(mixture, log_target, n=4000, seed=3):
    points = mixture.sample(n, np.random.default_rng(seed))
    log_weights = (log_target(points) - mixture.log_density(points))[None, :]
    return WeightedDraws(points, log_weights, log_weights)


def normal_target(mean, covariance):
    factor = np.linalg.cholesky(covariance)

    def log_density(x):
        z = np.linalg.solve(factor, (x - mean).T)
        return -0.5 * np.sum(z * z, axis=0)

    return log_density


def test_a_mixture_that_is_right_stays_exactly_as_it_is():
    corrected = corrected_mixture(Q, draws_for(Q, Q.log_density, n=200))
    np.testing.assert_allclose(corrected.mean, Q.mean, atol=1e-12)
    np.testing.assert_allclose(corrected.covariance, Q.covariance, rtol=1e-9)


MEAN, COVARIANCE = np.array([0.3, -0.1]), np.array([[0.9, 0.35], [0.35, 1.5]])


def test_one_step_gives_the_mean_of_the_weighted_draws():
    """Its exact value: q's mean, and what the weights add to that of the same draws."""
    draws = draws_for(Q, normal_target(MEAN, COVARIANCE))
    weights = np.exp(pareto_smooth(draws.log_weights[0])[0])
    weights /= weights.sum()
    expected = Q.mean + weights @ draws.points - draws.points.mean(axis=0)
    np.testing.assert_allclose(corrected_mixture(Q, draws).mean, expected, atol=1e-12)
    np.testing.assert_allclose(expected, MEAN, atol=0.05)


def test_repeated_steps_lead_to_the_moments_of_the_target():
    target = normal_target(MEAN, COVARIANCE)
    errors = [gaussianised_symmetric_kl(Q.mean, Q.covariance, MEAN, COVARIANCE)]
    mixture = Q
    for seed in range(8):
        mixture = corrected_mixture(mixture, draws_for(mixture, target, seed=seed))
        errors.append(gaussianised_symmetric_kl(mixture.mean, mixture.covariance, MEAN, COVARIANCE))
    assert errors[1] < 0.5 * errors[0]
    assert errors[-1] < 0.05 * errors[0]


def test_heavy_tailed_weights_leave_the_mixture_alone():
    wide = normal_target(np.zeros(2), 100.0 * np.eye(2))
    assert corrected_mixture(Q, draws_for(Q, wide)) is Q


def test_one_vanishing_component_keeps_the_mixture_valid():
    lonely = GaussianMixture(
        np.array([0.98, 0.02]), np.array([[0.0], [4.0]]), np.array([1.0, 0.2]), np.ones(1)
    )
    target = normal_target(np.zeros(1), np.eye(1))
    corrected = corrected_mixture(lonely, draws_for(lonely, target))
    assert corrected.weights[1] == pytest.approx(0.002, rel=0.05)
    assert abs(corrected.mean[0]) < 0.03


@pytest.mark.parametrize("shape", [0.4, 0.6, 0.9])
def test_pareto_shape_and_weights_agree_with_arviz(shape):
    generator = np.random.default_rng(6)
    log_weights = shape * generator.exponential(size=4000)
    smoothed, k = pareto_smooth(log_weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from arviz_stats.base import array_stats
        except ImportError:
            from arviz import psislw

            expected, expected_k = psislw(log_weights.copy())
        else:  # ArviZ 1.x takes log likelihoods, whose negatives are the log weights
            expected, expected_k = array_stats.psislw(-log_weights)
    assert k == pytest.approx(float(expected_k), abs=0.02)
    normalised = smoothed - np.log(np.sum(np.exp(smoothed)))
    # ArviZ 1.x estimates shapes lower by 0.01, which moves the largest weight by 2 %.
    np.testing.assert_allclose(normalised, np.asarray(expected), atol=0.03)


def test_equal_weights_have_nothing_to_smooth():
    log_weights = np.full(1000, -3.0)
    smoothed, k = pareto_smooth(log_weights)
    np.testing.assert_array_equal(smoothed, log_weights)
    assert k == -np.inf


def test_a_heavy_tail_counts_only_where_it_holds_weight():
    generator = np.random.default_rng(9)
    tail = generator.pareto(1.1, size=2000)  # shape 0.9
    for share, refused in ((0.005, False), (0.5, True)):
        weights = 1.0 + share * tail / tail.mean()
        k = pareto_smooth(np.log(weights))[1]
        assert (k > 0.7) is refused


def test_absurd_weights_are_refused_without_a_warning():
    generator = np.random.default_rng(8)
    log_weights = np.concatenate([np.full(1500, -700.0), generator.normal(size=3) * 1e-3])
    log_weights[:40] += generator.normal(size=40) * 1e-8
    _, k = pareto_smooth(log_weights)
    assert k > 0.7
    _, k = pareto_smooth(generator.normal(size=500) * 300.0)
    assert k > 0.7
