"""The stretch that makes coordinates normal: its gain against its definition, and what it finds."""

import numpy as np
import pytest
from scipy.stats import kurtosis, skew, t

from sparing.problem.bending import Stretch
from sparing.variational.stretching import SMALLEST_GAIN, levelled_stretch, stretch_gain, stretch_of

N = 2**11


def draws(name, n=N, seed=1):
    """Skewed to the left with a sharp end, heavy in both tails, normal: (n,)."""
    generator = np.random.default_rng(seed)
    if name == "log exponential":
        return np.log(generator.exponential(size=n))
    if name == "log half-normal":
        return np.log(np.abs(generator.normal(size=n)))
    if name == "heavy":
        return generator.standard_t(4, size=n)
    return generator.normal(size=n)


def test_the_gain_is_the_entropy_that_a_normal_of_its_variance_loses():
    t = np.linspace(-2.0, 2.0, 100) ** 3 / 4.0
    p = np.array([0.4, 0.3, -0.2])
    unit = Stretch(np.array([-0.2]), np.ones(1), np.array([0.4]), np.exp([0.3]))
    g = unit.forwards(t[:, None])
    expected = -np.mean(unit.log_jacobian(g)) - np.log(g.std())
    assert stretch_gain(t, p)[0] == pytest.approx(expected, rel=1e-12)
    # Nothing is gained by no stretch of draws of unit variance.
    assert stretch_gain(t / t.std(), np.zeros(3))[0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("p", [(0.0, 0.0, 0.0), (0.4, 0.3, -0.2), (-1.0, -0.7, 2.0)])
def test_the_gradient_against_differences(p):
    t, p, step = draws("log exponential"), np.array(p), 1e-6
    numeric = [
        (stretch_gain(t, p + step * e)[0] - stretch_gain(t, p - step * e)[0]) / (2.0 * step)
        for e in np.eye(3)
    ]
    np.testing.assert_allclose(stretch_gain(t, p)[1], numeric, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["log exponential", "log half-normal", "heavy"])
def test_coordinates_become_normal(name):
    points = np.column_stack([5.0 + 3.0 * draws(name), draws("normal")])
    stretch = stretch_of(points)
    found = stretch.forwards(points)
    assert abs(skew(found[:, 0])) < 0.15
    assert abs(kurtosis(found[:, 0])) < 0.6 < kurtosis(points[:, 0])
    # New draws are as normal, and the other coordinate is as it was.
    again = stretch.forwards(np.column_stack([5.0 + 3.0 * draws(name, seed=2), points[:, 1]]))
    assert abs(skew(again[:, 0])) < 0.25
    assert np.corrcoef(found[:, 1], points[:, 1])[0, 1] == pytest.approx(1.0, abs=1e-12)
    assert (stretch.skewness[1], stretch.tail[1]) == (0.0, 1.0)


def test_normal_draws_are_left_alone():
    generator = np.random.default_rng(3)
    for _ in range(20):
        points = generator.normal(size=(N, 5)) @ generator.normal(size=(5, 5))
        assert stretch_of(points) is None
    t = draws("log exponential")
    gain = stretch_gain((t - t.mean()) / t.std(), np.array([-0.5, -0.2, 0.5]))[0]
    assert gain > 5.0 * SMALLEST_GAIN


def test_draws_without_scatter_are_left_alone():
    points = np.column_stack([draws("log exponential"), np.ones(N)])
    assert stretch_of(points) is None
    points[:, 1] = np.inf
    with np.errstate(invalid="ignore"):
        assert stretch_of(points) is None


def test_a_levelled_stretch_takes_the_skewness_of_draws_where_that_gains_enough():
    points = np.column_stack([5.0 + 3.0 * draws("log half-normal"), draws("normal")])
    levelled = levelled_stretch(points, 0.1, 0.25)
    assert levelled.stretch.skewness[0] < -0.5
    assert (levelled.stretch.skewness[1], *levelled.stretch.tail) == (0.0, 1.0, 1.0)
    found = levelled.forwards(points)
    assert abs(skew(points[:, 0])) > 1.0 > 0.15 > np.abs(skew(found)).max()
    np.testing.assert_allclose(np.cov(found.T), 0.0625 * np.eye(2), atol=1e-9)
    assert levelled_stretch(points, 0.3, 0.25) is None  # it gains 0.16
    assert levelled_stretch(points[:, 1:], 0.1, 0.25) is None
    heavy = t.ppf((np.arange(N) + 0.5) / N, 4)  # on both sides
    assert levelled_stretch(np.column_stack([heavy, points[:, 1]]), 0.1, 0.25) is None
    assert stretch_of(heavy[:, None]).tail[0] < 0.9
    wider = np.where(heavy > 0.0, 1.3 * heavy, heavy)  # skewness gains 0.046 of 0.083
    assert levelled_stretch(np.column_stack([wider, points[:, 1]]), 0.02, 0.25) is not None
    wider = np.where(heavy > 0.0, 1.1 * heavy, heavy)  # 0.031 of 0.073
    assert levelled_stretch(np.column_stack([wider, points[:, 1]]), 0.02, 0.25) is None
