"""Bends found from draws, against divergences that are known and differences.

banana   x_2 + b (x_1^2 - 1): its covariance has the determinant 1 + 2 b^2, and its map the
         Jacobian 1, so that its divergence from a normal is 1/2 log(1 + 2 b^2)
funnel   exp(a x_1) x_j for j > 1: variances exp(2 a^2), hence (D - 1) a^2
"""

import numpy as np
import pytest
from scipy import stats

from sparing.problem.bending import Bend, Whitening, reach_of
from sparing.variational.straightening import (
    FUNNEL_REACH,
    RIDGE_REACH,
    best_bend,
    funnel_gain,
    funnel_guess,
    funnel_scales,
    is_scattered,
    ridge_gain,
    ridge_guess,
    straightened,
)

WIDTH, MINIMAL_GAIN = 0.25, 0.1


def unit(x):
    """Draws with mean zero and the identity as covariance."""
    offsets = x - x.mean(axis=0)
    return np.linalg.solve(np.linalg.cholesky(np.cov(offsets.T)), offsets.T).T


def turned(x, generator):
    rotation, _ = np.linalg.qr(generator.normal(size=(x.shape[1], x.shape[1])))
    return x @ rotation


def banana(dimension, b, n, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, dimension))
    x[:, 1] += b * (x[:, 0] ** 2 - 1.0)
    return unit(turned(x, generator))


def funnel(dimension, a, n, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, dimension))
    x[:, 1:] *= np.exp(a * x[:, :1])
    return unit(turned(x, generator))


def third_moments(z):
    return np.einsum("ni,nj,nk->ijk", z, z, z, optimize=True) / len(z)


def gains(bends, z):
    """By how much each of the bends brings the draws nearer to a normal, and where they are then.

    The divergence from the normal with the same moments is 1/2 log det Cov - H, up to a constant,
    and a bend adds log |du/dw| to the entropy H.
    """
    w, found = WIDTH * z, []
    for bend in bends:
        u = bend.forwards(w)
        volumes = [np.linalg.slogdet(np.cov(points.T))[1] for points in (w, u)]
        found.append(0.5 * (volumes[0] - volumes[1]) - bend.log_jacobian(u).mean())
        w = u
    return found, w / WIDTH


# ---------------------------------------------------------------------- functions of a direction


def check_gradient(function, e):
    step = 1e-5
    numerical = [(function(e + d)[0] - function(e - d)[0]) / (2 * step) for d in step * np.eye(4)]
    np.testing.assert_allclose(function(e)[1], numerical, rtol=1e-6, atol=1e-8)


DRAWS = banana(4, 0.7, 300, seed=3)
DIRECTIONS = np.random.default_rng(4).normal(size=(5, 4))
DIRECTIONS /= np.linalg.norm(DIRECTIONS, axis=1)[:, None]


@pytest.mark.parametrize("e", DIRECTIONS)
def test_gradients_by_the_direction(e):
    third = third_moments(DRAWS)
    check_gradient(lambda e: ridge_guess(third, e), e)
    check_gradient(lambda e: funnel_guess(third, e), e)
    check_gradient(lambda e: ridge_gain(DRAWS, e), e)
    assert ridge_gain(DRAWS, e)[0] > 1e-4  # not at its minimum, where all would do


@pytest.mark.parametrize("e", DIRECTIONS[:2])
def test_the_gain_of_a_ridge_is_what_regression_explains(e):
    """-1/2 log det of the covariance of the residuals, and e stays as it is."""
    r, _ = reach_of(DRAWS @ e, RIDGE_REACH)
    parabola = np.column_stack([r * r, DRAWS @ e, np.ones(len(r))])
    basis = np.linalg.svd(np.eye(4) - np.outer(e, e))[0][:, :3]
    residuals = []
    for columns in (parabola, parabola[:, 1:]):
        fitted = columns @ np.linalg.lstsq(columns, DRAWS @ basis)[0]
        residuals.append(np.linalg.slogdet(np.cov((DRAWS @ basis - fitted).T))[1])
    expected = 0.5 * (residuals[1] - residuals[0])
    assert ridge_gain(DRAWS, e)[0] == pytest.approx(expected, rel=1e-2)


def test_the_gain_of_a_funnel_is_that_of_its_bend():
    """Along a skewed direction, in which the mean of r is not that of t."""
    generator = np.random.default_rng(7)
    x = generator.normal(size=(2**11, 3))
    x[:, 0] = (generator.chisquare(1.0, size=2**11) - 1.0) / np.sqrt(2.0)
    x[:, 1:] *= np.exp(0.3 * x[:, :1])
    z, e = unit(x), np.array([0.96, 0.0, 0.28])
    assert abs(reach_of(z @ e, FUNNEL_REACH)[0].mean()) > 0.003
    rates, axes = np.linalg.eigh(funnel_scales(z, e))
    bend = Bend(e / WIDTH, np.zeros(3), axes, rates, FUNNEL_REACH, Whitening.nothing(3))
    assert abs(rates.sum()) > 0.1
    assert funnel_gain(z, e) == pytest.approx(gains([bend], z)[0][0], rel=1e-9)


@pytest.mark.parametrize("dimension", [2, 5])
def test_weak_bends_gain_what_third_moments_say(dimension):
    """To lowest order b^2 and (D - 1) a^2, along x_1."""
    generator = np.random.default_rng(5)
    x, e = generator.normal(size=(200_000, dimension)), np.eye(dimension)[0]
    ridge, cone = x.copy(), x.copy()
    ridge[:, 1] += 0.1 * (x[:, 0] ** 2 - 1.0)
    cone[:, 1:] *= np.exp(0.07 * x[:, :1])
    # Nearly: sampled third moments are no exact ones.
    z = unit(ridge)
    assert ridge_guess(third_moments(z), e)[0] == pytest.approx(0.01, rel=0.1)
    assert ridge_gain(z, e)[0] == pytest.approx(ridge_guess(third_moments(z), e)[0], rel=0.05)
    assert funnel_gain(z, e) < 0.001
    z, expected = unit(cone), (dimension - 1) * 0.07**2
    assert funnel_guess(third_moments(z), e)[0] == pytest.approx(expected, rel=0.1)
    assert funnel_gain(z, e) == pytest.approx(funnel_guess(third_moments(z), e)[0], rel=0.05)
    assert ridge_gain(z, e)[0] < 0.001


