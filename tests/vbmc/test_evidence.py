"""The evidence and the posterior of the surrogate, against quadrature and exact answers."""

import math

import numpy as np
import pytest
from tests.vbmc.hills import HOME, OTHER, SD, around, learnt, normal_at, over_the_box, two_hills
from tests.vbmc.quadrature import bent, quadrature, wavy

from sparing.surrogate.gaussian_process import TrainingSet, condition
from sparing.variational.elbo import evaluate_elbo
from sparing.variational.mixture import GaussianMixture
from sparing.vbmc.evidence import Doubt, Evidence, LowerBound, SurrogatePosterior, evidence_of
from sparing.vbmc.held_out import Calibration, TrackRecord
from sparing.vbmc.surrogate_posterior import WeightedSample, average_sd, weighted_sample

DEFAULT, NO_RECORD, NOTHING_LEARNT = SurrogatePosterior(), TrackRecord(), Calibration()


def quadratic_surrogate(dimension: int, log_height: float):
    """A surrogate whose mean is log_height - |x|^2 / 2: evidence (2 pi)^(D/2) e^height."""
    generator = np.random.default_rng(1)
    inputs = generator.normal(size=(30, dimension))
    values = log_height - 0.5 * np.sum(inputs**2, axis=1)
    psi = np.concatenate(
        [np.zeros(dimension), [np.log(0.02), np.log(1e-3), log_height], np.zeros(2 * dimension)]
    )
    return condition(TrainingSet(inputs, values), psi[None, :])


def normal(dimension: int, scale: float) -> GaussianMixture:
    return GaussianMixture(
        np.ones(1), np.full((1, dimension), 0.1), np.array([scale]), np.ones(dimension)
    )


def estimate(q, surrogate, record=NO_RECORD, seed=5, strategy=DEFAULT, **options):
    """With an ELBO that only the paper looks at."""
    elbo = evaluate_elbo(q, surrogate, 2**8, np.random.default_rng(4))
    generator = np.random.default_rng(seed)
    return strategy.estimate(q, surrogate, elbo, record, generator, **options)


def assert_moments(mixture, exact, tolerance):
    """In units of the exact sds."""
    sd = np.sqrt(np.diag(exact.covariance))
    assert np.all(np.abs(mixture.mean - exact.mean) < tolerance * sd)
    difference = (mixture.covariance - exact.covariance) / np.outer(sd, sd)
    assert np.max(np.abs(difference)) < tolerance


@pytest.mark.parametrize(("dimension", "scale"), [(1, 1.3), (3, 1.3), (3, 0.3), (3, 4.0)])
def test_whatever_q_is_the_answer_is_the_surrogate_s(dimension, scale):
    """A poor fit, one that is far too narrow, and one far too wide."""
    gp = quadratic_surrogate(dimension, -7.0)
    evidence, mixture = estimate(normal(dimension, scale), gp)
    exact = -7.0 + 0.5 * dimension * np.log(2 * np.pi)
    assert evidence.corrected
    assert abs(evidence.log_evidence - exact) < 4.0 * evidence.sd
    assert abs(evidence.log_evidence - exact) < 0.03
    np.testing.assert_allclose(mixture.mean, 0.0, atol=0.05)
    np.testing.assert_allclose(mixture.covariance, np.eye(dimension), atol=0.08)


def test_between_too_few_points_it_is_what_is_believed():
    surrogate, exact = wavy()
    evidence, mixture = estimate(normal(1, 1.0), surrogate)
    assert evidence.log_evidence == pytest.approx(exact.log_evidence, abs=0.01)
    assert_moments(mixture, exact, 0.05)
    cell = exact.points[1, 0] - exact.points[0, 0]
    difference = np.exp(mixture.log_density(exact.points)) * cell - exact.probabilities
    assert 0.5 * np.abs(difference).sum() < 0.1  # the total variation


