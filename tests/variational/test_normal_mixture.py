"""Mixtures of normals of any shape: against SciPy's densities, Monte Carlo and a grid."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from tests.variational.support import random_mixture

from sparing.variational.normal_mixture import BLOCK, NormalMixture, cholesky_factors, unchanged


def random_normals(n_components, dimension, seed):
    """Components that are neither round nor aligned with the axes."""
    generator = np.random.default_rng(seed)
    roots = generator.normal(size=(n_components, dimension, dimension))
    return NormalMixture.of_covariances(
        generator.dirichlet(np.full(n_components, 3.0)),
        1.5 * generator.normal(size=(n_components, dimension)),
        roots @ roots.transpose(0, 2, 1) + 0.05 * np.eye(dimension),
    )


def scipy_log_densities(mixture, x):
    """log w_k N_k(x), (N, K)."""
    terms = [
        np.log(w) + stats.multivariate_normal(mu, covariance).logpdf(x)
        for w, mu, covariance in zip(
            mixture.weights, mixture.means, mixture.covariances, strict=True
        )
    ]
    return np.stack(terms, axis=-1)


SHAPES = pytest.mark.parametrize(("n_components", "dimension"), [(1, 1), (3, 2), (5, 4)])


@SHAPES
def test_densities_are_those_of_scipy(n_components, dimension):
    mixture = random_normals(n_components, dimension, 1)
    x = 3.0 * np.random.default_rng(2).normal(size=(40, dimension))
    expected = scipy_log_densities(mixture, x)
    np.testing.assert_allclose(mixture.component_log_densities(x), expected, rtol=1e-9)
    np.testing.assert_allclose(mixture.log_density(x), logsumexp(expected, axis=1), rtol=1e-9)


def test_distances_are_in_units_of_each_component():
    mixture = random_normals(3, 2, 3)
    x = np.random.default_rng(4).normal(size=(10, 2))
    offsets = x[:, None] - mixture.means
    precisions = np.linalg.inv(mixture.covariances)
    expected = np.einsum("nki,kij,nkj->nk", offsets, precisions, offsets)
    np.testing.assert_allclose(mixture.squared_distances(x), expected, rtol=1e-9)


def test_many_points_are_taken_in_blocks_that_nobody_sees():
    mixture = random_normals(3, 2, 5)
    x = np.random.default_rng(6).normal(size=(BLOCK + 7, 2))
    halves = [mixture.log_density(part) for part in (x[:9], x[9:])]
    np.testing.assert_allclose(mixture.log_density(x), np.concatenate(halves), rtol=1e-12)
    assert mixture.log_density(x[:0]).shape == (0,)


def test_far_from_the_origin_nothing_is_lost():
    """Means of a million and sds of a thousandth: distances are taken from the mixture's mean."""
    near, shift = random_normals(3, 2, 7), np.array([1e6, -1e6])
    small = NormalMixture(near.weights, 1e-3 * near.means, 1e-3 * near.factors)
    x = small.sample(20, np.random.default_rng(8))
    far = NormalMixture(small.weights, small.means + shift, small.factors)
    np.testing.assert_allclose(far.log_density(x + shift), small.log_density(x), atol=1e-4)


def test_in_the_tails_the_density_is_zero_at_worst():
    mixture = random_normals(2, 2, 9)
    assert -1e9 < mixture.log_density(np.array([[1e3, 0.0]]))[0] < -1e3
    assert mixture.log_density(np.array([[0.0, 1e200]]))[0] == -np.inf


@SHAPES
def test_moments_are_those_of_draws(n_components, dimension):
    mixture = random_normals(n_components, dimension, 10)
    draws = mixture.sample(200_000, np.random.default_rng(11))
    error = np.sqrt(np.diag(mixture.covariance) / len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - mixture.mean) < 4.5 * error)
    scale = np.sqrt(np.diag(mixture.covariance))
    found = np.cov(draws.T) / np.outer(scale, scale)
    np.testing.assert_allclose(found, mixture.covariance / np.outer(scale, scale), atol=0.02)


def test_draws_are_distributed_as_the_density_says():
    """Along a line through two of the components, where the marginal is known."""
    mixture, direction = random_normals(3, 2, 12), np.array([0.8, -0.6])
    draws = mixture.sample(20_000, np.random.default_rng(13)) @ direction
    means, sds = mixture.means @ direction, np.sqrt(direction @ mixture.covariances @ direction)

    def distribution(x):
        return stats.norm.cdf(x[:, None], means, sds) @ mixture.weights

    assert stats.kstest(draws, distribution).pvalue > 0.01


def test_a_placed_draw_belongs_to_its_component():
    mixture = random_normals(3, 2, 14)
    component, z = np.array([2, 0, 2]), np.random.default_rng(15).normal(size=(3, 2))
    placed = mixture.placed(component, z)
    expected = [
        mixture.means[k] + mixture.factors[k] @ row for k, row in zip(component, z, strict=True)
    ]
    np.testing.assert_allclose(placed, expected)
    distances = mixture.squared_distances(placed)[np.arange(3), component]
    np.testing.assert_allclose(distances, (z**2).sum(axis=1))


