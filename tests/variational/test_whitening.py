"""The whitening matrix makes q round, and when other coordinates are tried."""

import numpy as np

from sparing.problem.parameter_transform import ParameterTransform
from sparing.problem.problem import Problem
from sparing.surrogate.parabola import Parabola
from sparing.variational.mixture import GaussianMixture
from sparing.variational.whitening import (
    Unwhitened,
    Whitened,
    anisotropy,
    carry_over,
    change_of_coordinates,
    whitening_matrix,
)


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


PROBLEM = Problem(lambda x: 0.0, [0.2, -1.0], [0.8, 3.0], lower=[0.0, -np.inf], upper=[1.0, np.inf])
PLAIN = ParameterTransform.from_problem(PROBLEM)
ROUND = GaussianMixture([1.0], np.zeros((1, 2)), [0.3], [1.0, 1.0])
LONG = GaussianMixture([0.5, 0.5], [[-0.3, -0.2], [0.3, 0.2]], [0.1, 0.1], [1.0, 1.0])


def test_round_posteriors_are_not_whitened():
    assert Whitened().candidates(PLAIN, [ROUND], iteration=9, last=0) == []


def test_a_long_posterior_is_whitened_by_its_covariance():
    (found,) = Whitened(width=0.25).candidates(PLAIN, [LONG], iteration=9, last=0)
    assert found.number == 10  # that of the iteration
    draws = LONG.sample(100_000, np.random.default_rng(1))
    whitened = found.to_working(PLAIN.to_user(draws))
    np.testing.assert_allclose(whitened.mean(axis=0), 0.0, atol=0.01)
    np.testing.assert_allclose(np.cov(whitened.T), 0.25**2 * np.eye(2), atol=0.003)


def test_every_shape_that_is_not_round_gives_a_candidate():
    """What gradients show of it beside q, in the order of the shapes."""
    axes = np.array([[0.6, -0.8], [0.8, 0.6]])
    parabola = Parabola(np.array([0.2, -0.1]), axes, np.array([0.09, 0.0025]), 0.0)
    found = Whitened(width=0.25).candidates(PLAIN, [LONG, ROUND, parabola], iteration=9, last=0)
    assert len(found) == 2
    for candidate, shape in zip(found, (LONG, parabola), strict=True):
        moved = candidate.to_working(PLAIN.to_user(shape.mean + 0.1 * np.eye(2)))
        linear = (moved - candidate.to_working(PLAIN.to_user(shape.mean[None]))).T / 0.1
        np.testing.assert_allclose(
            linear @ shape.covariance @ linear.T, 0.0625 * np.eye(2), atol=1e-12
        )
    assert Whitened().candidates(found[0], [], iteration=12, last=9) == []


def test_the_first_coordinates_stay_a_candidate():
    (whitened,) = Whitened().candidates(PLAIN, [LONG], iteration=9, last=0)
    (back,) = Whitened().candidates(whitened, [ROUND], iteration=12, last=9)
    assert back.whitening is None
    assert back.number == PLAIN.number
    assert len(Whitened().candidates(whitened, [LONG], iteration=12, last=9)) == 2


def test_whitening_is_tried_now_and_then_and_never_in_one_dimension():
    assert Whitened(every=3).candidates(PLAIN, [LONG], iteration=9, last=7) == []
    assert len(Whitened(every=3).candidates(PLAIN, [LONG], iteration=9, last=6)) == 1
    line = ParameterTransform.from_problem(Problem(lambda x: 0.0, [-1.0], [1.0]))
    two = GaussianMixture([0.5, 0.5], [[-1.0], [1.0]], [0.1, 0.1], [1.0])
    assert Whitened().candidates(line, [two], iteration=9, last=0) == []


def test_the_paper_never_whitens():
    assert Unwhitened().candidates(PLAIN, [LONG], iteration=9, last=0) == []
    assert Unwhitened().minimal_gain == np.inf


def test_change_of_coordinates_is_linear_between_two_whitenings():
    one = PLAIN.whitened(np.array([0.1, -0.2]), np.array([[1.0, 0.5], [-0.3, 0.9]]))
    other = PLAIN.whitened(np.array([-0.3, 0.2]), np.array([[2.0, 0.1], [0.4, 0.5]]))
    u = np.random.default_rng(2).normal(scale=0.3, size=(8, 2))
    linear, offset = change_of_coordinates(one, other)
    np.testing.assert_allclose(u @ linear.T + offset, other.to_working(one.to_user(u)), rtol=1e-9)


def test_a_mixture_carried_over_keeps_its_mean_and_its_marginal_spread():
    other = PLAIN.whitened(np.array([-0.3, 0.2]), np.array([[2.0, 0.1], [0.4, 0.5]]))
    carried = carry_over(LONG, PLAIN, other)
    draws = LONG.sample(200_000, np.random.default_rng(3))
    moved = other.to_working(PLAIN.to_user(draws))
    np.testing.assert_allclose(carried.mean, moved.mean(axis=0), atol=0.005)
    np.testing.assert_allclose(np.diag(carried.covariance), moved.var(axis=0), rtol=0.01)
    np.testing.assert_array_equal(carried.weights, LONG.weights)
