"""Particles of a density with several parts: shares, moments, and where they cannot start."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from sparing.numerics.tempered_sampling import EFFECTIVE_SHARE, _next, _resampled, tempered_sample

WIDTH = 40.0  # of the box the particles start from


def log_uniform(x):
    inside = np.all(np.abs(x) <= 0.5 * WIDTH, axis=1)
    return np.where(inside, -x.shape[1] * np.log(WIDTH), -np.inf)


def two_normals(dimension, share=0.3, distance=20.0, sds=(1.0, 0.5)):
    """A log density with the given share on the left; not normalised."""
    centres = np.zeros((2, dimension))
    centres[:, 0] = -0.5 * distance, 0.5 * distance
    parts = [
        stats.multivariate_normal(centre, sd**2 * np.eye(dimension))
        for centre, sd in zip(centres, sds, strict=True)
    ]

    def log_density(x):
        terms = np.column_stack([np.atleast_1d(part.logpdf(x)) for part in parts])
        return 7.0 + logsumexp(terms, axis=1, b=[share, 1.0 - share])

    return log_density


def sampled(log_target, dimension, n=2000, seed=1):
    generator = np.random.default_rng(seed)
    start = WIDTH * (generator.random((n, dimension)) - 0.5)
    return tempered_sample(log_target, log_uniform, start, generator)


@pytest.mark.parametrize(("dimension", "error"), [(1, 0.02), (2, 0.03), (3, 0.05)])
def test_parts_far_apart_have_their_shares_and_shapes(dimension, error):
    """Twenty sds of nothing between them; on average over a few seeds."""
    runs = [sampled(two_normals(dimension), dimension, seed=seed) for seed in range(6)]
    shares = [np.mean(x[:, 0] < 0.0) for x in runs]
    assert np.mean(shares) == pytest.approx(0.3, abs=error)
    draws = np.vstack(runs)
    for side, centre, sd in ((draws[:, 0] < 0, -10.0, 1.0), (draws[:, 0] > 0, 10.0, 0.5)):
        part = draws[side]
        assert part[:, 0].mean() == pytest.approx(centre, abs=0.05)
        np.testing.assert_allclose(part.std(axis=0), sd, rtol=0.06)


def test_particles_are_spread_as_the_target():
    """Not only its moments: one skewed part, of which one coordinate bends the other."""

    def log_bent(x):
        return stats.norm.logpdf(x[:, 0], 2.0, 1.5) + stats.norm.logpdf(
            x[:, 1], 0.4 * x[:, 0] ** 2, 0.5
        )

    draws = sampled(log_bent, 2, n=3000)[::5]  # neighbours have a common ancestor
    assert stats.kstest(draws[:, 0], stats.norm(2.0, 1.5).cdf).pvalue > 0.01
    rest = draws[:, 1] - 0.4 * draws[:, 0] ** 2
    assert stats.kstest(rest, stats.norm(0.0, 0.5).cdf).pvalue > 0.01


def test_the_start_is_divided_out():
    """Half of the particles start on the smaller part, which gets no more than its share."""
    left, n = stats.multivariate_normal([-10.0, 0.0], np.eye(2)), 3000

    def log_start(x):
        return np.logaddexp(left.logpdf(x), log_uniform(x)) - np.log(2.0)

    shares = []
    for seed in range(6):
        generator = np.random.default_rng(seed)
        own = left.rvs(n // 2, random_state=generator)
        start = np.vstack([own, WIDTH * (generator.random((n // 2, 2)) - 0.5)])
        draws = tempered_sample(two_normals(2), log_start, start, generator)
        shares.append(np.mean(draws[:, 0] < 0.0))
    assert np.mean(shares) == pytest.approx(0.3, abs=0.06)


def test_a_target_equal_to_the_start_is_reached_at_once():
    calls = []

    def log_target(x):
        calls.append(len(x))
        return log_uniform(x)

    draws = sampled(log_target, 2, n=500)
    assert len(calls) == 1 + 4  # the start and one round of moves
    assert np.all(np.abs(draws) <= 0.5 * WIDTH)


def test_where_the_target_is_zero_no_particle_goes():
    def log_half(x):
        return np.where(x[:, 0] > 0.0, -0.5 * (x**2).sum(axis=1), -np.inf)

    draws = sampled(log_half, 2)
    assert np.all(draws[:, 0] > 0.0)
    assert draws[:, 0].mean() == pytest.approx(np.sqrt(2.0 / np.pi), abs=0.06)


def test_the_start_is_left_as_it_is_and_equal_generators_give_equal_particles():
    start = np.random.default_rng(3).uniform(-20.0, 20.0, size=(300, 2))
    before, target = start.copy(), two_normals(2)
    one, same, other = (
        tempered_sample(target, log_uniform, start, np.random.default_rng(seed))
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(start, before)
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_steps_lose_evenly():
    """Each as long as leaves the wanted share of particles effective."""
    gain = np.random.default_rng(4).normal(scale=30.0, size=1000)
    b = _next(0.2, gain)
    weights = np.exp((b - 0.2) * gain)
    assert weights.sum() ** 2 / (weights @ weights) / 1000 == pytest.approx(EFFECTIVE_SHARE)
    assert _next(0.2, 1e-3 * gain) == 1.0
    assert 0.2 < _next(0.2, 1e30 * gain) < 0.201  # it never stands still


def test_resampling_takes_each_particle_as_often_as_its_weight_says():
    log_weights = np.log([0.1, 0.4, 1e-9, 0.5]) + 800.0
    chosen = _resampled(np.repeat(log_weights, 100), np.random.default_rng(5))
    counts = np.bincount(chosen // 100, minlength=4)
    assert np.all(np.abs(counts - [40, 160, 0, 200]) <= 1)
