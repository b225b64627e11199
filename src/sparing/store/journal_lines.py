"""One line of the journal: an event as JSON with its sequence number and checksum."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparing.numerics.json_numbers import encode_number
from sparing.problem.evaluation_codec import (
    OUTCOME_FIELDS,
    InvalidRecordError,
    decode_outcome,
    outcome_to_record,
)
from sparing.problem.evaluations import Evaluation, Event, Outcome, Proposal
from sparing.store.checked_json import decode, encode
from sparing.store.json_members import MalformedError, Members

# What the first release wrote in every result, in this order. What `Outcome` has had since is
# written only where it is not the default, so that lines stay as they were.
ALWAYS = ("value", "status", "message", "traceback", "duration", "started", "ended", "worker")
LATER = {f.name: f.encode(f.default) for f in OUTCOME_FIELDS if f.name not in ALWAYS}
FAILURE = "failure"  # the `kind` of an outcome: a line's own kind says what it is


def encode_line(sequence: int, event: Event) -> bytes:
    """The line of an event, with its line end."""
    members: dict[str, Any] = {"seq": sequence}
    x = [encode_number(float(value)) for value in event.x]
    if isinstance(event, Proposal):
        members |= {"kind": "intent", "identifier": int(event.identifier), "x": x}
        if event.rule:
            members["rule"] = event.rule
    else:
        identifier = None if event.identifier is None else int(event.identifier)
        members |= {"kind": "result", "index": int(event.index), "identifier": identifier, "x": x}
        members |= _outcome_members(event.outcome)
    return encode(members) + b"\n"


def _outcome_members(outcome: Outcome) -> dict[str, Any]:
    record = outcome_to_record(outcome)
    names = [*ALWAYS, *(name for name, default in LATER.items() if record[name] != default)]
    members = {name: record[name] for name in names}
    if "kind" in members:
        members[FAILURE] = members.pop("kind")
    return members


def decode_line(line: bytes) -> tuple[int, Event]:
    """Sequence number and event of a line without its line end.

    Raises `ChecksumError` for a line that is incomplete or was altered, and `MalformedError` for
    one that is intact but not an event of this format. The rule of an evaluation is not repeated
    in its line: it is that of the proposal it answers.
    """
    members = Members(decode(line))
    sequence = members.count("seq")
    kind = members.text("kind")
    if kind == "intent":
        identifier, x = members.count("identifier"), np.array(members.numbers("x"))
        event: Event = Proposal(identifier, x, members.optional_text("rule"))
    elif kind == "result":
        event = _evaluation(members)
    else:
        raise MalformedError(f"its kind is {kind!r}, which this version does not know")
    members.finish()
    return sequence, event


def _evaluation(members: Members) -> Evaluation:
    index, identifier = members.count("index"), members.optional_count("identifier")
    x, record = np.array(members.numbers("x")), members.rest()
    if FAILURE in record:
        record["kind"] = record.pop(FAILURE)
    try:
        return Evaluation(index, identifier, x, decode_outcome(record))
    except InvalidRecordError as error:
        raise MalformedError(str(error)) from None
