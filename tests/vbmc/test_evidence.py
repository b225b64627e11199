"""Importance-corrected evidence against exact answers and ArviZ."""

from dataclasses import replace

import numpy as np
import pytest

from sparing.surrogate.gaussian_process import TrainingSet, condition
from sparing.variational.elbo import evaluate_elbo
from sparing.variational.mixture import GaussianMixture
from sparing.vbmc.evidence import ImportanceCorrected, LowerBound, corrected_evidence
from sparing.vbmc.held_out import Calibration, TrackRecord
from sparing.vbmc.importance import weighted_draws

DEFAULT, NOTHING_LEARNED = ImportanceCorrected(), Calibration()


def quadratic_surrogate(dimension: int, log_height: float):
    """A surrogate whose mean is log_height - |x|^2 / 2: evidence (2 pi)^(D/2) e^height."""
    generator = np.random.default_rng(1)
    inputs = generator.normal(size=(30, dimension))
    values = log_height - 0.5 * np.sum(inputs**2, axis=1)
    psi = np.concatenate(
        [np.zeros(dimension), [np.log(0.02), np.log(1e-3), log_height], np.zeros(2 * dimension)]
    )
    return condition(TrainingSet(inputs, values), psi[None, :])


def evidence_of(mixture, gp, elbo, generator, calibration=NOTHING_LEARNED, strategy=DEFAULT):
    """The corrected evidence when earlier iterations have taught the given calibration."""
    draws = weighted_draws(mixture, gp, strategy.n_samples, strategy.largest_variance, generator)
    return corrected_evidence(draws, elbo, calibration)


def normal(dimension: int, scale: float) -> GaussianMixture:
    return GaussianMixture(
        np.ones(1), np.full((1, dimension), 0.1), np.array([scale]), np.ones(dimension)
    )


@pytest.mark.parametrize("dimension", [1, 3])
def test_the_correction_closes_the_variational_gap(dimension):
    gp = quadratic_surrogate(dimension, -7.0)
    exact = -7.0 + 0.5 * dimension * np.log(2 * np.pi)
    q = normal(dimension, 1.3)  # a poor fit: the bound is well below
    generator = np.random.default_rng(2)
    elbo = evaluate_elbo(q, gp, 2**12, generator)
    evidence = evidence_of(q, gp, elbo, generator)
    assert elbo.value < exact - 0.05
    assert evidence.corrected
    assert abs(evidence.log_evidence - exact) < 4 * evidence.sd
    assert abs(evidence.log_evidence - exact) < 0.03


def test_a_proposal_that_is_too_narrow_falls_back_to_the_bound():
    gp = quadratic_surrogate(3, 0.0)
    q = normal(3, 0.3)
    generator = np.random.default_rng(3)
    elbo = evaluate_elbo(q, gp, 2**12, generator)
    evidence = evidence_of(q, gp, elbo, generator)
    assert evidence.pareto_k > 0.7
    assert not evidence.corrected
    assert evidence.log_evidence == elbo.value
    exact = 1.5 * np.log(2 * np.pi)
    assert evidence.sd > 0.5 * (exact - elbo.value) > 10 * elbo.sd  # the gap is in the error


def test_the_paper_returns_the_bound():
    gp = quadratic_surrogate(2, 0.0)
    q = normal(2, 1.2)
    elbo = evaluate_elbo(q, gp, 2**10, np.random.default_rng(4))
    evidence, mixture = LowerBound().estimate(q, gp, elbo, TrackRecord(), np.random.default_rng(5))
    assert (evidence.log_evidence, evidence.sd) == (elbo.value, elbo.sd)
    assert not evidence.corrected
    assert mixture is q


