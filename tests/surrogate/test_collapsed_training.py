"""Collapsed training: the maximum, samples of the posterior, and hard data.

The reference is the dense formula of support.py, which shares no code but the prior's.
"""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.surrogate.support import HARD, GivenPrior, dense_log_likelihood, training_set

from sparing.surrogate import collapsed_training
from sparing.surrogate.collapsed import COEFFICIENT_RANGES, CollapsedPosterior
from sparing.surrogate.collapsed_training import Collapsed
from sparing.surrogate.empirical_prior import EmpiricalPrior
from sparing.surrogate.gaussian_process import condition
from sparing.surrogate.hyperparameters import HyperparameterPrior
from sparing.surrogate.layout import Layout
from sparing.surrogate.training_set import TrainingSet

SETTINGS = Collapsed()


def prior_of(training, settings=SETTINGS.prior):
    return settings.of(training)


def train(training, prior, settings, n_samples, generator, previous=None):
    """Samples of psi, (S, 3D + 3), under the given prior; previous: earlier samples."""
    strategy = dataclasses.replace(settings, prior=GivenPrior(given=prior))
    earlier = None if previous is None else condition(training, previous)
    return strategy.train(training, n_samples, generator, earlier).parameters


def with_bounds(prior, **bounds):
    """The prior with other bounds: lower={index: value}, upper={...}."""
    lower, upper = prior.lower.copy(), prior.upper.copy()
    for array, changes in ((lower, bounds.get("lower", {})), (upper, bounds.get("upper", {}))):
        for index, value in changes.items():
            array[index] = value
    location = np.clip(prior.location, lower, upper)
    return HyperparameterPrior(location, prior.scale, lower, upper)


def loose(prior):
    """Bounds that the mean function does not meet, as the dense formula has none."""
    dimension = Layout.of(prior.location).dimension
    location, widths = np.split(np.arange(dimension + 3, prior.location.size), 2)
    wide = dict.fromkeys(location, 1e3)
    return with_bounds(
        prior,
        lower={i: -bound for i, bound in wide.items()},
        upper=wide | dict.fromkeys(widths, 9.0) | {dimension + 2: 1e3},
    )


def dense_log_likelihoods(training, thetas):
    sd = COEFFICIENT_RANGES * np.ptp(training.values)
    centred = TrainingSet(training.inputs, training.values - training.values.max())
    return dense_log_likelihood(centred, thetas, sd)


@pytest.mark.parametrize(("dimension", "n"), [(1, 10), (2, 25), (3, 40)])
def test_the_maximum_is_that_of_many_ascents_of_the_dense_formula(dimension, n):
    training = training_set(dimension, n)
    prior = loose(prior_of(training))
    size = dimension + 2
    found = train(training, prior, SETTINGS, None, np.random.default_rng(0))
    assert found.shape == (1, 3 * dimension + 3)

    def objective(theta):
        inside = np.clip(theta, *bounds.T)
        prior_density = prior.of_entries(np.arange(size)).log_density(inside)
        return -float(dense_log_likelihoods(training, inside)) - prior_density

    bounds = np.column_stack([prior.lower[:size], prior.upper[:size]])
    generator = np.random.default_rng(1)
    starts = prior.location[:size] + generator.normal(size=(6, size))
    starts[:, dimension] = generator.uniform(-2.0, 2.0, 6)  # its prior is flat
    ascents = [minimize(objective, start, method="L-BFGS-B", bounds=bounds) for start in starts]
    best = -min(ascent.fun for ascent in ascents)
    assert -objective(found[0, :size]) > best - 0.02


