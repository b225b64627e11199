"""The append-only record of what was proposed and what came back.

The log holds the user's coordinates and raw values only; everything transformed is derived from
it (room rule 1 of ARCHITECTURE.md).
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sparing.numerics.arrays import Array


class Status(enum.Enum):
    """How an evaluation of the target ended.

    >>> [entry.status for entry in result.evaluations[:2]]
    [<Status.OK: 'ok'>, <Status.OK: 'ok'>]
    >>> sum(entry.status is sparing.Status.FAILED for entry in result.evaluations)
    0
    """

    OK = "ok"
    OUT_OF_SUPPORT = "out of support"  # the target returned -inf: density zero there
    FAILED = "failed"  # it raised, or returned something that is not a log density
    TIMED_OUT = "timed out"  # it took longer than the limit and was ended
    ABANDONED = "abandoned"  # nobody will report it any more

    def __str__(self) -> str:
        return self.value


class FailureKind(enum.Enum):
    """Why an evaluation gave no value.

    >>> from sparing.executors import evaluate
    >>> evaluate(sparing.Problem(lambda x: np.nan, -1.0, 1.0), np.zeros(1)).kind
    <FailureKind.INVALID_VALUE: 'invalid value'>
    """

    EXCEPTION = "exception"  # the target raised
    INVALID_VALUE = "invalid value"  # it returned something that is no log density
    TIMED_OUT = "timed out"  # it took longer than the limit
    WORKER_DIED = "worker died"  # the process that ran it ended

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Outcome:
    """What one call of the target gave.

    value      log joint density; NaN when there is none, -inf out of support
    duration   seconds
    traceback  where the target raised, as text
    started    Unix time, as is ``ended``; NaN when nobody took it
    worker     ``host:pid`` of the process that called the target; empty when it left no word
    kind       of a failure; None when there is a value
    noise_sd   standard deviation of the value's noise; 0 when it is exact
    log_prior  the part of the value that is the prior's; NaN where the problem has none
    gradient   of the value, the prior's part included, with respect to the parameters that are
               inferred, in the user's coordinates: D numbers; None where there is none, and where
               one was due ``message`` says why

    A field with a default may be added here and nowhere else: journal, spool, result file and
    exports are written and read by these annotations (`evaluation_codec`).

    >>> from sparing.executors import Outcome
    >>> outcome = Outcome(value=-1.5, status=sparing.Status.OK, duration=0.2)
    >>> outcome.usable, outcome.failed, outcome.log_likelihood
    (True, False, nan)
    >>> run = sparing.Inference(problem, seed=1)
    >>> run.tell_outcome([1.0, 0.0], outcome).duration
    0.2
    """

    value: float
    status: Status
    duration: float
    message: str = ""
    traceback: str = ""
    started: float = math.nan
    ended: float = math.nan
    worker: str = ""
    kind: FailureKind | None = None
    noise_sd: float = 0.0
    log_prior: float = math.nan
    gradient: tuple[float, ...] | None = None

    @property
    def usable(self) -> bool:
        """Whether the value can train the surrogate."""
        return self.status is Status.OK and math.isfinite(self.value)

    @property
    def log_likelihood(self) -> float:
        """The value without the prior's part, up to rounding; NaN where that is not known."""
        return self.value - self.log_prior if self.usable else math.nan

    @property
    def failed(self) -> bool:
        """Whether there is no value; a density of zero is one."""
        return self.status not in (Status.OK, Status.OUT_OF_SUPPORT)


