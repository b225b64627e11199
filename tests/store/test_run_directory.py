import json
import pickle

import numpy as np
import pytest
from tests.store.support import JOURNAL, contents, filled, opened, proposal

from sparing.errors import StoreCorruptError, StoreError, StoreLockedError, StoreMismatchError
from sparing.store import RunDirectory, write_spooled_outcome
from sparing.store.checked_json import encode
from sparing.testing.store import example_events

PROBLEM = "problem.json"


def test_a_new_directory_has_the_documented_files(tmp_path):
    with opened(tmp_path / "deep" / "run", seed=4):
        names = {file.name for file in (tmp_path / "deep" / "run").iterdir()}
        assert names == {PROBLEM, JOURNAL, "lock", "spool", "snapshots"}
        stored = json.loads((tmp_path / "deep" / "run" / PROBLEM).read_text())
        assert (stored["schema"], stored["seed"]) == (1, 4)
        assert stored["fingerprint"]["bounds"] == {"lower": ["-inf", 0.0], "upper": ["inf", 1.0]}


def test_the_seed_is_that_of_the_creation(tmp_path):
    with opened(tmp_path / "a", seed=4) as store:
        assert store.seed == 4
    with opened(tmp_path / "a") as store:
        assert (store.seed, store.warnings) == (4, ())
    with opened(tmp_path / "a", seed=5) as store:
        assert store.seed == 4
        assert "seed 4, not with 5" in store.warnings[0]
    with opened(tmp_path / "b") as first, opened(tmp_path / "c") as second:
        assert first.seed != second.seed


def test_a_different_problem_is_refused_naming_everything_that_differs(tmp_path):
    stored = {
        "names": ["a"], "one": 1, "flag": True, "old": 0,
        "bounds": {"lower": [0.0, -np.inf], "upper": [1.0]}, "deep": {"er": {"x": "p", "y": 2}},
    }  # fmt: skip
    RunDirectory.open(tmp_path, stored).close()
    before = contents(tmp_path)
    now = {
        "names": ("a",), "one": 1.0, "flag": 1, "new": None,
        "bounds": {"lower": np.array([0.0, -1.0]), "upper": [1]},
        "deep": {"er": {"x": "q", "y": 2}},
    }  # fmt: skip
    for read_only in (True, False):
        with pytest.raises(StoreMismatchError) as caught:
            RunDirectory.open(tmp_path, now, read_only=read_only)
        assert caught.value.differences == (
            ("flag", "true", "1"),
            ("old", "0", "absent"),
            ("bounds.lower", '[0.0, "-inf"]', "[0.0, -1.0]"),
            ("deep.er.x", '"p"', '"q"'),
            ("new", "absent", "null"),
        )
        assert "deep.er.x" in str(caught.value)
    assert contents(tmp_path) == before
    RunDirectory.open(tmp_path, stored).close()


@pytest.mark.parametrize("fingerprint", [{"f": len}, {1: 2}, {"o": np.array([object()])}])
def test_a_fingerprint_holds_plain_values_only(tmp_path, fingerprint):
    with pytest.raises(TypeError):
        RunDirectory.open(tmp_path, fingerprint)


def test_reading_needs_no_fingerprint_and_changes_nothing(tmp_path):
    filled(tmp_path)
    with (tmp_path / JOURNAL).open("ab") as journal:
        journal.write(b'{"torn')
    (tmp_path / "spool" / "3.json").write_bytes(b"damaged")
    (tmp_path / "snapshots" / "00000001.npz").write_bytes(b"damaged")
    before = contents(tmp_path)
    with RunDirectory.open(tmp_path, read_only=True) as store:
        assert len(store.events()) == len(example_events())
        assert (store.seed, store.read_only, store.torn_tail) == (5, True, None)
        assert store.fingerprint["names"] == ["a", "b"]
        assert store.latest_snapshot() is None
        assert list(store.spool.harvest()) == []
        assert len(store.warnings) == 3
        for write in (
            lambda: store.append(proposal()),
            lambda: store.append(store.events()[2]),
            lambda: store.write_snapshot(0, {}, {}),
            lambda: store.spool.remove(3),
        ):
            with pytest.raises(StoreError, match="read-only"):
                write()
    assert contents(tmp_path) == before