def test_the_curvature_term_is_the_mean_of_exp_under_the_surrogate():
    """With few points, E[exp f] by draws of f: the estimate must agree, mean of f alone not."""
    dimension = 1
    inputs = np.linspace(-2.5, 2.5, 5)[:, None]
    values = -0.5 * inputs[:, 0] ** 2
    psi = np.concatenate([np.full(1, np.log(0.4)), [np.log(0.6), np.log(1e-3), 0.0, 0.0, 0.0]])
    gp = condition(TrainingSet(inputs, values), psi[None, :])
    q = normal(dimension, 1.1)
    grid = np.linspace(-6, 6, 241)[:, None]
    mean, _ = gp.predict(grid)
    covariance = gp.covariance(grid, grid)[0] + 1e-10 * np.eye(len(grid))
    draws = np.random.default_rng(1).multivariate_normal(mean, covariance, size=4000)
    step = grid[1, 0] - grid[0, 0]
    exact = np.log(np.mean(np.exp(draws).sum(axis=1) * step))
    generator = np.random.default_rng(2)
    elbo = evaluate_elbo(q, gp, 2**10, generator)
    strategy = ImportanceCorrected(n_samples=2**14)
    evidence = evidence_of(q, gp, elbo, generator, strategy=strategy)
    assert evidence.log_evidence == pytest.approx(exact, abs=0.03)
    assert evidence.log_evidence - evidence.curvature < exact - 0.05


def test_held_out_draws_inflate_the_error():
    gp = quadratic_surrogate(2, 0.0)
    q = normal(2, 1.2)
    elbo = evaluate_elbo(q, gp, 2**10, np.random.default_rng(4))
    elbo = replace(elbo, sd=0.1)
    sds = [
        evidence_of(q, gp, elbo, np.random.default_rng(5), calibration).sd
        for calibration in (
            Calibration(),
            Calibration(error_inflation=9.0),
            Calibration(recent=(5.0, -5.0)),
        )
    ]
    assert sds[1] == pytest.approx(3 * sds[0], rel=0.1)
    assert sds[2] > 3.0  # an estimate that still moves by this much is not known any better


def test_the_strategy_corrects_both_the_evidence_and_the_mixture():
    gp = quadratic_surrogate(2, -7.0)
    q = normal(2, 1.3)
    elbo = evaluate_elbo(q, gp, 2**10, np.random.default_rng(4))
    evidence, mixture = DEFAULT.estimate(q, gp, elbo, TrackRecord(), np.random.default_rng(5))
    unproven = DEFAULT.calibration.unproven_variance
    learned = Calibration(error_inflation=unproven)
    assert evidence == evidence_of(q, gp, elbo, np.random.default_rng(5), learned)
    # The mode of the surrogate is the origin, its sd one.
    assert np.max(np.abs(mixture.mean)) < 0.5 * np.max(np.abs(q.mean))
    np.testing.assert_allclose(np.diag(mixture.covariance), 1.0, atol=0.15)


def test_the_track_record_reaches_the_reported_error():
    gp = quadratic_surrogate(2, 0.0)
    q = normal(2, 1.2)
    elbo = replace(evaluate_elbo(q, gp, 2**10, np.random.default_rng(4)), sd=0.1)
    records = {
        "untested": TrackRecord(),
        "right": TrackRecord((20,), (20.0,), (), ()),
        "wrong": TrackRecord((20,), (500.0,), (), ()),
        "moving": TrackRecord((20, 0), (20.0, 0.0), (-5.0, 5.0), (0.5, 0.5)),
    }
    found = {
        name: DEFAULT.estimate(q, gp, elbo, record, np.random.default_rng(5))[0]
        for name, record in records.items()
    }
    assert found["right"].inflation == found["untested"].inflation == 1.0
    assert found["wrong"].inflation == pytest.approx((500 + 4) / 24)
    assert found["right"].sd < found["untested"].sd < found["wrong"].sd < found["moving"].sd


def test_fewer_draws_are_weighed_during_the_search():
    gp = quadratic_surrogate(2, 0.0)
    q = normal(2, 1.1)
    elbo = evaluate_elbo(q, gp, 2**10, np.random.default_rng(4))
    n_effective = [
        DEFAULT.estimate(q, gp, elbo, TrackRecord(), np.random.default_rng(5), searching=searching)[
            0
        ].effective_samples
        for searching in (False, True)
    ]
    assert n_effective[1] <= DEFAULT.n_samples_in_warm_up < n_effective[0]
