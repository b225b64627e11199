"""The collapsed posterior and its training where gradients are known."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from tests.surrogate.support import (
    GivenPrior,
    samples_with_gradients,
    training_set,
    wide_prior,
    with_gradients,
)

from sparing.surrogate import collapsed_training
from sparing.surrogate.collapsed import COEFFICIENT_RANGES, CollapsedPosterior
from sparing.surrogate.collapsed_training import Collapsed, typical_surprise
from sparing.surrogate.empirical_prior import EmpiricalPrior
from sparing.surrogate.gaussian_process import condition
from sparing.surrogate.hyperparameters import HyperparameterPrior
from sparing.surrogate.layout import Layout
from sparing.surrogate.observations import observations
from sparing.surrogate.training_set import TrainingSet

SIZES = [(1, 8), (2, 10), (4, 12)]


def shifted(training, noise=0.0):
    """The training set with a maximum of zero, and noise that differs between its points."""
    noise_variance = noise * np.arange(1.0, training.n_points + 1.0)
    values, sds = training.values - training.values.max(), np.sqrt(10.0 * noise_variance)
    return replace(training, values=values, noise_variance=noise_variance, gradient_noise_sd=sds)


def thetas(dimension, count):
    return samples_with_gradients(dimension, count)[:, Layout(dimension, 1).theta]


@pytest.mark.parametrize("noise", [0.0, 0.001])
@pytest.mark.parametrize(("dimension", "n"), SIZES)
def test_likelihood_is_that_of_a_process_with_the_features_in_its_covariance(dimension, n, noise):
    training = shifted(with_gradients(training_set(dimension, n)), noise)
    prior = wide_prior(training)
    posterior = CollapsedPosterior(training, prior)
    observed, bounds = observations(training), posterior.layout.mean
    centre, unit = training.inputs.mean(axis=0), np.ptp(training.inputs, axis=0)
    features = observed.features(centre, unit)[:-1]
    known = (COEFFICIENT_RANGES * np.ptp(training.values)) ** 2 * features.T @ features
    differences = []
    for theta in thetas(dimension, 6):
        scales = np.exp(theta)
        covariance = observed.gram(scales[:dimension], scales[dimension] ** 2) + known
        covariance += np.diag(observed.noise_variance(scales[dimension + 1], scales[-1]))
        dense = multivariate_normal.logpdf(observed.observed, cov=covariance)
        expected = dense + posterior.prior.log_density(theta)
        found = posterior.at(theta)
        assert np.all((found.mean > prior.lower[bounds]) & (found.mean < prior.upper[bounds]))
        differences.append(found.value - expected)
    np.testing.assert_allclose(differences, differences[0], atol=1e-6)


@pytest.mark.parametrize("every", [0, 3])
@pytest.mark.parametrize(("dimension", "n"), SIZES)
def test_gradient_by_finite_differences(dimension, n, every):
    """By length scales, output scale, and both levels of noise."""
    training = shifted(with_gradients(training_set(dimension, n), every), 0.01)
    posterior = CollapsedPosterior(training, wide_prior(training))
    assert posterior.n_theta == dimension + 3
    for theta in thetas(dimension, 3):
        found, gradient = posterior.with_gradient(theta)
        assert found.value == posterior.at(theta).value
        expected = [
            (posterior.at(theta + s).value - posterior.at(theta - s).value) / 2e-4
            for s in 1e-4 * np.eye(theta.size)
        ]
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-4)


def test_the_mean_function_goes_between_the_parts_of_theta():
    training = shifted(with_gradients(training_set(2, 10)))
    posterior = CollapsedPosterior(training, wide_prior(training))
    found = posterior.at(thetas(2, 1)[0])
    psi = found.with_mean(found.mean)
    np.testing.assert_array_equal(psi[posterior.layout.theta], found.theta)
    np.testing.assert_array_equal(psi[posterior.layout.mean], found.mean)


def moved(psi, lengths, gradients):
    """Hyperparameters in other coordinates: logarithms of their units, and of slopes."""
    layout, psi = Layout.of(psi), psi.copy()
    psi[..., layout.log_lengths] += lengths
    psi[..., layout.mean_location] *= np.exp(lengths)
    psi[..., layout.log_mean_scales] += lengths
    psi[..., -1] += gradients
    return psi


@pytest.mark.parametrize("units", [[0.2, 0.2, 0.2], [0.2, 1.0, 30.0]])
def test_the_score_does_not_depend_on_units(units):
    """One level of noise is another in each coordinate: where they differ there is none."""
    training, psi = with_gradients(training_set(3, 12)), samples_with_gradients(3, 2)
    alike = len(set(units)) == 1
    psi[:, -1] = np.log(0.1 if alike else 1e-7)
    prior = wide_prior(training)
    lower, upper = prior.lower.copy(), prior.upper.copy()
    lower[-1] = np.log(1e-9)
    log_units = np.log(units)
    of_slopes = -log_units[0] if alike else 0.0
    inputs, gradients = training.inputs * units, training.gradients / units
    volumes = np.full(12, log_units.sum())
    other = replace(training, inputs=inputs, gradients=gradients, log_determinants=volumes)

    def score(data, samples, *shift):
        bounds = [moved(part, *shift) if shift else part for part in (prior.location, lower, upper)]
        given = HyperparameterPrior(bounds[0], prior.scale, *bounds[1:])
        return Collapsed(GivenPrior(given=given)).score(condition(data, samples), data)

    found = score(other, moved(psi, log_units, of_slopes), log_units, of_slopes)
    assert found == pytest.approx(score(training, psi), abs=1e-4)
    alone = other.values_alone()
    of_values = condition(alone, moved(psi, log_units, of_slopes)[:, :-1])
    assert abs(Collapsed().score(of_values, alone) - found) > 1.0  # gradients count


@pytest.mark.parametrize(("n_rows", "n_counted"), [(400, 8), (22, 5), (12, 0)])
def test_the_score_takes_the_units_of_the_gradients_that_count(n_rows, n_counted):
    """Where coordinates are bent they differ; of the others they are not asked for."""
    training, psi = with_gradients(training_set(2, 12)), samples_with_gradients(2, 2)
    units = np.random.default_rng(3).normal(size=12)
    best = [i for i in np.argsort(-training.values) if (i + 1) % 3][:n_counted]
    known = np.where(np.isin(np.arange(12), best), units, np.nan)
    strategy = Collapsed(n_rows_trained=n_rows)
    sets = [replace(training, log_determinants=part) for part in (np.zeros(12), units, known)]
    plain, other, partly = (strategy.score(condition(each, psi), each) for each in sets)
    assert other == pytest.approx(plain - units[best].sum(), abs=1e-9)
    assert partly == other


@pytest.mark.parametrize("sd", [0.0, 0.5])
def test_the_noise_of_gradients_is_learned(sd):
    training = with_gradients(training_set(2, 25), every=0)
    noise = sd * np.random.default_rng(1).normal(size=(25, 2))
    noisy = replace(training, gradients=training.gradients + noise)
    trained = Collapsed().train(noisy, None, np.random.default_rng(0))
    found = trained.sample(0)
    if sd:
        assert 0.3 < found.gradient_noise_sd < 0.8
    else:
        assert found.gradient_noise_sd < 0.02
    assert found.noise_sd < 0.02
    samples = Collapsed().train(noisy, 4, np.random.default_rng(0), trained)
    assert samples.parameters.shape == (4, 10)
    queries = np.random.default_rng(2).normal(size=(20, 2))
    truth = -0.5 * (queries**2).sum(axis=1) + np.sin(2.0 * queries[:, 0]) - 10.0
    mean, variance = samples.predict(queries)
    assert np.median(np.abs(mean - truth)) < 0.1
    assert np.all(np.abs(mean - truth) < 5.0 * np.sqrt(variance) + 0.02)


def test_what_was_found_without_gradients_is_no_start_with_them():
    training = training_set(2, 12)
    plain = Collapsed().train(training, None, np.random.default_rng(0))
    train = Collapsed().train
    one, other = (
        train(with_gradients(training), None, np.random.default_rng(0), previous)
        for previous in (plain, None)
    )
    np.testing.assert_array_equal(one.parameters, other.parameters)


def test_rows_are_limited_in_training_and_in_conditioning(monkeypatch):
    training = with_gradients(training_set(2, 12), every=0)
    asked = []

    def noted(data, prior):
        asked.append(data.n_rows)
        return CollapsedPosterior(data, prior)

    monkeypatch.setattr(collapsed_training, "CollapsedPosterior", noted)
    strategy = Collapsed(n_rows_trained=20, n_rows=31)
    trained = strategy.train(training, 2, np.random.default_rng(0))
    strategy.score(trained, trained.training)
    assert asked == [20, 20]
    assert trained.observations.n_rows == 30  # a whole gradient more would be 32
    best = np.argsort(-training.values)[:9]
    assert set(np.flatnonzero(trained.training.has_gradient)) == set(best)


def valley(inputs, sharpness):
    """Two slopes that meet at zero: a crease where the sharpness is large."""
    u = inputs[:, 0]
    values = np.logaddexp(sharpness * u, -sharpness * u) / sharpness
    return values, np.tanh(sharpness * u)[:, None]


@pytest.mark.parametrize(("sharpness", "counts"), [(1.0, 25), (40.0, 7)])
def test_gradients_that_contradict_the_hyperparameters_do_not_count(sharpness, counts):
    """Hyperparameters are of the seven best points, away from the crease or not."""
    inputs = np.sort(np.random.default_rng(3).uniform(-2.0, 2.0, 25))[:, None]
    values, gradients = valley(inputs, sharpness)
    values, gradients = values + 0.01 * (inputs[:, 0] - 2.0), gradients + 0.01
    training = TrainingSet(inputs, 10.0 * values, gradients=10.0 * gradients)
    strategy = Collapsed(n_rows_trained=32, n_rows=60)
    best = np.argsort(-values)[:7]
    psi = np.array(
        [[np.log(2.0), np.log(20.0), np.log(1e-2), 20.0, 0.0, np.log(5.0), np.log(1e-2)]]
    )
    process = strategy.condition(training, psi)
    assert process.training.has_gradient.sum() == counts
    np.testing.assert_array_equal(process.training.values, training.values)
    if counts == len(best):
        assert set(np.flatnonzero(process.training.has_gradient)) == set(best)
    assert typical_surprise(process) == pytest.approx(surprise_by_hand(process))


def surprise_by_hand(process):
    """Each point's rows taken out of the covariance, the value foreseen by the others."""
    observed, sample, first = (
        process.observations,
        process.sample(0),
        process.observations.first_row,
    )
    noise = observed.noise_variance(sample.noise_sd, sample.gradient_noise_sd)
    covariance = observed.gram(sample.length_scales, sample.output_scale**2) + np.diag(noise)
    offsets = observed.observed - observed.mean(sample)
    surprises = []
    for i, row in enumerate(first[:-1]):
        own = np.arange(row, first[i + 1])
        others = np.setdiff1d(np.arange(observed.n_rows), own)
        weights = np.linalg.solve(covariance[np.ix_(others, others)], covariance[others, row])
        variance = covariance[row, row] - weights @ covariance[others, row]
        surprises.append(abs(offsets[row] - weights @ offsets[others]) / np.sqrt(variance))
    return np.median(surprises)


def test_more_points_than_rows_leave_values_alone():
    training = with_gradients(training_set(2, 12))
    trained = Collapsed(n_rows_trained=5, n_rows=5).train(training, 2, np.random.default_rng(0))
    assert trained.observations.n_rows == 12
    assert trained.parameters.shape == (2, 10)
    assert np.isfinite(trained.predict(training.inputs)).all()


def test_the_prior_of_the_noise_of_gradients():
    training, layout = with_gradients(training_set(3, 20)), Layout(3, 1)
    steep = replace(training, gradients=1e3 * training.gradients)
    prior, plain = EmpiricalPrior().of(steep), EmpiricalPrior().of(training.values_alone())
    noise = layout.log_gradient_noise_sd
    assert prior.location[noise] == plain.location[layout.log_noise_sd]
    assert prior.scale[noise] == plain.scale[layout.log_noise_sd]
    assert prior.lower[noise] == plain.lower[layout.log_noise_sd]
    largest = np.nanmax(np.abs(steep.gradients))
    assert np.log(0.1 * largest) < prior.upper[noise] < np.log(100.0 * largest)
    for part in ("location", "scale", "lower", "upper"):
        np.testing.assert_array_equal(getattr(prior, part)[:-1], getattr(plain, part))