@dataclass(frozen=True, eq=False)
class Proposal:
    """A point the run asks to have evaluated.

    ``x`` is in the user's coordinates; ``identifier`` counts proposals from 0; ``rule`` is the
    name of the rule that chose the point, empty where a release before wrote it down.

    >>> run = sparing.Inference(problem, seed=1)
    >>> (proposal,) = run.ask()
    >>> proposal.identifier, proposal.x.shape, proposal.rule
    (0, (2,), 'initial design')
    """

    identifier: int
    x: Array
    rule: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", read_only(self.x))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One evaluation of the target: ``x`` (D,) in the user's coordinates, and what it gave.

    ``identifier`` and ``rule`` are those of the proposal it answers, None and empty for a point
    the user evaluated on their own. What the `Outcome` holds can be read here as well.

    >>> first = result.evaluations[0]
    >>> first.index, first.identifier, first.x.shape, first.rule
    (0, 0, (2,), 'initial design')
    >>> first.value == problem.log_joint(first.x), first.noise_sd
    (True, 0.0)
    >>> first.log_prior, first.log_likelihood  # apart where the problem has a prior
    (nan, nan)
    >>> first.gradient is None  # (D,) where the problem has gradients
    True
    >>> first.status, first.usable, first.failed, first.message, first.traceback
    (<Status.OK: 'ok'>, True, False, '', '')
    >>> first.started <= first.ended, first.duration < 1.0, first.worker != ""
    (True, True, True)
    """

    index: int
    identifier: int | None
    x: Array
    outcome: Outcome
    rule: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", read_only(self.x))
        n_given = self.x.size if self.outcome.gradient is None else len(self.outcome.gradient)
        if n_given != self.x.size:
            raise ValueError(f"its gradient has {n_given} numbers for {self.x.size} parameters")

    @property
    def value(self) -> float:
        """The log joint density; NaN when there is none, -inf out of support."""
        return self.outcome.value

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the value's noise as the target gave it; 0 when it is exact."""
        return self.outcome.noise_sd

    @property
    def log_prior(self) -> float:
        """The prior's part of the value; NaN where the problem has no prior, or it is not known."""
        return self.outcome.log_prior

    @property
    def gradient(self) -> Array | None:
        """Of the value in the user's coordinates, (D,); None where there is none."""
        return None if self.outcome.gradient is None else np.array(self.outcome.gradient)

    @property
    def log_likelihood(self) -> float:
        """The rest of the value, up to rounding; NaN where the prior's part is not known."""
        return self.outcome.log_likelihood

    @property
    def status(self) -> Status:
        """How it ended."""
        return self.outcome.status

    @property
    def usable(self) -> bool:
        """Whether the value can train the surrogate."""
        return self.outcome.usable

    @property
    def failed(self) -> bool:
        """Whether there is no value; a density of zero is one."""
        return self.outcome.failed

    @property
    def message(self) -> str:
        """What went wrong; empty when nothing did."""
        return self.outcome.message

    @property
    def traceback(self) -> str:
        """Where the target raised, as text."""
        return self.outcome.traceback

    @property
    def duration(self) -> float:
        """Seconds; NaN when nobody timed it."""
        return self.outcome.duration

    @property
    def started(self) -> float:
        """Unix time; NaN when nobody took it."""
        return self.outcome.started

    @property
    def ended(self) -> float:
        """Unix time; NaN when nobody took it."""
        return self.outcome.ended

    @property
    def worker(self) -> str:
        """``host:pid`` of the process that called the target; empty when it left no word."""
        return self.outcome.worker


# What happens to a run, in the order it is journalled.
Event: TypeAlias = Proposal | Evaluation


def read_only(x: Array) -> Array:
    """A copy of the point that nobody can change by accident."""
    point = np.array(x, dtype=np.float64)
    point.setflags(write=False)
    return point


class EvaluationLog(list[Evaluation]):
    """Evaluations in the order they were told; entries are only ever appended."""

    def append(self, evaluation: Evaluation) -> None:
        """Add the next evaluation; its index must be the log's length."""
        if evaluation.index != len(self):
            raise ValueError(f"evaluation {evaluation.index} cannot follow {len(self) - 1}")
        super().append(evaluation)

    def usable(self) -> tuple[Evaluation, ...]:
        """The evaluations that can train the surrogate."""
        return tuple(entry for entry in self if entry.usable)

    def informative(self) -> tuple[Evaluation, ...]:
        """The evaluations the surrogate learns from: usable ones, and points out of support."""
        return tuple(e for e in self if e.usable or e.status is Status.OUT_OF_SUPPORT)

    def unusable(self) -> tuple[Evaluation, ...]:
        """The evaluations that failed or fell outside the support."""
        return tuple(entry for entry in self if not entry.usable)
