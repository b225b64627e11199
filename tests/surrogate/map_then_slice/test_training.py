"""MAP fits are optima; slice samples follow the posterior; both survive hard data."""

import dataclasses

import numpy as np
import pytest
from scipy import stats
from tests.surrogate.support import HARD, training_set, with_gradients

from sparing.surrogate.empirical_prior import EmpiricalPrior
from sparing.surrogate.gaussian_process import (
    TrainingSet,
    condition,
    log_marginal_likelihood,
    log_marginal_likelihood_and_gradient,
)
from sparing.surrogate.hyperparameters import HyperparameterPrior
from sparing.surrogate.layout import Layout
from sparing.surrogate.map_then_slice.training import MapThenSlice, fit_map, sample_posterior

PAPER = MapThenSlice()
# With the prior that we recommend, a shorter chain, and slices that are stepped out only so far.
DEFAULT = MapThenSlice(EmpiricalPrior(), burn_in_sweeps=15, thinning=2, max_slice_widths=8)
PRESETS = {"paper": PAPER, "default": DEFAULT}


def log_posterior(training, prior, psi) -> float:
    return log_marginal_likelihood(training, psi) + prior.log_density(psi)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(("dimension", "n"), [(1, 12), (2, 25), (4, 60)])
def test_map_is_a_stationary_point_or_at_a_bound(dimension, n, preset):
    settings = dataclasses.replace(PRESETS[preset], n_map_evaluations=1000)
    training = training_set(dimension, n)
    prior = settings.prior.of(training)
    psi = fit_map(training, prior, settings, np.random.default_rng(0))

    def gradient(point):
        return log_marginal_likelihood_and_gradient(training, point)[1] + prior.gradient(point)

    slope = gradient(psi)
    at_lower = (psi <= prior.lower + 1e-9) & (slope < 0.0)
    at_upper = (psi >= prior.upper - 1e-9) & (slope > 0.0)
    for index in np.flatnonzero(~(at_lower | at_upper)):
        step = np.zeros_like(psi)
        step[index] = 1e-5
        curvature = (gradient(psi - step) - gradient(psi + step))[index] / 2e-5
        # What moving this entry alone could still gain, in nats.
        assert 0.5 * slope[index] ** 2 / max(abs(curvature), 0.1) < 0.02


def test_no_perturbation_of_the_map_is_better():
    training = training_set(2, 25)
    settings = DEFAULT
    prior = settings.prior.of(training)
    psi = fit_map(training, prior, settings, np.random.default_rng(0))
    best = log_posterior(training, prior, psi)
    generator = np.random.default_rng(1)
    for scale in (0.01, 0.1, 1.0):
        for _ in range(100):
            other = prior.clip(psi + scale * generator.normal(size=psi.size))
            assert log_posterior(training, prior, other) < best + 1e-3


def test_map_finds_the_quadratic_of_a_normal_density():
    """With a normal log density the mean function explains everything."""
    generator = np.random.default_rng(2)
    inputs = generator.normal(size=(40, 2)) * [1.0, 3.0]
    location, scales = np.array([0.5, -1.0]), np.array([0.7, 2.0])
    values = -5.0 - 0.5 * (((inputs - location) / scales) ** 2).sum(axis=1)
    training = TrainingSet(inputs, values)
    settings = DEFAULT
    prior = settings.prior.of(training)
    psi = fit_map(training, prior, settings, generator)
    layout = Layout(2)
    np.testing.assert_allclose(psi[layout.mean_location], location, atol=0.01)
    np.testing.assert_allclose(np.exp(psi[layout.log_mean_scales]), scales, rtol=0.01)
    assert psi[layout.mean_maximum] == pytest.approx(-5.0, abs=0.02)


