import io
import json
import shutil
import zipfile

import numpy as np
import pytest
from tests.store.support import JOURNAL, opened, proposal

from sparing.store.archive import sealed

ARRAYS = {
    "file": np.arange(6.0).reshape(2, 3),  # names that are arguments elsewhere
    "allow_pickle": np.array([True, False]),
    "transposed": np.arange(6).reshape(2, 3).T,
    "scalar": np.array(1 / 3),
    "empty": np.zeros((0, 4)),
    "special.values": np.array([np.nan, -np.inf, -0.0]),
}


def written(path, numbers=(1, 2, 3)):
    """A run directory with one event per snapshot; returns its open store."""
    store = opened(path)
    for number in numbers:
        store.append(proposal(number))
        store.write_snapshot(number, {"a": np.array([float(number)])}, {"n": number})
    return store


def files(path):
    return sorted(file.name for file in (path / "snapshots").iterdir())


def test_arrays_and_metadata_come_back_exactly(tmp_path):
    metadata = {"n": 1, "value": np.float64(0.1), "none": None, "list": [1, "x"], "nan": np.nan}
    with opened(tmp_path) as store:
        store.write_snapshot(7, ARRAYS, metadata)
    with opened(tmp_path, read_only=True) as store:
        snapshot = store.latest_snapshot()
    assert snapshot.number == 7
    assert snapshot.metadata == metadata | {"nan": "nan"}
    assert snapshot.arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        found = snapshot.arrays[name]
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert found.tobytes() == array.tobytes()


def test_a_snapshot_is_a_plain_npz_file(tmp_path):
    written(tmp_path).close()
    with np.load(tmp_path / "snapshots" / files(tmp_path)[-1], allow_pickle=False) as archive:
        assert archive["a"].tolist() == [3.0]


def test_two_are_kept(tmp_path):
    with written(tmp_path, range(12)) as store:
        assert [name[:8] for name in files(tmp_path)] == ["00000010", "00000011"]
        assert store.latest_snapshot().number == 11


def test_equal_states_give_equal_files(tmp_path):
    for name in ("a", "b"):
        written(tmp_path / name).close()
    first, second = (sorted((tmp_path / name / "snapshots").iterdir()) for name in ("a", "b"))
    assert [path.name for path in first] == [path.name for path in second]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_damage_falls_back_to_the_other_then_to_none(tmp_path):
    written(tmp_path).close()
    older, newer = (tmp_path / "snapshots" / name for name in files(tmp_path))
    content = newer.read_bytes()
    for damaged in (b"", content[:-1], content[:100], content.replace(b"metadata", b"metadatb")):
        newer.write_bytes(damaged)
        with opened(tmp_path) as store:
            assert store.latest_snapshot().number == 2
            assert newer.name in store.warnings[0]
    older.write_bytes(b"")
    with opened(tmp_path) as store:
        assert store.latest_snapshot() is None
        assert len(store.warnings) == 2


def test_every_flipped_byte_is_noticed(tmp_path):
    written(tmp_path, [1]).close()
    (path,) = (tmp_path / "snapshots").iterdir()
    content = path.read_bytes()
    store = opened(tmp_path, read_only=True)
    assert store.latest_snapshot() is not None
    for position in range(len(content)):
        flipped = bytearray(content)
        flipped[position] ^= 1 << (position % 8)
        path.write_bytes(flipped)
        assert store.latest_snapshot() is None


def test_a_snapshot_of_events_that_are_gone_is_not_used(tmp_path):
    written(tmp_path).close()
    lines = (tmp_path / JOURNAL).read_bytes().splitlines(keepends=True)
    (tmp_path / JOURNAL).write_bytes(b"".join(lines[:2]) + lines[2][:-5])
    with opened(tmp_path) as store:
        assert store.latest_snapshot().number == 2
        assert any("another journal" in warning for warning in store.warnings)
        store.append(proposal(99))  # not what the third snapshot was made from
        assert store.latest_snapshot().number == 2
        store.write_snapshot(3, {}, {})
        assert len(files(tmp_path)) == 2


def test_deleting_the_folder_is_harmless(tmp_path):
    written(tmp_path).close()
    for file in (tmp_path / "snapshots").iterdir():
        file.unlink()
    (tmp_path / "snapshots").rmdir()
    assert opened(tmp_path, read_only=True).latest_snapshot() is None
    with opened(tmp_path) as store:
        assert store.latest_snapshot() is None
        store.write_snapshot(0, {}, {})
        assert store.latest_snapshot().number == 0


@pytest.mark.parametrize("schema", [1, 3])
def test_a_snapshot_of_another_version_is_no_damage(tmp_path, schema):
    plant(tmp_path, {"record.json": record(schema=schema)})
    with opened(tmp_path) as store:
        assert store.latest_snapshot() is None
        assert store.warnings == ()