# ---------------------------------------------------------------------- bends

CURVED = [
    pytest.param(banana(2, 1.0, 2**13), 0.5 * np.log(3.0), id="banana-2"),
    pytest.param(banana(5, 1.0, 2**13), 0.5 * np.log(3.0), id="banana-5"),
    pytest.param(banana(5, 2.0, 2**13, seed=1), 0.5 * np.log(9.0), id="strong-banana-5"),
    pytest.param(funnel(2, 0.8, 2**13), 0.64, id="funnel-2"),
    pytest.param(funnel(5, 0.5, 2**13), 1.0, id="funnel-5"),
]


@pytest.mark.parametrize(("z", "divergence"), CURVED)
def test_bananas_and_funnels_become_normal(z, divergence):
    assert np.abs(third_moments(z)).max() > 0.5
    bends = straightened(z, WIDTH, MINIMAL_GAIN)
    found, u = gains(bends, z)
    assert sum(found) == pytest.approx(divergence, rel=0.05)
    # Exponentials level off at three sds, so that the ends of a funnel stay a little skewed.
    is_funnel = any(bend.rates.any() for bend in bends)
    assert np.abs(third_moments(u)).max() < (0.2 if is_funnel else 0.15)
    np.testing.assert_allclose(np.cov(u.T), np.eye(u.shape[1]), atol=1e-9)
    before, after = (
        stats.kstest((part**2).sum(axis=1), stats.chi2(u.shape[1]).cdf).statistic for part in (z, u)
    )
    assert before > 0.04
    assert after < 0.025


def test_two_parabolas_are_straightened_one_after_the_other():
    """x_2 is bent along x_1, and x_3 along x_2 as it was."""
    generator = np.random.default_rng(6)
    x = generator.normal(size=(2**13, 4))
    x[:, 2] += 1.2 * (x[:, 1] ** 2 - 1.0)
    x[:, 3] += 1.2 * (x[:, 0] ** 2 - 1.0)
    z = unit(turned(x, generator))
    bends = straightened(z, WIDTH, MINIMAL_GAIN)
    found, u = gains(bends, z)
    assert len(bends) >= 2
    assert sum(found) == pytest.approx(np.log(1.0 + 2.0 * 1.2**2), rel=0.05)
    # Exponentials level off at three sds, so that the ends of a funnel stay a little skewed.
    is_funnel = any(bend.rates.any() for bend in bends)
    assert np.abs(third_moments(u)).max() < (0.2 if is_funnel else 0.15)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dimension", [2, 4, 8])
def test_normal_draws_are_not_bent(dimension, seed):
    z = unit(np.random.default_rng(seed).normal(size=(2**11, dimension)))
    assert straightened(z, WIDTH, MINIMAL_GAIN) == ()


@pytest.mark.parametrize("seed", range(5))
def test_heavy_tails_are_not_bent(seed):
    """Few draws far away have large third moments by chance."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(2**11, 4)) / np.sqrt(generator.chisquare(3.0, size=(2**11, 1)) / 3.0)
    assert straightened(unit(x), WIDTH, MINIMAL_GAIN) == ()


@pytest.mark.parametrize(
    ("z", "divergence"),
    [
        pytest.param(banana(5, 0.4, 2**13), 0.5 * np.log(1.32), id="banana"),
        pytest.param(funnel(5, 0.2, 2**13), 0.16, id="funnel"),
    ],
)
def test_what_gains_too_little_is_not_bent(z, divergence):
    assert best_bend(z, WIDTH, 1.3 * divergence) is None
    assert straightened(z, WIDTH, 1.3 * divergence) == ()
    bends = straightened(z, WIDTH, 0.7 * divergence)
    assert len(bends) == 1
    assert gains(bends, z)[0][0] > 0.7 * divergence


def test_bends_are_the_same_whatever_the_width():
    z = banana(3, 1.0, 2**11)
    (one,), (other,) = straightened(z, 1.0, MINIMAL_GAIN), straightened(z, 0.25, MINIMAL_GAIN)
    np.testing.assert_allclose(other.forwards(0.25 * z), 0.25 * one.forwards(z), atol=1e-9)


def test_draws_without_scatter_are_told():
    z = np.random.default_rng(3).normal(size=(600, 3))
    assert is_scattered(z) and is_scattered(1e-150 * z) and is_scattered(z * [1e-9, 1.0, 1e9])
    assert not is_scattered(z[:100])  # too few
    assert not is_scattered(z * [1.0, 0.0, 1.0])
    assert not is_scattered(np.column_stack([z[:, :2], z[:, 0] - 2.0 * z[:, 1]]))
    assert not is_scattered(z * [1.0, 1.0, 1e200])


def test_draws_over_more_digits_than_a_float_has_are_not_bent(monkeypatch):
    def without_a_factor(z, e):
        raise np.linalg.LinAlgError

    monkeypatch.setattr("sparing.variational.straightening.funnel_scales", without_a_factor)
    z = np.random.default_rng(4).normal(size=(600, 3))
    z[:, 1:] *= np.exp(0.7 * z[:, :1])
    assert best_bend(unit(z), WIDTH, MINIMAL_GAIN) is None
