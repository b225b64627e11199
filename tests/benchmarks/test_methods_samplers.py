"""Parallel slice sampling, the mixture fitted to its draws, and the search for points."""

import numpy as np
import pytest
from benchmarks.methods.surrogate_posterior import surrogate_draws
from benchmarks.metrics import gskl
from benchmarks.problems import load_problem
from benchmarks.quadrature.mixture_fit import FittedMixture, fit_mixture
from benchmarks.quadrature.parallel_slice_sampling import sample_ensemble
from benchmarks.quadrature.search import maximise, prior_sieve
from scipy.stats import kstest, multivariate_normal, norm

EVERYWHERE = np.full(2, -np.inf), np.full(2, np.inf)


def test_draws_from_a_correlated_normal():
    mean, covariance = np.array([3.0, -1.0]), np.array([[1.0, 9.9], [9.9, 100.0]])
    generator = np.random.default_rng(0)
    start = mean + 0.1 * generator.standard_normal((100, 2))
    target = multivariate_normal(mean, covariance)
    draws = sample_ensemble(target.logpdf, start, EVERYWHERE, 20_000, 60, 2, generator)
    assert draws.shape == (20_000, 2)
    assert np.all(draws[:100] != draws[100:200])  # every walker moves
    assert gskl(draws.mean(axis=0), np.cov(draws.T), mean, covariance) < 2e-3
    ensembles = draws.reshape(-1, 100, 2)[::10]  # twenty sweeps apart: as good as independent
    assert kstest(ensembles[:, :, 1].ravel(), norm(-1, 10).cdf).pvalue > 1e-3


def test_draws_keep_to_the_box_and_to_both_modes():
    """Weights 3 : 1 on two modes, half of the first cut off by the box."""

    def log_density(x):
        return np.logaddexp(np.log(3) - 2 * x[:, 0] ** 2, -2 * (x[:, 0] - 2.5) ** 2) - x[:, 1] ** 2

    generator = np.random.default_rng(1)
    start = generator.uniform([0.0, -1.0], [3.0, 1.0], size=(200, 2))
    box = np.array([0.0, -np.inf]), np.full(2, np.inf)
    draws = sample_ensemble(log_density, start, box, 40_000, 100, 2, generator)
    assert draws[:, 0].min() >= 0.0
    grid = np.linspace(0.0, 6.0, 6001)
    density = 3 * np.exp(-2 * grid**2) + np.exp(-2 * (grid - 2.5) ** 2)
    density /= density.sum()
    assert np.mean(draws[:, 0] > 1.25) == pytest.approx(density[grid > 1.25].sum(), abs=0.02)
    assert draws[:, 0].mean() == pytest.approx(grid @ density, abs=0.04)


def test_a_start_without_density_is_refused():
    start = np.zeros((10, 2))
    with pytest.raises(ValueError, match="positive and finite"):
        sample_ensemble(
            lambda x: np.full(len(x), -np.inf), start, EVERYWHERE, 10, 1, 1, np.random.default_rng()
        )
    with pytest.raises(ValueError, match="at least 4 walkers, not 3"):
        sample_ensemble(
            lambda x: -(x**2).sum(axis=1),
            start[:3],
            EVERYWHERE,
            10,
            1,
            1,
            np.random.default_rng(),
        )


def mixture():
    covariances = np.array([[[1.0, 0.4], [0.4, 0.5]], [[0.2, 0.0], [0.0, 0.3]]])
    return FittedMixture(np.array([0.7, 0.3]), np.array([[0.0, 1.0], [3.0, -1.0]]), covariances)


def draws_of(exact, n, seed):
    generator = np.random.default_rng(seed)
    counts = generator.multinomial(n, exact.weights)
    parts = zip(exact.means, exact.covariances, counts, strict=True)
    return np.vstack([generator.multivariate_normal(*part) for part in parts])


def test_the_density_of_a_mixture_is_scipys():
    exact = mixture()
    x = draws_of(exact, 50, seed=2)
    parts = zip(exact.weights, exact.means, exact.covariances, strict=True)
    expected = np.log(sum(w * multivariate_normal(m, c).pdf(x) for w, m, c in parts))
    np.testing.assert_allclose(exact.log_density(x), expected, rtol=1e-10)


def test_a_fitted_mixture_is_close_to_what_the_draws_came_from():
    exact = mixture()
    scale = np.array([1e-3, 50.0])  # units must not matter
    fitted = fit_mixture(draws_of(exact, 5000, seed=3) * scale, np.random.default_rng(4))
    held_out = draws_of(exact, 5000, seed=5)
    log_volume = np.log(scale).sum()
    divergence = exact.log_density(held_out) - (fitted.log_density(held_out * scale) + log_volume)
    assert abs(divergence.mean()) < 0.02


def test_the_surrogate_posterior_of_a_known_problem():
    problem = load_problem("lumpy-2-g0", None)
    generator = np.random.default_rng(6)
    points = problem.prior_mean + problem.prior_sd * 0.7 * generator.standard_normal((80, 2))
    log_joint = np.array([problem.log_joint(x) for x in points])
    log_joint[3] = -np.inf  # left out
    draws = surrogate_draws(problem, points, log_joint, generator)
    assert draws.shape == (20_000, 2)
    exact = problem.posterior_mean, problem.posterior_covariance
    assert gskl(draws.mean(axis=0), np.cov(draws.T), *exact) < 0.05


def test_the_search_finds_a_narrow_peak():
    peak = np.array([1.3, -0.4, 0.2])

    def criterion(z):
        value = -np.sum(((z - peak) / 0.05) ** 2, axis=1)
        value[z[:, 0] < -0.5] = np.nan  # a criterion may fail somewhere
        value[z[:, 1] < -1.0] = np.inf
        return value

    generator = np.random.default_rng(7)
    lengths = np.full(3, 0.3)
    sieve = prior_sieve(np.zeros((1, 3)), lengths, 400, generator)
    box = np.full(3, -1.5), np.full(3, 1.5)
    found = maximise(criterion, sieve, lengths, box, generator)
    np.testing.assert_allclose(found, peak, atol=0.05)
    cornered = maximise(lambda z: z.sum(axis=1), sieve, lengths, box, generator)
    np.testing.assert_allclose(cornered, box[1])