def test_the_mean_function_of_the_maximum_is_the_best_one():
    training = training_set(2, 25)
    prior = prior_of(training)
    (psi,) = train(training, prior, SETTINGS, None, np.random.default_rng(0))
    top = training.values.max()
    shifted = TrainingSet(training.inputs, training.values - top)
    found = CollapsedPosterior(shifted, prior.shifted(top)).at(psi[:4])
    mean = psi[4:].copy()
    mean[0] -= top
    np.testing.assert_allclose(mean, found.mean, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_samples_follow_the_posterior():
    """Moments and quantiles of theta in one dimension against a grid of the dense formula."""
    clean = training_set(1, 12, seed=3)
    noise = 0.3 * np.random.default_rng(5).normal(size=12)
    training = TrainingSet(clean.inputs, clean.values + noise)
    prior = with_bounds(
        loose(prior_of(training, EmpiricalPrior(noise_sd_location=0.3))),
        lower={0: -2.0, 1: -3.0, 2: -4.0},
        upper={0: 2.0, 1: 3.0, 2: 1.0},
    )
    edges = np.linspace(prior.lower[:3], prior.upper[:3], 33)
    axes = (0.5 * (edges[1:] + edges[:-1])).T
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    log_density = dense_log_likelihoods(training, grid)
    log_density += [prior.of_entries(np.arange(3)).log_density(theta) for theta in grid]
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    mean = weights @ grid
    sd = np.sqrt(weights @ (grid - mean) ** 2)
    settings = dataclasses.replace(SETTINGS, n_weighted_candidates=4000)
    samples = train(training, prior, settings, 1000, np.random.default_rng(0))[:, :3]
    np.testing.assert_allclose((samples.mean(axis=0) - mean) / sd, 0.0, atol=0.1)
    np.testing.assert_allclose(samples.std(axis=0) / sd, 1.0, atol=0.1)
    cells = weights.reshape(32, 32, 32)
    for index, others in enumerate([(1, 2), (0, 2), (0, 1)]):
        below = np.append(0.0, np.cumsum(cells.sum(axis=others)))
        quantiles = np.quantile(samples[:, index], [0.2, 0.5, 0.8])
        found = np.interp(quantiles, edges[:, index], below)
        np.testing.assert_allclose(found, [0.2, 0.5, 0.8], atol=0.06)


def test_few_candidates_give_distinct_samples():
    """What the default asks for: 40 candidates in 8 dimensions."""
    training = training_set(6, 40)
    prior = prior_of(training)
    samples = train(training, prior, SETTINGS, 8, np.random.default_rng(0))
    assert samples.shape == (8, 21)
    assert len(np.unique(samples[:, 0])) >= 5
    assert ((samples >= prior.lower) & (samples <= prior.upper)).all()


@pytest.mark.parametrize("spread", [0.01, 1.0, 300.0])
def test_weights_are_tempered_only_as_far_as_needed(spread):
    log_weights = spread * np.random.default_rng(0).normal(size=40)
    weights = collapsed_training._tempered_weights(log_weights, 8)
    assert weights.sum() == pytest.approx(1.0)
    effective = 1.0 / float(weights @ weights)
    assert effective >= 8.0
    np.testing.assert_array_equal(np.argsort(weights), np.argsort(log_weights))
    plain = np.exp(log_weights - log_weights.max())
    if plain.sum() ** 2 / (plain @ plain) >= 8.0:
        np.testing.assert_allclose(weights, plain / plain.sum())
    else:
        assert effective < 16.0
    np.testing.assert_array_equal(collapsed_training._tempered_weights(np.array([3.0]), 8), [1.0])


def test_the_maximum_stands_in_when_no_candidate_lies_within_the_bounds():
    training = training_set(2, 25)
    prior = prior_of(training)
    (best,) = train(training, prior, SETTINGS, None, np.random.default_rng(0))
    inside = np.flatnonzero((best > prior.lower + 1e-3) & (best < prior.upper - 1e-3))
    inside = inside[inside < 4]
    assert inside.size > 1
    narrow = with_bounds(
        prior,
        lower={i: best[i] - 1e-5 for i in range(4)},
        upper={i: best[i] + 1e-5 for i in range(4)},
    )
    samples = train(training, narrow, SETTINGS, 5, np.random.default_rng(1))
    np.testing.assert_array_equal(samples[:, :4], np.tile(samples[0, :4], (5, 1)))
    np.testing.assert_allclose(samples[0, :4], best[:4], atol=2e-5)
    assert len(np.unique(samples[:, 4])) == 5  # the mean function is drawn all the same


def test_entries_at_a_bound_stay_there():
    """Values without noise press its SD down to the floor; the rest is sampled."""
    training = training_set(2, 30)
    prior = prior_of(training)
    (best,) = train(training, prior, SETTINGS, None, np.random.default_rng(0))
    samples = train(training, prior, SETTINGS, 8, np.random.default_rng(0))
    at_bound = (best <= prior.lower) | (best >= prior.upper)
    assert at_bound[Layout(2).log_noise_sd]
    assert not at_bound[:4].all()
    for index in range(4):
        if at_bound[index]:
            np.testing.assert_array_equal(samples[:, index], best[index])
        else:
            assert len(np.unique(samples[:, index])) > 3


def test_every_entry_at_a_bound():
    training = training_set(2, 30)
    corner = {0: 5.0, 1: 5.0, 2: -8.0, 3: 2.0}  # a process that explains nothing, and noise
    prior = with_bounds(
        prior_of(training), lower=corner, upper={i: value + 0.1 for i, value in corner.items()}
    )
    samples = train(training, prior, SETTINGS, 4, np.random.default_rng(0))
    for index in range(4):
        bounds = prior.lower[index], prior.upper[index]
        assert samples[0, index] in bounds
        assert len(np.unique(samples[:, index])) == 1


@pytest.mark.parametrize("n_samples", [None, 6])
@pytest.mark.parametrize("offset", [-1e5, 1e5])
def test_an_offset_of_the_values_moves_only_the_mean_maximum(offset, n_samples):
    training = training_set(2, 20)
    moved = TrainingSet(training.inputs, training.values + offset)
    one, other = (
        train(data, prior_of(data), SETTINGS, n_samples, np.random.default_rng(0))
        for data in (training, moved)
    )
    expected = np.zeros_like(one)
    expected[:, Layout(2).mean_maximum] = offset
    # Values of 1e5 have lost five digits, and an ascent ends where two digits of theta are sure.
    np.testing.assert_allclose(other - one, expected, atol=0.01)


def test_earlier_samples_are_a_start(monkeypatch):
    """One evaluation per ascent, no random start: what is found was in the earlier samples."""
    training = training_set(3, 40)
    prior = prior_of(training)
    (good,) = train(training, prior, SETTINGS, None, np.random.default_rng(0))
    settings = dataclasses.replace(SETTINGS, n_random_starts=0)
    monkeypatch.setattr(collapsed_training, "MAX_EVALUATIONS", 1)
    (alone,) = train(training, prior, settings, None, np.random.default_rng(0))
    again = train(training, prior, settings, None, np.random.default_rng(0), good[None, :])
    np.testing.assert_allclose(again[0], good, atol=0.05)
    top = training.values.max()
    shifted = TrainingSet(training.inputs, training.values - top)
    posterior = CollapsedPosterior(shifted, prior.shifted(top))
    assert posterior.at(again[0, :5]).value >= posterior.at(good[:5]).value - 1e-6
    assert posterior.at(alone[:5]).value < posterior.at(good[:5]).value - 1.0


def test_same_seed_same_samples():
    training = training_set(2, 15)
    prior = prior_of(training)
    one, other, different = (
        train(training, prior, SETTINGS, 5, np.random.default_rng(seed)) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(one, other)
    assert not np.array_equal(one, different)


@pytest.mark.parametrize("n_samples", [None, 4])
@pytest.mark.parametrize("case", HARD)
def test_hard_data_is_survived(case, n_samples):
    training = HARD[case]
    prior = prior_of(training)
    samples = train(training, prior, SETTINGS, n_samples, np.random.default_rng(0))
    assert np.isfinite(samples).all()
    slack = 1e-9 * np.maximum(np.abs(prior.lower), np.abs(prior.upper))  # the offset's rounding
    assert ((samples >= prior.lower - slack) & (samples <= prior.upper + slack)).all()
    mean, variance = condition(training, samples).predict(training.inputs)
    assert np.isfinite(mean).all()
    assert np.isfinite(variance).all()


@pytest.mark.parametrize("n", [3, 10, 14])
def test_fewer_points_than_coefficients(n):
    training = training_set(6, n)
    prior = prior_of(training)
    samples = train(training, prior, SETTINGS, 4, np.random.default_rng(0))
    assert ((samples >= prior.lower) & (samples <= prior.upper)).all()
    again = train(training, prior, SETTINGS, 4, np.random.default_rng(1), samples)
    assert np.isfinite(again).all()


def estimates(n, noise_sd, seed=0):
    """A log density of two dimensions, nearly normal, known with noise."""
    generator = np.random.default_rng(seed)
    inputs = 0.3 * generator.standard_normal((n, 2))
    values = -1.5 * np.log1p(np.sum((inputs / 0.3) ** 2, axis=1))
    return TrainingSet(inputs, values + noise_sd * generator.standard_normal(n))


@pytest.mark.parametrize("noise_sd", [0.5, 2.0])
@pytest.mark.parametrize("trapped", [False, True], ids=["afresh", "from a short kernel"])
def test_noise_is_called_noise(noise_sd, trapped):
    """And not explained by a kernel that joins no two points, which would say so of every point."""
    training = estimates(100, noise_sd)
    prior = prior_of(training)
    previous = None
    if trapped:
        short = prior.location.copy()
        short[:4] = np.log([0.01, 0.01, noise_sd, 0.004])
        previous = short[None, :]
    (best,) = train(training, prior, SETTINGS, None, np.random.default_rng(0), previous)
    assert 0.7 * noise_sd < np.exp(best[3]) < 1.3 * noise_sd
    between = estimates(200, 0.0, seed=1).inputs
    _, variance = condition(training, best[None, :]).predict(between)
    assert np.median(variance) < 0.3 * noise_sd**2  # of a short kernel: all of it


@pytest.mark.parametrize("n", [20, 100])
def test_no_noise_is_seen_where_there_is_none(n):
    training = estimates(n, 0.0)
    (best,) = train(training, prior_of(training), SETTINGS, None, np.random.default_rng(0))
    assert np.exp(best[3]) < 0.01


def test_the_prior_is_that_of_the_data():
    training = training_set(2, 25)
    found = SETTINGS.train(training, 3, np.random.default_rng(0)).parameters
    expected = train(training, SETTINGS.prior.of(training), SETTINGS, 3, np.random.default_rng(0))
    np.testing.assert_array_equal(found, expected)


def test_the_score_is_the_largest_collapsed_posterior_among_the_samples():
    """Against the dense formula, whose constant cancels between two sets of samples."""
    training = training_set(2, 25)
    prior = loose(prior_of(training))
    strategy = Collapsed(GivenPrior(given=prior))
    generator = np.random.default_rng(6)
    psi = prior.location + 0.3 * generator.normal(size=(4, 9))
    psi[:, 2] = generator.uniform(-1.0, 1.0, 4)  # its prior is flat
    dense = dense_log_likelihoods(training, psi[:, :4])
    dense += [prior.of_entries(np.arange(4)).log_density(row[:4]) for row in psi]
    halves = (condition(training, psi[:2]), condition(training, psi[2:]))
    scores = [strategy.score(process, training) for process in halves]
    expected = np.max(dense[:2]) - np.max(dense[2:])
    assert scores[0] - scores[1] == pytest.approx(expected, rel=1e-6)


def test_conditioning_on_what_was_found_gives_the_same_process():
    trained = SETTINGS.train(training_set(2, 15), 3, np.random.default_rng(0))
    again = SETTINGS.condition(trained.training, trained.parameters)
    queries = np.random.default_rng(5).normal(size=(6, 2))
    np.testing.assert_array_equal(again.predict(queries), trained.predict(queries))


def test_bad_settings_are_errors():
    for name in ("n_ascents", "n_weighted_candidates", "n_rows_trained", "n_rows"):
        with pytest.raises(ValueError, match=f"{name} must be positive"):
            Collapsed(**{name: 0})
    with pytest.raises(ValueError, match="n_random_starts must not be negative"):
        Collapsed(n_random_starts=-1)