def test_a_bent_posterior_is_followed_where_q_cannot():
    """From one iteration to the next the proposals reach further along the arms."""
    surrogate, exact = bent()
    q = GaussianMixture([1.0], [[0.0, 0.5]], [1.0], [1.0, 0.7])
    evidence, mixture = estimate(q, surrogate)
    assert evidence.log_evidence == pytest.approx(exact.log_evidence, abs=0.05)
    for seed in range(3):
        evidence, mixture = estimate(q, surrogate, proposals=[mixture], seed=seed)
    assert evidence.log_evidence == pytest.approx(exact.log_evidence, abs=0.02)
    assert_moments(mixture, exact, 0.25)
    x = np.array([[0.0, 0.0], [2.0, 2.0], [0.0, 1.5], [2.0, 0.5]])  # on the ridge, and beside it
    log_density = mixture.log_density(x)
    assert np.all(log_density[:2] > log_density[2:] + 3.0)


def test_a_thorough_sample_of_it_is_better():
    surrogate, exact = bent()
    strategy = SurrogatePosterior(n_first=2**13, n_draws=2**14, n_components=60)
    q = GaussianMixture(
        np.full(5, 0.2), [[x, 0.5 * x * x] for x in (-3, -1.5, 0, 1.5, 3)], np.ones(5), [1.0, 1.0]
    )
    evidence, mixture = estimate(q, surrogate, strategy=strategy)
    assert evidence.log_evidence == pytest.approx(exact.log_evidence, abs=0.01)
    assert_moments(mixture, exact, 0.1)


def test_what_was_known_before_is_a_proposal_beside_q():
    """Two hills ten sds apart of which q has one: the other counts where somebody points at it."""
    known = learnt(two_hills, around(HOME, 25, 2), around(OTHER, 25, 3), over_the_box(15, 4))
    exact = quadrature(known.surrogate, [-0.7, -0.7], [0.7, 0.7], 250)
    q = GaussianMixture([1.0], [HOME], [SD], [1.0, 1.0])
    alone, _ = estimate(q, known.surrogate)
    assert alone.log_evidence == pytest.approx(exact.log_evidence - np.log(2.0), abs=0.1)
    evidence, mixture = estimate(q, known.surrogate, proposals=[normal_at(OTHER)])
    assert evidence.log_evidence == pytest.approx(exact.log_evidence, abs=0.02)
    assert_moments(mixture, exact, 0.05)


def test_the_paper_returns_the_bound():
    gp, q = quadratic_surrogate(2, 0.0), normal(2, 1.2)
    elbo = evaluate_elbo(q, gp, 2**10, np.random.default_rng(4))
    evidence, mixture = LowerBound().estimate(q, gp, elbo, TrackRecord(), np.random.default_rng(5))
    assert (evidence.log_evidence, evidence.sd) == (elbo.value, elbo.sd)
    assert (evidence.corrected, evidence.curvature, evidence.inflation) == (False, 0.0, 1.0)
    assert math.isnan(evidence.pareto_k) and math.isnan(evidence.effective_samples)
    assert mixture is q


def test_during_the_search_q_is_kept_and_a_few_draws_are_weighed():
    gp, q = quadratic_surrogate(2, 0.0), normal(2, 1.1)
    evidence, mixture = estimate(q, gp, searching=True)
    assert mixture is q
    assert evidence.effective_samples <= DEFAULT.n_draws_in_warm_up
    assert evidence.log_evidence == pytest.approx(np.log(2 * np.pi), abs=0.1)
    settled, found = estimate(q, gp)
    assert found is not q
    assert settled.effective_samples > DEFAULT.n_draws_in_warm_up


def test_weights_with_a_heavy_tail_are_sampled_again():
    """As often as is allowed: a first proposal far beside the posterior needs several rounds."""
    gp = quadratic_surrogate(2, 0.0)
    far = GaussianMixture([1.0], [[4.0, 4.0]], [0.2], [1.0, 1.0])
    one, several = (
        estimate(far, gp, strategy=SurrogatePosterior(n_first=256, n_draws=512, max_rounds=n))
        for n in (1, 8)
    )
    exact = np.log(2 * np.pi)
    assert one[0].pareto_k > 0.7
    assert one[0].log_evidence < exact - 5.0
    assert several[0].pareto_k <= 0.7
    assert several[0].log_evidence == pytest.approx(exact, abs=0.05)


# ---------------------------------------------------------------------- its error


def hand_made_sample(**changes):
    points = np.random.default_rng(6).normal(size=(200, 2))
    facts = {
        "points": points,
        "variance": np.zeros(200),
        "probabilities": np.full(200, 1.0 / 200),
        "log_evidence": -3.0,
        "monte_carlo_sd": 0.0,
        "curvature": 0.0,
        "pareto_k": 0.2,
    }
    return WeightedSample(**(facts | changes))


