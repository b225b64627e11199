"""What a user tells of an evaluation of their own, as an outcome."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from sparing.errors import InvalidValueError
from sparing.executors.target_call import classify
from sparing.problem.evaluations import Outcome, Status
from sparing.problem.gradients import NO_GRADIENT, read_gradient, require_finite
from sparing.problem.problem import Problem
from sparing.problem.user_values import NOISE_WORDS, noise_value, one_number, short_text


def told_outcome(
    problem: Problem,
    value: object,
    noise_sd: object,
    gradient: ArrayLike | None,
    duration: float,
) -> Outcome:
    """The outcome of a value that was told; ValueError for what is nothing of the kind."""
    given, noise = one_number(value), noise_value(noise_sd)
    if given is None:
        raise ValueError(f"the log joint must be one real number, got {short_text(value)}")
    if noise is None:
        raise ValueError(f"noise_sd must be {NOISE_WORDS}, got {short_text(noise_sd)}")
    slopes, no_gradient = _told_gradient(problem, gradient)
    status, message = classify(given)
    if status is not Status.OK:
        number = -math.inf if status is Status.OUT_OF_SUPPORT else math.nan
        return Outcome(number, status, duration, message)
    return Outcome(given, status, duration, no_gradient, noise_sd=noise, gradient=slopes)


def _told_gradient(
    problem: Problem, gradient: ArrayLike | None
) -> tuple[tuple[float, ...] | None, str]:
    """The gradient, and why there is none where one is due."""
    if gradient is None:
        return None, "" if problem.gradient is None else f"{NO_GRADIENT}it was not told"
    try:
        given = read_gradient(gradient, problem.names)
    except InvalidValueError as error:
        raise ValueError(f"the gradient cannot be used: {error}") from None
    try:
        return tuple(require_finite(given, problem.names).tolist()), ""
    except InvalidValueError as error:
        return None, f"{NO_GRADIENT}{error}"
