"""Mixtures fitted to weighted points: known mixtures, and moments that are those of the points."""

import numpy as np
import pytest
from scipy import stats

from sparing.variational.expectation_maximisation import _polynomials, _terms, fitted_mixture
from sparing.variational.normal_mixture import NormalMixture

TRUTH = NormalMixture.of_covariances(
    np.array([0.3, 0.7]),
    np.array([[-3.0, 0.0], [2.0, 1.0]]),
    np.array([[[1.0, 0.7], [0.7, 1.0]], [[0.5, 0.0], [0.0, 2.0]]]),
)


def fitted(points, n_components, n_steps=3, probabilities=None, seed=1):
    if probabilities is None:
        probabilities = np.full(len(points), 1.0 / len(points))
    generator = np.random.default_rng(seed)
    return fitted_mixture(points, probabilities, n_components, n_steps, generator)


def weighted_points(n=600, dimension=3, seed=2):
    """Points of a bent cloud, of very different probabilities."""
    generator = np.random.default_rng(seed)
    points = generator.normal(size=(n, dimension))
    points[:, 1] += 0.7 * points[:, 0] ** 2
    weights = generator.exponential(size=n) ** 2
    return points, weights / weights.sum()


def moments(points, probabilities):
    mean = probabilities @ points
    return mean, ((points - mean).T * probabilities) @ (points - mean)


@pytest.mark.parametrize("seed", range(4))
def test_a_known_mixture_is_found(seed):
    points = TRUTH.sample(20_000, np.random.default_rng(seed))
    found = fitted(points, 2, n_steps=20, seed=seed)
    order = np.argsort(found.means[:, 0])
    np.testing.assert_allclose(found.weights[order], TRUTH.weights, atol=0.015)
    np.testing.assert_allclose(found.means[order], TRUTH.means, atol=0.05)
    np.testing.assert_allclose(found.covariances[order], TRUTH.covariances, atol=0.08)


def test_probabilities_count_as_copies():
    """Draws of one component only, weighted to make the other mixture."""
    flat = NormalMixture(np.array([0.5, 0.5]), TRUTH.means, TRUTH.factors)
    points = flat.sample(20_000, np.random.default_rng(3))
    weights = np.exp(TRUTH.log_density(points) - flat.log_density(points))
    found = fitted(points, 2, n_steps=20, probabilities=weights / weights.sum())
    order = np.argsort(found.means[:, 0])
    np.testing.assert_allclose(found.weights[order], TRUTH.weights, atol=0.015)
    np.testing.assert_allclose(found.means[order], TRUTH.means, atol=0.05)


@pytest.mark.parametrize("n_components", [1, 4, 12])
@pytest.mark.parametrize("n_steps", [1, 3])
def test_the_mean_is_exactly_that_of_the_points_and_the_covariance_nearly(n_components, n_steps):
    points, probabilities = weighted_points()
    found = fitted(points + 1e3, n_components, n_steps, probabilities)
    mean, covariance = moments(points, probabilities)
    np.testing.assert_allclose(found.mean - 1e3, mean, atol=1e-9)
    scale = np.sqrt(np.diag(covariance))
    difference = (found.covariance - covariance) / np.outer(scale, scale)
    assert np.max(np.abs(difference)) < 0.03
    assert found.weights.sum() == pytest.approx(1.0)


def test_every_step_raises_the_likelihood():
    """But for what the components borrow from each other, which many points make negligible."""
    points = weighted_points(n=20_000)[0]
    values = [fitted(points, 6, n_steps).log_density(points).mean() for n_steps in range(1, 8)]
    assert np.all(np.diff(values) > 0.0)


def test_more_components_describe_what_is_bent():
    points = weighted_points(n=4000)[0]
    others = weighted_points(n=4000, seed=9)[0]
    values = [fitted(points, n).log_density(others).mean() for n in (1, 3, 12)]
    assert values[1] > values[0] + 0.05
    assert values[2] > values[1] + 0.02


def test_parts_far_apart_each_get_their_share():
    """However unequal: centres are drawn far from each other."""
    generator = np.random.default_rng(4)
    small, large = generator.normal(size=(60, 2)) + 50.0, generator.normal(size=(2940, 2))
    points = np.vstack([small, large])
    for seed in range(5):
        found = fitted(points, 10, seed=seed)
        far = found.means[:, 0] > 25.0
        assert found.weights[far].sum() == pytest.approx(0.02, abs=1e-6)


