"""Is the gradient that a target gives the gradient of its values?

    x, f, g       a point, its log joint and the gradient there              (D,)
    t             a step, uphill in each coordinate where there is room      (D,)
    f', g'        the same at x + t
    measured      f' - f
    claimed       t . (g + g') / 2: the trapezoidal rule, exact where f is quadratic
    gross         sum_i |t_i| (|g_i| + |g'_i|) / 2, the scale of both
    bend          |t . (g' - g)| / 2, how far from straight f is on the way

A right gradient costs one evaluation. Before one is refused, x is evaluated again, which shows
noise that is not told, and steps of other lengths are tried: one that agrees is enough.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sparing.errors import SparingWarning, WrongGradientError
from sparing.numerics.arrays import Array
from sparing.problem.evaluations import Outcome
from sparing.problem.problem import Problem

# What a step aims to change the log joint by: far more than rounding changes, and no further than
# a smooth function is nearly straight. In nats, of the value's size, and in sds of its noise.
NATS, VALUE_SHARE, NOISE_SDS = 1.0, 1e-3, 50.0
# The longest step in each coordinate, in widths of the plausible box; the longer ones where noise
# that is told needs them to come near its aim.
LONGEST = (0.01, 0.05, 0.2)
# Other lengths that are tried before a gradient is refused: for targets that are stiff, or rough.
# Much longer ones let wrong gradients pass, by chance.
OTHER_LENGTHS = (1.0 / 30.0, 1.0 / 5.0, 4.0)
# What a wrong gradient makes is in proportion to the length. Values that are rough, as those of
# solvers are, differ by about as much over any step: by so many times what proportion explains over
# the shortest one, and no more than so many times that over the longest.
ROUGHNESS = 5.0
# How far claimed and measured may be apart. Of gross: what an adjoint solver is off by; more where
# noise is told, which gradients have too, or where g' is missing and the way counts as straight.
GROSS_SHARE, LARGER_SHARE = 5e-3, 0.2
# And of bend, of f (as single precision rounds), and in sds of the noise.
BEND_SHARE, ROUNDING, LARGEST_Z = 0.02, 1e-7, 5.0
GOLDEN = 0.6180339887498949

Evaluate = Callable[[Array], Outcome | None]


def require_right_gradient(
    problem: Problem, x: Array, outcome: Outcome, evaluate: Evaluate
) -> bool:
    """`WrongGradientError` unless the values around x change as the gradient there says.

    ``evaluate`` gives None when somebody has interrupted it: then False, since nobody knows. Where
    nothing can be measured it is said, and the gradient is trusted.
    """
    step, moved = _moved(problem, x, outcome, 1.0, evaluate)
    if moved is None:
        return False
    if not moved.usable:
        return _trusted(f"next to the first point there is no value ({moved.message})")
    first = _compared(outcome, moved, step)
    if first.noise_hides_it:
        return _trusted("the noise of its values hides it")
    if first.agrees:
        return True
    again = evaluate(x)
    if again is None:
        return False
    noise = LARGEST_Z * float(np.hypot(outcome.noise_sd, again.noise_sd))
    if not abs(again.value - outcome.value) <= _rounding(outcome, again) + noise:
        return _trusted("the target gives another value when it is called again")
    others: list[_Comparison] = []
    for length in OTHER_LENGTHS:
        other_step, moved = _moved(problem, x, outcome, length, evaluate)
        if moved is None:
            return False
        if moved.usable:
            others.append(_compared(outcome, moved, other_step))
        if moved.usable and others[-1].agrees:
            return True
    if others and outcome.noise_sd == 0.0 and _only_rough(first, others):
        return True
    raise WrongGradientError(x.tolist(), step.tolist(), first.claimed, first.measured)


@dataclass(frozen=True)
class _Comparison:
    """What the gradients say of a change of the log joint, and what its values do."""

    claimed: float
    measured: float
    gross: float
    allowed: float  # how far they may be apart
    noise_hides_it: bool

    @property
    def apart(self) -> float:
        return abs(self.measured - self.claimed)

    @property
    def agrees(self) -> bool:
        return not self.noise_hides_it and self.apart <= self.allowed


def _only_rough(first: _Comparison, others: Sequence[_Comparison]) -> bool:
    """Whether the values are rough, and nothing else is wrong over the longest step."""
    shortest, longest = others[0].apart, others[-1]
    in_proportion = first.apart * OTHER_LENGTHS[0]
    within = longest.apart <= min(longest.allowed + ROUGHNESS * shortest, 0.2 * longest.gross)
    return shortest > ROUGHNESS * in_proportion and within


def _moved(
    problem: Problem, x: Array, outcome: Outcome, length: float, evaluate: Evaluate
) -> tuple[Array, Outcome | None]:
    """A step and what is there; the other way where there is no value."""
    step = _step(problem, x, outcome, length)
    moved = evaluate(x + step)
    if moved is not None and not moved.usable:
        return -step, evaluate(x - step)
    return step, moved


def _step(problem: Problem, x: Array, outcome: Outcome, length: float) -> Array:
    """t: each coordinate changes the log joint by about as much, none by exactly as much."""
    gradient, dimension = np.array(outcome.gradient), len(x)
    aim = max(NATS, VALUE_SHARE * abs(outcome.value), NOISE_SDS * outcome.noise_sd)
    width = problem.plausible_upper - problem.plausible_lower
    size = np.zeros(dimension)
    for longest in LONGEST:
        with np.errstate(divide="ignore", over="ignore"):
            size = np.minimum(aim / dimension / np.abs(gradient), longest * width)
        if np.abs(gradient) @ size >= 0.5 * NOISE_SDS * outcome.noise_sd:
            break
    size *= length * (0.5 + 0.5 * np.mod(GOLDEN * np.arange(1, dimension + 1), 1.0))
    uphill = np.where(gradient < 0.0, -1.0, 1.0)
    room_up, room_down = problem.upper - x, x - problem.lower
    ahead, behind = np.where(uphill > 0.0, (room_up, room_down), (room_down, room_up))
    turns = (ahead < 2.0 * size) & (behind > ahead)
    size = np.minimum(size, 0.5 * np.where(turns, behind, ahead))
    target = x + np.where(turns, -uphill, uphill) * size
    return target - x  # as it is rounded


def _compared(outcome: Outcome, moved: Outcome, step: Array) -> _Comparison:
    before = np.array(outcome.gradient)
    after = before if moved.gradient is None else np.array(moved.gradient)
    claimed = 0.5 * float(step @ (before + after))
    gross = 0.5 * float(np.abs(step) @ (np.abs(before) + np.abs(after)))
    bend = 0.5 * abs(float(step @ (after - before)))
    noise = LARGEST_Z * float(np.hypot(outcome.noise_sd, moved.noise_sd))
    share = LARGER_SHARE if noise > 0.0 or moved.gradient is None else GROSS_SHARE
    allowed = share * gross + BEND_SHARE * bend + _rounding(outcome, moved) + noise
    return _Comparison(claimed, moved.value - outcome.value, gross, allowed, noise > gross)


def _rounding(outcome: Outcome, other: Outcome) -> float:
    return ROUNDING * max(1.0, abs(outcome.value), abs(other.value))


def _trusted(reason: str) -> bool:
    text = f"nobody knows whether the gradient is that of the log density: {reason}"
    warnings.warn(text, SparingWarning, stacklevel=3)
    return True
