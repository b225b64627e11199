"""Doubly-Bayesian quadrature against sums over a grid, refitted processes and differences."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.quadrature.doubly_bayesian import GAMMA, transformed_prior
from benchmarks.quadrature.doubly_bayesian_fit import candidates, extended
from benchmarks.quadrature.process import condition_on
from scipy.spatial.distance import cdist

GRID = np.linspace(-8.0, 8.0, 1201)[:, None]
WEIGHTS = np.exp(-0.5 * GRID[:, 0] ** 2) / np.sqrt(2 * np.pi) * (GRID[1, 0] - GRID[0, 0])


def log_likelihood(z):
    return np.logaddexp(-0.5 * (z[:, 0] - 0.7) ** 2 / 0.1, -1.0 - 0.5 * (z[:, 0] + 0.8) ** 2 / 0.2)


def model_of(n=22, *, marginalise_scales=True):
    z = np.random.default_rng(7).standard_normal((n, 1))
    generator = np.random.default_rng(8)
    model = None
    for count in range(1, n + 1):
        model = extended(
            model,
            z[:count],
            log_likelihood(z[:count]),
            generator,
            marginalise_scales=marginalise_scales,
        )
    return model


@pytest.fixture(scope="module")
def model():
    model = model_of()
    assert model.fit.last.n == 21  # the last point joined without a fit
    return model


def test_the_mean_of_the_evidence(model):
    l_mean, _ = model.likelihood.predict(GRID)
    d_mean, _ = model.correction.predict(GRID)
    expected = (l_mean + (l_mean + GAMMA) * d_mean) @ WEIGHTS
    assert model.mean_evidence == pytest.approx(expected, rel=1e-6)
    log_evidence = model.evidence().log_evidence
    assert log_evidence == pytest.approx(model.log_scale + np.log(expected), rel=1e-6)


def test_the_correction_is_what_the_processes_differ_by(model):
    inputs, differences = model.correction.training.inputs, model.correction.training.values
    np.testing.assert_array_equal(inputs[:22], model.likelihood.training.inputs)
    assert len(inputs) == 22 + 100
    l_mean, _ = model.likelihood.predict(inputs)
    t_mean, _ = model.transformed.predict(inputs)
    expected = t_mean - np.log(np.maximum(l_mean, 0.0) / GAMMA + 1.0)
    np.testing.assert_allclose(differences, expected, atol=1e-9)
    np.testing.assert_allclose(differences[:22], 0.0, atol=0.02)  # both go through the points
    np.testing.assert_allclose(model.correction.predict(inputs)[0], differences, atol=0.02)


def test_the_variance_of_the_evidence(model):
    """int int (m_l + gamma) C_t (m_l + gamma)', and the part owed to the length scales."""
    l_mean, _ = model.likelihood.predict(GRID)
    factor = (l_mean + GAMMA) * WEIGHTS
    spread = factor @ model.transformed.covariance(GRID, GRID)[0] @ factor
    alone = replace(model, fit=replace(model.fit, scale_variances=None)).evidence()
    mean = np.exp(alone.log_evidence - model.log_scale)
    assert (alone.sd * mean) ** 2 == pytest.approx(spread, rel=1e-4)

    def integral(theta):
        training = model.transformed.training
        gp = condition_on(transformed_prior(1), theta, training.inputs, training.values)
        return factor @ gp.predict(GRID)[0]

    step = np.array([1e-4, 0.0])
    theta = model.fit.transformed
    slope = (integral(theta + step) - integral(theta - step)) / 2e-4
    extra = slope**2 * model.fit.scale_variances[0]
    assert extra > 1e-3 * spread  # else the next line says nothing
    assert (model.evidence().sd * mean) ** 2 == pytest.approx(spread + extra, rel=1e-3)


@pytest.mark.parametrize("marginalise_scales", [False, True])
def test_the_acquisition_is_the_variance_of_the_next_mean(marginalise_scales):
    model = model_of(marginalise_scales=marginalise_scales)
    queries = np.array([[-1.7], [0.2], [2.4]])
    t_mean, t_variance = model.transformed.predict(queries)
    if marginalise_scales:
        gradients = finite_length_gradients(model, queries)
        t_variance = t_variance + gradients**2 * model.fit.scale_variances[0]
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()

    def next_mean(z, likelihood):
        gp = model.likelihood.append(z, likelihood)
        return replace(model, likelihood=gp).mean_evidence

    expected = []
    for z, mean, variance in zip(queries, t_mean, t_variance, strict=True):
        likelihoods = GAMMA * np.expm1(mean + np.sqrt(variance) * nodes)
        means = np.array([next_mean(z, likelihood) for likelihood in likelihoods])
        expected.append(weights @ means**2 - (weights @ means) ** 2)
    ours = model.log_acquisition(queries) + 2 * np.log(GAMMA)
    np.testing.assert_allclose(ours, np.log(expected), atol=1e-3)


def finite_length_gradients(model, z):
    training = model.transformed.training

    def mean(theta):
        gp = condition_on(transformed_prior(1), theta, training.inputs, training.values)
        return gp.predict(z)[0]

    step = np.array([1e-5, 0.0])
    theta = model.fit.transformed
    return (mean(theta + step) - mean(theta - step)) / 2e-5


def test_the_variance_of_a_length_is_the_curvature_of_its_posterior():
    fitted = model_of(6)
    prior, theta = transformed_prior(1), fitted.fit.transformed
    training = fitted.transformed.training
    step = np.array([1e-3, 0.0])
    values = [prior.log_posterior(training, theta + k * step)[0] for k in (-1, 0, 1)]
    curvature = (values[0] - 2 * values[1] + values[2]) / 1e-6
    assert fitted.fit.last.n == 6  # the fit saw these very points
    assert fitted.fit.scale_variances[0] == pytest.approx(-1 / curvature, rel=1e-2)


def test_candidates_are_near_the_points_and_apart():
    generator = np.random.default_rng(9)
    points = generator.standard_normal((30, 2))
    lengths = np.array([0.3, 2.0])
    chosen = candidates(points, lengths, generator)
    nearest = cdist(chosen / lengths, points / lengths, "chebyshev").min(axis=1)
    assert len(chosen) == 100 and nearest.max() <= 1.0
    random = points[generator.integers(30, size=100)] + lengths * generator.uniform(
        -1, 1, size=(100, 2)
    )

    def median_gap(places):
        gaps = cdist(places / lengths, places / lengths) + 9 * np.eye(len(places))
        return np.median(gaps.min(axis=1))

    assert median_gap(chosen) > 1.5 * median_gap(random)
