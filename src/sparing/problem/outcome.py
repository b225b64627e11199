"""What one call of the target gave, and its form as a plain record.

A record is a dict of JSON types, the same in a worker's answer and in the spool. Non-finite
numbers are the strings "nan", "inf" and "-inf", since JSON has no word for them.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sparing.errors import SparingError
from sparing.problem.evaluation_log import Status


class InvalidRecordError(SparingError, ValueError):
    """A record that does not describe an outcome.

    >>> from sparing.executors import record_to_outcome
    >>> record_to_outcome("-1.5")
    Traceback (most recent call last):
    sparing.problem.outcome.InvalidRecordError: an outcome is a mapping, not str
    """


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
    started    Unix time, as is ``ended``
    worker     ``host:pid`` of the process that called the target; empty when it left no word
    kind       of a failure; None when there is a value
    noise_sd   standard deviation of the value's noise; 0 when it is exact

    >>> from sparing.executors import Outcome
    >>> outcome = Outcome(value=-1.5, status=sparing.Status.OK, duration=0.2)
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


_NUMBERS = ("value", "duration", "started", "ended", "noise_sd")
_TEXTS = ("message", "traceback", "worker")
_NON_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
# What a value has to be for each status, in words and as a test.
_VALUE_RULES = {
    Status.OK: ("finite", math.isfinite),
    Status.OUT_OF_SUPPORT: ("-inf", lambda value: value == -math.inf),
    Status.FAILED: ("nan", math.isnan),
    Status.TIMED_OUT: ("nan", math.isnan),
    Status.ABANDONED: ("nan", math.isnan),
}


def outcome_to_record(outcome: Outcome) -> dict[str, Any]:
    """The outcome as a dict of JSON types.

    >>> from sparing.executors import Outcome, outcome_to_record
    >>> record = outcome_to_record(Outcome(float("nan"), sparing.Status.TIMED_OUT, 60.0))
    >>> record["value"], record["status"]
    ('nan', 'timed out')
    """
    record: dict[str, Any] = {name: _written(getattr(outcome, name)) for name in _NUMBERS}
    record |= {name: getattr(outcome, name) for name in _TEXTS}
    record["status"] = outcome.status.value
    record["kind"] = None if outcome.kind is None else outcome.kind.value
    return record


def record_to_outcome(record: object) -> Outcome:
    """The outcome a record describes; InvalidRecordError when it describes none.

    >>> from sparing.executors import Outcome, outcome_to_record, record_to_outcome
    >>> outcome = Outcome(-1.5, sparing.Status.OK, 0.2, started=0.0, ended=0.2)
    >>> record_to_outcome(outcome_to_record(outcome)) == outcome
    True
    """
    if not isinstance(record, Mapping):
        raise InvalidRecordError(f"an outcome is a mapping, not {type(record).__name__}")
    expected = {field.name for field in fields(Outcome)}
    if set(record) != expected:
        differing = sorted(map(str, expected ^ set(record)))
        raise InvalidRecordError(f"missing or unknown in an outcome: {', '.join(differing)}")
    parts: dict[str, Any] = {name: _number(name, record[name]) for name in _NUMBERS}
    for name in _TEXTS:
        if not isinstance(record[name], str):
            raise InvalidRecordError(f"{name} must be text, not {record[name]!r:.60}")
        parts[name] = record[name]
    try:
        status = Status(record["status"])
        kind = None if record["kind"] is None else FailureKind(record["kind"])
    except ValueError as error:
        raise InvalidRecordError(str(error)) from None
    rule, fulfilled = _VALUE_RULES[status]
    if not fulfilled(parts["value"]):
        raise InvalidRecordError(f"the value of status '{status}' is {rule}, not {parts['value']}")
    return Outcome(status=status, kind=kind, **parts)


def _written(number: float) -> float | str:
    return number if math.isfinite(number) else str(number)


def _number(name: str, value: object) -> float:
    if isinstance(value, str) and value in _NON_FINITE:
        return _NON_FINITE[value]
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    raise InvalidRecordError(f"{name} must be a number, not {value!r:.60}")
