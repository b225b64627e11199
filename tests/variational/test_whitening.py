"""The whitening matrix makes q round."""

import numpy as np

from sparing.variational.whitening import anisotropy, whitening_matrix


def random_covariance(dimension: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    factor = generator.normal(size=(dimension, dimension)) * np.exp(
        generator.normal(size=dimension)
    )
    return factor @ factor.T + 1e-3 * np.eye(dimension)


def test_whitened_covariance_is_a_multiple_of_the_identity():
    covariance = random_covariance(5, 1)
    matrix = whitening_matrix(covariance, 0.0, 0.25)
    np.testing.assert_allclose(matrix @ covariance @ matrix.T, 0.25**2 * np.eye(5), atol=1e-10)


def test_small_correlations_are_left_alone():
    covariance = np.array([[4.0, 0.02], [0.02, 1.0]])  # correlation 0.01
    matrix = whitening_matrix(covariance, 0.05, 1.0)
    # A permutation of a diagonal matrix: one entry per row and column.
    assert np.sum(np.abs(matrix) > 1e-12) == 2


def test_anisotropy_is_the_ratio_of_eigenvalues():
    assert abs(anisotropy(np.diag([9.0, 1.0])) - 9.0) < 1e-12
    assert anisotropy(0.3 * np.eye(3)) < 1.0 + 1e-12


def test_a_singular_covariance_gives_a_finite_matrix():
    covariance = np.outer([1.0, 2.0], [1.0, 2.0])
    assert np.all(np.isfinite(whitening_matrix(covariance, 0.05, 0.25)))
