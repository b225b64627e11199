import json
import math
import os
import signal
import threading
import time

import numpy as np
import pytest
from scipy import stats

from sparing import Problem
from sparing.executors import (
    FailureKind,
    classify,
    evaluate,
    evaluate_remotely,
    record_to_outcome,
)
from sparing.executors.target_call import evaluate_together
from sparing.problem.evaluations import Status

X = np.array([0.5])


def problem(log_density, **more):
    return Problem(log_density, [-1.0], [1.0], **more)


def test_a_value_comes_with_its_times_and_worker():
    before = time.time()
    outcome = evaluate(problem(lambda x: -(x[0] ** 2)), X)
    assert (outcome.value, outcome.status, outcome.kind) == (-0.25, Status.OK, None)
    assert (outcome.message, outcome.traceback) == ("", "")
    assert before <= outcome.started <= outcome.ended <= time.time()
    assert outcome.duration >= 0.0
    assert outcome.worker.rsplit(":", 1)[1] == str(os.getpid())


def test_the_prior_is_part_of_the_value():
    outcome = evaluate(problem(lambda x: 0.0, prior=stats.norm()), X)
    assert outcome.value == pytest.approx(stats.norm().logpdf(0.5))


@pytest.mark.parametrize("value", [np.array([-2.0]), np.array([[-2.0]]), np.float32(-2), -2])
def test_one_number_in_any_wrapping_is_a_value(value):
    assert evaluate(problem(lambda x: value), X).value == -2.0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, "nan"),
        (math.inf, "inf"),
        (None, "return statement"),
        (1 + 2j, "instead of one real number"),
        (np.zeros(2), "instead of one real number"),
        ("text", "instead of one real number"),
        (1e300, "not a credible log density"),
        (1.1e12, "not a credible log density"),
    ],
)
def test_what_is_no_log_density_is_a_failure(value, message):
    outcome = evaluate(problem(lambda x: value), X)
    assert (outcome.status, outcome.kind) == (Status.FAILED, FailureKind.INVALID_VALUE)
    assert math.isnan(outcome.value)
    assert message in outcome.message


@pytest.mark.parametrize("value", [-math.inf, -1e300, -1.1e12])
def test_density_zero_is_out_of_support(value):
    outcome = evaluate(problem(lambda x: value), X)
    assert (outcome.value, outcome.status) == (-math.inf, Status.OUT_OF_SUPPORT)
    assert (outcome.kind, bool(outcome.message)) == (None, True)


def test_large_but_credible_values_are_values():
    assert classify(9e11) == (Status.OK, "")
    assert classify(-9e11) == (Status.OK, "")


def test_an_exception_is_a_failure_with_the_users_traceback():
    def simulator(x):
        raise ValueError("no such star")

    outcome = evaluate(problem(lambda x: simulator(x)), X)
    assert (outcome.status, outcome.kind) == (Status.FAILED, FailureKind.EXCEPTION)
    assert outcome.message == "ValueError: no such star"
    assert "in simulator" in outcome.traceback
    assert "log_joint" not in outcome.traceback
    assert "in evaluate" not in outcome.traceback


def test_endless_messages_are_cut_and_unreadable_ones_survived():
    class UnreadableError(Exception):
        def __str__(self):
            raise RuntimeError("even this")

    def endless(x):
        raise ValueError("a" * 10**6)

    def unreadable(x):
        raise UnreadableError

    assert len(evaluate(problem(endless), X).message) < 3_000
    assert len(evaluate(problem(endless), X).traceback) < 30_000
    assert "cannot be read" in evaluate(problem(unreadable), X).message


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_interruptions_pass_through_in_this_process(interruption):
    def interrupted(x):
        raise interruption

    with pytest.raises(interruption):
        evaluate(problem(interrupted), X)


# ---------------------------------------------------------------------- in a worker


def test_a_worker_answers_with_a_plain_record():
    record = evaluate_remotely(problem(lambda x: -math.inf), X, 3)
    json.dumps(record, allow_nan=False)
    assert record_to_outcome(record).status is Status.OUT_OF_SUPPORT