def test_snapshots_of_the_first_version_are_removed_with_the_next(tmp_path):
    written(tmp_path).close()
    (tmp_path / "snapshots" / "00000002-bb89c22bad207211.npz").write_bytes(b"first version")
    (tmp_path / "snapshots" / "notes.npz").write_bytes(b"of a person")
    with opened(tmp_path) as store:
        assert store.latest_snapshot().number == 3
        store.write_snapshot(4, {}, {})
        assert files(tmp_path) == ["00000003.npz", "00000004.npz", "notes.npz"]
        assert store.warnings == ()


def test_leftovers_of_a_killed_writer_are_removed(tmp_path):
    written(tmp_path).close()
    (tmp_path / "snapshots" / ".00000004-ab.npz-1-cd.tmp").write_bytes(b"half")
    opened(tmp_path).close()
    assert len(files(tmp_path)) == 2


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("a", np.array([object()])), ("../a", np.zeros(1)), ("", np.zeros(1)),
        ("a", np.zeros(1, dtype=[("x", float)])), ("a", np.array([b"x"])), ("a", np.array(["x"])),
    ],
)  # fmt: skip
def test_what_cannot_be_read_back_is_not_written(tmp_path, name, array):
    with opened(tmp_path) as store, pytest.raises(TypeError):
        store.write_snapshot(0, {name: array}, {})
    assert files(tmp_path) == []


class Bomb:
    exploded = False

    def __reduce__(self):
        return setattr, (Bomb, "exploded", True)


def npy(array, allow_pickle=True):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=allow_pickle)
    return stream.getvalue()


HEADER = {"schema": 2, "number": 1, "events": 0, "digest": 0, "metadata": {}}


def record(**changed):
    return json.dumps(HEADER | changed)


def claimed(header):
    """An array file whose header says something else than the bytes behind it."""
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"\0" * 8


CRAFTED = {
    "pickle": {"record.json": record(), "a.npy": npy(np.array([Bomb()]))},
    "no record": {"a.npy": npy(np.zeros(1))},
    "record of objects": {"record.npy": npy(np.array([Bomb()]))},
    "record that is no object": {"record.json": "[]"},
    "absolute path": {"record.json": record(), "/etc/a.npy": npy(np.zeros(1))},
    "parent path": {"record.json": record(), "../a.npy": npy(np.zeros(1))},
    "no array": {"record.json": record(), "a.npy": b"text"},
    "huge": {"record.json": record(), "a.npy": claimed(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }")},
    "negative": {"record.json": record(), "a.npy": claimed(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1), }")},
    "expression": {"record.json": record(), "a.npy": claimed(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (exit(),), }")},
    "schema": {"record.json": record(schema="2")},
    "number": {"record.json": record(number=2)},
    "events": {"record.json": record(events=5)},
    "digest": {"record.json": record(digest=1)},
    "types": {"record.json": record(metadata=[1])},
    "extra": {"record.json": record(extra=1)},
}  # fmt: skip


def plant(path, members, compression=zipfile.ZIP_STORED):
    """Put a crafted snapshot with a right checksum into a run directory."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        archive.comment = b"0" * 64
    opened(path).close()
    (path / "snapshots" / "00000001.npz").write_bytes(sealed(stream.getvalue()[:-64]))


@pytest.mark.parametrize("case", CRAFTED)
def test_a_crafted_snapshot_is_ignored_and_runs_nothing(tmp_path, case):
    plant(tmp_path, CRAFTED[case])
    with opened(tmp_path) as store:
        assert store.latest_snapshot() is None
        assert "was ignored" in store.warnings[0]
    assert not Bomb.exploded


def test_a_compressed_archive_is_ignored(tmp_path):
    members = {"record.json": record(), "a.npy": npy(np.zeros(10**5))}
    plant(tmp_path, members, zipfile.ZIP_DEFLATED)
    assert opened(tmp_path, read_only=True).latest_snapshot() is None


def test_the_crafted_snapshots_are_wrong_only_where_they_say(tmp_path):
    plant(tmp_path, {"record.json": record(), "a.npy": npy(np.zeros(1))})
    assert opened(tmp_path, read_only=True).latest_snapshot().arrays["a"].tolist() == [0.0]


def test_a_folder_that_is_gone_is_made_again_and_one_that_cannot_be_read_is_named(tmp_path):
    folder = tmp_path / "snapshots"
    with written(tmp_path) as store:
        shutil.rmtree(folder)
        assert store.latest_snapshot() is None
        store.write_snapshot(4, {"a": np.zeros(1)}, {})
        assert store.latest_snapshot().number == 4
        shutil.rmtree(folder)
        folder.touch()
        assert store.latest_snapshot() is None
        assert "snapshots" in store.warnings[0]
