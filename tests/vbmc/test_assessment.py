"""The end of an iteration: how a solution is judged and what follows from it."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from tests.vbmc.support import (
    EXACT,
    GOOD,
    LOG_EVIDENCE,
    LOG_JACOBIAN,
    NAMES,
    ROUGH,
    STREAMS,
    TRANSFORM,
    RecordedEvidence,
    design,
    evaluation,
    evidence,
    log_joint,
    row,
    solution,
    state,
    steep,
)

from sparing.acquisition.rules import PosteriorDraw, ProspectiveSampling, VarianceReduction
from sparing.problem.evaluations import Status
from sparing.variational.divergence import gaussianised_symmetric_kl
from sparing.variational.normal_mixture import unchanged
from sparing.variational.other_coordinates import carry_over
from sparing.variational.posterior import Posterior
from sparing.vbmc.assessment import (
    complete_iteration,
    estimated,
    features,
    has_arrived,
    held_out_residuals,
    judged,
    may_stop,
    next_phase,
    spaced_elcbo,
    track_record,
)
from sparing.vbmc.evidence import LowerBound
from sparing.vbmc.exploration import PROBE
from sparing.vbmc.posterior_error import ExpectedError, Untested
from sparing.vbmc.settings import HyperparameterSchedule, Settings
from sparing.vbmc.state import Agenda, Phase
from sparing.vbmc.stopping import Stopping
from sparing.vbmc.warm_up import Climbing, WatchingBound

SETTINGS = Settings()


@pytest.mark.parametrize(
    ("phase", "arrived", "expected"),
    [
        (Phase.SEARCHING, False, Phase.SEARCHING),
        (Phase.SEARCHING, True, Phase.ADAPTING),
        (Phase.ADAPTING, False, Phase.SETTLED),
        (Phase.SETTLED, False, Phase.SETTLED),
    ],
)
def test_phases_follow_each_other(phase, arrived, expected):
    assert next_phase(phase, arrived=arrived) is expected


# ---------------------------------------------------------------------- stopping


def stable_history(n=4, **last):
    rows = [row(t) for t in range(1, n)]
    return [*rows, row(n, **last)]


def test_a_stable_and_accurate_solution_may_stop():
    assert may_stop(stable_history(), state(), SETTINGS)


def test_what_stands_in_the_way_of_stopping():
    searching = state(phase=Phase.SEARCHING)
    assert not may_stop(stable_history(), searching, SETTINGS)
    assert not may_stop(stable_history(3), state(), SETTINGS)  # too short
    assert not may_stop(stable_history(elcbo=9.0), state(), SETTINGS)  # still rising
    assert not may_stop(
        stable_history(features=replace(GOOD, change_of_elbo=2.0)), state(), SETTINGS
    )
    patient = replace(SETTINGS, stopping=Stopping(n_stable=5))
    assert not may_stop(stable_history(), state(), patient)


def test_an_inaccurate_posterior_may_not_stop_unless_nobody_tests_it():
    history = stable_history(posterior_error=0.5)  # two iterations count, the limit is 0.02 D
    tested = replace(SETTINGS, accuracy=ExpectedError(tolerance=0.02, n_iterations=2))
    assert not may_stop(history, state(), tested)
    assert may_stop(history, state(), replace(SETTINGS, accuracy=ExpectedError(tolerance=0.2)))
    assert may_stop(history, state(), replace(SETTINGS, accuracy=Untested()))


# ---------------------------------------------------------------------- end of the warm-up


@dataclass(frozen=True)
class RecordedWarmUp(Climbing):
    """Notes what the end of the warm-up is decided by."""

    asked: list = field(default_factory=list)

    def is_over(self, elcbo, values, surrogate, n_active):
        self.asked.append((list(elcbo), values, surrogate, n_active))
        return True


def test_the_warm_up_sees_every_usable_value_in_working_coordinates():
    entries = [*design(6), evaluation(6, value=-math.inf, status=Status.OUT_OF_SUPPORT)]
    warm_up, found = RecordedWarmUp(), solution()
    settings = replace(SETTINGS, warm_up=warm_up, n_active=4)
    history = [row(1, elcbo=-8.0), row(2, elcbo=-2.0)]
    assert has_arrived(history, found, entries, settings)
    ((elcbo, values, surrogate, n_active),) = warm_up.asked
    assert (elcbo, n_active) == ([-8.0, -2.0], 4)
    assert surrogate is found.surrogate
    np.testing.assert_allclose(values, [entry.value + LOG_JACOBIAN for entry in design(6)])


def test_elcbos_are_an_iteration_s_evaluations_apart():
    """On the way up iterations have one evaluation each; the newest one always counts."""
    counts = [10, 11, 12, 13, 14, 15, 16, 17, 22]
    history = [row(1, n_evaluations=n, elcbo=float(n)) for n in counts]
    assert spaced_elcbo(history, 5) == [12.0, 17.0, 22.0]
    assert spaced_elcbo(history[:-1], 5) == [12.0, 17.0]
    assert spaced_elcbo(history, 1) == [float(n) for n in counts]
    assert spaced_elcbo(history[:1], 5) == [10.0]


# ---------------------------------------------------------------------- held-out draws

RULES = (VarianceReduction(), PosteriorDraw(), VarianceReduction(), PosteriorDraw(widening=1.5))


def new_points(first, n, rules=RULES, surprise=0.2, **changes):
    """Evaluations after the design, each with the rule whose turn it was, and off by so much."""
    points = np.random.default_rng(7).normal(size=(n, 2))
    facts = [
        {"value": log_joint(x) + surprise, "rule": rules[i % len(rules)].name}
        for i, x in enumerate(points, start=first)
    ]
    return [
        evaluation(i, x, identifier=i, **(each | changes))
        for i, (x, each) in enumerate(zip(points, facts, strict=True), start=first)
    ]


def test_residuals_are_those_of_the_new_posterior_draws():
    """Identifiers 12 to 15, of which 13 and 15 are draws; the surrogate has seen up to 11."""
    before = state([row(1, n_evaluations=12)])
    entries = [*design(12), *new_points(12, 4, noise_sd=0.5)]
    found = held_out_residuals(before, entries, replace(SETTINGS, rules=RULES))
    draws = [entries[13], entries[15]]
    surrogate = before.trained.surrogate
    mean, variance = surrogate.predict(np.array([entry.x for entry in draws]) / 4.0)
    values = np.array([entry.value for entry in draws]) + LOG_JACOBIAN
    expected = (values - mean) / np.sqrt(variance + surrogate.noise_variance + 0.5**2)
    np.testing.assert_allclose(found, expected)


def test_only_draws_that_gave_a_value_since_the_last_iteration_count():
    settings = replace(SETTINGS, rules=RULES)
    entries = [*design(12), *new_points(12, 4)]
    assert len(held_out_residuals(state([row(1, n_evaluations=12)]), entries, settings)) == 2
    assert len(held_out_residuals(state([row(1, n_evaluations=14)]), entries, settings)) == 1
    assert len(held_out_residuals(state([row(1, n_evaluations=16)]), entries, settings)) == 0
    failed = replace(
        entries[13], outcome=replace(entries[13].outcome, value=math.nan, status=Status.FAILED)
    )
    assert len(held_out_residuals(state([row(1, n_evaluations=12)]), [failed], settings)) == 0


def test_points_the_user_chose_are_no_draws():
    own = [replace(entry, identifier=None, rule="") for entry in new_points(12, 4)]
    before = state([row(1, n_evaluations=12)])
    assert len(held_out_residuals(before, own, replace(SETTINGS, rules=RULES))) == 0


@pytest.mark.parametrize(
    "before",
    [
        state([], trained=None, phase=Phase.SEARCHING),
        state([row(1, n_evaluations=12)], phase=Phase.SEARCHING),
        state([row(1, n_evaluations=12)], trained=steep()),
    ],
    ids=["nothing to test", "searching", "on the way up"],
)
def test_the_rules_of_the_search_make_no_draws(before):
    entries = new_points(12, 4, rules=(ProspectiveSampling(),))
    assert len(held_out_residuals(before, entries, replace(SETTINGS, rules=RULES))) == 0


def test_the_track_record_is_the_history_with_the_new_residuals():
    history = [
        row(1, warm_up=True, n_held_out=0, held_out_squares=0.0, log_evidence=-5.0),
        row(2, n_held_out=3, held_out_squares=4.0, log_evidence=1.7, log_evidence_sd=0.2),
    ]
    record = track_record(history, 2, 1.5)
    assert record.n_held_out == (0, 3, 2)
    assert record.squares == (0.0, 4.0, 1.5)
    assert record.estimates == (-5.0, 1.7)
    assert record.sds == (math.inf, 0.2)  # during the warm-up nobody knows
    assert track_record(history).n_held_out == (0, 3, 0)


# ---------------------------------------------------------------------- features


def features_of(before, found, **changes):
    posterior = Posterior(found.mixture, found.transform, NAMES)
    return features(before, found.elbo, posterior, evidence(**changes), SETTINGS)


def test_there_are_no_features_in_the_first_iteration():
    assert features_of(state([]), solution()) is None


def test_features_compare_with_the_iteration_before():
    found = solution(EXACT)
    before = state([row(1), row(2, elbo=found.elbo.value + 0.3)])
    result = features_of(before, found, sd=0.05)
    assert result.change_of_elbo == pytest.approx(0.3 / 0.1)
    assert result.uncertainty_of_elbo == pytest.approx(0.05 / 0.1)
    kl = gaussianised_symmetric_kl(EXACT.mean, EXACT.covariance, ROUGH.mean, ROUGH.covariance)
    assert result.change_of_posterior == pytest.approx(kl / (0.01 * math.sqrt(2.0)))


def test_new_coordinates_alone_do_not_change_the_posterior():
    whitened = TRANSFORM.whitened(np.array([0.1, 0.2]), np.diag([0.5, -3.0]), number=2)
    moved = solution(carry_over(ROUGH, TRANSFORM, whitened), transform=whitened)
    assert features_of(state(), moved).change_of_posterior == pytest.approx(0.0, abs=1e-8)


# ---------------------------------------------------------------------- the whole


def judge(before, found, settings=SETTINGS, entries=None):
    entries = design() if entries is None else entries
    residuals = held_out_residuals(before, entries, settings)
    estimate = estimated(before, found, residuals, (), settings, STREAMS)
    return judged(before, found, estimate, len(entries), NAMES, settings, STREAMS)


def test_the_row_says_what_the_solution_is():
    found = solution(EXACT, n_pruned=3)
    result = judge(state(), found, entries=design(12))
    assert (result.iteration, result.n_evaluations, result.n_training) == (4, 12, 10)
    assert (result.elbo, result.elbo_sd) == (found.elbo.value, found.elbo.sd)
    assert result.elcbo == pytest.approx(found.elbo.value - 3.0 * found.elbo.sd)
    assert result.log_evidence == pytest.approx(LOG_EVIDENCE, abs=0.1)
    assert (result.n_components, result.n_pruned) == (1, 3)
    assert result.n_hyperparameter_samples == 2
    spread = found.elbo.expected_log_joint.mean_by_sample
    assert result.hyperparameter_variance == pytest.approx(np.var(spread, ddof=1))
    assert result.noise_sd == pytest.approx(1e-3)
    assert (result.warm_up, result.stable, result.whitened) == (False, False, False)
    assert result.posterior_error > 0.0
    assert result.posterior.names == NAMES


def test_the_posterior_of_the_row_is_the_surrogate_s():
    sampled = judge(state(), solution(ROUGH)).posterior.mixture
    before, after = (
        gaussianised_symmetric_kl(q.mean, q.covariance, EXACT.mean, EXACT.covariance)
        for q in (ROUGH, sampled)
    )
    assert after < 0.1 * before
    plain = judge(state(), solution(ROUGH), replace(SETTINGS, evidence=LowerBound()))
    assert plain.posterior.mixture is ROUGH


def test_held_out_residuals_reach_the_row():
    """And what they say about the surrogate reaches the evidence."""
    entries = [*design(12), *new_points(12, 4, surprise=9.0)]
    before, settings = state([row(1, n_evaluations=12)]), replace(SETTINGS, rules=RULES)
    found = judge(before, solution(EXACT), settings, entries)
    z = held_out_residuals(before, entries, settings)
    assert found.n_held_out == 2
    assert found.held_out_squares == pytest.approx(z @ z)
    calibration = settings.evidence.calibration
    expected = (2.5 + z @ z + calibration.n_prior) / (2 + 2 + calibration.n_prior)
    assert found.evidence.inflation == pytest.approx(expected)
    assert expected > 3.0


def test_during_the_search_the_error_of_the_posterior_is_not_asked_for():
    result = judge(state(phase=Phase.SEARCHING), solution(EXACT))
    assert math.isnan(result.posterior_error)
    assert result.warm_up


def test_one_hyperparameter_sample_has_no_spread():
    assert judge(state(), solution(EXACT, n_samples=1)).hyperparameter_variance == 0.0


def complete(before, found=None, settings=SETTINGS, entries=None, *, whitening_tried=False):
    entries = design() if entries is None else entries
    found = solution() if found is None else found
    return complete_iteration(
        before,
        found,
        judge(before, found, settings, entries),
        Agenda(),
        entries,
        settings,
        whitening_tried=whitening_tried,
    )


def test_an_iteration_hands_its_solution_on():
    before, found = state(), solution(EXACT)
    after = complete(before, found)
    assert after.trained is found.trained
    assert after.mixture is EXACT  # the correction is for the reader, the next fit goes on from q
    assert after.transform is found.transform
    assert after.history[:-1] == before.history
    assert after.iteration == 4


def test_what_a_look_asks_for_comes_next():
    agenda = Agenda(np.ones((2, 2)), PROBE)
    entries, found = design(), solution()
    result = judge(state(), found)
    after = complete_iteration(
        state(), found, result, agenda, entries, SETTINGS, whitening_tried=False
    )
    assert after.agenda is agenda
    assert after.history[-1] is result


@dataclass(frozen=True)
class Arrived(WatchingBound):
    """The paper's, at its end."""

    def is_over(self, elcbo, values, surrogate, n_active):
        return True


