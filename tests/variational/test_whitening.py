"""Whitening makes q round, bends make it normal, and when other coordinates are tried."""

import numpy as np
import pytest
from scipy.stats import skew

from sparing.problem.bending import Bend, LevelledStretch
from sparing.problem.parameter_transform import ParameterTransform
from sparing.problem.problem import Problem
from sparing.surrogate.parabola import Parabola
from sparing.variational.expectation_maximisation import fitted_mixture
from sparing.variational.mixture import GaussianMixture
from sparing.variational.normal_mixture import NormalMixture
from sparing.variational.other_coordinates import (
    carry_over,
    change_of_coordinates,
    in_coordinates,
    moments_in,
)
from sparing.variational.whitening import (
    LastTry,
    Unwhitened,
    Whitened,
    anisotropy,
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
    assert Whitened().candidates(PLAIN, [ROUND], 10) == []


def test_a_long_posterior_is_whitened_by_its_covariance():
    (found,) = Whitened(width=0.25).candidates(PLAIN, [LONG], 10)
    assert found.number == 10  # that of the iteration
    draws = LONG.sample(100_000, np.random.default_rng(1))
    whitened = found.to_working(PLAIN.to_user(draws))
    np.testing.assert_allclose(whitened.mean(axis=0), 0.0, atol=0.01)
    np.testing.assert_allclose(np.cov(whitened.T), 0.25**2 * np.eye(2), atol=0.003)


def test_every_shape_that_is_not_round_gives_a_candidate():
    """What gradients show of it beside q, in the order of the shapes."""
    axes = np.array([[0.6, -0.8], [0.8, 0.6]])
    parabola = Parabola(np.array([0.2, -0.1]), axes, np.array([0.09, 0.0025]), 0.0)
    found = Whitened(width=0.25).candidates(PLAIN, [LONG, ROUND, parabola], 10)
    assert len(found) == 2
    for candidate, shape in zip(found, (LONG, parabola), strict=True):
        moved = candidate.to_working(PLAIN.to_user(shape.mean + 0.1 * np.eye(2)))
        linear = (moved - candidate.to_working(PLAIN.to_user(shape.mean[None]))).T / 0.1
        np.testing.assert_allclose(
            linear @ shape.covariance @ linear.T, 0.0625 * np.eye(2), atol=1e-12
        )


def test_the_first_coordinates_stay_a_candidate():
    (whitened,) = Whitened().candidates(PLAIN, [LONG], 10)
    (back,) = Whitened().candidates(whitened, [ROUND], 13)
    assert back.whitening is None
    assert back.number == PLAIN.number
    assert len(Whitened().candidates(whitened, [LONG], 13)) == 2


def test_whitening_is_tried_now_and_then_and_never_in_one_dimension():
    strategy = Whitened(every=3, growth=1.25)
    assert strategy.is_due(None)
    assert not strategy.is_due(LastTry(n_iterations=2, growth=9.0, was_kept=True))
    assert strategy.is_due(LastTry(n_iterations=3, growth=1.0, was_kept=True))
    # Where the present coordinates were the best, once there is more to tell.
    assert not strategy.is_due(LastTry(n_iterations=9, growth=1.24, was_kept=False))
    assert strategy.is_due(LastTry(n_iterations=3, growth=1.25, was_kept=False))
    line = ParameterTransform.from_problem(Problem(lambda x: 0.0, [-1.0], [1.0]))
    two = GaussianMixture([0.5, 0.5], [[-1.0], [1.0]], [0.1, 0.1], [1.0])
    assert Whitened().candidates(line, [two], 10) == []


def test_the_paper_never_whitens():
    assert Unwhitened().candidates(PLAIN, [LONG], 10) == []
    assert Unwhitened().needed_gain(2, 10, searching=False) == np.inf


def test_on_the_way_up_only_what_is_clear_counts():
    strategy = Whitened(minimal_gain=3.0)
    assert strategy.needed_gain(6, 50, searching=False) == 3.0
    assert strategy.needed_gain(6, 50, searching=True) == pytest.approx(3.0 + 3.0 * np.log(50.0))


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


# ---------------------------------------------------------------------- bent coordinates


def along_a_parabola(b: float) -> NormalMixture:
    """25 components that follow a parabola, of a height of b widths."""
    t = np.linspace(-2.5, 2.5, 25)
    means = np.column_stack([0.25 * t, 0.1 * b * (t**2 - 1.0)])
    slopes = np.column_stack([np.full(25, 0.25), 0.2 * b * t])
    covariances = 0.03 * slopes[:, :, None] * slopes[:, None, :] + np.diag([0.0, 0.01])
    return NormalMixture.of_covariances(np.exp(-0.5 * t**2), means, covariances)


CURVED = along_a_parabola(1.5)
NORMAL = NormalMixture(np.ones(1), np.zeros((1, 2)), np.array([[[0.25, 0.0], [0.1, 0.25]]]))


def bent_by(mixture: NormalMixture, iteration: int = 9) -> ParameterTransform:
    found = Whitened(width=0.25).candidates(PLAIN, [mixture], iteration + 1)
    (bent,) = [transform for transform in found if only_bends(transform)]
    return bent


def only_bends(transform: ParameterTransform) -> bool:
    return bool(transform.bends) and all(isinstance(bend, Bend) for bend in transform.bends)


def unit_third_moments(u: np.ndarray) -> np.ndarray:
    z = (u - u.mean(axis=0)) / u.std(axis=0)
    return np.einsum("ni,nj,nk->ijk", z, z, z) / len(z)


def test_a_curved_posterior_is_bent_until_it_is_normal():
    bent = bent_by(CURVED)
    assert bent.number == 10  # that of the iteration
    assert bent.turning == PLAIN.turning
    draws = CURVED.sample(50_000, np.random.default_rng(4))
    assert np.abs(unit_third_moments(draws)).max() > 1.0
    u = bent.to_working(PLAIN.to_user(draws))
    np.testing.assert_allclose(u.mean(axis=0), 0.0, atol=0.01)
    np.testing.assert_allclose(np.cov(u.T), 0.0625 * np.eye(2), atol=0.002)
    assert np.abs(unit_third_moments(u)).max() < 0.05


@pytest.mark.parametrize("mixture", [NORMAL, along_a_parabola(0.2)])
def test_what_is_nearly_normal_is_not_bent(mixture):
    found = Whitened().candidates(PLAIN, [mixture], 10)
    assert not any(transform.bends for transform in found)


def test_how_much_bends_must_gain_is_a_setting():
    strict = Whitened(minimal_straightening=2.0)  # 1/2 log(1 + 2 b^2) is 0.9
    found = strict.candidates(PLAIN, [CURVED], 10)
    assert not any(transform.bends for transform in found)


def test_from_bent_coordinates_those_without_bends_stay_a_candidate():
    bent = bent_by(CURVED)
    straight = in_coordinates(CURVED, PLAIN, bent)
    found = Whitened(width=0.25).candidates(bent, [straight], 13)
    assert not any(transform.bends for transform in found)  # what is straight is left alone
    draws = CURVED.sample(50_000, np.random.default_rng(5))
    whitened = [transform for transform in found if transform.whitening is not None]
    assert [transform.number for transform in whitened] == [13]
    u = whitened[0].to_working(PLAIN.to_user(draws))
    np.testing.assert_allclose(np.cov(u.T), 0.0625 * np.eye(2), atol=0.003)


def test_a_skewed_posterior_is_stretched_until_it_is_normal():
    generator = np.random.default_rng(7)
    skewed = np.log(np.abs(generator.normal(size=20_000)))
    s = 0.1 * np.column_stack([skewed, generator.normal(size=20_000)])
    parts = fitted_mixture(s, np.full(len(s), 1.0 / len(s)), 40, 10, generator)
    found = Whitened(width=0.25).candidates(PLAIN, [parts], 10)
    stretched = [c for c in found if any(isinstance(b, LevelledStretch) for b in c.bends)]
    (transform,) = stretched
    assert (transform.whitening, transform.number) == (None, 10)
    u = transform.to_working(PLAIN.to_user(s))
    assert np.abs(skew(s)).max() > 1.0 > 0.2 > np.abs(skew(u)).max()
    np.testing.assert_allclose(np.cov(u.T), 0.0625 * np.eye(2), atol=0.006)
    # There it is normal, and the first coordinates stay a candidate.
    back = Whitened(width=0.25).candidates(transform, [in_coordinates(parts, PLAIN, transform)], 13)
    assert not any(c.bends for c in back)
    assert any(c.number == PLAIN.number for c in back)


def test_from_bent_coordinates_others_are_bent_where_the_posterior_is_curved_there():
    bent, other = bent_by(CURVED), along_a_parabola(-1.5)
    there = in_coordinates(other, PLAIN, bent)
    found = Whitened(width=0.25).candidates(bent, [there], 13)
    (again,) = [transform for transform in found if only_bends(transform)]
    u = again.to_working(PLAIN.to_user(other.sample(50_000, np.random.default_rng(6))))
    assert np.abs(unit_third_moments(u)).max() < 0.15
    np.testing.assert_allclose(np.cov(u.T), 0.0625 * np.eye(2), atol=0.006)
    # In the place of the bends so far: the chain does not become longer with each.
    assert len(again.bends) <= 2


def test_a_mixture_carried_into_bent_coordinates_keeps_its_centres():
    bent = bent_by(CURVED)
    mixture = GaussianMixture(
        [0.5, 0.3, 0.2], [[0.0, -0.1], [0.3, 0.05], [-0.2, 0.0]], [0.01, 0.02, 0.03], [1.0, 0.5]
    )
    carried = carry_over(mixture, PLAIN, bent)
    np.testing.assert_allclose(bent.to_user(carried.means), PLAIN.to_user(mixture.means))
    np.testing.assert_array_equal(carried.weights, mixture.weights)
    np.testing.assert_array_equal(carried.scales, mixture.scales)
    # On average the components are as wide as their draws are there.
    generator, variances = np.random.default_rng(7), np.zeros(2)
    for k in range(3):
        spread = mixture.scales[k] * mixture.lengths * generator.normal(size=(20_000, 2))
        u = bent.from_standardised(mixture.means[k] + spread)
        variances += mixture.weights[k] * u.var(axis=0) / mixture.scales[k] ** 2
    np.testing.assert_allclose(carried.lengths**2, variances, rtol=0.05)
    back = carry_over(carried, bent, PLAIN)
    np.testing.assert_allclose(back.means, mixture.means, atol=1e-12)


@pytest.mark.parametrize("way", ["into", "out of", "between"])
def test_mixtures_and_moments_in_coordinates_with_other_bends(way):
    """The divergence is that of a fit by 30 components: 0.001 to 0.002."""
    bent, other = bent_by(CURVED), bent_by(along_a_parabola(-1.0), iteration=12)
    old, new, mixture = {
        "into": (PLAIN, bent, CURVED),
        "out of": (bent, PLAIN, NORMAL),
        "between": (bent, other, NORMAL),
    }[way]
    draws = mixture.sample(100_000, np.random.default_rng(8))
    moved = new.to_working(old.to_user(draws))
    mean, covariance = moments_in(mixture, old, new)
    sds = moved.std(axis=0)
    assert np.all(np.abs(mean - moved.mean(axis=0)) < 0.02 * sds)
    np.testing.assert_allclose(covariance / np.outer(sds, sds), np.corrcoef(moved.T), atol=0.03)
    found = in_coordinates(mixture, old, new)
    assert np.all(np.abs(found.mean - moved.mean(axis=0)) < 0.02 * sds)
    np.testing.assert_allclose(
        found.covariance / np.outer(sds, sds), np.corrcoef(moved.T), atol=0.03
    )
    exact = mixture.log_density(draws) - old.log_jacobian(draws) + new.log_jacobian(moved)
    assert np.mean(exact - found.log_density(moved)) < 0.005


def test_in_its_own_coordinates_a_mixture_stays_as_it_is():
    bent = bent_by(CURVED)
    same = in_coordinates(NORMAL, bent, bent)
    np.testing.assert_array_equal(same.means, NORMAL.means)
    np.testing.assert_allclose(same.covariances, NORMAL.covariances)
    mean, covariance = moments_in(NORMAL, bent, bent)
    np.testing.assert_array_equal(mean, NORMAL.mean)
    np.testing.assert_array_equal(covariance, NORMAL.covariance)


def test_bends_are_charged_for_by_schwarz():
    bent = bent_by(CURVED)
    assert Whitened().charge(PLAIN, 50) == 0.0
    # In the plane a direction, and how strongly.
    assert Whitened().charge(bent, 50) == pytest.approx(len(bent.bends) * np.log(50.0))
    assert Unwhitened().charge(bent, 50) == 0.0
