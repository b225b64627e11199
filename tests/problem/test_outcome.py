import json
import math

import pytest

from sparing.executors import (
    FailureKind,
    InvalidRecordError,
    Outcome,
    outcome_to_record,
    record_to_outcome,
)
from sparing.problem.evaluation_log import Status

OUTCOMES = [
    Outcome(-1.25, Status.OK, 0.1, "", "", 1e9 + 0.1, 1e9 + 0.2, "host:1"),
    Outcome(0.1 + 0.2, Status.OK, 1e-300),
    Outcome(-math.inf, Status.OUT_OF_SUPPORT, 0.0, "the log density is -inf"),
    Outcome(math.nan, Status.FAILED, 1.0, "é\n\ud800", "Traceback", kind=FailureKind.EXCEPTION),
    Outcome(math.nan, Status.TIMED_OUT, 1.0, kind=FailureKind.TIMED_OUT),
    Outcome(math.nan, Status.FAILED, math.nan, kind=FailureKind.WORKER_DIED),
]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: str(outcome.status))
def test_a_record_survives_strict_json(outcome):
    text = json.dumps(outcome_to_record(outcome), allow_nan=False)
    again = record_to_outcome(json.loads(text))
    assert repr(again) == repr(outcome)  # repr is exact, and NaN equals NaN in it


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": "infinity"}, "value must be a number"),
        ({"value": True}, "value must be a number"),
        ({"value": math.nan}, "value must be a number"),
        ({"value": None}, "value must be a number"),
        ({"value": "nan"}, "value of status 'ok' is finite, not nan"),
        ({"value": "inf"}, "value of status 'ok' is finite, not inf"),
        ({"status": "failed"}, "value of status 'failed' is nan"),
        ({"status": "out of support"}, "value of status 'out of support' is -inf"),
        ({"status": "fine"}, "'fine' is not a valid Status"),
        ({"kind": "gremlins"}, "'gremlins' is not a valid FailureKind"),
        ({"kind": ["exception"]}, "not a valid FailureKind"),
        ({"message": 3}, "message must be text"),
        ({"extra": 3}, "missing or unknown in an outcome: extra"),
    ],
)
def test_what_is_no_outcome_is_refused(change, message):
    record = outcome_to_record(OUTCOMES[0]) | change
    with pytest.raises(InvalidRecordError, match=message):
        record_to_outcome(record)


@pytest.mark.parametrize("record", [None, [], "ok", {}, {"value": 1.0}])
def test_other_shapes_are_refused(record):
    with pytest.raises(InvalidRecordError):
        record_to_outcome(record)