def test_writing_needs_a_fingerprint(tmp_path):
    with pytest.raises(TypeError, match="fingerprint"):
        RunDirectory.open(tmp_path)


def test_reading_what_is_not_there_creates_nothing(tmp_path):
    with pytest.raises(StoreError, match="not a run directory"):
        RunDirectory.open(tmp_path / "missing", read_only=True)
    assert not (tmp_path / "missing").exists()


def test_evaluations_without_their_problem_are_not_adopted(tmp_path):
    filled(tmp_path)
    (tmp_path / PROBLEM).unlink()
    with pytest.raises(StoreCorruptError, match=r"no problem\.json"):
        opened(tmp_path)


def test_every_flipped_bit_of_the_problem_is_noticed(tmp_path):
    opened(tmp_path).close()
    content = (tmp_path / PROBLEM).read_bytes()
    for position in range(len(content) - 1):
        flipped = bytearray(content)
        flipped[position] ^= 1 << (position % 8)
        (tmp_path / PROBLEM).write_bytes(flipped)
        with pytest.raises(StoreCorruptError):
            opened(tmp_path, read_only=True)


@pytest.mark.parametrize(
    "changed",
    [
        {"schema": 2}, {"schema": "1"}, {"seed": -1}, {"seed": True}, {"seed": "4"}, {"more": 1},
        {"fingerprint": []}, {"written_by": 1},
    ],
)  # fmt: skip
def test_a_crafted_problem_is_refused(tmp_path, changed):
    opened(tmp_path).close()
    members = {"schema": 1, "written_by": "sparing", "seed": 1, "fingerprint": {}} | changed
    (tmp_path / PROBLEM).write_bytes(encode(members) + b"\n")
    with pytest.raises(StoreCorruptError, match=PROBLEM):
        opened(tmp_path)


def test_a_file_in_the_way_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot create"):
        opened(tmp_path / "file")
    with pytest.raises(StoreError, match="cannot read"):
        opened(tmp_path / "file", read_only=True)


@pytest.mark.parametrize(
    "error",
    [
        StoreMismatchError("run", [("a.b", "1", "2")]),
        StoreLockedError("in use", "host", 12),
        StoreCorruptError("line 3"),
    ],
)
def test_errors_survive_pickling(error):
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


@pytest.mark.parametrize("name", ["lock", "evaluations.jsonl", "spool", "snapshots"])
def test_links_to_other_places_are_refused(tmp_path, name):
    """What is there would be emptied, appended to or removed."""
    run, outside = tmp_path / "run", tmp_path / "outside"
    opened(run).close()
    outside.mkdir()
    for precious in ("0.json", "00000001.npz", ".lost.tmp", "file"):
        (outside / precious).write_bytes(b"precious")
    before = contents(outside)
    place = run / name
    place.rmdir() if place.is_dir() else place.unlink()
    place.symlink_to(outside if name in ("spool", "snapshots") else outside / "file")
    with pytest.raises(StoreError, match=f"{name} is a symbolic link to .*outside"):
        opened(run)
    assert contents(outside) == before


def test_a_folder_that_becomes_a_link_during_a_run_is_not_written_to(tmp_path):
    run, outside = tmp_path / "run", tmp_path / "outside"
    outside.mkdir()
    (outside / "0.json").write_bytes(b"precious")
    with opened(run) as store:
        for name in ("spool", "snapshots"):
            (run / name).rmdir()
            (run / name).symlink_to(outside)
        for call in (
            lambda: store.spool.remove(0),
            lambda: write_spooled_outcome(store.spool.directory, 1, {"value": 1.0}),
            lambda: store.write_snapshot(1, {"a": np.zeros(1)}, {}),
        ):
            with pytest.raises(StoreError, match="symbolic link"):
                call()
    assert contents(outside) == {"0.json": b"precious"}


def test_the_run_directory_itself_may_be_a_link(tmp_path):
    (tmp_path / "place").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "place")
    opened(tmp_path / "run").close()
    assert (tmp_path / "place" / "evaluations.jsonl").exists()
