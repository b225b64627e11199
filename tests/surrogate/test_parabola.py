"""The parabola of gradients: exact where there is one, and modest where there is none."""

import numpy as np
import pytest

from sparing.surrogate.parabola import nearest_parabola, parabola_of, parabola_of_values

MEAN, HEIGHT = np.array([0.3, -1.2, 0.7]), -4.0
FACTOR = np.array([[1.0, 0.0, 0.0], [0.9, 0.3, 0.0], [-0.5, 0.4, 0.6]])
PRECISION = np.linalg.inv(FACTOR @ FACTOR.T)
FLAT = np.array([1.0, 2.0, 2.0]) / 3.0  # a direction


def points(n, seed=0, width=3.0):
    return MEAN + width * np.random.default_rng(seed).normal(size=(n, 3))


def quadratic(x, precision=PRECISION):
    offsets = x - MEAN
    slopes = offsets @ precision
    return HEIGHT - 0.5 * (slopes * offsets).sum(axis=1), -slopes


@pytest.mark.parametrize("n", [5, 30])
def test_it_is_exact_on_a_quadratic(n):
    """D + 2 gradients suffice, whatever else there is without one."""
    x = points(n + 4)
    values, gradients = quadratic(x)
    gradients[n:, 1] = np.nan
    values[n:] = 1e3  # not looked at: it may not be the same function's
    found = parabola_of(x, values, gradients)
    np.testing.assert_allclose(found.mean, MEAN, atol=1e-9)
    np.testing.assert_allclose(found.covariance, FACTOR @ FACTOR.T, atol=1e-9)
    assert found.height == pytest.approx(HEIGHT, abs=1e-8)
    far = points(7, seed=1)
    np.testing.assert_allclose(found.values(far), quadratic(far)[0], rtol=1e-8)


def test_fewer_gradients_show_none():
    x = points(9)
    values, gradients = quadratic(x)
    gradients[4:] = np.nan
    assert parabola_of(x, values, gradients) is None


@pytest.mark.parametrize("curvature", [0.0, -5.0])
def test_where_it_does_not_bend_down_it_is_as_wide_as_the_points(curvature):
    rest = np.eye(3) - np.outer(FLAT, FLAT)
    x = points(40)
    values, gradients = quadratic(x, 4.0 * rest + curvature * np.outer(FLAT, FLAT))
    found = parabola_of(x, values, gradients)
    weights = 1.0 / (3.0 + values.max() - values)
    centre = np.average(x, axis=0, weights=weights)
    assert FLAT @ found.covariance @ FLAT == pytest.approx(np.var(x @ FLAT), rel=1e-6)
    assert FLAT @ found.mean == pytest.approx(FLAT @ centre, abs=1e-6)
    np.testing.assert_allclose(rest @ found.covariance @ rest, 0.25 * rest, atol=1e-6)
    np.testing.assert_allclose(rest @ found.mean, rest @ MEAN, atol=1e-6)


def test_a_bend_that_the_points_do_not_reach_counts_for_nothing():
    """Points closer together than the parabola is wide."""
    x = points(20, width=0.01)
    found = parabola_of(x, *quadratic(x))
    spread = np.linalg.eigvalsh(np.cov(x.T, bias=True))
    assert np.trace(found.covariance) == pytest.approx(spread.sum(), rel=1e-6)


def test_high_points_count_most():
    """Far down another function may go on: the top's shape is the one that matters."""
    top, tails = points(15, width=1.0), points(15, seed=2, width=40.0)
    x = np.vstack([top, tails])
    values, gradients = quadratic(x)
    values[15:] = -300.0 - 0.1 * np.abs(tails - MEAN).sum(axis=1)
    gradients[15:] = -0.1 * np.sign(tails - MEAN)
    found = parabola_of(x, values, gradients)
    everywhere = np.linalg.lstsq(np.column_stack([np.ones(30), x]), gradients, rcond=None)[0]
    equal = np.trace(-everywhere[1:])
    assert np.trace(np.linalg.inv(found.covariance)) > 3.0 * equal


def test_points_on_a_plane_give_finite_numbers():
    x = points(8) * [1.0, 1.0, 0.0]
    found = parabola_of(x, *quadratic(x, np.diag([1.0, 4.0, 0.0])))
    assert np.isfinite(found.values(points(3))).all()
    np.testing.assert_allclose(np.diag(found.covariance), [1.0, 0.25, 0.0], atol=1e-9)


# Ten numbers in three dimensions, and three values that test them.
ENOUGH = 13


@pytest.mark.parametrize("n", [ENOUGH, 60])
def test_values_alone_show_a_parabola(n):
    """Those far down count as little as they must: relative errors of the deep ones are alike."""
    x = points(n)
    x[-3:] *= 50.0
    found = parabola_of_values(x, quadratic(x)[0])
    np.testing.assert_allclose(found.mean, MEAN, atol=1e-6)
    np.testing.assert_allclose(found.covariance, FACTOR @ FACTOR.T, rtol=1e-6, atol=1e-6)
    assert found.height == pytest.approx(HEIGHT, abs=1e-6)
    assert parabola_of_values(x[: ENOUGH - 1], quadratic(x)[0][: ENOUGH - 1]) is None


@pytest.mark.parametrize("n", [ENOUGH, 20, 60])
def test_values_that_lie_on_none_show_none(n):
    x = points(n)
    values = quadratic(x)[0]
    heavy = -4.0 * np.log1p(-values / 4.0)
    assert parabola_of_values(x, heavy) is None
    bent = x + np.column_stack([np.zeros((n, 2)), 0.3 * x[:, 0] ** 2])
    assert parabola_of_values(x, quadratic(bent)[0]) is None
    noisy = values + np.random.default_rng(1).normal(size=n)
    assert parabola_of_values(x, noisy) is None


def test_a_saddle_is_no_posterior():
    x = points(30)
    assert parabola_of_values(x, quadratic(x, np.diag([1.0, 2.0, -0.5]))[0]) is None


def test_points_that_cannot_tell_show_none():
    """On a line in one coordinate, or all on a plane."""
    x = points(30) * [1.0, 1.0, 0.0]
    assert parabola_of_values(x, quadratic(x)[0]) is None
    for seed in range(30):  # what rounding leaves of the third dimension may be anything
        x = points(30, seed)
        x[:, 2] = x[:, 0] - x[:, 1]
        assert parabola_of_values(x, quadratic(x)[0]) is None


def test_gradients_are_asked_first():
    x = points(ENOUGH)
    values, gradients = quadratic(x)
    by_gradients = nearest_parabola(x, values, 4.0 * gradients)
    np.testing.assert_allclose(by_gradients.covariance, FACTOR @ FACTOR.T / 4.0, atol=1e-9)
    by_values = nearest_parabola(x, values, None)
    np.testing.assert_allclose(by_values.covariance, FACTOR @ FACTOR.T, atol=1e-6)
