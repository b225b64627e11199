"""Evenly spread points: one per slice, and integrals closer than Monte Carlo's."""

import numpy as np
import pytest
from scipy.special import ndtri

from sparing.numerics.quasi_random import latin_hypercube, scrambled_halton


@pytest.mark.parametrize(("n", "dimension"), [(1, 3), (7, 1), (50, 4)])
def test_a_latin_hypercube_has_one_point_in_every_slice(n, dimension):
    points = latin_hypercube(n, dimension, np.random.default_rng(0))
    assert points.shape == (n, dimension)
    for column in points.T:
        np.testing.assert_array_equal(np.sort(np.floor(n * column)), np.arange(n))


def test_coordinates_of_a_latin_hypercube_are_permuted_independently_and_repeat():
    one, other, different = (
        latin_hypercube(2000, 3, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, other)
    assert not np.array_equal(one, different)
    assert np.max(np.abs(np.corrcoef(one.T) - np.eye(3))) < 0.1
    offsets = (2000 * one) % 1.0  # where in its slice a point lies is uniform
    np.testing.assert_allclose(offsets.mean(axis=0), 0.5, atol=0.03)


DIMENSIONS = [1, 2, 3, 5, 7, 11, 16]
N_POINTS = 2**15


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_sequence_is_deterministic_and_fills_the_unit_cube(dimension):
    points = scrambled_halton(N_POINTS, dimension)
    assert points.shape == (N_POINTS, dimension)
    assert ((points >= 0.0) & (points < 1.0)).all()
    np.testing.assert_array_equal(points[:100], scrambled_halton(100, dimension))
    for column in points.T:
        counts = np.histogram(column, bins=64, range=(0.0, 1.0))[0]
        np.testing.assert_allclose(counts, N_POINTS / 64, rtol=0.05)


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_sums_of_smooth_functions_are_integrated_better_than_by_monte_carlo(dimension):
    points = scrambled_halton(N_POINTS, dimension)
    waves = np.sin(2.0 * points) + np.exp(points) + points**3
    exact = 0.5 * (1.0 - np.cos(2.0)) + np.e - 1.0 + 0.25
    monte_carlo = waves.sum(axis=1).std() / np.sqrt(N_POINTS)
    assert abs(waves.sum(axis=1).mean() - dimension * exact) < 0.2 * monte_carlo


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_normal_draws_have_covariances_closer_than_monte_carlo(dimension):
    """What moments of a posterior are computed from; the SD of a covariance by Monte Carlo is
    1 / sqrt(n), of a variance sqrt(2 / n)."""
    normals = ndtri(scrambled_halton(N_POINTS, dimension))
    error = np.abs(np.atleast_2d(np.cov(normals.T)) - np.eye(dimension))
    assert np.max(error) < 1.0 / np.sqrt(N_POINTS)