def sd_of(calibration=NOTHING_LEARNT, **changes):
    gp = quadratic_surrogate(2, 0.0)
    sample = hand_made_sample(**changes)
    return evidence_of(sample, gp, calibration, np.random.default_rng(7)).sd


def test_the_error_has_five_parts():
    gp, generator = quadratic_surrogate(2, 0.0), np.random.default_rng(7)
    own = average_sd(gp, hand_made_sample().equally_weighted(256, generator))
    assert sd_of() == pytest.approx(own)
    assert sd_of(Calibration(error_inflation=9.0)) == pytest.approx(3.0 * own)
    assert sd_of(Calibration(inflation=9.0)) == pytest.approx(own)  # that of the surrogate alone
    assert sd_of(curvature=0.4) == pytest.approx(math.hypot(own, 0.1))
    assert sd_of(edge_sd=0.2) == pytest.approx(math.hypot(own, 0.2))
    assert sd_of(monte_carlo_sd=0.3) == pytest.approx(math.hypot(own, 0.3))
    moved = math.sqrt((0.5**2 + 1.0**2) / 2)  # from what it was in two iterations to -3
    assert sd_of(Calibration(recent=(-3.5, -2.0))) == pytest.approx(math.hypot(own, moved))


def test_promised_mass_counts_no_more_than_promises_have_been_worth():
    """And what nobody has seen is added to the error."""
    found = Evidence(-1.0, math.hypot(0.3, 0.25 * 4.0), True, -np.inf, 10.0, 4.0, 1.0)
    assert found.doubted(Doubt()).sd == pytest.approx(found.sd)
    assert found.doubted(Doubt(0.4, 0.1)).sd == pytest.approx(math.hypot(0.3, 0.1, 0.4))


def test_the_evidence_says_where_it_comes_from():
    gp, sample = quadratic_surrogate(2, 0.0), hand_made_sample(curvature=0.2)
    found = evidence_of(sample, gp, Calibration(inflation=2.5), np.random.default_rng(7))
    assert (found.log_evidence, found.pareto_k, found.corrected) == (-3.0, 0.2, True)
    assert found.effective_samples == pytest.approx(200.0)
    assert (found.curvature, found.inflation) == (0.2, 2.5)


def test_the_track_record_reaches_the_reported_error():
    gp, q = quadratic_surrogate(2, 0.0), normal(2, 1.2)
    records = {
        "untested": TrackRecord(),
        "right": TrackRecord((20,), (20.0,), (), ()),
        "wrong": TrackRecord((20,), (500.0,), (), ()),
        "moving": TrackRecord((20, 0), (20.0, 0.0), (-5.0, 5.0), (0.5, 0.5), (20, 30)),
    }
    found = {name: estimate(q, gp, record)[0] for name, record in records.items()}
    assert found["right"].inflation == found["untested"].inflation == 1.0
    assert found["wrong"].inflation == pytest.approx((500 + 4) / 24)
    assert found["right"].sd < found["untested"].sd < found["wrong"].sd < found["moving"].sd


def test_equal_generators_give_equal_answers():
    surrogate, _ = wavy()
    one, same, other = (estimate(normal(1, 1.0), surrogate, seed=seed) for seed in (1, 1, 2))
    assert one[0] == same[0] != other[0]
    np.testing.assert_array_equal(one[1].factors, same[1].factors)


@pytest.mark.parametrize(("share", "n_samples"), [(math.inf, 1), (1e6, 1), (1e-9, 4)])
def test_rounds_go_on_until_sampling_adds_little_to_the_surrogate_s_error(
    monkeypatch, share, n_samples
):
    """At the end; in an iteration one sample of a good proposal is enough."""
    asked = []

    def counted(*given):
        asked.append(given)
        return weighted_sample(*given)

    monkeypatch.setattr("sparing.vbmc.evidence.weighted_sample", counted)
    strategy = SurrogatePosterior(monte_carlo_share=share)
    estimate(normal(2, 1.1), quadratic_surrogate(2, -7.0), strategy=strategy)
    assert len(asked) == n_samples
