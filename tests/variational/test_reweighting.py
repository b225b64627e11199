"""One step of expectation maximisation against moments of weighted draws."""

import numpy as np
import pytest
from scipy import stats

from sparing.variational.mixture import GaussianMixture
from sparing.variational.reweighting import reweighted

ONE = GaussianMixture([1.0], [[0.5, -1.0]], [0.8], [1.0, 1.5])
THREE = GaussianMixture(
    [0.5, 0.3, 0.2], [[0.0, 0.0], [1.0, -0.5], [-0.8, 0.9]], [0.7, 0.5, 0.9], [1.0, 1.4]
)
N = 3000


def weighted_draws(mixture, seed=1):
    """Draws, and weights that prefer what lies to the right and near the first axis."""
    points = mixture.sample(N, np.random.default_rng(seed))
    weights = np.exp(0.4 * points[:, 0] - 0.2 * points[:, 1] ** 2)
    return points, weights / weights.sum()


def test_equal_weights_change_nothing():
    points = THREE.sample(200, np.random.default_rng(2))
    same = reweighted(THREE, points, np.full(200, 1.0 / 200))
    np.testing.assert_allclose(same.weights, THREE.weights, rtol=1e-12)
    np.testing.assert_allclose(same.means, THREE.means, atol=1e-12)
    np.testing.assert_allclose(same.covariance, THREE.covariance, rtol=1e-10)


def test_one_component_gets_the_moments_of_the_weighted_draws():
    """Its own, plus what the weights add to those of the same draws."""
    points, weights = weighted_draws(ONE)
    found = reweighted(ONE, points, weights)
    centre = ONE.means[0]

    def moments(w):
        offsets = points - centre
        return w @ offsets, w @ offsets**2

    (first, second), (first_before, second_before) = moments(weights), moments(np.full(N, 1 / N))
    shift = first - first_before
    variances = (ONE.scales[0] * ONE.lengths) ** 2 + second - second_before - shift**2
    np.testing.assert_allclose(found.means[0], centre + shift, rtol=1e-10)
    np.testing.assert_allclose((found.scales[0] * found.lengths) ** 2, variances, rtol=1e-10)
    assert found.means[0, 0] > centre[0] + 0.1  # the weights said so


def test_several_components_get_the_weights_and_means_of_their_responsibilities():
    points, weights = weighted_draws(THREE)
    found = reweighted(THREE, points, weights)
    densities = np.array(
        [
            w * stats.norm.pdf(points, mean, scale * THREE.lengths).prod(axis=1)
            for w, mean, scale in zip(THREE.weights, THREE.means, THREE.scales, strict=True)
        ]
    )
    responsibilities = densities / densities.sum(axis=0)  # (K, N)
    excess = (weights - 1.0 / N) * responsibilities
    mass = THREE.weights + excess.sum(axis=1)
    np.testing.assert_allclose(found.weights, mass / mass.sum(), rtol=1e-10)
    shift = (excess[:, :, None] * (points - THREE.means[:, None])).sum(axis=1) / mass[:, None]
    np.testing.assert_allclose(found.means, THREE.means + shift, rtol=1e-9, atol=1e-12)
    # Responsibilities add up to one: the whole mean moves exactly as the weights ask.
    expected = THREE.mean + weights @ points - points.mean(axis=0)
    np.testing.assert_allclose(found.mean, expected, rtol=1e-9, atol=1e-12)


APART = GaussianMixture([0.5, 0.5], [[-9.0], [9.0]], [1.0, 1.0], [1.0])


def test_a_component_without_weight_keeps_a_tenth_of_its_own():
    points = np.repeat([[-9.0], [9.0]], 50, axis=0)
    weights = np.repeat([0.02, 0.0], 50)
    found = reweighted(APART, points, weights)
    np.testing.assert_allclose(found.weights, np.array([1.0, 0.05]) / 1.05)


def test_a_component_whose_draws_agree_keeps_half_of_its_width():
    """All of its weight on one draw at its centre, though its draws are as wide as it is."""
    spread = np.array([-1.0, 0.0, 1.0, 0.0]) * np.sqrt(2.0)
    points = np.append(spread - 9.0, spread + 9.0)[:, None]
    weights = np.array([0.0, 0.5, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0])
    found = reweighted(APART, points, weights)
    np.testing.assert_allclose(found.means, APART.means, atol=1e-9)
    np.testing.assert_allclose(found.scales * found.lengths, 0.5)


def test_weights_that_are_not_numbers_leave_the_mixture_alone():
    points, weights = weighted_draws(THREE)
    weights[3] = np.nan
    assert reweighted(THREE, points, weights) is THREE


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_large_offset_costs_no_digits(offset):
    points, weights = weighted_draws(THREE)
    moved = GaussianMixture(THREE.weights, THREE.means + offset, THREE.scales, THREE.lengths)
    found = reweighted(moved, points + offset, weights)
    expected = reweighted(THREE, points, weights)
    np.testing.assert_allclose(found.means - offset, expected.means, atol=1e-8)
    np.testing.assert_allclose(found.scales, expected.scales, rtol=1e-6)
