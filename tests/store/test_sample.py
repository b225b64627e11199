"""Every later version must read the stored sample of format version 1: never change its files."""

import math
import shutil
from pathlib import Path

import numpy as np
from tests.store.support import contents

from sparing.problem.evaluations import Evaluation, Outcome, Proposal, Status
from sparing.store import RunDirectory
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
    Proposal(0, A),
    Proposal(1, B),
    Evaluation(0, 1, B, Outcome(
        -math.inf, Status.OUT_OF_SUPPORT, duration=0.25,
        started=1.7e9, ended=1.7e9 + 0.25, worker="node1:42",
    )),
    Evaluation(1, 0, A, Outcome(
        -1 / 7, Status.OK, duration=0.1 + 0.2,
        started=1.7e9, ended=1.7e9 + 1 / 3, worker="node1:41",
    )),
    Evaluation(2, None, np.array([2.5, 0.5]), Outcome(1e-300, Status.OK, duration=math.nan)),
    Proposal(2, A * 2),
    Evaluation(3, 2, A * 2, Outcome(
        math.nan, Status.FAILED, duration=1.0, message='ValueError: "no" \u2264 \U0001f600',
        traceback="Traceback (most recent call last):\n  ...\n", worker="node2:7",
    )),
    Proposal(3, A * 3),
    Proposal(4, A * 4),
    Proposal(5, A * 5),
    Evaluation(4, 3, A * 3, Outcome(math.nan, Status.TIMED_OUT, 60.0, "longer than 60 s")),
    Evaluation(5, 4, A * 4, Outcome(math.nan, Status.ABANDONED, duration=math.nan)),
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
        store.append(Evaluation(6, 5, A * 5, Outcome(-2.5, Status.OK, 1.5)))
        store.spool.remove(5)
    with RunDirectory.open(run, FINGERPRINT) as store:
        assert len(store.events()) == len(EVENTS) + 1
    before = (SAMPLE / "evaluations.jsonl").read_bytes()
    assert (run / "evaluations.jsonl").read_bytes().startswith(before)
