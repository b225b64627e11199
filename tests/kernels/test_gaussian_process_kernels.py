"""The kernels of the Gaussian process against a plain NumPy reference."""

import numpy as np
import pytest

from sparing.kernels import gaussian_process as kernels


def reference_covariance(a, b, variance):
    """sigma_f^2 exp(-|a - b|^2 / 2) for scaled points (m, D), (n, D)."""
    return variance * np.exp(-0.5 * ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=-1))


def reference_gradient(z, variance, covariance, inverse, alpha):
    """1/2 tr[(alpha alpha^T - A^-1) dK] for log ell_1..D and log sigma_f."""
    weight = np.outer(alpha, alpha) - inverse
    squared = (z[:, :, None] - z[:, None, :]) ** 2
    lengths = [0.5 * np.sum(weight * covariance * squared_d) for squared_d in squared]
    return np.array([*lengths, 0.5 * np.sum(weight * 2.0 * covariance)])


@pytest.mark.parametrize(("dimension", "n"), [(1, 1), (1, 7), (3, 20), (10, 33)])
def test_gram_matrix(dimension, n):
    z = np.random.default_rng(n).normal(size=(dimension, n))
    gram = np.full((n, n), np.nan)
    kernels.fill_gram_matrix(z, 2.5, gram)
    np.testing.assert_allclose(gram, reference_covariance(z.T, z.T, 2.5), rtol=1e-13)
    np.testing.assert_array_equal(gram, gram.T)


@pytest.mark.parametrize(("dimension", "n", "m"), [(1, 1, 1), (2, 5, 9), (6, 31, 4)])
def test_cross_covariance(dimension, n, m):
    generator = np.random.default_rng(m)
    z, queries = generator.normal(size=(dimension, n)), generator.normal(size=(m, dimension))
    covariance = np.full((m, n), np.nan)
    kernels.fill_cross_covariance(queries, z, 0.3, covariance)
    np.testing.assert_allclose(covariance, reference_covariance(queries, z.T, 0.3), rtol=1e-13)


def test_far_points_have_no_covariance():
    covariance = np.full((1, 2), np.nan)
    kernels.fill_cross_covariance(np.zeros((1, 1)), np.array([[1e3, 1e200]]), 1.0, covariance)
    np.testing.assert_array_equal(covariance, 0.0)


@pytest.mark.parametrize(("dimension", "n"), [(1, 1), (2, 6), (5, 25)])
def test_gradient_of_the_likelihood(dimension, n):
    generator = np.random.default_rng(dimension)
    z, alpha = generator.normal(size=(dimension, n)), generator.normal(size=n)
    covariance = reference_covariance(z.T, z.T, 1.7)
    inverse = np.linalg.inv(covariance + 0.2 * np.eye(n))
    packed = np.triu(covariance, 1) + np.tril(inverse)
    gradient = np.full(dimension + 1, np.nan)
    kernels.fill_covariance_gradient(z, 1.7, packed, alpha, np.empty(n), gradient)
    expected = reference_gradient(z, 1.7, covariance, inverse, alpha)
    np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-12)
