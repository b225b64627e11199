import numpy as np
import pytest
from benchmarks.metrics import (
    bootstrap_median_interval,
    gskl,
    marginal_total_variation,
    mmtv,
    mode_masses,
    worst_limit_error,
    worst_sd_ratio,
)
from benchmarks.problems import load_problem
from benchmarks.problems.base import Marginal
from benchmarks.problems.normal_mixture import NormalMixture
from scipy import stats


def kl(mean_a, A, mean_b, B):
    """KL(a, b) between normals, from its textbook form."""
    inverse = np.linalg.inv(B)
    d = mean_b - mean_a
    log_ratio = np.linalg.slogdet(B)[1] - np.linalg.slogdet(A)[1]
    return 0.5 * (np.trace(inverse @ A) + d @ inverse @ d - len(d) + log_ratio)


def random_moments(generator, D):
    a = generator.standard_normal((D, D))
    return generator.standard_normal(D), a @ a.T + 0.1 * np.eye(D)


def test_gskl_is_the_mean_of_both_directions():
    generator = np.random.default_rng(0)
    a, b = random_moments(generator, 4), random_moments(generator, 4)
    assert gskl(*a, *b) == pytest.approx(0.5 * (kl(*a, *b) + kl(*b, *a)))
    assert gskl(*a, *b) == pytest.approx(gskl(*b, *a))
    assert gskl(*a, *a) == pytest.approx(0.0, abs=1e-12)


def test_gskl_of_a_degenerate_posterior_is_infinite():
    eye = np.eye(2)
    assert gskl(np.zeros(2), np.diag([1.0, 0.0]), np.zeros(2), eye) == np.inf
    assert gskl(np.array([np.nan, 0.0]), eye, np.zeros(2), eye) == np.inf


def standard_normal():
    grid = np.linspace(-8, 8, 4001)
    return Marginal.tabulate(grid, np.exp(-0.5 * grid**2))


def normal_tv(mean):
    """Total variation between N(0, 1) and N(mean, 1)."""
    return 2 * stats.norm.cdf(mean / 2) - 1


@pytest.mark.parametrize("mean", [0.0, 0.5, 2.0])
def test_total_variation_of_shifted_normals(mean):
    samples = np.random.default_rng(1).normal(mean, 1, 100_000)
    assert marginal_total_variation(samples, standard_normal()) == pytest.approx(
        normal_tv(mean), abs=0.015
    )


def test_total_variation_is_one_when_nothing_overlaps_and_near_one_at_foreign_widths():
    generator = np.random.default_rng(2)
    exact = standard_normal()
    assert marginal_total_variation(generator.normal(50, 1, 5000), exact) == pytest.approx(1.0)
    assert 0.95 < marginal_total_variation(generator.normal(0, 1e5, 5000), exact) <= 1
    assert 0.95 < marginal_total_variation(generator.normal(0, 1e-5, 5000), exact) <= 1
    assert 0.95 < marginal_total_variation(np.zeros(5000), exact) <= 1


def test_mmtv_averages_over_coordinates():
    problem = load_problem("lumpy-2-g0", None)
    generator = np.random.default_rng(3)
    exact = np.stack([m.quantile(generator.uniform(size=50_000)) for m in problem.marginals], 1)
    assert mmtv(exact, problem.marginals) < 0.02
    shifted = exact + np.array([1e3, 0.0])
    assert mmtv(shifted, problem.marginals) == pytest.approx(0.5, abs=0.01)
    assert mmtv(np.full((10, 2), np.nan), problem.marginals) == np.inf


def test_median_interval_covers_the_median_as_often_as_it_says():
    generator = np.random.default_rng(4)
    hits = 0
    for _ in range(200):
        low, high = bootstrap_median_interval(generator.exponential(size=20), n_resamples=500)
        hits += low <= np.log(2) <= high
    assert 0.90 <= hits / 200 <= 0.99


def test_median_interval_with_infinite_values():
    low, high = bootstrap_median_interval([0.1, 0.2, np.inf, np.inf])
    assert low == pytest.approx(0.1)
    assert high == np.inf
    assert bootstrap_median_interval([2.0]) == (2.0, 2.0)


def test_normal_mixture_samples_have_its_moments():
    weights, means = np.array([0.25, 0.75]), np.array([[0.0, 0.0], [4.0, -2.0]])
    covariances = np.array([[[1.0, 0.5], [0.5, 2.0]], [[0.3, 0.0], [0.0, 0.1]]])
    mixture = NormalMixture.from_weights(weights, means, covariances)
    samples = mixture.sample(100_000, np.random.default_rng(5))
    np.testing.assert_allclose(samples.mean(axis=0), mixture.mean, atol=0.02)
    np.testing.assert_allclose(np.cov(samples.T), mixture.covariance, atol=0.05)
    x = np.array([1.0, -1.0])
    density = sum(
        w * stats.multivariate_normal(m, c).pdf(x)
        for w, m, c in zip(weights, means, covariances, strict=True)
    )
    assert mixture.log_density(x) == pytest.approx(np.log(density))


def test_the_worst_sd_ratio_is_the_one_furthest_from_one():
    exact = np.diag([1.0, 4.0, 9.0])
    assert worst_sd_ratio(np.diag([1.1, 2.0, 9.0]), exact) == pytest.approx(np.sqrt(0.5))
    assert worst_sd_ratio(np.diag([1.0, 4.0, 36.0]), exact) == pytest.approx(2.0)
    assert np.isnan(worst_sd_ratio(np.diag([1.0, 0.0, 9.0]), exact))


def test_limits_are_compared_in_exact_sds():
    samples = np.random.default_rng(6).standard_normal((200_000, 2))
    exact = (standard_normal(), standard_normal())
    assert worst_limit_error(samples, exact, np.ones(2)) < 0.03
    wide = samples * np.array([1.0, 1.5])
    assert worst_limit_error(wide, exact, np.ones(2)) == pytest.approx(0.98, abs=0.04)
    assert worst_limit_error(wide, exact, np.array([1.0, 2.0])) == pytest.approx(0.49, abs=0.02)
    assert worst_limit_error(np.full((9, 2), np.nan), exact, np.ones(2)) == np.inf


def test_the_mass_of_each_mode_is_counted():
    modes = load_problem("modes-3-0", None).modes
    mixture = modes.memberships.__self__
    samples = mixture.sample(50_000, np.random.default_rng(7))
    np.testing.assert_allclose(mode_masses(samples, modes), modes.weights, atol=0.02)
    one = mixture.means[1] + 0.1 * np.random.default_rng(8).standard_normal((500, 3))
    np.testing.assert_allclose(mode_masses(one, modes)[1], 1.0, atol=1e-3)