def test_few_points_borrow_their_shape_from_the_others():
    """Three points make no covariance in four dimensions; as a component they have one."""
    generator = np.random.default_rng(5)
    points = np.vstack([generator.normal(size=(400, 4)), 40.0 + 1e-3 * np.eye(4)[:3]])
    found = fitted(points, 2)
    small = int(np.argmin(found.weights))
    assert found.weights[small] == pytest.approx(3 / 403)
    sds = np.sqrt(np.linalg.eigvalsh(found.covariances[small]))
    assert np.all((sds > 0.4) & (sds < 1.2))
    assert np.all(np.linalg.eigvalsh(found.covariances[1 - small]) > 0.5)


def test_a_component_of_next_to_no_mass_is_dropped():
    points = np.concatenate([np.random.default_rng(6).normal(size=500), [1e6]])[:, None]
    probabilities = np.append(np.full(500, (1.0 - 1e-9) / 500), 1e-9)
    found = fitted(points, 2, probabilities=probabilities)
    assert found.n_components == 1
    np.testing.assert_allclose(found.means, 0.0, atol=0.2)


@pytest.mark.parametrize(
    "points",
    [np.ones((5, 2)), np.column_stack([np.arange(9.0), np.zeros(9)]), np.zeros((1, 3))],
    ids=["all equal", "on a line", "one point"],
)
def test_points_without_a_spread_still_make_a_mixture(points):
    found = fitted(points, 3)
    np.testing.assert_allclose(found.mean, points.mean(axis=0), atol=1e-12)
    assert np.all(np.isfinite(found.log_density(points)))


def test_coordinates_of_any_unit_give_the_same_mixture():
    points, probabilities = weighted_points()
    unit = np.array([1e-6, 1.0, 1e5])
    one = fitted(points, 4, probabilities=probabilities)
    other = fitted(points * unit, 4, probabilities=probabilities)
    np.testing.assert_allclose(other.means, one.means * unit, rtol=1e-4)
    found = other.log_density(points * unit) + np.log(unit).sum()
    np.testing.assert_allclose(found, one.log_density(points), atol=1e-3)


def test_the_same_generator_gives_the_same_mixture():
    points, probabilities = weighted_points()
    one, same, other = (
        fitted(points, 5, probabilities=probabilities, seed=seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.means, same.means)
    np.testing.assert_array_equal(one.factors, same.factors)
    assert not np.array_equal(one.means, other.means)


def test_one_component_is_the_normal_of_the_points():
    points = weighted_points(n=5000)[0]
    found = fitted(points, 1, n_steps=1)
    expected = stats.multivariate_normal(points.mean(axis=0), np.cov(points.T, bias=True))
    np.testing.assert_allclose(found.log_density(points), expected.logpdf(points), rtol=1e-4)


@pytest.mark.parametrize("dimension", [1, 2, 4])
def test_many_components_make_a_smooth_density(dimension):
    """Not a bump for each of them: the mode of a normal is its centre, the height there right."""
    points = np.random.default_rng(6).normal(size=(20_000, dimension))
    found = fitted(points, 40, n_steps=5)
    others = np.random.default_rng(7).normal(size=(2000, dimension))
    truth = -0.5 * (others**2).sum(axis=1) - 0.5 * dimension * np.log(2.0 * np.pi)
    assert np.std(found.log_density(others) - truth) < 0.06
    mode = found.mode()
    assert np.linalg.norm(mode) < 0.3 * np.sqrt(dimension)
    highest = -0.5 * dimension * np.log(2.0 * np.pi)
    assert found.log_density(mode[None])[0] == pytest.approx(highest, abs=0.12)


@pytest.mark.parametrize("dimension", [1, 4])
def test_log_densities_of_components_are_polynomials(dimension):
    generator = np.random.default_rng(7)
    factors = np.tril(generator.uniform(0.2, 1.0, size=(5, dimension, dimension)))
    means = generator.normal(size=(5, dimension))
    mixture = NormalMixture(np.array([0.1, 0.2, 0.3, 0.15, 0.25]), means, factors)
    points = 3.0 * generator.normal(size=(50, dimension))
    found = _terms(points) @ _polynomials(mixture)
    np.testing.assert_allclose(found, mixture.component_log_densities(points), rtol=1e-9, atol=1e-9)
