"""One line of the journal: an event as JSON with its sequence number and checksum."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparing.numerics.json_numbers import encode_number
from sparing.problem.evaluation_log import Evaluation, Status
from sparing.store.checked_json import decode, encode
from sparing.store.interface import Event, Intent
from sparing.store.json_members import MalformedError, Members

STATUSES = {status.value: status for status in Status}


def encode_line(sequence: int, event: Event) -> bytes:
    """The line of an event, with its line end."""
    members: dict[str, Any] = {"seq": sequence}
    x = [encode_number(value) for value in event.x]
    if isinstance(event, Intent):
        members |= {"kind": "intent", "identifier": int(event.identifier), "x": x}
    else:
        members |= {
            "kind": "result",
            "index": int(event.index),
            "identifier": None if event.identifier is None else int(event.identifier),
            "x": x,
            "value": encode_number(event.value),
            "status": event.status.value,
            "message": event.message,
            "traceback": event.traceback,
            "duration": encode_number(event.duration),
            "started": encode_number(event.started),
            "ended": encode_number(event.ended),
            "worker": event.worker,
        }
        if event.noise_sd:  # an exact value needs no word about it
            members["noise_sd"] = encode_number(event.noise_sd)
    return encode(members) + b"\n"


def decode_line(line: bytes) -> tuple[int, Event]:
    """Sequence number and event of a line without its line end.

    Raises `ChecksumError` for a line that is incomplete or was altered, and `MalformedError` for
    one that is intact but not an event of this format.
    """
    members = Members(decode(line))
    sequence = members.count("seq")
    kind = members.text("kind")
    if kind == "intent":
        event: Event = Intent(members.count("identifier"), np.array(members.numbers("x")))
    elif kind == "result":
        event = _evaluation(members)
    else:
        raise MalformedError(f"its kind is {kind!r}, which this version does not know")
    members.finish()
    return sequence, event


def _evaluation(members: Members) -> Evaluation:
    status = members.text("status")
    if status not in STATUSES:
        raise MalformedError(f"its status is {status!r}, which this version does not know")
    return Evaluation(
        index=members.count("index"),
        identifier=members.optional_count("identifier"),
        x=np.array(members.numbers("x")),
        value=members.number("value"),
        status=STATUSES[status],
        message=members.text("message"),
        traceback=members.text("traceback"),
        duration=members.number("duration"),
        started=members.number("started"),
        ended=members.number("ended"),
        worker=members.text("worker"),
        noise_sd=members.optional_number("noise_sd", 0.0),
    )