def test_the_end_of_the_paper_s_search_trims_what_lies_far_below():
    entries = [*design(), evaluation(10, value=-21.0), evaluation(11, value=-19.0)]
    arrived = replace(SETTINGS, warm_up=Arrived())
    before = state(phase=Phase.SEARCHING)
    after = complete(before, settings=arrived, entries=entries)
    assert after.phase is Phase.ADAPTING
    assert after.trimmed == frozenset({10})  # more than 10 D below the maximum
    still = complete(before, settings=replace(SETTINGS, n_active=99), entries=entries)
    assert still.phase is Phase.SEARCHING
    assert still.trimmed == frozenset()
    settled = complete(state(trimmed=frozenset({3})), settings=arrived, entries=entries)
    assert settled.phase is Phase.SETTLED
    assert settled.trimmed == frozenset({3})  # for good


def test_the_end_of_the_search_keeps_everything():
    """However deep: it says where no mode is."""
    entries = [*design(), evaluation(10, value=-1e6), evaluation(11, value=-1e300)]
    arrived = replace(SETTINGS, warm_up=RecordedWarmUp())
    after = complete(state(phase=Phase.SEARCHING), settings=arrived, entries=entries)
    assert after.phase is Phase.ADAPTING
    assert after.trimmed == frozenset()


