"""Cached code never outlives the text it was compiled from."""

import shutil
from pathlib import Path

import pytest

from sparing.kernels import compilation
from sparing.kernels.compilation import kernels

FOLDER = Path(compilation.__file__).parent


@pytest.mark.parametrize("changed", sorted(path.name for path in FOLDER.glob("*.py")))
def test_a_change_in_any_kernel_file_outdates_all_cached_code(tmp_path, monkeypatch, changed):
    folder = shutil.copytree(FOLDER, tmp_path / "kernels")
    monkeypatch.setattr(compilation, "__file__", str(folder / "compilation.py"))
    fingerprint = compilation._fingerprint.__wrapped__
    before = fingerprint()
    assert before == compilation._fingerprint()
    with (folder / changed).open("a") as file:
        file.write("# another line\n")
    assert fingerprint() != before


def test_numba_looks_at_the_stamp():
    """Its name is private: this fails where another Numba calls it otherwise."""
    assert kernels
    for compiled in kernels:
        assert compiled._cache._cache_file._source_stamp[-1] == compilation._fingerprint()
