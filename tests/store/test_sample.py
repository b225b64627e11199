"""Every later version must read the stored sample of format version 1: never change its files."""

import math
import shutil
from pathlib import Path

import numpy as np
from tests.store.support import contents

from sparing.problem.evaluation_log import Evaluation, Status
from sparing.store import Intent, RunDirectory
from sparing.testing.store import assert_same_events

SAMPLE = Path(__file__).parent / "sample"
FINGERPRINT = {
    "names": ["rate", "shape"],
    "lower": [-math.inf, 0.0],
    "upper": [math.inf, 1.0],
    "prior": "normal(0, 1) x uniform",
    "settings": {"rule": "paper", "budget": 100},
    "tag": "sample",
}
A = np.array([1 / 3, 0.1])
B = np.array([-0.0, 5e-324])
EVENTS = [
    Intent(0, A),
    Intent(1, B),
    Evaluation(
        index=0, identifier=1, x=B, value=-math.inf, status=Status.OUT_OF_SUPPORT, duration=0.25,
        started=1.7e9, ended=1.7e9 + 0.25, worker="node1:42",
    ),
    Evaluation(
        index=1, identifier=0, x=A, value=-1 / 7, status=Status.OK, duration=0.1 + 0.2,
        started=1.7e9, ended=1.7e9 + 1 / 3, worker="node1:41",
    ),
    Evaluation(index=2, x=np.array([2.5, 0.5]), value=1e-300, status=Status.OK, duration=math.nan),
    Intent(2, A * 2),
    Evaluation(
        index=3, identifier=2, x=A * 2, value=math.nan, status=Status.FAILED, duration=1.0,
        message='ValueError: "no" \u2264 \U0001f600',
        traceback="Traceback (most recent call last):\n  ...\n", worker="node2:7",
    ),
    Intent(3, A * 3),
    Intent(4, A * 4),
    Intent(5, A * 5),
    Evaluation(
        index=4, identifier=3, x=A * 3, value=math.nan, status=Status.TIMED_OUT, duration=60.0,
        message="longer than 60 s",
    ),
    Evaluation(
        index=5, identifier=4, x=A * 4, value=math.nan, status=Status.ABANDONED, duration=math.nan
    ),
]  # fmt: skip


def check(store):
    assert store.seed == 20240229
    assert store.fingerprint["settings"] == {"rule": "paper", "budget": 100}
    assert_same_events(store.events(), EVENTS)
    assert list(store.spool.harvest()) == [(5, {"value": -2.5, "status": "ok", "duration": 1.5})]
    assert store.latest_snapshot() is None  # only a cache, of an earlier version
    assert store.warnings == ()


def test_the_sample_is_read_in_place():
    before = contents(SAMPLE)
    with RunDirectory.open(SAMPLE, FINGERPRINT, read_only=True) as store:
        check(store)
    assert contents(SAMPLE) == before


def test_the_sample_can_be_continued(tmp_path):
    run = shutil.copytree(SAMPLE, tmp_path / "run")
    with RunDirectory.open(run, FINGERPRINT) as store:
        check(store)
        store.append_result(Evaluation(6, A * 5, -2.5, Status.OK, 1.5, identifier=5))
        store.spool.remove(5)
    with RunDirectory.open(run, FINGERPRINT) as store:
        assert len(store.events()) == len(EVENTS) + 1
    before = (SAMPLE / "evaluations.jsonl").read_bytes()
    assert (run / "evaluations.jsonl").read_bytes().startswith(before)
