"""The append-only record of what was proposed and what came back.

The log holds the user's coordinates and raw values only; everything transformed is derived from
it (room rule 1 of ARCHITECTURE.md).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

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


@dataclass(frozen=True, eq=False)
class Proposal:
    """A point the run asks to have evaluated.

    ``x`` is in the user's coordinates; ``identifier`` counts proposals from 0.

    >>> run = sparing.Inference(problem, seed=1)
    >>> (proposal,) = run.ask()
    >>> proposal.identifier, proposal.x.shape
    (0, (2,))
    """

    identifier: int
    x: Array
    rule: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", read_only(self.x))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One evaluation of the target: ``x`` (D,) in the user's coordinates, and what it gave.

    ``value`` is the log joint density; NaN when there is none, -inf out of support. ``noise_sd``
    is the standard deviation of its noise as the target gave it, 0 for an exact value.
    ``duration`` is in seconds, ``started`` and ``ended`` are Unix times (NaN when the caller did
    not time it). ``identifier`` is that of the proposal it answers, None for a point the user
    evaluated on their own.

    >>> first = result.evaluations[0]
    >>> first.index, first.x.shape, first.usable
    (0, (2,), True)
    >>> first.value == problem.log_joint(first.x)
    True
    """

    index: int
    x: Array
    value: float
    status: Status
    duration: float
    message: str = ""
    traceback: str = ""
    identifier: int | None = None
    started: float = math.nan
    ended: float = math.nan
    worker: str = ""
    noise_sd: float = 0.0
    rule: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", read_only(self.x))

    @property
    def usable(self) -> bool:
        """Whether the value can train the surrogate."""
        return self.status is Status.OK and math.isfinite(self.value)


def read_only(x: Array) -> Array:
    """A copy of the point that nobody can change by accident."""
    point = np.array(x, dtype=np.float64)
    point.setflags(write=False)
    return point


class EvaluationLog(Sequence[Evaluation]):
    """Evaluations in the order they were told; entries are never changed or removed."""

    def __init__(self) -> None:
        self._evaluations: list[Evaluation] = []

    def append(self, evaluation: Evaluation) -> None:
        """Add the next evaluation; its index must be the log's length."""
        if evaluation.index != len(self):
            raise ValueError(f"evaluation {evaluation.index} cannot follow {len(self) - 1}")
        self._evaluations.append(evaluation)

    def usable(self) -> tuple[Evaluation, ...]:
        """The evaluations that can train the surrogate."""
        return tuple(entry for entry in self._evaluations if entry.usable)

    def informative(self) -> tuple[Evaluation, ...]:
        """The evaluations the surrogate learns from: usable ones, and points out of support."""
        return tuple(
            entry
            for entry in self._evaluations
            if entry.usable or entry.status is Status.OUT_OF_SUPPORT
        )

    def unusable(self) -> tuple[Evaluation, ...]:
        """The evaluations that failed or fell outside the support."""
        return tuple(entry for entry in self._evaluations if not entry.usable)

    def __len__(self) -> int:
        return len(self._evaluations)

    @overload
    def __getitem__(self, index: int) -> Evaluation: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Evaluation, ...]: ...
    def __getitem__(self, index: int | slice) -> Evaluation | tuple[Evaluation, ...]:
        if isinstance(index, slice):
            return tuple(self._evaluations[index])
        return self._evaluations[index]

    def __iter__(self) -> Iterator[Evaluation]:
        return iter(self._evaluations)

    def __repr__(self) -> str:
        return f"EvaluationLog({len(self)} evaluations, {len(self.unusable())} unusable)"
