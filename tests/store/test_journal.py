import errno
import json
import os
import zlib
from dataclasses import replace

import numpy as np
import pytest
from tests.store.support import FINGERPRINT, JOURNAL, X, filled, opened, proposal, started

from sparing.errors import StoreCorruptError, StoreError, StoreFullError
from sparing.problem.evaluations import Evaluation, Outcome, Proposal, Status
from sparing.problem.warning_text import WarningTopic
from sparing.store import RunDirectory
from sparing.store.checked_json import encode
from sparing.store.journal import decode_line, encode_line, scan
from sparing.store.json_members import MalformedError
from sparing.testing.store import assert_same_events


def test_a_line_is_json_with_the_checksum_of_what_precedes_it(tmp_path):
    _, content = filled(tmp_path)
    for number, line in enumerate(content.splitlines()):
        members = json.loads(line)
        assert members["seq"] == number
        body, _, checksum = line.rpartition(b',"crc":')
        assert checksum == f'"{zlib.crc32(body):08x}"}}'.encode()


def test_one_write_and_one_fsync_per_event(tmp_path, monkeypatch):
    with opened(tmp_path) as store:
        calls = []
        for name in ("write", "fsync"):
            real = getattr(os, name)
            monkeypatch.setattr(os, name, _noting(real, name, calls))
        store.append(proposal())
        assert calls == ["write", "fsync"]


def _noting(real, name, calls):
    def call(*arguments):
        calls.append(name)
        return real(*arguments)

    return call


OK = Outcome(-1.0, Status.OK, 0.1)
UNREADABLE = {
    "nan in x": Proposal(0, np.array([np.nan, 0.0])),
    "inf in x": Evaluation(0, None, np.array([0.0, np.inf]), OK),
    "negative identifier": Proposal(-1, X),
    "no identifier": Proposal("first", X),
    "rule": Proposal(0, X, rule=3),
    "noise": Evaluation(0, None, X, replace(OK, noise_sd=1e200)),
    "gradient": Evaluation(0, None, X, replace(OK, gradient=(0.1, np.nan))),
    "value": Evaluation(0, None, X, replace(OK, value=1e300)),
    "message": Evaluation(0, None, X, replace(OK, message=b"text")),
    "duration": Evaluation(0, None, X, replace(OK, duration="long")),
}


@pytest.mark.parametrize("event", UNREADABLE.values(), ids=UNREADABLE)
def test_nothing_enters_that_cannot_be_read_back(tmp_path, event):
    with opened(tmp_path) as store:
        with pytest.raises(StoreError, match="cannot record"):
            store.append(event)
        store.append(proposal())
    assert len(opened(tmp_path, read_only=True).events()) == 1


def test_a_gradient_of_another_length_is_no_event():
    line = encode_line(0, Evaluation(0, None, X, replace(OK, gradient=(0.25, 0.5))))
    members = {k: v for k, v in json.loads(line).items() if k != "crc"} | {"gradient": [0.25]}
    with pytest.raises(MalformedError, match="its gradient has 1 numbers for 2 parameters"):
        decode_line(encode(members))


def test_a_journal_that_was_poisoned_before_names_the_line(tmp_path):
    members = {"seq": 0, "kind": "intent", "identifier": 0, "x": ["nan", 0.0]}
    opened(tmp_path).close()
    (tmp_path / JOURNAL).write_bytes(encode(members) + b"\n")
    with pytest.raises(StoreCorruptError, match="line 1: its x is not finite"):
        opened(tmp_path)


@pytest.mark.slow
def test_truncation_at_every_byte_of_the_last_three_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # half a minute of waiting
    events, content = filled(tmp_path)
    journal = tmp_path / JOURNAL
    ends = [end + 1 for end, byte in enumerate(content) if byte == ord("\n")]
    for length in range(ends[-4], len(content)):
        journal.write_bytes(content[:length])
        complete = sum(end <= length for end in ends)
        only_line_end_missing = length + 1 in ends
        complete += only_line_end_missing
        kept_aside = 0 if only_line_end_missing else length - max(e for e in ends if e <= length)
        with opened(tmp_path, read_only=True) as store:
            assert_same_events(store.events(), events[:complete])
        assert journal.read_bytes() == content[:length]
        with opened(tmp_path) as store:
            assert_same_events(store.events(), events[:complete])
            assert (store.torn_tail is not None) == (kept_aside > 0)
            repaired = only_line_end_missing or kept_aside > 0
            topics = [warning.topic for warning in store.warnings]
            assert topics == [WarningTopic.INCOMPLETE_LINE] * repaired
            if store.torn_tail:
                assert store.torn_tail.read_bytes() == content[length - kept_aside : length]
                assert any(store.torn_tail.name in warning for warning in store.warnings)
                store.torn_tail.unlink()
            for event in events[complete:]:
                store.append(event)
        assert journal.read_bytes() == content


