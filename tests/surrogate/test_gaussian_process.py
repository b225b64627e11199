"""Conditioning, prediction and likelihood against scikit-learn, and data that is hard."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from sparing.surrogate import gaussian_process as module
from sparing.surrogate.gaussian_process import (
    TrainingSet,
    condition,
    log_marginal_likelihood,
    log_marginal_likelihood_and_gradient,
)
from sparing.surrogate.layout import Hyperparameters
from sparing.surrogate.mean import negative_quadratic_mean


def problem(dimension: int, n: int, n_samples: int = 1, *, noisy: bool = False, seed: int = 0):
    """A training set and hyperparameter samples of ordinary size."""
    generator = np.random.default_rng(seed)
    inputs = generator.normal(size=(n, dimension))
    values = -0.5 * (inputs**2).sum(axis=1) + np.sin(2.0 * inputs[:, 0]) - 20.0
    noise_variance = generator.uniform(0.01, 0.5, size=n) if noisy else np.zeros(n)
    centre = np.concatenate(
        [np.zeros(dimension), [0.3, np.log(0.1), -19.0], np.zeros(2 * dimension)]
    )
    hyperparameters = centre + 0.2 * generator.normal(size=(n_samples, centre.size))
    return TrainingSet(inputs, values, noise_variance), hyperparameters


def scikit_learn(training: TrainingSet, psi: np.ndarray):
    """The same process there: zero mean, so the quadratic is subtracted outside."""
    sample = Hyperparameters.from_vector(psi)
    kernel = ConstantKernel(sample.output_scale**2, "fixed") * RBF(sample.length_scales, "fixed")
    regressor = GaussianProcessRegressor(
        kernel, alpha=sample.noise_sd**2 + training.noise_variance, optimizer=None
    )
    residual = training.values - negative_quadratic_mean(sample, training.inputs)
    return regressor.fit(training.inputs, residual), sample


SIZES = [(1, 1), (1, 8), (2, 30), (5, 60)]


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize(("dimension", "n"), SIZES)
def test_likelihood_agrees_with_scikit_learn(dimension, n, noisy):
    training, (psi,) = problem(dimension, n, noisy=noisy)
    regressor, _ = scikit_learn(training, psi)
    expected = regressor.log_marginal_likelihood()
    assert log_marginal_likelihood(training, psi) == pytest.approx(expected, rel=1e-8)
    value, _ = log_marginal_likelihood_and_gradient(training, psi)
    assert value == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize(("dimension", "n"), SIZES)
def test_prediction_agrees_with_scikit_learn(dimension, n, noisy):
    training, hyperparameters = problem(dimension, n, 3, noisy=noisy)
    queries = np.random.default_rng(1).normal(size=(25, dimension))
    means, variances = condition(training, hyperparameters).predict_each(queries)
    for psi, mean, variance in zip(hyperparameters, means, variances, strict=True):
        regressor, sample = scikit_learn(training, psi)
        expected, covariance = regressor.predict(queries, return_cov=True)
        expected = expected + negative_quadratic_mean(sample, queries)
        np.testing.assert_allclose(mean, expected, rtol=1e-8)
        np.testing.assert_allclose(variance, np.diag(covariance), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("dimension", "n"), SIZES)
def test_gradient_by_finite_differences(dimension, n, seed):
    training, (psi,) = problem(dimension, n, noisy=seed % 2 == 1, seed=seed)
    _, gradient = log_marginal_likelihood_and_gradient(training, psi)
    numeric = np.empty_like(gradient)
    for index in range(psi.size):
        step = np.zeros_like(psi)
        step[index] = 1e-5
        above = log_marginal_likelihood(training, psi + step)
        numeric[index] = (above - log_marginal_likelihood(training, psi - step)) / 2e-5
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-5)


def test_many_queries_and_few_give_the_same_prediction(monkeypatch):
    """The two ways to L^-1 k, and prediction in blocks."""
    training, hyperparameters = problem(3, 40, 2)
    gp = condition(training, hyperparameters)
    queries = np.random.default_rng(2).normal(size=(70, 3))
    inverted = gp.predict_each(queries)
    monkeypatch.setattr(module, "QUERIES_PER_POINT_TO_INVERT", np.inf)
    monkeypatch.setattr(module, "BLOCK_ENTRIES", 40 * 16)
    solved = gp.predict_each(queries)
    np.testing.assert_allclose(inverted, solved, rtol=1e-9, atol=1e-9)


def test_marginal_prediction_follows_equation_10():
    training, hyperparameters = problem(2, 15, 4)
    gp = condition(training, hyperparameters)
    queries = np.random.default_rng(3).normal(size=(6, 2))
    means, variances = gp.predict_each(queries)
    mean, variance = gp.predict(queries)
    np.testing.assert_allclose(mean, means.sum(axis=0) / 4)
    spread = ((means - mean) ** 2).sum(axis=0) / 3
    np.testing.assert_allclose(variance, variances.sum(axis=0) / 4 + spread)
    single = condition(training, hyperparameters[:1])
    np.testing.assert_array_equal(single.predict(queries), [means[0], variances[0]])


def test_a_subset_of_samples_is_the_process_conditioned_with_them():
    training, hyperparameters = problem(2, 15, 4, noisy=True)
    kept = np.array([3, 1])
    part = condition(training, hyperparameters).subset(kept)
    expected = condition(training, hyperparameters[kept])
    assert part.n_samples == 2
    queries = np.random.default_rng(3).normal(size=(6, 2))
    np.testing.assert_array_equal(part.predict_each(queries), expected.predict_each(queries))
    np.testing.assert_array_equal(part.jitter, expected.jitter)


def test_posterior_covariance():
    training, hyperparameters = problem(2, 20, 2)
    gp = condition(training, hyperparameters)
    generator = np.random.default_rng(4)
    a, b = generator.normal(size=(5, 2)), generator.normal(size=(3, 2))
    covariance = gp.covariance(a, b)
    assert covariance.shape == (2, 5, 3)
    for s, psi in enumerate(hyperparameters):
        regressor, _ = scikit_learn(training, psi)
        joint = regressor.predict(np.vstack([a, b]), return_cov=True)[1]
        np.testing.assert_allclose(covariance[s], joint[:5, 5:], atol=1e-8)


@pytest.mark.parametrize("noisy", [False, True])
def test_the_factor_is_what_it_says(noisy):
    training, hyperparameters = problem(2, 12, 2, noisy=noisy)
    gp = condition(training, hyperparameters)
    assert gp.cholesky.flags.c_contiguous
    np.testing.assert_array_equal(gp.cholesky, np.tril(gp.cholesky))
    np.testing.assert_array_equal(gp.jitter, 0.0)
    for s in range(2):
        sample = gp.sample(s)
        squared = (((training.inputs[:, None] - training.inputs) / sample.length_scales) ** 2).sum(
            -1
        )
        matrix = sample.output_scale**2 * np.exp(-0.5 * squared)
        matrix += np.diag(sample.noise_sd**2 + training.noise_variance)
        np.testing.assert_allclose(gp.cholesky[s] @ gp.cholesky[s].T, matrix, rtol=1e-9)
        residual = training.values - negative_quadratic_mean(sample, training.inputs)
        np.testing.assert_allclose(gp.alpha[s], np.linalg.solve(matrix, residual), rtol=1e-8)


@pytest.mark.parametrize("noise_variance", [0.0, 0.3])
def test_appending_points_agrees_with_conditioning(noise_variance):
    training, hyperparameters = problem(3, 20, 3)
    gp = condition(training, hyperparameters)
    generator = np.random.default_rng(6)
    for _ in range(5):
        x, y = generator.normal(size=3), float(generator.normal(-20.0))
        gp = gp.append(x, y, noise_variance)
        training = training.with_point(x, y, noise_variance)
    fresh = condition(training, hyperparameters)
    np.testing.assert_allclose(gp.cholesky, fresh.cholesky, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(gp.alpha, fresh.alpha, rtol=1e-8, atol=1e-8)
    queries = generator.normal(size=(10, 3))
    np.testing.assert_allclose(gp.predict(queries), fresh.predict(queries), rtol=1e-8)


def test_appending_a_duplicate_without_noise_falls_back_to_jitter():
    training, hyperparameters = problem(2, 10)
    hyperparameters[:, 3] = np.log(1e-12)
    gp = condition(training, hyperparameters)
    assert gp.jitter[0] == 0.0
    longer = gp.append(training.inputs[3], training.values[3])
    assert longer.jitter[0] > 0.0
    np.testing.assert_allclose(longer.predict(training.inputs)[0], training.values, rtol=1e-6)


def stretch(training: TrainingSet, factor: float, offset: float) -> TrainingSet:
    return TrainingSet(training.inputs, factor * training.values + offset)


HARD = {
    "one point": (TrainingSet(np.zeros((1, 2)), np.zeros(1)), {}),
    "exact duplicates": (TrainingSet(np.zeros((30, 2)), np.zeros(30)), {}),
    "duplicates that disagree": (TrainingSet(np.zeros((30, 2)), np.arange(30.0)), {}),
    "range of 1e10": (stretch(problem(2, 30)[0], 1e10, 0.0), {2: 23.0}),
    "offset of 1e5": (stretch(problem(2, 30)[0], 1.0, 1e5), {4: 1e5}),
    "longest lengths": (problem(2, 60)[0], {0: np.log(1e3), 1: np.log(1e3), 2: 10.0}),
    "shortest lengths": (problem(2, 60)[0], {0: np.log(1e-6), 1: np.log(1e-6)}),
    "no noise, large output": (problem(2, 60)[0], {2: 12.0, 3: np.log(1e-6)}),
    "steep mean": (problem(2, 60)[0], {7: np.log(1e-6), 8: np.log(1e-6)}),
    "nearly equal points": (
        TrainingSet(1e-9 * np.random.default_rng(0).normal(size=(40, 2)), np.zeros(40)),
        {3: np.log(1e-6)},
    ),
}


@pytest.mark.parametrize("case", HARD)
def test_hard_data_gives_finite_answers(case):
    training, changes = HARD[case]
    psi = problem(2, 1)[1][0]
    for index, value in changes.items():
        psi[index] = value
    gp = condition(training, psi)
    queries = np.vstack([training.inputs, [[0.1, 0.1], [1e3, -1e3]]])
    mean, variance = gp.predict(queries)
    assert np.isfinite(mean).all()
    assert np.isfinite(variance).all()
    assert (variance >= 0.0).all()
    value, gradient = log_marginal_likelihood_and_gradient(training, psi)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    for point in (training.inputs[0], np.array([0.1, 0.1])):
        assert np.isfinite(gp.append(point, float(training.values[0])).alpha).all()


@pytest.mark.parametrize(
    ("inputs", "values", "noise", "message"),
    [
        (np.full((2, 1), np.nan), np.zeros(2), np.zeros(2), "inputs must be finite"),
        (np.zeros((2, 1)), np.array([0.0, -np.inf]), np.zeros(2), "values must be finite"),
        (np.zeros((2, 1)), np.zeros(2), np.array([0.0, -1.0]), "noise variances"),
        (np.zeros((2, 1)), np.zeros(2), np.array([0.0, np.nan]), "noise variances"),
        (np.zeros((2, 1)), np.zeros(3), np.zeros(2), "2 inputs need 2 values"),
        (np.zeros((2, 1)), np.zeros(2), np.zeros(3), "2 inputs need 2 values"),
        (np.zeros(2), np.zeros(2), np.zeros(2), r"must be \(n, D\)"),
        (np.zeros((0, 2)), np.zeros(0), np.zeros(0), r"must be \(n, D\)"),
    ],
)
def test_bad_training_sets_are_errors(inputs, values, noise, message):
    with pytest.raises(ValueError, match=message):
        TrainingSet(inputs, values, noise)


def test_bad_arguments_are_errors():
    training, hyperparameters = problem(2, 5)
    with pytest.raises(ValueError, match=r"must be \(S, 9\)"):
        condition(training, hyperparameters[:, :6])
    hyperparameters[0, 0] = np.nan
    with pytest.raises(ValueError, match="finite"):
        condition(training, hyperparameters)
    gp = condition(*problem(2, 5))
    with pytest.raises(ValueError, match=r"\(m, 2\)"):
        gp.predict(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="values must be finite"):
        gp.append(np.zeros(2), np.nan)


@pytest.mark.parametrize("n_samples", [1, 3])
def test_variance_reduction_is_the_drop_after_really_adding_the_point(n_samples):
    training, hyperparameters = problem(2, 12, n_samples)
    gp = condition(training, hyperparameters)
    references, points = np.random.default_rng(3).normal(size=(2, 15, 2))
    _, before = gp.predict_each(references)
    drops = gp.variance_reduction(references)(points)
    for x, drop in zip(points[:6], drops[:6], strict=True):
        enlarged = condition(training.with_point(x, 123.0), hyperparameters)
        _, after = enlarged.predict_each(references)
        assert drop == pytest.approx(np.mean(before - after), rel=1e-5)


def test_variance_reduction_counts_on_the_typical_noise_of_a_value():
    training, hyperparameters = problem(2, 12, noisy=True)
    noisy = TrainingSet(
        training.inputs, training.values, training.noise_variance, typical_noise_variance=0.25
    )
    references, points = np.random.default_rng(3).normal(size=(2, 15, 2))
    gp = condition(noisy, hyperparameters)
    _, before = gp.predict_each(references)
    drop = gp.variance_reduction(references)(points[:1])[0]
    enlarged = condition(noisy.with_point(points[0], 123.0, 0.25), hyperparameters)
    _, after = enlarged.predict_each(references)
    assert drop == pytest.approx(np.mean(before - after), rel=1e-5)


def test_variance_reduction_of_several_samples_is_their_average():
    gp = condition(*problem(2, 12, 3))
    references, points = np.random.default_rng(3).normal(size=(2, 15, 2))
    together = gp.variance_reduction(references)(points)
    each = [gp.subset(np.array([s])).variance_reduction(references)(points) for s in range(3)]
    np.testing.assert_allclose(together, np.mean(each, axis=0), rtol=1e-10)


def test_a_known_point_teaches_nothing():
    training, hyperparameters = problem(2, 12, 3)
    hyperparameters[:, 3] = np.log(1e-3)
    reduction = condition(training, hyperparameters).variance_reduction(
        np.random.default_rng(3).normal(size=(15, 2))
    )
    points = np.random.default_rng(2).normal(size=(20, 2))
    assert np.max(reduction(training.inputs)) < np.exp(-5.0) * np.max(reduction(points))


def test_properties_are_averages_over_samples():
    training, hyperparameters = problem(2, 12, 3)
    gp = condition(training, hyperparameters)
    assert (gp.n_samples, gp.dimension) == (3, 2)
    np.testing.assert_array_equal(gp.parameters, hyperparameters)
    assert gp.noise_variance == pytest.approx(np.mean(np.exp(hyperparameters[:, 3]) ** 2))
    lengths = np.exp(hyperparameters[:, :2])
    np.testing.assert_allclose(gp.length_scales, np.prod(lengths, axis=0) ** (1 / 3))
