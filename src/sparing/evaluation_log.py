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

from sparing.linear_algebra import Array


class Status(enum.Enum):
    """How an evaluation of the target ended."""

    OK = "ok"
    OUT_OF_SUPPORT = "out of support"  # the target returned -inf: density zero there
    FAILED = "failed"  # it raised, or returned something that is not a log density

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, eq=False)
class Proposal:
    """A point the run asks to have evaluated.

    ``x`` is in the user's coordinates; ``identifier`` counts proposals from 0.
    """

    identifier: int
    x: Array


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One evaluation of the target: ``x`` (D,) in the user's coordinates, and what it gave.

    ``value`` is the log joint density; NaN when the evaluation failed, -inf out of support.
    ``duration`` is in seconds (NaN when the caller did not time it).
    """

    index: int
    x: Array
    value: float
    status: Status
    duration: float
    message: str = ""

    @property
    def usable(self) -> bool:
        """Whether the value can train the surrogate."""
        return self.status is Status.OK and math.isfinite(self.value)


class EvaluationLog(Sequence[Evaluation]):
    """Evaluations in the order they were told; entries are never changed or removed."""

    def __init__(self) -> None:
        self._evaluations: list[Evaluation] = []

    def append(
        self, x: Array, value: float, status: Status, duration: float, message: str = ""
    ) -> Evaluation:
        """Record one evaluation and return its entry."""
        point = np.array(x, dtype=np.float64)
        point.setflags(write=False)
        entry = Evaluation(len(self), point, float(value), status, float(duration), message)
        self._evaluations.append(entry)
        return entry

    def usable(self) -> tuple[Evaluation, ...]:
        """The evaluations that can train the surrogate."""
        return tuple(entry for entry in self._evaluations if entry.usable)

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
