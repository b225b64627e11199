"""Runs of a target that takes many points at once."""

import math

import numpy as np
import pytest
from tests.light import LIGHT

import sparing
from sparing.errors import TargetError
from sparing.problem.evaluations import Evaluation
from sparing.store import MemoryStore

N_DESIGN = 10
BOX = {"plausible_lower": [-2.0, -2.0], "plausible_upper": [2.0, 2.0]}


def one(x):
    return -0.5 * float((x[0] - 0.3) ** 2 / 0.2 + (x[1] - x[0] ** 2) ** 2)


class Rows:
    """Calls the function of one point for each, and remembers how many there were."""

    def __init__(self, function=one):
        self.function = function
        self.sizes = []

    def __call__(self, x):
        self.sizes.append(len(x))
        return np.array([self.function(row) for row in x])


def infer(log_density, vectorised=True, **options):
    problem = sparing.Problem(log_density, **BOX, vectorised=vectorised)
    given = {"seed": 3, "max_evaluations": 24, "settings": LIGHT, "progress": False} | options
    return sparing.infer(problem, **given)


def facts(events):
    return [(event.identifier, event.x.tolist(), getattr(event, "value", None)) for event in events]


def test_the_design_is_one_call_and_the_run_is_the_same_to_the_last_bit():
    rows = Rows()
    together, alone = infer(rows), infer(one, vectorised=False)
    assert rows.sizes[0] == N_DESIGN
    assert sum(rows.sizes) == 24
    assert facts(together.evaluations) == facts(alone.evaluations)
    assert together.log_evidence == alone.log_evidence


def test_points_of_a_look_elsewhere_are_one_call():
    rows = Rows()
    result = infer(rows, max_evaluations=60, settings=None)
    assert result.converged
    assert any(size > 1 for size in rows.sizes[1:])
    alone = infer(one, vectorised=False, max_evaluations=60, settings=None)
    assert facts(result.evaluations) == facts(alone.evaluations)


def test_a_batch_is_one_call_and_never_larger():
    rows = Rows()
    infer(rows, batch_size=4)
    assert rows.sizes == [4] * 6


def test_workers_get_one_row_each():
    def one_row(x):
        assert x.shape == (1, 2)
        return [one(x[0])]

    assert not infer(one_row, workers=2, max_evaluations=12).failed


def test_bad_points_of_a_call_are_outcomes_of_their_own():
    def some_bad(x):
        return math.nan if x[0] > 1.0 else -math.inf if x[1] > 1.0 else one(x)

    together, alone = infer(Rows(some_bad)), infer(some_bad, vectorised=False)
    assert {str(entry.status) for entry in together.evaluations} >= {"ok", "failed"}
    assert any(entry.value == -math.inf for entry in together.evaluations)
    assert [e.message for e in together.evaluations] == [e.message for e in alone.evaluations]


def test_a_call_that_raises_loses_only_the_point_that_does():
    def raising(x):
        if x[0] > 1.0:
            raise FloatingPointError("it diverged")
        return one(x)

    rows = Rows(raising)
    result = infer(rows)
    raised = [entry for entry in result.evaluations if entry.failed]
    assert raised
    assert all(entry.x[0] > 1.0 and "it diverged" in entry.message for entry in raised)
    assert rows.sizes[: 1 + N_DESIGN] == [N_DESIGN] + [1] * N_DESIGN


def test_a_broken_target_is_called_twice_at_most():
    def broken(x):
        raise ZeroDivisionError

    rows = Rows(broken)
    with pytest.raises(sparing.TargetError, match="No evaluation has given a value"):
        infer(rows)
    assert rows.sizes == [N_DESIGN, 1]


def test_a_wrong_shape_ends_the_run_and_leaves_its_points_to_the_next(tmp_path):
    wrong, store = [], tmp_path / "run"
    with pytest.raises(TargetError, match=r"shape \(10, 1\)"):
        infer(lambda x: wrong.append(1) or np.zeros((len(x), 1)), store=store)
    assert wrong == [1]
    resumed = infer(Rows(), store=store)
    assert not resumed.failed
    assert facts(resumed.evaluations) == facts(infer(Rows()).evaluations)


class Killed(BaseException):
    """As if the process had ended."""


class MortalStore(MemoryStore):
    """Ends the process when so many events are in it."""

    def __init__(self, seed, n_events):
        super().__init__(seed=seed)
        self.n_left = n_events

    def append(self, event):
        if self.n_left == 0:
            raise Killed
        self.n_left -= 1
        super().append(event)


@pytest.mark.parametrize("batch_size", [None, 4])
@pytest.mark.parametrize("n_events", [3, 13, 22, 27, 30])
def test_a_run_that_ends_within_a_batch_goes_on_as_if_it_had_not(batch_size, n_events):
    whole = MemoryStore(seed=3)
    infer(Rows(), batch_size=batch_size, store=whole)
    mortal = MortalStore(3, n_events)
    with pytest.raises(Killed):
        infer(Rows(), batch_size=batch_size, store=mortal)
    resumed = MemoryStore(seed=3)
    for event in mortal.events():
        resumed.append(event)
    infer(Rows(), batch_size=batch_size, store=resumed)
    assert facts(resumed.events()) == facts(whole.events())


def test_what_was_killed_was_within_a_batch():
    """The cases above: between proposals, and between evaluations, of one batch."""
    whole = MemoryStore(seed=3)
    infer(Rows(), batch_size=4, store=whole)
    kinds = [isinstance(event, Evaluation) for event in whole.events()]
    assert not kinds[2] and not kinds[3]
    assert kinds[12] and kinds[13]
