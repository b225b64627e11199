"""The one form of an outcome outside the program: the fields of `Outcome`, by their annotations.

A record is a dict of JSON types, the same in a worker's answer, in the spool and in the journal.
Tables, of the result file and of other programs, have a column for each of `OUTCOME_FIELDS`.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, get_args, get_origin, get_type_hints

from sparing.errors import SparingError
from sparing.numerics.json_numbers import decode_number, encode_number
from sparing.problem.evaluations import Outcome, Status
from sparing.problem.user_values import (
    LARGEST_CREDIBLE,
    NOISE_WORDS,
    is_real,
    noise_value,
    short_text,
)

# How an error calls what a field must hold.
_WORDS = {
    float: "a number",
    int: "a whole number",
    bool: "true or false",
    str: "text",
    tuple: "a list of numbers",
}


class InvalidRecordError(SparingError, ValueError):
    """A record that does not describe an outcome.

    >>> from sparing.executors import record_to_outcome
    >>> record_to_outcome("-1.5")
    Traceback (most recent call last):
    sparing.problem.evaluation_codec.InvalidRecordError: an outcome is a mapping, not str
    """


@dataclass(frozen=True)
class OutcomeField:
    """A field of `Outcome`; ``default`` is `dataclasses.MISSING` for one that every record has."""

    name: str
    type: type  # float, int, bool, str, an enum, or tuple: of floats
    optional: bool  # may be None as well
    default: Any

    @property
    def has_default(self) -> bool:
        """Whether records may lack it."""
        return self.default is not dataclasses.MISSING

    @property
    def is_number(self) -> bool:
        """Whether a column of it is an array of numbers."""
        return self.type in (float, int, bool) and not self.optional

    def encode(self, value: Any) -> Any:
        """The value in JSON's types, an enum by its value."""
        if isinstance(value, enum.Enum):
            return value.value
        if self.type is tuple and value is not None:
            return [self._number(item) for item in value]
        if self.type is not float or value is None:
            return value
        return self._number(value)

    def _number(self, value: Any) -> Any:
        if not is_real(value):  # float() would take text and booleans
            raise TypeError(f"{self.name} is {short_text(value)}")
        return encode_number(float(value))

    def decode(self, value: Any) -> Any:
        """The value that was encoded; `InvalidRecordError` for anything else."""
        if value is None and self.optional:
            return None
        if issubclass(self.type, enum.Enum):
            try:
                return self.type(value)
            except ValueError as error:
                raise InvalidRecordError(str(error)) from None
        with suppress(ValueError):
            if self.type is float:
                return decode_number(value, self.name)
            if self.type is tuple and isinstance(value, list):
                return tuple(decode_number(item, self.name) for item in value)
            if type(value) is self.type:
                return value
        raise InvalidRecordError(f"{self.name} must be {_WORDS[self.type]}, not {value!r:.60}")


def _outcome_fields() -> tuple[OutcomeField, ...]:
    hints, made = get_type_hints(Outcome), []
    for field in dataclasses.fields(Outcome):
        kinds = get_args(hints[field.name]) or (hints[field.name],)
        (kind,) = [get_origin(kind) or kind for kind in kinds if kind is not type(None)]
        if kind not in _WORDS and not issubclass(kind, enum.Enum):
            raise TypeError(f"nothing is said here of how to write {kind} of {field.name!r}")
        made.append(OutcomeField(field.name, kind, type(None) in kinds, field.default))
    return tuple(made)


OUTCOME_FIELDS = _outcome_fields()

# What a value has to be for each status, in words and as a test.
_VALUE_RULES = {
    Status.OK: (
        f"finite and of a size up to {LARGEST_CREDIBLE:g}",
        lambda value: abs(value) <= LARGEST_CREDIBLE,
    ),
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
    return {field.name: field.encode(getattr(outcome, field.name)) for field in OUTCOME_FIELDS}


def record_to_outcome(record: object) -> Outcome:
    """The outcome a record describes; InvalidRecordError when it describes none.

    A field that is absent, since it is younger than the record, has its default.

    >>> from sparing.executors import Outcome, outcome_to_record, record_to_outcome
    >>> outcome = Outcome(-1.5, sparing.Status.OK, 0.2, started=0.0, ended=0.2, log_prior=-1.0)
    >>> record_to_outcome(outcome_to_record(outcome)) == outcome
    True
    """
    if not isinstance(record, Mapping):
        raise InvalidRecordError(f"an outcome is a mapping, not {type(record).__name__}")
    outcome = _decoded(record)
    rule, fulfilled = _VALUE_RULES[outcome.status]
    if not fulfilled(outcome.value):
        text = f"the value of status '{outcome.status}' is {rule}, not {outcome.value}"
        raise InvalidRecordError(text)
    if noise_value(outcome.noise_sd) is None:
        raise InvalidRecordError(f"noise_sd must be {NOISE_WORDS}, not {outcome.noise_sd}")
    given = outcome.gradient
    if given is not None and not (outcome.usable and all(map(math.isfinite, given))):
        raise InvalidRecordError("a gradient is finite numbers beside a value, or absent")
    return outcome


def checked_outcome(outcome: Outcome) -> Outcome:
    """The outcome as it will be read back; `InvalidRecordError` when it would not be one."""
    if not isinstance(outcome, Outcome):
        raise InvalidRecordError(f"an outcome is an Outcome, not {type(outcome).__name__}")
    try:
        record = outcome_to_record(outcome)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidRecordError(f"an outcome holds what is no number: {error}") from None
    return record_to_outcome(record)


def _decoded(record: Mapping[str, Any]) -> Outcome:
    """The outcome of a record of which names and types are checked, no more."""
    known = {field.name: field for field in OUTCOME_FIELDS}
    needed = {name for name, field in known.items() if not field.has_default}
    differing = (needed - set(record)) | (set(record) - set(known))
    if differing:
        names = ", ".join(sorted(map(str, differing)))
        raise InvalidRecordError(f"missing or unknown in an outcome: {names}")
    return Outcome(**{name: known[name].decode(value) for name, value in record.items()})
