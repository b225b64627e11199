import math

import numpy as np
import pytest

from sparing.problem.evaluations import Evaluation, EvaluationLog, Outcome, Proposal, Status


def outcome_of(status):
    value = {Status.OK: -1.5, Status.OUT_OF_SUPPORT: -math.inf}.get(status, math.nan)
    return Outcome(value, status, 0.25, "a message", "a traceback", 1e9, 1e9 + 1, "host:1")


@pytest.mark.parametrize("status", Status)
def test_a_density_of_zero_is_a_value_and_only_a_finite_one_can_be_learned_from(status):
    entry = Evaluation(0, None, np.zeros(2), outcome_of(status))
    assert entry.failed is (status in (Status.FAILED, Status.TIMED_OUT, Status.ABANDONED))
    assert entry.usable is (status is Status.OK)


def test_an_evaluation_shows_what_its_outcome_holds():
    outcome = outcome_of(Status.OUT_OF_SUPPORT)
    entry = Evaluation(3, 7, np.zeros(2), outcome, "a rule")
    shown = [name for name in vars(Evaluation) if isinstance(vars(Evaluation)[name], property)]
    assert len(shown) == 14
    assert all(getattr(entry, name) is getattr(outcome, name) for name in shown)


def test_points_are_copies_that_nobody_can_change():
    x = np.zeros(2)
    for event in (Proposal(0, x), Evaluation(0, 0, x, outcome_of(Status.OK))):
        x[:] = 5.0
        assert event.x.tolist() == [0.0, 0.0]
        with pytest.raises(ValueError, match="read-only"):
            event.x[0] = 1.0
        x[:] = 0.0


def test_the_log_sorts_its_entries_by_what_they_are_good_for():
    log = EvaluationLog()
    for index, status in enumerate(Status):
        log.append(Evaluation(index, None, np.zeros(1), outcome_of(status)))
    assert [entry.status for entry in log.usable()] == [Status.OK]
    assert [entry.status for entry in log.informative()] == [Status.OK, Status.OUT_OF_SUPPORT]
    assert len(log.unusable()) == len(Status) - 1
    with pytest.raises(ValueError, match="evaluation 9 cannot follow 4"):
        log.append(Evaluation(9, None, np.zeros(1), outcome_of(Status.OK)))
