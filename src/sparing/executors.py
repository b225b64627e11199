"""Calling the target. Only this module does."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from sparing.evaluation_log import Status
from sparing.linear_algebra import Array
from sparing.problem import Problem


@dataclass(frozen=True)
class Outcome:
    """What one call of the target gave."""

    value: float
    status: Status
    duration: float
    message: str


def evaluate(problem: Problem, x: Array) -> Outcome:
    """Call the target once, in this process; whatever goes wrong becomes a failed outcome.

    KeyboardInterrupt and SystemExit are the user's and pass through.
    """
    start = time.perf_counter()
    try:
        value = problem.log_joint(x)
    except Exception as problem_in_target:
        message = f"{type(problem_in_target).__name__}: {problem_in_target}"
        return Outcome(math.nan, Status.FAILED, time.perf_counter() - start, message)
    duration = time.perf_counter() - start
    status, message = classify(value)
    return Outcome(value if status is not Status.FAILED else math.nan, status, duration, message)


def classify(value: float) -> tuple[Status, str]:
    """The status of a returned value: a log density is a number or -inf."""
    if math.isnan(value):
        return Status.FAILED, "the log density is NaN"
    if value == math.inf:
        return Status.FAILED, "the log density is +inf"
    if value == -math.inf:
        return Status.OUT_OF_SUPPORT, "the log density is -inf"
    return Status.OK, ""
