"""What a user tells of an evaluation of their own: its point and its outcome."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike

from sparing.errors import InvalidValueError
from sparing.executors.target_call import classify
from sparing.numerics.arrays import Array
from sparing.problem.evaluations import Outcome, Proposal, Status
from sparing.problem.gradients import NO_GRADIENT, read_gradient, require_finite
from sparing.problem.problem import Problem
from sparing.problem.user_values import NOISE_WORDS, noise_value, one_number, short_text


def told_point(
    problem: Problem, pending: Mapping[int, Proposal], point: Proposal | ArrayLike
) -> tuple[int | None, Array]:
    """The identifier, None of a point of the user's own, and the point (D,) that is meant."""
    if isinstance(point, Proposal):
        asked = pending.get(point.identifier)
        if asked is None:
            raise ValueError(
                f"proposal {point.identifier} is not pending: it was told before, or belongs "
                "to another run"
            )
        if not np.array_equal(point.x, asked.x):
            raise ValueError(
                f"proposal {point.identifier} of this run is of another point: the one told "
                "belongs to another run"
            )
        return point.identifier, asked.x
    points = problem.read_points(point)  # as told: its value is of that very point
    if len(points) != 1:
        raise ValueError(f"tell() takes one point at a time, got {len(points)}")
    return None, points[0]


def told_log_prior(
    problem: Problem, pending: Mapping[int, Proposal], point: Proposal | ArrayLike
) -> float:
    """The prior's part of a value that was told; NaN where there is none to be had."""
    if problem.prior is None:
        return math.nan
    with suppress(Exception):  # the value itself does not need it
        return problem.log_prior(told_point(problem, pending, point)[1])
    return math.nan


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
