"""A process that knows gradients: against one that is told more values, and point by point."""

from dataclasses import replace

import numpy as np
import pytest
from tests.surrogate.support import samples_with_gradients, training_set, with_gradients

from sparing.surrogate.gaussian_process import condition
from sparing.surrogate.layout import Layout
from sparing.surrogate.training_set import TrainingSet

STEP, NOISE = 1e-3, 1e-6
SIZES = [(1, 4), (2, 8), (4, 10)]


def told_values_nearby(training):
    """Values at x + h e_i where the gradient is known, which tell the same as it."""
    inputs, values = [*training.inputs], [*training.values]
    for row in np.flatnonzero(training.has_gradient):
        rise = STEP * training.gradients[row]
        inputs.extend(training.inputs[row] + STEP * np.eye(training.dimension))
        values.extend(training.values[row] + rise)
    return TrainingSet(np.array(inputs), np.array(values))


def nearly_noiseless(dimension, count=2):
    psi = samples_with_gradients(dimension, count)
    psi[:, Layout(dimension).log_noise_sd] = np.log(NOISE)
    psi[:, -1] = np.log(np.sqrt(2.0) * NOISE / STEP)  # that of a difference
    return psi


@pytest.mark.parametrize("every", [0, 3])
@pytest.mark.parametrize(("dimension", "n"), SIZES)
def test_a_gradient_is_as_good_as_values_close_by(dimension, n, every):
    training = with_gradients(training_set(dimension, n), every)
    psi = nearly_noiseless(dimension)
    gp = condition(training, psi)
    reference = condition(told_values_nearby(training), psi[:, :-1])
    assert gp.observations.n_rows == reference.training.n_points == training.n_rows
    a, b = np.random.default_rng(4).normal(size=(2, 6, dimension))
    for found, expected in zip(gp.predict_each(a), reference.predict_each(a), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0.01, atol=0.01)
    covariance = gp.covariance(a, b)
    np.testing.assert_allclose(covariance, reference.covariance(a, b), atol=0.01)
    ignorant = condition(training.values_alone(), psi[:, :-1])
    assert np.max(ignorant.predict(a)[1] - gp.predict(a)[1]) > 0.05  # gradients do matter


def test_many_queries_and_few_give_the_same_prediction():
    gp = condition(with_gradients(training_set(3, 10)), samples_with_gradients(3, 2))
    queries = np.random.default_rng(2).normal(size=(100, 3))
    inverted, few = gp.predict_each(queries), gp.predict_each(queries[:20])
    for whole, part in zip(inverted, few, strict=True):
        np.testing.assert_allclose(whole[:, :20], part, rtol=1e-9, atol=1e-9)
    variances = np.stack([np.diag(c) for c in gp.covariance(queries, queries)])
    np.testing.assert_allclose(inverted[1], variances, atol=1e-9)


def test_a_noisy_gradient_tells_nothing():
    training, psi = with_gradients(training_set(2, 8)), samples_with_gradients(2, 2)
    psi[:, -1] = np.log(1e6)
    queries = np.random.default_rng(2).normal(size=(5, 2))
    found = condition(training, psi).predict_each(queries)
    plain = condition(training.values_alone(), psi[:, :-1]).predict_each(queries)
    np.testing.assert_allclose(found, plain, rtol=1e-6, atol=1e-6)


def test_gradients_have_noise_of_their_own():
    """Those that have a lot tell nothing, and the others what they told."""
    training, psi = with_gradients(training_set(2, 9)), samples_with_gradients(2, 2)
    noisy = np.arange(9) % 2 == 0
    lacking = replace(training, gradients=np.where(noisy[:, None], np.nan, training.gradients))
    queries = np.random.default_rng(2).normal(size=(5, 2))
    found = condition(replace(training, gradient_noise_sd=1e6 * noisy), psi).predict_each(queries)
    expected = condition(lacking, psi).predict_each(queries)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    exact = condition(training, psi).predict_each(queries)
    assert np.max(np.abs(found[0] - exact[0])) > 0.1