def test_an_earlier_fit_is_never_lost():
    training = training_set(3, 40)
    settings = dataclasses.replace(DEFAULT, n_map_candidates=0, n_map_evaluations=1)
    prior = settings.prior.of(training)
    good = fit_map(training, prior, DEFAULT, np.random.default_rng(0))
    alone = fit_map(training, prior, settings, np.random.default_rng(0))
    again = fit_map(training, prior, settings, np.random.default_rng(0), good[None, :])
    assert log_posterior(training, prior, alone) < log_posterior(training, prior, good) - 1.0
    assert log_posterior(training, prior, again) >= log_posterior(training, prior, good) - 1e-6


@pytest.mark.parametrize("offset", [-1e5, 1e5])
def test_an_offset_of_the_values_moves_only_the_mean_maximum(offset):
    training = training_set(2, 20)
    shifted = TrainingSet(training.inputs, training.values + offset)
    settings = dataclasses.replace(DEFAULT, burn_in_sweeps=3)
    fits, samples = [], []
    for data in (training, shifted):
        prior = settings.prior.of(data)
        fits.append(fit_map(data, prior, settings, np.random.default_rng(0)))
        start = fits[0].copy()
        start[Layout(2).mean_maximum] += offset if data is shifted else 0.0
        generator = np.random.default_rng(1)
        samples.append(sample_posterior(data, prior, settings, start, 2, generator))
    expected = np.zeros(9)
    expected[Layout(2).mean_maximum] = offset
    np.testing.assert_allclose(fits[1] - fits[0], expected, atol=2e-3)
    np.testing.assert_allclose(samples[1] - samples[0], expected[None, :] * [[1], [1]], atol=1e-4)


def concentrated_prior(training: TrainingSet) -> HyperparameterPrior:
    """Informative everywhere, so that importance sampling can serve as the reference."""
    prior = DEFAULT.prior.of(training)
    location = np.array([-0.2, 0.3, np.log(0.3), training.values.max(), 0.1, 0.2])
    return HyperparameterPrior(location, np.full(6, 0.4), prior.lower, prior.upper)


@pytest.mark.slow
def test_samples_follow_the_posterior():
    """Against self-normalised importance sampling from a Student-t around the optimum."""
    training = training_set(1, 8)
    prior = concentrated_prior(training)
    settings = dataclasses.replace(DEFAULT, burn_in_sweeps=100, thinning=5)
    generator = np.random.default_rng(0)
    start = fit_map(training, prior, settings, generator)
    samples = sample_posterior(training, prior, settings, start, 1500, generator)
    # The proposal's shape comes from the samples, widened; its correctness does not depend on it.
    proposal = stats.multivariate_t(samples.mean(axis=0), 1.5 * np.cov(samples.T), df=5, seed=1)
    draws = proposal.rvs(20_000)
    log_weights = np.array([log_posterior_or_nothing(training, prior, psi) for psi in draws])
    log_weights -= proposal.logpdf(draws)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    assert 1.0 / (weights**2).sum() > 2000.0  # the reference itself can be trusted
    mean = weights @ draws
    sd = np.sqrt(weights @ (draws - mean) ** 2)
    np.testing.assert_allclose((samples.mean(axis=0) - mean) / sd, 0.0, atol=0.15)
    np.testing.assert_allclose(samples.std(axis=0) / sd, 1.0, atol=0.12)
    for q in (0.1, 0.5, 0.9):  # the whole of each marginal, not only two moments
        for column, drawn in zip(samples.T, draws.T, strict=True):
            order = np.argsort(drawn)
            quantile = drawn[order][np.searchsorted(np.cumsum(weights[order]), q)]
            assert abs(np.mean(column <= quantile) - q) < 0.06


def log_posterior_or_nothing(training, prior, psi) -> float:
    within = np.isfinite(prior.log_density(psi))
    return log_posterior(training, prior, psi) if within else -np.inf


