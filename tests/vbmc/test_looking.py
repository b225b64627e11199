"""Looking elsewhere at the end of an iteration: what is told, and what becomes of what is found."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from tests.vbmc.support import (
    EXACT,
    GOOD,
    LOG_JACOBIAN,
    NAMES,
    ROUGH,
    STREAMS,
    TRANSFORM,
    RecordedEvidence,
    design,
    evaluation,
    row,
    solution,
    state,
)

from sparing.problem.bending import Bend, Whitening
from sparing.problem.evaluations import Status
from sparing.variational.normal_mixture import NormalMixture, unchanged
from sparing.variational.posterior import Posterior
from sparing.vbmc.assessment import estimated, judged
from sparing.vbmc.evidence import LowerBound
from sparing.vbmc.exploration import CLIMB, FILL, PROBE, SECOND, TEST, Look
from sparing.vbmc.looking import (
    in_plain_coordinates,
    is_calm,
    looked_elsewhere,
    what_is_known,
)
from sparing.vbmc.posterior_error import ExpectedError
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import Agenda
from sparing.vbmc.stopping import Stopping


@dataclass(frozen=True)
class RecordedLook:
    """Finds what it is told to, and notes what it was told."""

    points: tuple[tuple[float, float], ...] = ()
    rule: str = FILL
    found: NormalMixture | None = None
    asked: list = field(default_factory=list)

    def is_due(self, phase, *, stable):
        return stable

    def look(self, known, inflation, generator, *, tested, otherwise):
        self.asked.append((known, inflation, generator.random(), otherwise, tested))
        points = np.array(self.points).reshape(-1, 2)
        return Look(0.3, 0.1, points, self.rule, self.found)


EASY = replace(
    Settings(), stopping=Stopping(1e9, 1e9, 1e9, n_stable=2), accuracy=ExpectedError(tolerance=1e9)
)


def after_a_look(before=None, settings=EASY, *, awaited=None, **facts):
    """The row and the agenda after a look that finds such a thing, and what it was told."""
    exploration = RecordedLook(**facts)
    settings = replace(settings, exploration=exploration)
    before, found = state() if before is None else before, solution()
    entries = [*design(), evaluation(10, value=-math.inf, status=Status.OUT_OF_SUPPORT)]
    residuals = np.array([1.0, 2.0])
    estimate = estimated(before, found, residuals, (), settings, STREAMS)
    result = judged(before, found, estimate, 11, NAMES, settings, STREAMS)
    looked = looked_elsewhere(before, found, estimate, result, entries, settings, STREAMS, awaited)
    return *looked, result, exploration.asked


def test_nobody_looks_before_the_solution_would_do():
    careful = replace(EASY, stopping=Stopping())
    result, agenda, before, asked = after_a_look(settings=careful, points=((0.1, 0.1),))
    assert asked == []
    assert result == before
    assert not result.stable
    assert len(agenda.points) == 0


@pytest.mark.parametrize(
    ("tolerance", "last_look", "agenda", "looks"),
    [
        (1e-9, None, Agenda(), True),  # an error of 0.1 is enough for most
        (1e-9, 8, Agenda(), True),  # 11 evaluations, more than 1.25 times as many as eight
        (1e-9, 9, Agenda(), False),  # it has looked of late...
        (1e-9, 9, Agenda(np.ones((1, 2)), FILL), True),  # ...and is not done
        (0.1, None, Agenda(), False),  # one that is to be as good as most does when it is stable
    ],
)
def test_a_run_that_is_to_be_more_accurate_looks_all_the_same(tolerance, last_look, agenda, looks):
    entries = [*design(), evaluation(10, value=-math.inf, status=Status.OUT_OF_SUPPORT)]
    entries = [
        replace(entry, rule=FILL if i == last_look else entry.rule)
        for i, entry in enumerate(entries, 1)
    ]
    settings = replace(EASY, stopping=replace(EASY.stopping, tolerance_sd=tolerance))
    changed = replace(GOOD, change_of_elbo=0.05 / tolerance)
    history = tuple(row(t, features=changed) for t in range(1, 4))
    assert is_calm(history, state(agenda=agenda), entries, settings) is looks


def test_nobody_looks_again_before_what_was_asked_for_is_known():
    rest = Agenda(np.ones((2, 2)), FILL)
    result, agenda, _, asked = after_a_look(awaited=rest)
    assert asked == []
    assert not result.stable
    assert agenda is rest


def test_a_look_that_asks_for_nothing_makes_the_solution_stable():
    result, agenda, before, asked = after_a_look()
    assert result == replace(before, stable=True)
    assert len(agenda.points) == 0
    ((known, inflation, _, otherwise, tested),) = asked
    assert not tested
    assert otherwise is None  # these coordinates are plain
    assert inflation == before.evidence.inflation
    assert known.log_evidence == before.log_evidence
    np.testing.assert_allclose(known.posterior.mean, before.posterior.mixture.mean)


def test_a_look_that_asks_for_points_keeps_the_run_going():
    """They are handed on in the user's coordinates, and none is out of reach."""
    points = ((0.1, -0.2), (1e9, 0.3))
    result, agenda, _, _ = after_a_look(points=points, rule=CLIMB)
    assert not result.stable
    assert agenda.rule == CLIMB
    _, upper = TRANSFORM.reachable_box()
    np.testing.assert_allclose(agenda.points, [[0.4, -0.8], [4.0 * upper[0], 1.2]])


