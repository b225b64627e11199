"""Whatever is damaged, all that is intact is kept."""

import numpy as np
import pytest
from tests.store.support import FINGERPRINT, JOURNAL, contents, filled, opened

from sparing.errors import SettingsError, StoreCorruptError
from sparing.problem.evaluations import Evaluation, Outcome, Proposal, Status
from sparing.store import RunDirectory, write_spooled_outcome
from sparing.store.journal import encode_line
from sparing.store.repair import repair

X = np.array([0.25, -1.5])


def test_every_line_but_the_damaged_one_is_kept(tmp_path):
    events, journal = filled(tmp_path / "run")
    lines = journal.splitlines(keepends=True)
    for number, line in enumerate(lines):
        damaged = bytearray(line)
        damaged[len(line) // 2] ^= 1
        content = b"".join([*lines[:number], bytes(damaged), *lines[number + 1 :]])
        (tmp_path / "run" / JOURNAL).write_bytes(content)
        before, new = contents(tmp_path / "run"), tmp_path / f"repaired-{number}"
        if number < len(lines) - 1:  # the last line alone could be torn
            with pytest.raises(StoreCorruptError, match="--repair"):
                opened(tmp_path / "run")
        done = repair(tmp_path / "run", new)
        assert contents(tmp_path / "run") == before
        assert f"line {number + 1}: its checksum does not match" in done.missing
        with opened(new) as store:
            kept = store.events()
            assert store.seed == 5
        others = [event for event in events if event is not events[number]]
        results = [event for event in kept if isinstance(event, Evaluation)]
        wanted = [event for event in others if isinstance(event, Evaluation)]
        assert [repr(e.outcome) for e in results] == [repr(e.outcome) for e in wanted]
        # A result brings its proposal back.
        proposals = {e.identifier for e in kept if isinstance(e, Proposal)}
        assert proposals >= {e.identifier for e in others if isinstance(e, Proposal)}
        assert proposals >= {e.identifier for e in results if e.identifier is not None}


def written(path, events):
    with opened(path):
        pass
    lines = [encode_line(sequence, event) for sequence, event in events]
    (path / JOURNAL).write_bytes(b"".join(lines))
    return repair(path, path.with_name("new"))


def result(index, identifier, x, value):
    return Evaluation(index, identifier, x, Outcome(value, Status.OK, 0.1))


def test_a_journal_that_two_threads_wrote_is_put_in_order(tmp_path):
    other = X + 1.0
    events = [
        (0, Proposal(0, X)),
        (0, Proposal(0, other)),
        (1, result(0, 0, other, -2.0)),
        (1, result(0, 0, X, -1.0)),
        (4, result(1, 0, X, -1.0)),
        (5, Proposal(3, X)),
    ]
    done = written(tmp_path / "run", events)
    kept = RunDirectory.open(tmp_path / "new", FINGERPRINT, read_only=True).events()
    told = [(e.index, e.identifier, e.outcome.value) for e in kept if isinstance(e, Evaluation)]
    assert told == [(0, None, -2.0), (1, 0, -1.0)]
    assert (done.n_proposals, done.n_evaluations) == (2, 2)
    text = "; ".join(done.missing)
    for part in (
        "line 2: proposal 0 is there",
        "2 lines are not there",
        "there twice",
        "proposals 3:",
    ):
        assert part in text


def test_what_workers_left_is_kept_and_what_is_there_is_not_overwritten(tmp_path):
    filled(tmp_path / "run")
    write_spooled_outcome(str(tmp_path / "run" / "spool"), 7, {"value": -1.5})
    (tmp_path / "run" / "spool" / "8.json").write_bytes(b"{}")
    done = repair(tmp_path / "run", tmp_path / "new")
    assert done.n_spooled == 1
    assert "8.json" in done.missing[-1]
    with opened(tmp_path / "new") as store:
        assert list(store.spool.harvest()) == [(7, {"value": -1.5})]
    with pytest.raises(SettingsError, match="must not be there yet"):
        repair(tmp_path / "run", tmp_path / "new")
