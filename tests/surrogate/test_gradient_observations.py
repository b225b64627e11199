"""Each row of a gradient's against central differences of what is known of values."""

import numpy as np
import pytest
from tests.surrogate.support import samples_with_gradients, training_set, with_gradients
from tests.variational.support import random_mixture

from sparing.surrogate.covariance import cross_covariance
from sparing.surrogate.gradient_observations import ObservedGradients
from sparing.surrogate.kernel_expansion import KernelExpansion
from sparing.surrogate.layout import Hyperparameters
from sparing.surrogate.mean import negative_quadratic_mean
from sparing.surrogate.observations import ObservedValues, observations
from sparing.surrogate.training_set import TrainingSet

STEP = 1e-3
SIZES = [(1, 4), (2, 7), (4, 5)]


def differences(training):
    """Points P and weights W: a row is W f(P), whatever f is. (q, D) and (N, q)."""
    points, rows = [], []
    for x, known in zip(training.inputs, training.has_gradient, strict=True):
        rows.append({len(points): 1.0})
        points.append(x)
        for direction in STEP * np.eye(training.dimension) if known else ():
            rows.append({len(points): 0.5 / STEP, len(points) + 1: -0.5 / STEP})
            points.extend([x + direction, x - direction])
    weights = np.zeros((len(rows), len(points)))
    for row, entries in zip(weights, rows, strict=True):
        row[list(entries)] = list(entries.values())
    return np.array(points), weights


def case(dimension, n):
    training = with_gradients(training_set(dimension, n))
    sample = Hyperparameters.from_vector(samples_with_gradients(dimension, 1)[0])
    return training, observations(training), sample


@pytest.mark.parametrize(("dimension", "n"), SIZES)
def test_covariances(dimension, n):
    training, observed, sample = case(dimension, n)
    points, weights = differences(training)
    gram = observed.gram(sample.length_scales, sample.output_scale**2)
    expected = weights @ cross_covariance(sample, points, points) @ weights.T
    assert gram.shape == (observed.n_rows, observed.n_rows) == expected.shape
    np.testing.assert_allclose(gram, expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(gram, gram.T)
    given = np.empty_like(gram)
    assert observed.gram(sample.length_scales, sample.output_scale**2, given) is given
    np.testing.assert_array_equal(given, gram)
    queries = np.random.default_rng(3).normal(size=(6, dimension))
    expected = cross_covariance(sample, queries, points) @ weights.T
    np.testing.assert_allclose(observed.cross(sample, queries), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("with_gradient", [True, False])
def test_the_last_rows_are_those_of_the_whole_matrix(with_gradient):
    training, _, sample = case(3, 7)
    gradient = np.ones(3) if with_gradient else None
    observed = observations(training.with_point(np.full(3, 0.3), -9.0, 0.4, gradient))
    columns, corner = observed.last_rows(sample)
    n_new = 4 if with_gradient else 1
    whole = observed.gram(sample.length_scales, sample.output_scale**2)
    np.testing.assert_allclose(columns, whole[-n_new:, :-n_new], rtol=1e-12, atol=1e-12)
    noise = [sample.noise_sd**2 + 0.4] + [sample.gradient_noise_sd**2] * (n_new - 1)
    expected = whole[-n_new:, -n_new:] + np.diag(noise)
    np.testing.assert_allclose(corner, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("dimension", "n"), SIZES)
def test_the_mean_function_and_its_features(dimension, n):
    training, observed, sample = case(dimension, n)
    points, weights = differences(training)
    expected = weights @ negative_quadratic_mean(sample, points)
    np.testing.assert_allclose(observed.mean(sample), expected, rtol=1e-8, atol=1e-8)
    centre, unit = training.inputs.mean(axis=0), np.arange(1.0, dimension + 1.0)
    features = observed.features(centre, unit)
    plain = ObservedValues(TrainingSet(points, np.zeros(len(points)))).features(centre, unit)
    np.testing.assert_allclose(features[:-1], (plain @ weights.T)[:-1], rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(features[-1], observed.observed)


@pytest.mark.parametrize(("dimension", "n"), SIZES)
def test_convolutions_with_normals(dimension, n):
    training, observed, _ = case(dimension, n)
    points, weights = differences(training)
    psi, mixture = samples_with_gradients(dimension, 2), random_mixture(3, dimension, 4)
    expansion = observed.expansion(np.zeros((2, observed.n_rows)), psi)
    plain = KernelExpansion.of(points, np.zeros((2, len(points))), psi)
    for s in range(2):
        prior, rows = observed.convolved(expansion, s, *mixture.arrays[1:])
        expected_prior, z = plain.convolutions(s, *mixture.arrays[1:])
        np.testing.assert_array_equal(prior, expected_prior)
        np.testing.assert_allclose(rows, z @ weights.T, rtol=1e-5, atol=1e-5)


def test_rows_are_in_the_order_of_points_a_value_before_its_derivatives():
    gradients = np.array([[1.0, 2.0], [np.nan, np.nan], [3.0, 4.0], [5.0, np.nan]])
    values, noise = np.array([-1.0, -2.0, -3.0, -4.0]), np.array([0.1, 0.2, 0.3, 0.4])
    training = TrainingSet(np.arange(8.0).reshape(4, 2), values, noise, gradients=gradients)
    observed = observations(training)
    np.testing.assert_array_equal(observed.observed, [-1, 1, 2, -2, -3, 3, 4, -4])
    expected = [1.1, 4.0, 4.0, 1.2, 1.3, 4.0, 4.0, 1.4]
    np.testing.assert_allclose(observed.noise_variance(1.0, 2.0), expected)
    matrix, alpha = np.diag(np.arange(8.0)), np.full(8, 3.0)
    np.testing.assert_array_equal(observed.noise_traces(matrix, alpha), [36 - 14, 36 - 14])
    assert observed.noise_traces(matrix, np.arange(8.0))[1] == 1 + 4 + 25 + 36 - 14


def test_without_gradients_there_are_values_alone():
    training = training_set(2, 5)
    assert isinstance(observations(training), ObservedValues)
    lacking = TrainingSet(training.inputs, training.values, gradients=np.full((5, 2), np.nan))
    observed = observations(lacking)
    assert isinstance(observed, ObservedGradients)
    sample = Hyperparameters.from_vector(samples_with_gradients(2, 1)[0])
    shape = (sample.length_scales, sample.output_scale**2)
    np.testing.assert_allclose(observed.gram(*shape), observations(training).gram(*shape))
