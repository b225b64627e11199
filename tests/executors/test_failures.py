import math
import pickle
import signal

import numpy as np
import pytest

from sparing.errors import SettingsError, TargetError
from sparing.executors import (
    RAISE,
    SKIP,
    BrokenTargetError,
    FailedEvaluationError,
    FailureKind,
    FailurePolicy,
    Outcome,
    Remainder,
    TooManyFailuresError,
    WorkerDiedError,
    retry,
)
from sparing.executors.failures import describe_exit
from sparing.problem.evaluations import Evaluation, Proposal, Status


def some_failed(n_failed, n_total):
    """Values and zero densities first, then failures of every kind."""
    fine = [Outcome(-1.0, Status.OK, 1.0), Outcome(-math.inf, Status.OUT_OF_SUPPORT, 1.0, "zero")]
    others = [Status.TIMED_OUT, Status.ABANDONED, Status.FAILED]
    bad = [Outcome(math.nan, others[k % 3], 1.0, f"reason {k}") for k in range(n_failed)]
    outcomes = [fine[k % 2] for k in range(n_total - n_failed)] + bad
    return [Evaluation(k, k, np.array([0.5]), outcome) for k, outcome in enumerate(outcomes)]


def test_each_kind_has_its_reaction():
    policy = FailurePolicy(
        exception=RAISE, timed_out=retry(2), worker_died=retry(1, Remainder.RAISE)
    )
    assert policy.reaction(FailureKind.EXCEPTION) is RAISE
    assert policy.reaction(FailureKind.INVALID_VALUE) is SKIP
    assert policy.reaction(FailureKind.TIMED_OUT).retries == 2
    assert policy.reaction(FailureKind.WORKER_DIED).then is Remainder.RAISE


def entries(*kinds):
    """An evaluation for each kind of failure; None: it gave a value."""
    outcomes = [
        Outcome(-1.0, Status.OK, 1.0)
        if kind is None
        else Outcome(math.nan, Status.FAILED, 1.0, f"reason {k}", kind=kind)
        for k, kind in enumerate(kinds)
    ]
    return [Evaluation(k, k, np.array([0.5]), outcome) for k, outcome in enumerate(outcomes)]


def test_an_exception_before_any_value_is_a_broken_target():
    raised, invalid = FailureKind.EXCEPTION, FailureKind.INVALID_VALUE
    for broken in (entries(raised), entries(invalid, raised)):
        with pytest.raises(BrokenTargetError, match=f"reason {len(broken) - 1}") as caught:
            FailurePolicy().check(broken)
        again = pickle.loads(pickle.dumps(caught.value))
        assert str(again) == str(caught.value)
        FailurePolicy(first_exception=SKIP).check(broken)
    for fine in (entries(None, raised), entries(raised, None), entries(invalid), entries()):
        FailurePolicy().check(fine)
    with pytest.raises(SettingsError, match="first_exception must be SKIP or RAISE"):
        FailurePolicy(first_exception=retry(2))


@pytest.mark.parametrize(
    ("n_failed", "n_total", "fraction", "raises"),
    [
        (9, 9, 0.5, False),  # too few to judge
        (5, 10, 0.5, False),
        (6, 10, 0.5, True),
        (1, 10, 0.0, True),
        (100, 100, 1.0, False),
    ],
)
def test_too_many_failures_raise(n_failed, n_total, fraction, raises):
    policy = FailurePolicy(max_failed_fraction=fraction)
    evaluations = some_failed(n_failed, n_total)
    if not raises:
        policy.check(evaluations)
        return
    with pytest.raises(TooManyFailuresError) as caught:
        policy.check(evaluations)
    assert caught.value.entries == tuple(evaluations[-n_failed:])
    first, *quoted = str(caught.value).splitlines()
    assert f"{n_failed} of {n_total} evaluations failed" in first
    assert quoted == [f"  - at (0.5): reason {k}" for k in range(n_failed)]


def test_a_long_list_is_cut_in_the_message_only():
    with pytest.raises(TooManyFailuresError, match="and 20 more") as caught:
        FailurePolicy().check(some_failed(30, 40))
    assert "reason 9" in str(caught.value)
    assert "reason 10" not in str(caught.value)
    assert isinstance(caught.value, TargetError)


@pytest.mark.parametrize(
    "options",
    [{"exception": "skip"}, {"max_failed_fraction": 1.5}, {"max_failed_fraction": math.nan}],
)
def test_policies_that_cannot_be_meant_are_refused(options):
    with pytest.raises(SettingsError, match=next(iter(options))):
        FailurePolicy(**options)


@pytest.mark.parametrize("times", [-1, 1.5, True])
def test_retries_are_counts(times):
    with pytest.raises(SettingsError, match="retries must be"):
        retry(times)


def test_errors_pickle_with_what_they_carry():
    outcome = Outcome(math.nan, Status.FAILED, 1.0, "reason", kind=FailureKind.EXCEPTION)
    error = FailedEvaluationError(Proposal(3, np.array([1.0])), outcome)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.proposal.identifier) == (str(error), 3)
    many = pickle.loads(pickle.dumps(TooManyFailuresError(10, 0.5, some_failed(6, 6))))
    assert len(many.entries) == 6
    assert not pickle.loads(pickle.dumps(WorkerDiedError("gone", certain=False))).certain


def test_the_end_of_a_process_in_words():
    assert describe_exit(-signal.SIGKILL) == "the worker process died (signal 9, SIGKILL)"
    assert describe_exit(3) == "the worker process ended with exit code 3"
    assert describe_exit(None) == "the worker process died"
