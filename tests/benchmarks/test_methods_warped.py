"""The warped likelihood against simulated processes and against emukit."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.methods.bayesian_monte_carlo import integral
from benchmarks.quadrature.process import LastFit, ScalePrior, condition_on
from benchmarks.quadrature.warped import Moments, WarpedLikelihood, extended, fitted, warp

REFERENCE = json.loads((Path(__file__).parent / "emukit_reference/reference.json").read_text())


def model_of(z, log_likelihoods, lengths, variance, noise_variance, moments=Moments.LINEARISED):
    theta = np.append(np.log(lengths), 0.5 * np.log(variance))
    prior = ScalePrior(theta, np.ones(theta.size), np.sqrt(noise_variance))
    values, offset, log_scale = warp(np.asarray(log_likelihoods))
    gp = condition_on(prior, theta, np.asarray(z), values)
    return WarpedLikelihood(moments, gp, offset, log_scale, theta, LastFit(len(z), log_scale))


def reference_model():
    names = ("points", "log_likelihoods", "lengths", "variance", "noise_variance")
    return model_of(*(REFERENCE[name] for name in names))


def test_the_evidence_of_wsabi_l_is_emukits():
    model = reference_model()
    assert model.offset == pytest.approx(REFERENCE["wsabi_offset"], rel=1e-10)
    mean = np.exp(model.evidence().log_evidence - model.log_scale)
    assert mean == pytest.approx(REFERENCE["wsabi_mean"], rel=1e-7)


def test_the_acquisition_of_wsabi_l_is_emukits_up_to_a_constant():
    ours = reference_model().log_acquisition(np.array(REFERENCE["queries"]))
    theirs = np.log(REFERENCE["wsabi_acquisition"])
    np.testing.assert_allclose(ours - ours[0], theirs - theirs[0], rtol=1e-6)


def test_bayesian_monte_carlo_is_emukits_vanilla_quadrature():
    log_l = np.array(REFERENCE["log_likelihoods"])
    theta = np.append(np.log(REFERENCE["lengths"]), 0.5 * np.log(REFERENCE["variance"]))
    prior = ScalePrior(theta, np.ones(3), np.sqrt(REFERENCE["noise_variance"]))
    likelihoods = np.exp(log_l - log_l.max())
    mean, variance = integral(condition_on(prior, theta, REFERENCE["points"], likelihoods))
    assert mean == pytest.approx(REFERENCE["vanilla_mean"], rel=1e-7)
    assert variance == pytest.approx(REFERENCE["vanilla_variance"], rel=1e-6)


@pytest.mark.parametrize("moments", list(Moments))
def test_moments_of_the_evidence_against_simulated_likelihoods(moments):
    """Draw g at a grid with quadrature weights, square it (L: linearise it), and integrate."""
    z = np.array([[-1.2], [-0.1], [0.6], [1.9]])
    model = model_of(z, [-2.0, 0.0, -0.4, -3.0], [0.8], 0.9, 1e-4, moments)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    inside = weights > 1e-13
    grid, weights = nodes[inside, None], weights[inside] / weights.sum()
    mean, _ = model.gp.predict(grid)
    covariance = model.gp.covariance(grid, grid)[0]
    generator = np.random.default_rng(0)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    deviations = generator.standard_normal((400_000, len(grid))) @ root.T
    if moments is Moments.LINEARISED:
        likelihoods = 0.5 * mean**2 + mean * deviations
    else:
        likelihoods = 0.5 * (mean + deviations) ** 2
    simulated = model.offset + likelihoods @ weights
    evidence = model.evidence()
    expected = np.exp(evidence.log_evidence - model.log_scale)
    assert expected == pytest.approx(simulated.mean(), rel=3e-3)
    assert evidence.sd * expected == pytest.approx(simulated.std(), rel=1e-2)


def test_points_join_one_by_one_as_they_would_at_once():
    generator = np.random.default_rng(1)
    z = generator.standard_normal((40, 2))
    log_l = -0.5 * np.sum((z - 0.3) ** 2, axis=1) / 0.2 - 700.0
    model = None
    for n in range(1, 41):
        model = extended(model, Moments.LINEARISED, z[:n], log_l[:n])
    assert 4 <= model.last_fit.n <= 40
    at_once = fitted(Moments.LINEARISED, z, log_l)
    exact = -700.0 + np.log(0.2 / 1.2) - 0.18 / 2.4  # 2-D normal integral
    for each in (model, at_once):
        assert each.evidence().log_evidence == pytest.approx(exact, abs=0.1)
    assert model.evidence().log_evidence == pytest.approx(at_once.evidence().log_evidence, abs=0.02)


def test_zero_likelihoods_are_data():
    z = np.array([[0.0], [1.0], [-1.0], [3.0], [-3.0]])
    model = fitted(Moments.LINEARISED, z, np.array([0.0, -1.0, -1.0, -np.inf, -np.inf]))
    assert model.offset == 0.0
    assert np.isfinite(model.evidence().log_evidence)