def test_what_was_found_joins_the_posterior_at_once():
    """The surrogate has learnt one mode; what is found there is sampled, and counted again."""
    strategy = RecordedEvidence()
    settings = replace(EASY, evidence=strategy)
    found = unchanged(EXACT)
    facts = {"points": ((0.1, 0.1),), "rule": PROBE, "found": found}
    result, _, before, _ = after_a_look(settings=settings, **facts)
    first, second = strategy.asked
    assert not any(part is found for part in first)
    assert second[0] is found
    assert not result.stable
    assert (result.n_evaluations, result.n_held_out) == (11, 2)
    assert result.posterior.names == NAMES
    assert result.log_evidence != before.log_evidence  # other draws
    assert result.log_evidence == pytest.approx(before.log_evidence, abs=0.02)


@pytest.mark.parametrize(
    ("rule", "residuals", "tested"),
    [
        (TEST, [-9.0, 0.0, 1.9], TEST),
        (TEST, [-9.0, 0.0, 2.1], ""),
        (SECOND, [-9.0, 0.0, 1.9], SECOND),
        (PROBE, [-9.0, 0.0, 1.9], ""),
    ],
)
def test_tails_have_been_tested_when_no_value_was_a_surprise(rule, residuals, tested):
    """By two sds, inflated."""
    agenda = Agenda(np.array([[0.1, 0.1]]), rule)
    before, found = replace(state(), agenda=agenda), solution()
    exploration = RecordedLook()
    settings = replace(EASY, exploration=exploration)
    estimate = estimated(before, found, np.array(residuals), (), settings, STREAMS)
    result = judged(before, found, estimate, 11, NAMES, settings, STREAMS)
    inflated = np.array(residuals) * math.sqrt(result.evidence.inflation)
    estimate = replace(estimate, residuals=inflated)
    looked_elsewhere(before, found, estimate, result, design(), settings, STREAMS)
    assert exploration.asked[0][-1] == tested


def test_in_bent_coordinates_there_is_a_second_opinion():
    """By a surrogate whose coordinates are whitened alone, of the same values and posterior."""
    nothing = Whitening.nothing(2)
    bend = Bend(np.array([4.0, 0.0]), np.array([0.0, 0.1]), np.eye(2), np.zeros(2), 3.0, nothing)
    bent = TRANSFORM.bent([bend], 3)
    posterior = replace(row(4).posterior, mixture=unchanged(ROUGH), transform=bent)
    known = replace(what_is_known(solution().trained, row(4), design()), transform=bent)
    other = in_plain_coordinates(known, row(4), state(), design(), EASY, STREAMS)
    assert not other.transform.bends
    np.testing.assert_allclose(other.surrogate.training.inputs, other.inputs)
    again = Posterior(other.posterior, other.transform, posterior.names)
    np.testing.assert_allclose(again.mean, posterior.mean, atol=0.02)
    np.testing.assert_allclose(again.covariance, posterior.covariance, atol=0.02)
    np.testing.assert_allclose(other.posterior.covariance, np.eye(2) / 16.0, atol=0.01)
    found, exploration = solution(transform=bent), RecordedLook()
    settings = replace(EASY, exploration=exploration)
    estimate = estimated(state(), found, np.empty(0), (), settings, STREAMS)
    result = judged(state(), found, estimate, 11, NAMES, settings, STREAMS)
    looked_elsewhere(state(), found, estimate, result, design(), settings, STREAMS)
    assert not exploration.asked[0][3]().transform.bends  # a look is told of it


def test_looks_have_a_stream_of_their_own():
    later = state([row(t) for t in range(1, 6)])
    draws = [after_a_look(before)[3][0][2] for before in (state(), state(), later)]
    assert draws[0] == draws[1] != draws[2]


def test_what_is_stable_is_believed_by_the_paper():
    """Its posterior is q itself: nothing is sampled, and nothing is sought."""
    result, agenda, _, asked = after_a_look(settings=replace(EASY, evidence=LowerBound()))
    assert asked == []
    assert result.stable
    assert len(agenda.points) == 0
    trusting = Settings.paper()
    trusting = replace(trusting, stopping=EASY.stopping)
    found = solution()
    estimate = estimated(state(), found, np.empty(0), (), trusting, STREAMS)
    before = judged(state(), found, estimate, 10, NAMES, trusting, STREAMS)
    result, agenda = looked_elsewhere(state(), found, estimate, before, design(), trusting, STREAMS)
    assert result.stable
    assert len(agenda.points) == 0


def test_what_is_known_is_every_value_in_working_coordinates():
    entries = [*design(6), evaluation(6, value=-math.inf, status=Status.OUT_OF_SUPPORT)]
    found, result = solution(), row(3, log_evidence=1.2)
    known = what_is_known(found.trained, result, entries)
    assert known.surrogate is found.surrogate
    assert known.log_evidence == 1.2
    assert known.dimension == 2
    np.testing.assert_allclose(known.inputs, [entry.x / 4.0 for entry in design(6)])
    np.testing.assert_allclose(known.values, [entry.value + LOG_JACOBIAN for entry in design(6)])
    np.testing.assert_allclose(known.posterior.means, ROUGH.means)
