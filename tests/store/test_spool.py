import numpy as np
import pytest
from tests.store.support import opened, started

from sparing.errors import StoreError
from sparing.store import write_spooled_outcome
from sparing.store.checked_json import encode

RECORD = {"value": -1.25, "status": "ok", "message": "é\n", "started": "nan", "tries": 2}


def test_results_of_workers_are_harvested_by_identifier_and_removed(tmp_path):
    with opened(tmp_path) as store:
        for identifier in (10, 9, 0):
            write_spooled_outcome(store.spool.directory, identifier, RECORD)
        assert list(store.spool.harvest()) == [(0, RECORD), (9, RECORD), (10, RECORD)]
        store.spool.remove(9)
        store.spool.remove(9)
    with opened(tmp_path) as store:
        assert [identifier for identifier, _ in store.spool.harvest()] == [0, 10]


@pytest.mark.slow
def test_a_worker_needs_no_lock(tmp_path):
    script = """
        import sys
        from sparing.store import write_spooled_outcome
        write_spooled_outcome(sys.argv[1], 3, {"value": 1.0})
    """
    with opened(tmp_path) as store:
        with started(script, store.spool.directory) as worker:
            assert worker.wait() == 0
        assert list(store.spool.harvest()) == [(3, {"value": 1.0})]


def test_numbers_that_json_lacks_become_strings(tmp_path):
    write_spooled_outcome(str(tmp_path), 0, {"value": np.float64(-np.inf), "x": np.array([1, 2])})
    with pytest.raises(TypeError):
        write_spooled_outcome(str(tmp_path), 1, {"value": object()})
    assert [file.name for file in tmp_path.iterdir()] == ["0.json"]
    assert b'{"value":"-inf","x":[1,2]}' in (tmp_path / "0.json").read_bytes()


def test_writing_again_replaces(tmp_path):
    with opened(tmp_path) as store:
        for value in (1.0, 2.0):
            write_spooled_outcome(store.spool.directory, 0, {"value": value})
        assert list(store.spool.harvest()) == [(0, {"value": 2.0})]


def test_a_missing_spool_is_a_clear_error(tmp_path):
    with pytest.raises(StoreError, match="cannot write"):
        write_spooled_outcome(str(tmp_path / "gone"), 0, RECORD)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        encode({"identifier": 5, "record": {}})[:-1],
        encode({"identifier": 5, "record": []}),
        encode({"identifier": 6, "record": {}}),
        encode({"identifier": 5, "record": {}, "more": 1}),
        b"\x80\x04cos\nsystem\n",
    ],
)
def test_damaged_results_are_left_alone_and_named(tmp_path, content):
    with opened(tmp_path) as store:
        write_spooled_outcome(store.spool.directory, 4, RECORD)
        (tmp_path / "spool" / "5.json").write_bytes(content)
        assert list(store.spool.harvest()) == [(4, RECORD)]
        assert "5.json" in store.warnings[0]
        assert (tmp_path / "spool" / "5.json").read_bytes() == content


def test_other_names_are_ignored(tmp_path):
    with opened(tmp_path) as store:
        for name in (
            "-1.json",
            "01.json",
            "1.txt",
            ".1.json-5-ab.tmp",
            "x.json",
            "9" * 30 + ".json",
        ):
            (tmp_path / "spool" / name).write_bytes(encode({"identifier": 1, "record": {}}))
        (tmp_path / "spool" / "2.json").mkdir()
        assert list(store.spool.harvest()) == []
        assert len(store.warnings) == 1