@pytest.mark.parametrize("seed", range(4))
def test_the_mode_is_the_highest_point_of_a_grid(seed):
    """With the last seed it is where two components cross, far from the means of both."""
    mixture = random_normals(4, 2, seed)
    sd = np.sqrt(np.diag(mixture.covariance))
    ends = zip(mixture.mean - 4.0 * sd, mixture.mean + 4.0 * sd, strict=True)
    axes = [np.linspace(*each, 301) for each in ends]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    values = mixture.log_density(grid)
    best = grid[np.argmax(values)]
    assert mixture.log_density(mixture.mode()[None, :])[0] >= values.max()
    assert np.all(np.abs(mixture.mode() - best) <= [axis[1] - axis[0] for axis in axes])


def test_the_mode_of_one_component_is_its_mean():
    mixture = random_normals(1, 4, 1)
    np.testing.assert_allclose(mixture.mode(), mixture.means[0], rtol=1e-12)


def test_the_image_is_the_distribution_of_the_mapped_draws():
    mixture = random_normals(3, 3, 16)
    matrix, offset = np.array([[1.0, -0.5, 0.2], [0.0, 2.0, 1.0]]), np.array([3.0, -1.0])
    image = mixture.image(matrix, offset)
    assert (image.n_components, image.dimension) == (3, 2)
    np.testing.assert_allclose(image.mean, matrix @ mixture.mean + offset)
    np.testing.assert_allclose(image.covariance, matrix @ mixture.covariance @ matrix.T)
    draws = mixture.sample(4000, np.random.default_rng(17)) @ matrix.T + offset
    others = image.sample(4000, np.random.default_rng(18))
    for column, other in zip(draws.T, others.T, strict=True):
        assert stats.ks_2samp(column, other).pvalue > 0.01


def test_an_invertible_map_changes_the_density_by_its_determinant():
    mixture = random_normals(3, 2, 19)
    matrix, offset = np.array([[1.5, -0.4], [0.3, 0.8]]), np.array([0.5, 2.0])
    x = np.random.default_rng(20).normal(size=(15, 2))
    found = mixture.image(matrix, offset).log_density(x @ matrix.T + offset)
    expected = mixture.log_density(x) - np.log(np.linalg.det(matrix))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_q_is_unchanged_as_a_mixture_of_any_shape():
    q = random_mixture(4, 3, 21)
    same = unchanged(q)
    x = np.random.default_rng(22).normal(size=(20, 3))
    np.testing.assert_allclose(same.log_density(x), q.log_density(x), rtol=1e-9)
    np.testing.assert_allclose(same.mean, q.mean)
    np.testing.assert_allclose(same.covariance, q.covariance)
    component, z = np.array([3, 1]), np.ones((2, 3))
    np.testing.assert_allclose(same.placed(component, z), q.placed(component, z))
    again = unchanged(same)
    np.testing.assert_allclose(again.log_density(x), q.log_density(x), rtol=1e-9)


def test_a_projection_of_q_has_the_marginal_s_density():
    q = random_mixture(3, 3, 23)
    image = q.image(np.eye(3)[[2, 0]], np.zeros(2))
    draws = q.sample(200_000, np.random.default_rng(24))[:, [2, 0]]
    np.testing.assert_allclose(image.covariance, np.cov(draws.T), atol=0.03)
    x = np.zeros((1, 2))
    sds = q.scales[:, None] * q.lengths[[2, 0]]
    terms = stats.norm.logpdf(x, q.means[:, [2, 0]], sds).sum(axis=1)
    assert image.log_density(x)[0] == pytest.approx(logsumexp(terms, b=q.weights))


def test_a_union_is_the_average_of_its_parts():
    parts = [random_normals(k, 2, 25 + k) for k in (1, 4)]
    union = NormalMixture.union(parts)
    assert union.weights.sum() == pytest.approx(1.0)
    x = np.random.default_rng(26).normal(size=(20, 2))
    expected = np.mean([np.exp(part.log_density(x)) for part in parts], axis=0)
    np.testing.assert_allclose(np.exp(union.log_density(x)), expected, rtol=1e-9)


def test_weights_and_covariances_may_be_given_as_they_are():
    covariances = np.array([[[2.0, 0.6], [0.6, 1.0]], [[1.0, 0.0], [0.0, 4.0]]])
    mixture = NormalMixture.of_covariances(np.array([3.0, 1.0]), np.zeros((2, 2)), covariances)
    np.testing.assert_allclose(mixture.weights, [0.75, 0.25])
    np.testing.assert_allclose(mixture.covariances, covariances)
    np.testing.assert_array_equal(mixture.factors[:, 0, 1], 0.0)  # lower
    np.testing.assert_allclose(cholesky_factors(covariances), mixture.factors)