def test_sampling_stops_once_and_for_all():
    schedule = HyperparameterSchedule(variance_threshold=1e9, n_iterations=4)
    settings = replace(SETTINGS, sampling=schedule)
    assert complete(state(), settings=settings).sampling_stopped
    assert not complete(state()).sampling_stopped
    assert complete(state(sampling_stopped=True)).sampling_stopped


def test_the_iteration_of_a_whitening_is_remembered():
    before = state(last_whitening=1)
    assert complete(before, whitening_tried=False).last_whitening == 1
    assert complete(before, whitening_tried=True).last_whitening == 3
    whitened = TRANSFORM.whitened(np.zeros(2), 2.0 * np.eye(2), number=4)
    found = solution(carry_over(ROUGH, TRANSFORM, whitened), transform=whitened)
    after = complete(before, found, whitening_tried=True)
    assert after.transform is whitened
    assert after.history[-1].whitened


# ---------------------------------------------------------------------- what is sampled


def test_the_posterior_before_is_a_proposal_in_the_new_coordinates():
    whitened = TRANSFORM.whitened(np.array([0.1, 0.2]), np.diag([0.5, -3.0]), number=2)
    moved = solution(carry_over(ROUGH, TRANSFORM, whitened), transform=whitened)
    other = unchanged(EXACT)
    for before, n_before in (
        (state(), 1),
        (state([row(1, warm_up=True)]), 0),  # it was q, and q is a proposal anyway
        (state([]), 0),
        (state(phase=Phase.SEARCHING), 0),
    ):
        strategy = RecordedEvidence()
        settings = replace(SETTINGS, evidence=strategy)
        estimated(before, moved, np.empty(0), [other], settings, STREAMS)
        ((first, *rest),) = strategy.asked
        assert first is other
        assert len(rest) == n_before
        for old in rest:
            found = whitened.to_user(old.means)
            np.testing.assert_allclose(found, TRANSFORM.to_user(ROUGH.means), atol=1e-9)
