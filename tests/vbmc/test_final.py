"""What a run returns, and what it tells the user about it."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from tests.vbmc.support import (
    EXACT,
    LOG_EVIDENCE,
    LOG_JACOBIAN,
    NAMES,
    ROUGH,
    STREAMS,
    TRANSFORM,
    design,
    evaluation,
    evidence,
    row,
    state,
)

from sparing.problem.bending import Stretch
from sparing.problem.evaluations import Status
from sparing.problem.parameter_transform import ParameterTransform
from sparing.problem.warning_text import WarningTopic
from sparing.variational.mixture import GaussianMixture
from sparing.variational.posterior import Posterior
from sparing.vbmc.answer import BestBound, LastFit, SmallestError, ThoroughAnswer, ThoroughSample
from sparing.vbmc.assessment import track_record
from sparing.vbmc.evidence import Doubt
from sparing.vbmc.final import (
    FinalSolution,
    final_solution,
    thorough_answer,
    warnings_for_the_user,
)
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import Phase
from sparing.vbmc.stopping import StopReason

AS_IT_IS = replace(Settings(), final_fit=LastFit())
# The third has the best bound of the last quarter, the fourth the smallest error.
HISTORY = [
    row(t, elbo=elbo, elbo_sd=elbo_sd, log_evidence_sd=sd, evidence=evidence(sd=sd))
    for t, elbo, elbo_sd, sd in (
        (1, 9.0, 0.0, 0.5),
        (2, 1.0, 0.01, 0.4),
        (3, 2.0, 0.01, 0.3),
        (4, 2.5, 0.5, 0.1),
        (5, 1.5, 0.01, 0.2),
    )
]


def chosen(settings, *, converged):
    return final_solution(state(HISTORY), design(), settings, STREAMS, converged=converged)


def unusable(index):
    return [evaluation(index, value=-math.inf, status=Status.OUT_OF_SUPPORT)]


def test_a_stable_run_returns_its_last_solution():
    found = chosen(AS_IT_IS, converged=True)
    assert (found.elbo, found.elbo_sd) == (1.5, 0.01)
    assert found.posterior is HISTORY[-1].posterior
    assert found.evidence is HISTORY[-1].evidence


def test_without_stability_the_answer_s_strategy_chooses():
    by_error = replace(AS_IT_IS, answer=SmallestError(n_recent=3))
    assert chosen(by_error, converged=False).elbo == 2.5
    by_bound = replace(AS_IT_IS, answer=BestBound(fraction=0.6))
    assert chosen(by_bound, converged=False).elbo == 2.0  # 2.5 less five of its sds is less


@pytest.mark.parametrize(
    ("sds", "expected"),
    [
        ([0.1] * 12 + [9.0, 9.0, 9.0, 0.1], 8.0),  # of the last five 16, 12, 8, 4 and 0 nats off
        ([0.1] * 12 + [9.0, 9.0, 0.1, 0.1], 0.0),  # it knew for long enough
        ([9.0] * 12 + [0.1, 0.1, 0.1, 0.1], 0.0),
        ([0.1] * 2 + [9.0] * 14, 0.0),  # what is returned is of before
    ],
)
def test_what_has_only_just_been_found_may_be_so_far_off_as_what_was_believed_before(sds, expected):
    rows = [
        row(t, log_evidence=4.0 * t, log_evidence_sd=sd, evidence=evidence(4.0 * t, sd=sd))
        for t, sd in enumerate(sds, 1)
    ]

    def found(*, converged):
        return final_solution(state(rows), design(), AS_IT_IS, STREAMS, converged=converged)

    assert found(converged=False).evidence.sd == pytest.approx(math.hypot(expected, 0.1))
    assert found(converged=True).evidence.sd == sds[-1]
    bounds = [replace(past, evidence=replace(past.evidence, corrected=False)) for past in rows]
    paper = replace(AS_IT_IS, answer=BestBound())
    bound = final_solution(state(bounds), design(), paper, STREAMS, converged=False).evidence
    assert bound in [past.evidence for past in bounds]


@dataclass(frozen=True)
class Recorded:
    """A last sample that has been made, with the given error; notes what it was made from."""

    sd: float = 0.1
    doubt: Doubt = Doubt()
    transform: ParameterTransform = TRANSFORM
    asked: list = field(default_factory=list)

    def answer(self, known, mixture, record, evidence_strategy, exploration, generator):
        self.asked.append((known, mixture, record, generator.random()))
        found = evidence(log_evidence=-7.0, sd=self.sd)
        return ThoroughAnswer(found, EXACT, self.doubt, self.transform)


def test_a_stable_run_returns_its_last_surrogate_sampled_once_more():
    found = chosen(replace(Settings(), final_fit=Recorded(sd=0.001)), converged=True)
    assert (found.elbo, found.elbo_sd) == (1.5, 0.01)  # those of q, which is not fitted again
    assert found.posterior.mixture is EXACT
    assert (found.posterior.transform, found.posterior.names) == (TRANSFORM, NAMES)
    assert found.evidence.log_evidence == -7.0


def test_coordinates_of_the_answer_alone_have_a_number_of_their_own():
    stretch = Stretch(np.zeros(2), np.ones(2), np.ones(2), np.ones(2))
    other = TRANSFORM.bent([stretch], number=1)
    settings = replace(Settings(), final_fit=Recorded(sd=0.001, transform=other))
    posterior = chosen(settings, converged=True).posterior
    assert posterior.transform.bends == (stretch,)
    assert posterior.transform.number == len(HISTORY) + 1


def test_a_stable_run_returns_what_it_had_when_that_sample_is_much_less_certain():
    """It has come upon something far away that the surrogate made up."""
    found = chosen(replace(Settings(), final_fit=Recorded(sd=9.0)), converged=True)
    assert found.posterior is HISTORY[-1].posterior
    assert found.evidence == HISTORY[-1].evidence


def test_what_nobody_has_seen_counts_in_the_error_of_whatever_is_returned():
    for sd in (0.01, 9.0):
        settings = replace(Settings(), final_fit=Recorded(sd=sd, doubt=Doubt(0.3)))
        own = sd if sd < 1.0 else HISTORY[-1].evidence.sd
        assert chosen(settings, converged=True).evidence.sd == pytest.approx(math.hypot(own, 0.3))


@pytest.mark.parametrize(("sd", "kept"), [(0.19, True), (0.21, False), (math.nan, False)])
def test_without_stability_it_must_not_be_much_less_certain(sd, kept):
    """Than the best recent one, whose error is 0.1: the last surrogate may be a bad one."""
    settings = replace(Settings(), final_fit=Recorded(sd=sd), answer=SmallestError(n_recent=3))
    found = chosen(settings, converged=False)
    assert found.elbo == 2.5
    assert (found.posterior.mixture is EXACT) is kept
    assert (found.evidence.log_evidence == -7.0) is kept


def test_the_last_sample_knows_what_the_run_knows():
    strategy = Recorded()
    settings = replace(Settings(), final_fit=strategy)
    before, entries = state(HISTORY, mixture=ROUGH), [*design(), *unusable(10)]
    for _ in range(2):
        thorough_answer(before, entries, settings, STREAMS)
    (known, mixture, record, draw), (*_, same_draw) = strategy.asked
    assert mixture is ROUGH
    assert record == track_record(HISTORY)
    assert known.surrogate is before.trained.surrogate
    assert known.transform is TRANSFORM
    assert known.log_evidence == HISTORY[-1].log_evidence
    assert len(known.values) == 10  # points without a value say nothing
    np.testing.assert_allclose(known.values, [e.value + LOG_JACOBIAN for e in design()])
    np.testing.assert_allclose(known.posterior.covariance, ROUGH.covariance)
    assert draw == same_draw  # a stream of its own


def test_there_is_none_before_the_bulk_was_found_nor_where_nobody_asks():
    strategy = Recorded()
    settings = replace(Settings(), final_fit=strategy)
    for early in (state(trained=None), state(phase=Phase.SEARCHING)):
        assert thorough_answer(early, design(), settings, STREAMS) is None
    assert strategy.asked == []
    assert thorough_answer(state(), design(), AS_IT_IS, STREAMS) is None


def test_the_default_hands_over_the_surrogate_s_posterior():
    """ROUGH is what q is; the surrogate has learnt a standard normal."""
    quick = replace(Settings(), final_fit=ThoroughSample(2**10, 2**11, 10))
    found = final_solution(state(), design(), quick, STREAMS, converged=True)
    assert found.evidence.log_evidence == pytest.approx(LOG_EVIDENCE, abs=0.05)
    np.testing.assert_allclose(found.posterior.mean, 0.0, atol=0.05)
    np.testing.assert_allclose(found.posterior.sd, 1.0, atol=0.05)


# ---------------------------------------------------------------------- warnings


def warnings(*, mixture=ROUGH, pareto_k=0.1, entries=None, reason=StopReason.STABLE, **changes):
    solution = FinalSolution(
        Posterior(mixture, TRANSFORM, NAMES), 1.8, 0.1, evidence(pareto_k=pareto_k)
    )
    entries = design() if entries is None else entries
    found = warnings_for_the_user(solution, state(**changes), entries, reason)
    return {warning.topic: str(warning) for warning in found}


def test_nothing_is_said_of_a_good_run():
    assert warnings() == {}
    assert warnings(pareto_k=math.nan) == {}  # the paper's evidence has none
    assert warnings(pareto_k=-math.inf) == {}  # nothing to smooth


def test_an_end_without_stability_is_said_with_its_reason():
    found = warnings(reason=StopReason.BUDGET)
    assert list(found) == [WarningTopic.CONVERGENCE]
    assert str(StopReason.BUDGET) in found[WarningTopic.CONVERGENCE]


def test_an_end_during_the_search_is_provisional():
    found = warnings(phase=Phase.SEARCHING)
    assert list(found) == [WarningTopic.SEARCH]
    assert "provisional" in found[WarningTopic.SEARCH]
    assert warnings(phase=Phase.ADAPTING) == {}


def test_a_posterior_far_outside_the_box_is_named():
    """In widths of the box, at two standard deviations from the mean."""
    far = GaussianMixture([1.0], [[0.0, 9.0]], [0.6], [1.0, 1.0])
    found = warnings(mixture=far)
    assert list(found) == [WarningTopic.BOX]
    assert "'offset' reaches 10.2 widths" in found[WarningTopic.BOX]
    near = GaussianMixture([1.0], [[0.0, 9.0]], [0.4], [1.0, 1.0])
    assert warnings(mixture=near) == {}


def test_failures_are_counted_and_a_density_of_zero_is_none():
    outside = evaluation(10, value=-math.inf, status=Status.OUT_OF_SUPPORT)
    assert warnings(entries=[*design(), outside]) == {}
    failed = [evaluation(i, value=math.nan, status=Status.FAILED) for i in (11, 12)]
    found = warnings(entries=[*design(), outside, *failed])
    assert list(found) == [WarningTopic.FAILURES]
    assert "2 of 13 evaluations failed (first: boom)" in found[WarningTopic.FAILURES]


def test_weights_that_cannot_be_trusted_are_said():
    found = warnings(pareto_k=0.71)
    assert list(found) == [WarningTopic.WEIGHTS]
    assert "0.71 > 0.7" in found[WarningTopic.WEIGHTS]
    assert warnings(pareto_k=0.7) == {}
