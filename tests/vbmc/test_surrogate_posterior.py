"""The surrogate's posterior: its density, its proposals, and weights that integrate it."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from tests.variational.support import random_gp
from tests.vbmc.quadrature import bent, wavy

from sparing.surrogate.gaussian_process import TrainingSet, condition
from sparing.variational.expectation_maximisation import fitted_mixture
from sparing.variational.normal_mixture import NormalMixture
from sparing.vbmc.importance import log_sum, pareto_smooth
from sparing.vbmc.surrogate_posterior import (
    CAUTIOUS_VARIANCE,
    DEGREES,
    Density,
    HeavyTailed,
    WeightedSample,
    average_sd,
    believed,
    hopeful,
    weighted_sample,
)

MIXTURE = NormalMixture.of_covariances(
    np.array([0.3, 0.7]),
    np.array([[-1.0, 0.5], [1.5, 0.0]]),
    np.array([[[1.0, 0.6], [0.6, 1.0]], [[0.5, -0.2], [-0.2, 0.3]]]),
)
POINTS = 2.0 * np.random.default_rng(1).normal(size=(30, 2))
SURROGATES = pytest.mark.parametrize("case", [wavy, bent], ids=["1-D", "2-D"])


# ---------------------------------------------------------------------- the density


def test_what_is_believed_of_a_mean_and_a_variance():
    """In full up to 2, not at all from there on, and doubted beyond 4; or a quarter of that."""
    variance = np.array([0.0, 0.3, 2.0, 3.0, 4.0, 12.0])
    expected = np.array([0, 0.15, 1.0, 1.0, 1.0, -3.0])
    np.testing.assert_allclose(believed(np.full(6, -2.0), variance), -2.0 + expected)
    found = believed(np.full(6, -2.0), 0.25 * variance, CAUTIOUS_VARIANCE)
    np.testing.assert_allclose(found, -2.0 + 0.25 * expected)


def test_what_is_hoped_is_the_mean_of_a_log_normal_up_to_a_limit():
    found = hopeful(np.array([1.0, 1.0, 1.0]), np.array([0.0, 6.0, 100.0]))
    np.testing.assert_allclose(found, [1.0, 4.0, 4.0])
    draws = np.exp(1.0 + 0.9 * np.random.default_rng(2).normal(size=200_000))
    assert np.log(draws.mean()) == pytest.approx(hopeful(1.0, 0.9**2), abs=0.02)


def test_moments_are_marginal_over_the_samples():
    """Up to the variance within samples, of which one stands for all."""
    gp = random_gp(12, 2, 4, 3)
    points = 1.5 * np.random.default_rng(4).normal(size=(2500, 2))
    mean, variance = Density(gp).moments(points)
    means, variances = gp.predict_each(points)
    np.testing.assert_allclose(mean, means.mean(axis=0), rtol=1e-9)
    expected = variances[0] + means.var(axis=0)
    np.testing.assert_allclose(variance, expected, rtol=1e-6, atol=1e-9)
    one = gp.subset(np.array([2]))
    np.testing.assert_allclose(Density(one).moments(points)[1], one.predict(points)[1], rtol=1e-9)


def test_hope_grows_with_what_held_out_draws_show():
    gp, points = random_gp(12, 2, 3, 5), np.random.default_rng(6).normal(size=(2100, 2))
    means, variances = gp.predict_each(points)
    for inflation in (1.0, 4.0):
        found = Density(gp, inflation).hopeful(points)
        mean, variance = means[:2].mean(axis=0), inflation * variances[0]
        np.testing.assert_allclose(found, mean + 0.5 * np.minimum(variance, 6.0), rtol=1e-9)
        bold = Density(gp, inflation).bold(points)
        np.testing.assert_allclose(bold, mean + np.minimum(2 * np.sqrt(variance), 6.0), rtol=1e-9)


# ---------------------------------------------------------------------- proposals


def test_the_proposal_is_a_mixture_of_scipy_s_t_distributions():
    log_p, log_ratios = HeavyTailed(MIXTURE).log_densities(POINTS)
    parts = list(zip(MIXTURE.means, MIXTURE.covariances, strict=True))
    t = [stats.multivariate_t(mu, shape, df=DEGREES).logpdf(POINTS) for mu, shape in parts]
    expected = logsumexp(t, axis=0, b=MIXTURE.weights[:, None])
    np.testing.assert_allclose(log_p, expected, rtol=1e-9)
    normal = [stats.multivariate_normal(mu, shape).logpdf(POINTS) for mu, shape in parts]
    np.testing.assert_allclose(log_ratios, np.transpose(normal) - expected[:, None], rtol=1e-8)


def test_draws_of_the_proposal_have_its_density():
    draws = HeavyTailed(MIXTURE).sample(4000, np.random.default_rng(7))
    for i, column in enumerate(draws.T):
        parts = [
            stats.t(DEGREES, mu[i], np.sqrt(shape[i, i]))
            for mu, shape in zip(MIXTURE.means, MIXTURE.covariances, strict=True)
        ]

        def distribution(x, parts=parts):
            return sum(w * part.cdf(x) for w, part in zip(MIXTURE.weights, parts, strict=True))

        assert stats.kstest(column, distribution).pvalue > 0.01
    spread = np.cov(draws.T)
    np.testing.assert_allclose(spread[0, 1], -0.035 * DEGREES / (DEGREES - 2) - 0.2625, atol=0.2)


def test_control_variates_have_the_mean_one():
    """And with evenly spread draws they have it with a much smaller error than random ones."""
    proposal, n = HeavyTailed(MIXTURE), 2000
    means = []
    for seed in range(20):
        points = proposal.sample(n, np.random.default_rng(seed))
        ratios = np.exp(proposal.log_densities(points)[1])
        means.append(ratios.mean(axis=0))
    random_error = ratios.std(axis=0) / np.sqrt(n)
    error = np.std(means, axis=0)
    assert np.all(np.abs(np.mean(means, axis=0) - 1.0) < 4.0 * error / np.sqrt(20))
    assert np.all(error < 0.5 * random_error)


def test_draws_are_shifted_at_random_but_repeat():
    proposal = HeavyTailed(MIXTURE)
    one, same, other = (proposal.sample(50, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.any(one == other)


# ---------------------------------------------------------------------- weights


def covering_proposal(exact, n_components=10):
    """One that knows the posterior from draws of the grid."""
    points = exact.sample(3000, 8)
    even = np.full(len(points), 1.0 / len(points))
    return HeavyTailed(fitted_mixture(points, even, n_components, 5, np.random.default_rng(9)))


@SURROGATES
def test_weighted_draws_integrate_the_posterior(case):
    surrogate, exact = case()
    proposal = covering_proposal(exact)
    # Ten generators have covariances with a scatter of 0.03 about the exact one.
    sample = weighted_sample(Density(surrogate), proposal, 16384, np.random.default_rng(10))
    assert sample.log_evidence == pytest.approx(exact.log_evidence, abs=0.01)
    assert sample.probabilities.sum() == pytest.approx(1.0)
    sd = np.sqrt(np.diag(exact.covariance))
    mean = sample.probabilities @ sample.points
    assert np.all(np.abs(mean - exact.mean) < 0.03 * sd)
    found = ((sample.points - mean).T * sample.probabilities) @ (sample.points - mean)
    np.testing.assert_allclose(
        found / np.outer(sd, sd), exact.covariance / np.outer(sd, sd), atol=0.1
    )
    np.testing.assert_allclose(sample.variance, Density(surrogate).moments(sample.points)[1])


@SURROGATES
def test_control_variates_leave_the_estimate_unbiased_and_its_error_honest(case):
    """Over many generators, with as many draws as an iteration makes; evenly spread ones are
    mostly better than their sd says. Single errors of 1/1000 nat may be larger, hence the median.
    """
    surrogate, exact = case()
    density, proposal, n = Density(surrogate), covering_proposal(exact), 4096
    estimates, sds, plain_sds = [], [], []
    for seed in range(60):
        sample = weighted_sample(density, proposal, n, np.random.default_rng(seed))
        estimates.append(sample.log_evidence)
        sds.append(sample.monte_carlo_sd)
        plain_sds.append(n * sample.probabilities.std() / np.sqrt(n))
    errors = np.array(estimates) - exact.log_evidence
    assert abs(errors.mean()) < 0.3 * np.mean(sds)
    spread = np.median(np.abs(errors)) / 0.6745
    assert 0.2 * np.mean(sds) < spread < 1.1 * np.mean(sds)
    assert np.mean(np.abs(errors) < 2.0 * np.array(sds)) > 0.93
    assert np.mean(sds) < 0.85 * np.mean(plain_sds)  # they are of use


def test_a_component_without_a_draw_near_it_does_not_stop_the_regression():
    """Its control is -1 everywhere, which the regression cannot tell from the constant."""
    surrogate, exact = wavy()
    good = covering_proposal(exact).mixture
    lonely = NormalMixture(
        np.append((1.0 - 1e-5) * good.weights, 1e-5),
        np.vstack([good.means, [[40.0]]]),
        np.concatenate([good.factors, np.full((1, 1, 1), 0.01)]),
    )
    one, other = (
        weighted_sample(Density(surrogate), HeavyTailed(q), 1024, np.random.default_rng(11))
        for q in (good, lonely)
    )
    assert other.monte_carlo_sd == pytest.approx(one.monte_carlo_sd, rel=0.05)
    assert other.monte_carlo_sd < 0.9 * np.std(1024 * other.probabilities) / np.sqrt(1024)


def test_few_draws_are_not_regressed_on_many_components():
    """Where controls are as many as draws, the regression would explain anything."""
    surrogate, exact = wavy()
    proposal = covering_proposal(exact, n_components=10)
    density = Density(surrogate)
    sample = weighted_sample(density, proposal, 150, np.random.default_rng(11))
    log_p, _ = proposal.log_densities(sample.points)
    log_density = density.log_density(*density.moments(sample.points))
    log_weights, _ = pareto_smooth(log_density - log_p)
    assert sample.log_evidence == pytest.approx(log_sum(log_weights) - np.log(150))
    weights = 150 * sample.probabilities
    assert sample.monte_carlo_sd == pytest.approx(weights.std() / np.sqrt(150))


def test_what_is_not_excluded_is_the_curvature():
    """On a grid: the mean of exp(f) up to its limit, less what a cautious reader believes."""
    surrogate, exact = wavy()
    mean, variance = Density(surrogate).moments(exact.points)
    wide = NormalMixture.of_covariances(np.ones(1), np.zeros((1, 1)), np.full((1, 1, 1), 4.0))
    found = {}
    for inflation in (1.0, 3.0):
        density = Density(surrogate, inflation)
        sample = weighted_sample(density, HeavyTailed(wide), 4096, np.random.default_rng(12))
        hoped = hopeful(mean, inflation * variance)
        known = believed(mean, variance, CAUTIOUS_VARIANCE)
        expected = np.logaddexp.reduce(hoped) - np.logaddexp.reduce(known)
        assert sample.curvature == pytest.approx(expected, abs=0.03)
        found[inflation] = sample
    assert found[3.0].curvature > found[1.0].curvature + 0.2 > 0.25
    assert found[3.0].log_evidence == found[1.0].log_evidence  # hope is not belief


def sample_of(points, probabilities):
    variance = np.zeros(len(points))
    return WeightedSample(points, variance, probabilities, 0.0, 0.0, 0.0, 0.0)


def test_equally_weighted_draws_are_as_many_as_their_probabilities_say():
    points = np.arange(4.0)[:, None]
    sample = sample_of(points, np.array([0.1, 0.0, 0.6, 0.3]))
    draws = sample.equally_weighted(100, np.random.default_rng(13))[:, 0]
    np.testing.assert_allclose(np.bincount(draws.astype(int), minlength=4), [10, 0, 60, 30], atol=1)


def test_a_sample_is_worth_so_many_equal_draws():
    points = np.zeros((4, 1))
    assert sample_of(points, np.full(4, 0.25)).effective_size == pytest.approx(4.0)
    assert sample_of(points, np.array([0.5, 0.5, 0.0, 0.0])).effective_size == pytest.approx(2.0)


def test_a_mixture_has_as_many_components_as_the_draws_support():
    """Four effective draws for each of D + 1 rows."""
    points = np.random.default_rng(14).normal(size=(240, 2))
    sample = sample_of(points, np.full(240, 1.0 / 240))
    generator = np.random.default_rng(15)
    assert sample.mixture(50, generator).n_components == 20
    assert sample.mixture(7, generator).n_components == 7
    few = sample_of(points, np.where(np.arange(240) < 60, 1.0 / 60, 0.0))
    assert few.mixture(50, generator).n_components == 5
    lonely = sample_of(points, np.append(np.full(239, 1e-9), 1.0 - 239e-9))
    assert lonely.mixture(7, generator).n_components == 1


# ---------------------------------------------------------------------- its error


def test_the_average_s_error_is_that_of_functions_drawn_from_the_surrogate():
    gp = random_gp(10, 2, 2, 16)
    points = np.random.default_rng(17).normal(size=(40, 2))
    generator = np.random.default_rng(18)
    averages = []
    for s, covariance in enumerate(gp.covariance(points, points)):
        mean = gp.predict_each(points)[0][s]
        symmetric = 0.5 * (covariance + covariance.T) + 1e-10 * np.eye(40)
        averages.append(generator.multivariate_normal(mean, symmetric, size=20_000).mean(axis=1))
    assert average_sd(gp, points) == pytest.approx(np.std(averages), rel=0.02)


def test_to_first_order_it_is_the_error_of_the_log_evidence():
    """Of functions drawn on a grid, each integrated."""
    inputs = np.linspace(-3.0, 3.0, 7)[:, None]
    psi = np.array([np.log(0.6), np.log(0.5), np.log(1e-3), 0.0, 0.0, 0.0])
    gp = condition(TrainingSet(inputs, -0.5 * inputs[:, 0] ** 2), psi[None, :])
    grid = np.linspace(-5.0, 5.0, 201)[:, None]
    covariance = gp.covariance(grid, grid)[0] + 1e-9 * np.eye(201)
    draws = np.random.default_rng(19).multivariate_normal(gp.predict(grid)[0], covariance, 4000)
    expected = np.logaddexp.reduce(draws, axis=1).std()
    points = np.random.default_rng(20).normal(size=(1000, 1))  # the posterior
    assert average_sd(gp, points) == pytest.approx(expected, rel=0.25)
    assert expected > 0.01
