import json
import math
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import sparing
from sparing.executors import (
    FailureKind,
    InvalidRecordError,
    Outcome,
    outcome_to_record,
    record_to_outcome,
)
from sparing.problem.evaluations import Status

OUTCOMES = [
    Outcome(-1.25, Status.OK, 0.1, "", "", 1e9 + 0.1, 1e9 + 0.2, "host:1"),
    Outcome(0.1 + 0.2, Status.OK, 1e-300, noise_sd=1 / 3),
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
        ({"value": 10**400}, "value must be a number"),
        ({"value": "nan"}, "value of status 'ok' is finite and of a size up to 1e.12, not nan"),
        ({"value": "inf"}, "value of status 'ok' is finite and of a size up to 1e.12, not inf"),
        ({"value": -1e300}, "value of status 'ok' is finite and of a size up to 1e.12"),
        ({"noise_sd": 1e200}, "noise_sd must be a number from 0 to 1e.12, not 1e.200"),
        ({"noise_sd": -1.0}, "noise_sd must be a number from 0 to 1e.12"),
        ({"noise_sd": "nan"}, "noise_sd must be a number from 0 to 1e.12"),
        ({"status": "failed"}, "value of status 'failed' is nan"),
        ({"status": "out of support"}, "value of status 'out of support' is -inf"),
        ({"status": "fine"}, "'fine' is not a valid Status"),
        ({"status": None}, "None is not a valid Status"),
        ({"kind": "gremlins"}, "'gremlins' is not a valid FailureKind"),
        ({"kind": ["exception"]}, "not a valid FailureKind"),
        ({"message": 3}, "message must be text"),
        ({"message": None}, "message must be text"),
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


def test_what_is_younger_than_a_record_has_its_default():
    first = {"value": -1.5, "status": "ok", "duration": 0.5}
    assert repr(record_to_outcome(first)) == repr(Outcome(-1.5, Status.OK, 0.5))


# Everything that is written of an evaluation, with and without what was added to `Outcome`.
ADDED = """
    temperature: float = math.inf
    attempts: int = 1
    retried: bool = False
    host: str = ""
    cause: FailureKind | None = None
"""
SCRIPT = """
    import json
    from dataclasses import replace
    import numpy as np
    import sparing
    from sparing.executors import FailureKind, Outcome, outcome_to_record, record_to_outcome
    from sparing.integrations.columns import outcome_columns
    from sparing.problem.evaluations import Evaluation, Status
    from sparing.results.files.evaluations import read_evaluations, write_evaluations
    from sparing.results.files.named_arrays import NamedArrays
    from sparing.store.journal import decode_line, encode_line
    from sparing.store.json_members import Members

    plain = Outcome(-1.5, Status.OK, 0.5)
    cause = FailureKind.WORKER_DIED
    added = dict(temperature=0.25, attempts=3, retried=True, host="node", cause=cause)
    rich = replace(plain, **added)
    old, new = (Evaluation(i, None, np.zeros(2), o) for i, o in enumerate((plain, rich)))

    def through_json(value):
        return json.loads(json.dumps(value, allow_nan=False))

    # The journal: the line of an older release, which has not heard of the additions.
    line = encode_line(0, old).rstrip(b"\\n")
    assert not any(name.encode() in line for name in added), line
    assert repr(decode_line(line)[1].outcome) == repr(plain)
    assert repr(decode_line(encode_line(1, new).rstrip(b"\\n"))[1].outcome) == repr(rich)

    # A worker's answer and the spool.
    record = through_json(outcome_to_record(rich))
    assert repr(record_to_outcome(record)) == repr(rich)
    without = {name: value for name, value in record.items() if name not in added}
    assert repr(record_to_outcome(without)) == repr(plain)

    # The table of a result file.
    arrays, lists = write_evaluations([old, new], 2)
    lists = through_json(lists)
    read = read_evaluations(NamedArrays(arrays), Members(lists), 2)
    assert repr([entry.outcome for entry in read]) == repr([plain, rich])
    arrays = {name: a for name, a in arrays.items() if name.split(".")[1] not in added}
    lists = {name: a for name, a in lists.items() if name not in added}
    read = read_evaluations(NamedArrays(arrays), Members(lists), 2)
    assert repr([entry.outcome for entry in read]) == repr([plain, plain])

    # What other programs are given.
    class Run:
        evaluations = (old, new)
    columns = outcome_columns(Run)
    assert columns["temperature"].tolist() == [np.inf, 0.25], columns
    assert columns["attempts"].dtype.kind == "i" and columns["retried"].dtype.kind == "b"
    assert columns["cause"].tolist() == ["", "worker died"]
    print("all of it")
"""


def test_a_field_is_added_to_the_outcome_and_nowhere_else(tmp_path):
    package = shutil.copytree(
        Path(sparing.__file__).parent,
        tmp_path / "sparing",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    declared = package / "problem" / "evaluations.py"
    last = "    noise_sd: float = 0.0\n"
    text = declared.read_text()
    assert text.count(last) == 1
    declared.write_text(text.replace(last, last + ADDED.lstrip("\n")))
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT)]
    answer = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert answer.stdout == "all of it\n", answer.stderr
