"""Cached code never outlives the text it was compiled from."""

import shutil
import sys
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


class Process:
    """Stands for the process that compiles a share."""

    def __init__(self, command, **streams):
        self.command, self.events = command, []

    def kill(self):
        self.events.append("kill")

    def wait(self):
        self.events.append("wait")


def with_another_process(monkeypatch, work):
    """What was started beside the work; the compiled kernels are told not to be there."""
    started = []
    monkeypatch.setattr(compilation, "all_cached", lambda: False)
    monkeypatch.setattr(compilation, "compile_all", lambda **_: None)
    monkeypatch.setattr(compilation, "_is_worth_a_process", lambda: True)
    monkeypatch.setattr(compilation, "_warm_ups", [work, *compilation._elsewhere])
    monkeypatch.setattr(
        compilation.subprocess,
        "Popen",
        lambda *arguments, **options: started.append(Process(*arguments, **options)) or started[-1],
    )
    return started


def test_another_process_compiles_its_share_and_is_waited_for(monkeypatch):
    order = []
    started = with_another_process(monkeypatch, lambda: order.append(len(started)))
    compilation.compile_with_notice(lambda: order.append("announced"))
    (process,) = started
    assert order == ["announced", 1]  # the work here goes on beside it
    assert process.events == ["wait"]
    assert process.command[0] == sys.executable
    assert process.command[-1] == str(FOLDER.parents[1])


def test_it_does_not_outlive_an_interruption(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    started = with_another_process(monkeypatch, interrupted)
    with pytest.raises(KeyboardInterrupt):
        compilation.compile_with_notice(lambda: None)
    assert started[0].events == ["kill", "wait"]


def test_one_core_or_no_cache_or_no_interpreter_is_no_reason_for_another_process(monkeypatch):
    monkeypatch.setattr(compilation.os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    assert compilation._is_worth_a_process()
    with monkeypatch.context() as changed:
        changed.setattr(compilation.os, "sched_getaffinity", lambda _: {0}, raising=False)
        assert not compilation._is_worth_a_process()
    with monkeypatch.context() as changed:
        changed.setattr(compilation.sys, "executable", "")
        assert not compilation._is_worth_a_process()
    monkeypatch.setattr(compilation, "kernels", [Process([])])
    monkeypatch.setattr(Process, "_cache", None, raising=False)
    assert not compilation._is_worth_a_process()