def test_samples_stay_within_the_bounds_and_repeat():
    training = training_set(2, 15)
    settings = DEFAULT
    prior = settings.prior.of(training)
    start = fit_map(training, prior, settings, np.random.default_rng(0))
    runs = [
        sample_posterior(training, prior, settings, start, 5, np.random.default_rng(3))
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*runs)
    assert runs[0].shape == (5, 9)
    assert ((runs[0] >= prior.lower) & (runs[0] <= prior.upper)).all()
    assert len(np.unique(runs[0][:, 0])) == 5


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("case", HARD)
def test_hard_data_is_survived(case, preset):
    settings = dataclasses.replace(PRESETS[preset], burn_in_sweeps=2, thinning=1)
    training = HARD[case]
    prior = settings.prior.of(training)
    generator = np.random.default_rng(0)
    psi = fit_map(training, prior, settings, generator)
    samples = sample_posterior(training, prior, settings, psi, 3, generator)
    for candidate in (psi, *samples):
        assert np.isfinite(prior.log_density(candidate))
    mean, variance = condition(training, samples).predict(training.inputs)
    assert np.isfinite(mean).all()
    assert np.isfinite(variance).all()


def test_training_gives_the_best_psi_or_samples_of_it():
    training = training_set(2, 15)
    best = PAPER.train(training, None, np.random.default_rng(0))
    expected = fit_map(training, PAPER.prior.of(training), PAPER, np.random.default_rng(0))
    np.testing.assert_array_equal(best.parameters, expected[None, :])
    sampled = DEFAULT.train(training, 3, np.random.default_rng(0))
    assert sampled.parameters.shape == (3, 9)
    assert len(np.unique(sampled.parameters[:, 0])) == 3


def test_training_starts_from_the_earlier_process():
    training = training_set(3, 40)
    hasty = dataclasses.replace(DEFAULT, n_map_candidates=0, n_map_evaluations=1)
    good = DEFAULT.train(training, None, np.random.default_rng(0))
    alone = hasty.train(training, None, np.random.default_rng(0))
    again = hasty.train(training, None, np.random.default_rng(0), good)
    poor, best, found = (hasty.score(process, training) for process in (alone, good, again))
    assert poor < best - 1.0
    assert found >= best - 1e-6


def test_the_score_is_the_largest_log_posterior_among_the_samples():
    training = training_set(2, 15)
    prior = PAPER.prior.of(training)
    psi = prior.clip(prior.location + 0.2 * np.random.default_rng(4).normal(size=(3, 9)))
    expected = max(log_posterior(training, prior, row) for row in psi)
    assert PAPER.score(condition(training, psi), training) == pytest.approx(expected, rel=1e-9)


def test_conditioning_on_what_was_found_gives_the_same_process():
    trained = PAPER.train(training_set(2, 15), None, np.random.default_rng(0))
    again = PAPER.condition(trained.training, trained.parameters)
    queries = np.random.default_rng(5).normal(size=(6, 2))
    np.testing.assert_array_equal(again.predict(queries), trained.predict(queries))


def test_bad_settings_are_errors():
    for name in ("n_map_starts", "n_map_evaluations", "thinning", "max_slice_widths"):
        with pytest.raises(ValueError, match=f"{name} must be positive"):
            MapThenSlice(**{name: 0})
    for name in ("burn_in_sweeps", "n_map_candidates"):
        with pytest.raises(ValueError, match=f"{name} must not be negative"):
            MapThenSlice(**{name: -1})


def test_gradients_are_left_aside():
    """To the last bit, as the paper knows none."""
    training = training_set(2, 15)
    found = []
    for data in (training, with_gradients(training)):
        trained = PAPER.train(data, 2, np.random.default_rng(0))
        again = PAPER.condition(data, trained.parameters)
        longer = trained.append(np.array([0.1, 0.2]), -9.0, 0.0, np.ones(2))
        processes = (trained, again, longer)
        assert all(gp.training.gradients is None for gp in processes)
        found.append([part for gp in processes for part in (gp.parameters, gp.cholesky, gp.alpha)])
        found[-1].append(PAPER.score(trained, data))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