def test_torn_tails_are_numbered_and_kept(tmp_path):
    for tail in (b"first", b"second\n", b"\0\0\0"):
        with opened(tmp_path) as store:
            store.append(proposal())
        with (tmp_path / JOURNAL).open("ab") as journal:
            journal.write(tail)
    with opened(tmp_path) as store:
        assert len(store.events()) == 3
    kept = [(tmp_path / f"evaluations.torn-{number}").read_bytes() for number in (1, 2, 3)]
    assert kept == [b"first", b"second\n", b"\0\0\0"]


@pytest.mark.slow
def test_every_flipped_bit_is_noticed(tmp_path):
    events, content = filled(tmp_path)
    last_line = content.rindex(b"\n", 0, -1) + 1
    for position in range(len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[position] ^= 1 << bit
            found = scan(bytes(flipped))
            before = content.count(b"\n", 0, position)
            assert found.fault or found.tail
            assert_same_events([entry.event for entry in found.entries], events[:before])
            assert bool(found.tail) == (position >= last_line - 1), (position, bit)


def test_damage_in_the_middle_is_refused_and_named(tmp_path):
    events, content = filled(tmp_path)
    lines = content.splitlines(keepends=True)
    damaged = {
        "line 3: its checksum does not match": [*lines[:2], b"x" + lines[2], *lines[3:]],
        "line 3: its sequence number is 3, not 2": [*lines[:2], *lines[3:]],
        "line 4: its sequence number is 2, not 3": [*lines[:3], lines[2], *lines[3:]],
        "line 8: its sequence number is 0, not 7": [*lines[:7], lines[0]],
        "line 2: it does not end with a checksum": [lines[0], b"\n", *lines[1:]],
    }
    for fault, changed in damaged.items():
        (tmp_path / JOURNAL).write_bytes(b"".join(changed))
        with pytest.raises(StoreCorruptError, match=fault):
            opened(tmp_path)
        assert (tmp_path / JOURNAL).read_bytes() == b"".join(changed)
        with opened(tmp_path, read_only=True) as store:
            assert_same_events(store.events(), events[: int(fault[5]) - 1])
            (warning,) = store.warnings
            assert fault in warning
            assert warning.topic is WarningTopic.DAMAGED_JOURNAL


RESULT = {
    "seq": 0, "kind": "result", "index": 0, "identifier": None, "x": [1.0], "value": 0.0,
    "status": "ok", "message": "", "traceback": "", "duration": 1.0, "started": 1.0, "ended": 2.0,
    "worker": "",
}  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": "pickle"}, {"kind": None}, {"status": "excellent"}, {"status": ["ok"]},
        {"x": []}, {"x": 1.0}, {"x": [[1.0]]}, {"x": [True]}, {"x": ["1.0"]}, {"x": [None]},
        {"x": [10**400]}, {"x": {"0": 1.0}}, {"value": None}, {"value": "NaN"}, {"value": [0.0]},
        {"index": 1}, {"index": 0.0}, {"index": -1}, {"seq": True}, {"seq": "0"}, {"seq": 2**63},
        {"identifier": 0.5}, {"identifier": -1}, {"message": 5}, {"worker": {}}, {"extra": 1},
        {"__class__": "os.system"}, {"duration": False},
    ],
)  # fmt: skip
def test_a_crafted_line_with_a_right_checksum_is_refused(tmp_path, changed):
    filled(tmp_path)
    (tmp_path / JOURNAL).write_bytes(encode(RESULT | changed) + b"\n")
    with pytest.raises(StoreCorruptError, match="line 1"):
        opened(tmp_path)
    assert opened(tmp_path, read_only=True).events() == ()


def test_the_crafted_lines_are_wrong_only_where_they_say(tmp_path):
    filled(tmp_path)
    (tmp_path / JOURNAL).write_bytes(encode(RESULT) + b"\n")
    assert len(opened(tmp_path, read_only=True).events()) == 1


@pytest.mark.parametrize(
    "text",
    [
        b"[1]", b'"text"', b'{"seq":0,"seq":0}', b'{"seq":NaN}', b'{"x":[1e999]}', b"{" * 10**5,
        b'{"seq":' + b"[" * 10**5 + b"]" * 10**5 + b"}", b'{"seq":' + b"9" * 10**5 + b"}",
        b'{"seq":' + b"[" * 500 + b"]" * 500 + b"}", b'{"\xff":1}', b"{}", b"{\0}",
    ],
    ids=range(12),
)  # fmt: skip
def test_crafted_json_is_refused(tmp_path, text):
    filled(tmp_path)
    body = text[:-1]
    line = body + b',"crc":"' + f"{zlib.crc32(body):08x}".encode() + b'"}\n'
    (tmp_path / JOURNAL).write_bytes(line)
    with pytest.raises(StoreCorruptError, match="line 1"):
        opened(tmp_path)


def test_random_bytes_never_raise_anything_else():
    generator = np.random.default_rng(0)
    for _ in range(300):
        content = generator.bytes(int(generator.integers(0, 400)))
        assert scan(content).entries == []