def test_a_worker_spools_what_it_answers(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr("sparing.store.write_spooled_outcome", lambda *all_: written.append(all_))
    record = evaluate_remotely(problem(lambda x: -1.0), X, 3, str(tmp_path))
    assert written == [(str(tmp_path), 3, record)]


def test_a_spool_that_cannot_be_written_does_not_lose_the_value(tmp_path):
    with pytest.warns(UserWarning, match="could not be spooled"):
        record = evaluate_remotely(problem(lambda x: -1.0), X, 3, str(tmp_path / "none"))
    assert record_to_outcome(record).value == -1.0


def test_sys_exit_in_a_worker_is_a_failure():
    def leaving(x):
        raise SystemExit(3)

    outcome = record_to_outcome(evaluate_remotely(problem(leaving), X, 0))
    assert (outcome.status, outcome.message) == (Status.FAILED, "the target called sys.exit(3)")


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, GeneratorExit])
def test_whatever_the_target_raises_in_a_worker_is_a_failure(interruption):
    def log_density(x):
        raise interruption("of its own")

    outcome = record_to_outcome(evaluate_remotely(problem(log_density), X, 0))
    message = f"{interruption.__name__}: of its own"
    assert (outcome.status, outcome.message) == (Status.FAILED, message)


def test_the_alarm_ends_python_code_and_is_taken_down():
    def hanging(x):
        try:
            while True:
                time.sleep(0.01)
        except Exception:  # must not catch the alarm
            return 0.0

    handler = signal.getsignal(signal.SIGALRM)
    record = evaluate_remotely(problem(hanging), X, 0, time_limit=0.1)
    outcome = record_to_outcome(record)
    assert (outcome.status, outcome.kind) == (Status.TIMED_OUT, FailureKind.TIMED_OUT)
    assert "time limit of 0.1 s" in outcome.message
    assert signal.getsignal(signal.SIGALRM) is handler
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_without_a_main_thread_there_is_no_alarm():
    records = []

    def work():
        slow = problem(lambda x: time.sleep(0.1) or -1.0)
        records.append(evaluate_remotely(slow, X, 0, time_limit=0.01))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert record_to_outcome(records[0]).value == -1.0


def test_a_worker_does_not_hear_the_interrupt_key():
    def pressing(x):
        os.kill(os.getpid(), signal.SIGINT)
        return -1.0

    handler = signal.getsignal(signal.SIGINT)
    assert record_to_outcome(evaluate_remotely(problem(pressing), X, 0)).value == -1.0
    assert signal.getsignal(signal.SIGINT) is handler


def test_many_points_by_one_call_each_with_its_outcome():
    shapes = []

    def log_density(x):
        shapes.append(x.shape)
        return np.array([-1.0, math.nan, math.inf, -math.inf]), np.array([0.1, 0.0, 0.0, 0.3])

    def log_prior(x):
        if x[0] == 5.0:
            raise ArithmeticError("no such prior")
        return -np.inf if x[0] == 6.0 else -2.0

    many = problem(log_density, vectorised=True, upper=8.0, prior=log_prior)
    points = [np.array([value]) for value in (1.0, 5.0, 2.0, 6.0, 3.0, 9.0, 4.0)]
    before = time.time()
    outcomes = evaluate_together(many, points)
    assert shapes == [(4, 1)]
    one, prior_raises, nan, prior_zero, infinite, outside, zero = outcomes
    assert (one.value, one.noise_sd, one.log_prior) == (-3.0, 0.1, -2.0)
    assert (prior_raises.kind, "no such prior" in prior_raises.message) == (
        FailureKind.EXCEPTION,
        True,
    )
    assert {nan.kind, infinite.kind} == {FailureKind.INVALID_VALUE}
    assert "x1 = 2.0" in nan.message
    assert {entry.value for entry in (prior_zero, outside, zero)} == {-math.inf}
    called = [one, nan, infinite, zero]
    assert len({entry.duration for entry in called}) == 1  # it is shared
    assert sum(entry.duration for entry in called) <= time.time() - before
    assert all(before <= entry.started <= entry.ended <= time.time() for entry in called)


def test_many_points_none_of_which_has_mass():
    def never(x):
        raise AssertionError("called")

    many = problem(never, vectorised=True, lower=-2.0)
    assert [o.value for o in evaluate_together(many, [-3 * X * 2, -4 * X * 2])] == [-math.inf] * 2


def test_whose_fault_an_exception_of_many_points_is_is_not_known():
    assert evaluate_together(problem(lambda x: 1 / 0, vectorised=True), [X, X]) is None