@pytest.mark.parametrize("every", [0, 3])
def test_points_are_appended_with_their_gradients_and_without(every):
    training = with_gradients(training_set(3, 9), every)
    psi, generator = samples_with_gradients(3, 3), np.random.default_rng(6)
    gp = condition(training, psi)
    for gradient in (np.ones(3), None, generator.normal(size=3), None):
        x, y = generator.normal(size=3), float(generator.normal(-10.0))
        gp = gp.append(x, y, 0.3, gradient)
        training = training.with_point(x, y, 0.3, gradient)
    fresh = condition(training, psi)
    assert gp.cholesky.shape[1] == training.n_rows == fresh.cholesky.shape[1]
    np.testing.assert_allclose(gp.cholesky, fresh.cholesky, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(gp.alpha, fresh.alpha, rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(gp.jitter, 0.0)


def test_a_gradient_is_left_aside_where_the_set_has_none():
    training, psi = training_set(2, 6), samples_with_gradients(2, 1)[:, :-1]
    x, queries = np.array([0.2, 0.3]), np.zeros((1, 2))
    one = condition(training, psi).append(x, -9.0, 0.0, np.ones(2))
    other = condition(training, psi).append(x, -9.0)
    np.testing.assert_array_equal(one.predict(queries), other.predict(queries))


@pytest.mark.parametrize("with_gradient", [True, False])
def test_a_duplicate_without_noise_falls_back_to_jitter(with_gradient):
    training = with_gradients(training_set(2, 6), every=0)
    psi = samples_with_gradients(2, 1)
    psi[:, [3, -1]] = np.log(1e-12)
    gp = condition(training, psi)
    assert gp.jitter[0] == 0.0
    gradient = training.gradients[3] if with_gradient else None
    longer = gp.append(training.inputs[3], training.values[3], 0.0, gradient)
    assert longer.jitter[0] > 0.0
    np.testing.assert_allclose(longer.predict(training.inputs)[0], training.values, rtol=1e-5)
    slopes = longer.expansion.gradient(training.inputs)
    np.testing.assert_allclose(slopes, training.gradients, atol=1e-3)


@pytest.mark.parametrize("with_gradient", [True, False])
def test_jitter_counts_for_what_is_appended_later(with_gradient):
    training = with_gradients(training_set(2, 6), every=0)
    psi = samples_with_gradients(2, 1)
    psi[:, [3, -1]] = np.log(1e-12)
    gp = condition(training.with_point(training.inputs[3], training.values[3]), psi)
    gradient = np.ones(2) if with_gradient else None
    longer = gp.append(np.array([4.0, -4.0]), -9.0, 0.0, gradient)
    (jitter,) = longer.jitter
    assert jitter == gp.jitter[0] > 1e-13
    sample = longer.sample(0)
    expected = longer.observations.gram(sample.length_scales, sample.output_scale**2)
    excess = np.diag(longer.cholesky[0] @ longer.cholesky[0].T - expected)
    np.testing.assert_allclose(excess, jitter, rtol=0.2)


@pytest.mark.parametrize("n_samples", [1, 3])
def test_variance_reduction_is_the_drop_by_a_value_alone(n_samples):
    training = replace(with_gradients(training_set(2, 8)), typical_noise_variance=0.25)
    gp = condition(training, samples_with_gradients(2, n_samples))
    references, points = np.random.default_rng(3).normal(size=(2, 15, 2))
    _, before = gp.predict_each(references)
    drops = gp.variance_reduction(references)(points)
    for x, drop in zip(points[:6], drops[:6], strict=True):
        _, after = gp.append(x, 123.0, 0.25).predict_each(references)
        assert drop == pytest.approx(np.mean(before - after), rel=1e-5)


@pytest.mark.parametrize("every", [None, 0, 3])
def test_what_the_other_points_say_of_each(every):
    """All that is known of it is left out, its gradient as well; noise and jitter are not f's."""
    training = replace(training_set(3, 9), noise_variance=np.linspace(0.0, 0.2, 9))
    psi = samples_with_gradients(3, 2)
    if every is None:
        psi = psi[:, :-1]
    else:
        training = with_gradients(training, every)
    gp = condition(training, psi)
    for s in range(2):
        residuals, variances = gp.left_out(s)
        for i in range(9):
            without = condition(training.of_points(np.delete(np.arange(9), i)), psi)
            mean, variance = (part[s, 0] for part in without.predict_each(training.inputs[[i]]))
            assert residuals[i] == pytest.approx(training.values[i] - mean, rel=1e-6, abs=1e-8)
            assert variances[i] == pytest.approx(variance, rel=1e-6, abs=1e-8)


def test_the_mean_has_the_gradients_that_were_told():
    training = with_gradients(training_set(2, 8))
    gp = condition(training, nearly_noiseless(2))
    known = training.has_gradient
    slopes = gp.expansion.gradient(training.inputs)
    np.testing.assert_allclose(slopes[known], training.gradients[known], atol=0.01)
    assert np.isfinite(slopes).all()


def test_hyperparameters_must_say_what_noise_gradients_have():
    training, psi = with_gradients(training_set(2, 8)), samples_with_gradients(2, 1)
    with pytest.raises(ValueError, match=r"must be \(S, 10\)"):
        condition(training, psi[:, :-1])
    with pytest.raises(ValueError, match=r"must be \(S, 9\)"):
        condition(training.values_alone(), psi)


# ---------------------------------------------------------------------- training sets


def test_a_set_keeps_the_gradients_of_its_best_points():
    training = with_gradients(training_set(2, 9))
    training = replace(training, values=np.array([5.0, 1, 9, 3, 7, 2, 8, 0, 6]))  # 2, 5, 8 lack one
    assert training.n_rows == 9 + 2 * 6
    for n_rows in (13, 14):
        few = training.with_best_gradients(n_rows)
        np.testing.assert_array_equal(np.flatnonzero(few.has_gradient), [4, 6])
        np.testing.assert_array_equal(few.gradients[[4, 6]], training.gradients[[4, 6]])
        np.testing.assert_array_equal(few.values, training.values)
    assert training.with_best_gradients(21) is training
    assert training.with_best_gradients(20).has_gradient.sum() == 5
    assert training.with_best_gradients(4).has_gradient.sum() == 0
    assert training.has_gradient.sum() == 6  # itself unchanged
    plain = training.values_alone()
    assert plain.gradients is None
    assert plain.with_best_gradients(3) is plain
    assert not plain.has_gradient.any()


def test_gradients_of_another_shape_are_an_error():
    training = training_set(2, 4)
    with pytest.raises(ValueError, match=r"gradients must be \(4, 2\), not \(4, 3\)"):
        replace(training, gradients=np.zeros((4, 3)))


def test_some_points_of_a_set_keep_all_that_is_known_of_them():
    x = np.arange(6.0).reshape(3, 2)
    training = TrainingSet(x, np.arange(3.0), np.array([0.1, 0.2, 0.3]), 5.0, 0.1, gradients=-x)
    some = training.of_points(np.array([2, 0]))
    assert np.array_equal(some.inputs, x[[2, 0]]) and np.array_equal(some.gradients, -x[[2, 0]])
    assert some.values.tolist() == [2.0, 0.0] and some.noise_variance.tolist() == [0.3, 0.1]
    assert (some.depth_limit, some.typical_noise_variance) == (5.0, 0.1)
    assert training.values_alone().of_points(np.array([1])).gradients is None