def test_a_failed_write_is_taken_back_and_can_be_repeated(tmp_path, monkeypatch):
    with opened(tmp_path) as store:
        store.append(proposal(0))
        before = (tmp_path / JOURNAL).read_bytes()
        real = os.write
        for failing in (_no_space, lambda descriptor, data: real(descriptor, data[:20])):
            monkeypatch.setattr(os, "write", failing)
            with pytest.raises(StoreFullError, match="make space, then start the run again"):
                store.append(proposal(1))
            assert (tmp_path / JOURNAL).read_bytes() == before
        monkeypatch.setattr(os, "write", real)
        store.append(proposal(1))
        assert [event.identifier for event in store.events()] == [0, 1]
    assert len(opened(tmp_path, read_only=True).events()) == 2


def _no_space(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_nothing_is_glued_to_a_tail_that_could_not_be_cut_off(tmp_path, monkeypatch):
    with opened(tmp_path) as store:
        store.append(proposal(0))
        with monkeypatch.context() as broken:
            real = os.write
            broken.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:20]))
            broken.setattr(os, "ftruncate", _no_space)
            with pytest.raises(StoreFullError):
                store.append(proposal(1))
        with pytest.raises(StoreError, match="could not be restored"):
            store.append(proposal(1))
    with opened(tmp_path) as store:
        assert len(store.events()) == 1
        assert store.torn_tail is not None


def test_a_failing_fsync_is_an_error(tmp_path, monkeypatch):
    with opened(tmp_path) as store:
        with monkeypatch.context() as broken:
            real, failures = os.fsync, [OSError(errno.EIO, "Input/output error")]
            broken.setattr(os, "fsync", lambda fd: _raise(failures.pop()) if failures else real(fd))
            with pytest.raises(StoreError, match="Input/output error"):
                store.append(proposal(0))
        assert store.events() == ()
        assert (tmp_path / JOURNAL).read_bytes() == b""


def _raise(error):
    raise error


@pytest.mark.parametrize("name", ["write", "fsync"])
def test_an_interrupt_after_the_write_does_not_lose_the_line(tmp_path, monkeypatch, name):
    real = getattr(os, name)

    def interrupted(*arguments):
        monkeypatch.setattr(os, name, real)
        real(*arguments)
        raise KeyboardInterrupt

    with opened(tmp_path) as store:
        monkeypatch.setattr(os, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.append(proposal(0))
        store.append(proposal(1))
        assert [event.identifier for event in store.events()] == [0, 1]
    assert len(opened(tmp_path, read_only=True).events()) == 2


@pytest.mark.slow
def test_a_file_size_limit_loses_nothing(tmp_path):
    """The system's own short write and EFBIG, in a process of its own."""
    script = """
        import resource, sys
        import numpy as np
        from sparing.errors import StoreFullError
        from tests.store.support import opened, proposal
        store = opened(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
        count = 0
        try:
            while True:
                store.append(proposal(count))
                count += 1
        except StoreFullError:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            store.append(proposal(count))
            sys.exit(count + 1)
    """
    with started(script, tmp_path) as process:
        code = process.wait()
    with opened(tmp_path) as store:
        assert [event.identifier for event in store.events()] == list(range(code))
        assert store.torn_tail is None
    assert (tmp_path / JOURNAL).stat().st_size > 5000 - 200


def test_another_writer_is_noticed(tmp_path):
    with opened(tmp_path) as store:
        store.append(proposal(0))
        with (tmp_path / JOURNAL).open("ab") as journal:
            journal.write(b"from elsewhere\n")
        with pytest.raises(StoreError, match="another process changed it"):
            store.append(proposal(1))


def test_a_deleted_journal_is_noticed(tmp_path):
    with opened(tmp_path) as store:
        (tmp_path / JOURNAL).unlink()
        with pytest.raises(StoreError, match="deleted"):
            store.append(proposal(0))


def test_an_impossible_event_is_refused_before_it_is_written(tmp_path):
    with opened(tmp_path) as store:
        with pytest.raises(StoreError, match="its index is 3, not 0"):
            store.append(Evaluation(3, None, X, Outcome(0.0, Status.OK, 0.0)))
        with pytest.raises(StoreError, match="shape"):
            store.append(Evaluation(0, None, np.zeros((2, 2)), Outcome(0.0, Status.OK, 0.0)))
        assert (tmp_path / JOURNAL).read_bytes() == b""


@pytest.mark.parametrize("kind", ["directory", "pipe"])
def test_a_journal_that_is_no_file_is_refused(tmp_path, kind):
    filled(tmp_path)
    (tmp_path / JOURNAL).unlink()
    (tmp_path / JOURNAL).mkdir() if kind == "directory" else os.mkfifo(tmp_path / JOURNAL)
    for read_only in (True, False):
        with pytest.raises(StoreError, match=JOURNAL):
            RunDirectory.open(tmp_path, FINGERPRINT, read_only=read_only)
