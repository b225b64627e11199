"""Importance weights: Pareto smoothing against ArviZ, and weights that cannot be trusted."""

import warnings

import numpy as np
import pytest

from sparing.vbmc.importance import log_sum, pareto_smooth


@pytest.mark.parametrize("shape", [0.4, 0.6, 0.9])
def test_pareto_shape_and_weights_agree_with_arviz(shape):
    pytest.importorskip("arviz")
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


def test_weights_of_zero_are_no_obstacle():
    """Draws where the surrogate excludes everything."""
    log_weights = np.random.default_rng(10).normal(size=500)
    log_weights[::3] = -np.inf
    smoothed, k = pareto_smooth(log_weights)
    assert k < 0.7
    assert log_sum(smoothed) == pytest.approx(log_sum(log_weights), abs=0.05)
    assert log_sum(np.full(4, -np.inf)) == -np.inf
