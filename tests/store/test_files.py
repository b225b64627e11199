import errno
import os
import stat

import pytest

from sparing.errors import StoreError, StoreFullError
from sparing.store.files import read_regular_file, write_durably


def test_a_file_is_synced_before_it_gets_its_name_and_the_name_after(tmp_path, monkeypatch):
    calls = []
    for name in ("write", "fsync", "replace"):
        real = getattr(os, name)

        def call(*arguments, name=name, real=real):
            is_open = isinstance(arguments[0], int)
            calls.append((name, is_open and stat.S_ISDIR(os.fstat(arguments[0]).st_mode)))
            return real(*arguments)

        monkeypatch.setattr(os, name, call)
    write_durably(tmp_path / "file", b"content")
    assert calls == [("write", False), ("fsync", False), ("replace", False), ("fsync", True)]
    assert (tmp_path / "file").read_bytes() == b"content"


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, call):
    (tmp_path / "file").write_bytes(b"old")

    def full(*arguments):
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    with monkeypatch.context() as broken:
        broken.setattr(os, call, full)
        with pytest.raises(StoreFullError, match="Disk quota exceeded"):
            write_durably(tmp_path / "file", b"new")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("file", b"old")]


def test_what_the_system_takes_in_pieces_is_written_whole(tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:3]))
    write_durably(tmp_path / "file", b"0123456789")
    assert (tmp_path / "file").read_bytes() == b"0123456789"


def test_reading_tells_absent_from_forbidden(tmp_path):
    assert read_regular_file(tmp_path / "absent") is None
    with pytest.raises(StoreError, match="not a regular file"):
        read_regular_file(tmp_path)
