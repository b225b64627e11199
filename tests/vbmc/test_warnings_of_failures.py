"""A person is told of every evaluation that gave no value."""

import math

import pytest

import sparing
from sparing.executors import Outcome

GONE = sparing.Status.TIMED_OUT


@pytest.mark.parametrize(
    ("first", "quoted"),
    [
        (Outcome(math.nan, GONE, 60.0, "longer than 60 s"), "longer than 60 s"),
        (Outcome(math.nan, sparing.Status.ABANDONED, math.nan), "abandoned"),
    ],
)
def test_a_warning_counts_everything_that_gave_no_value_and_quotes_the_first(first, quoted):
    problem = sparing.Problem(lambda x: -0.5 * float(x @ x), [-2], [2])
    run = sparing.Inference(problem, seed=1, max_evaluations=14)
    run.tell_outcome([0.5], first)
    run.tell([0.7], error="diverged")
    run.tell([0.6], -math.inf)
    while not run.finished:
        for proposal in run.ask():
            run.tell(proposal, problem.log_joint(proposal.x))
    result = run.result()
    (warning,) = [str(text) for text in result.warnings if "evaluations failed" in str(text)]
    assert warning.startswith(f"2 of 14 evaluations failed (first: {quoted})")
    assert len(result.failed) == run.n_failed == 2
