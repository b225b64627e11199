"""The commands around the report; the page itself has tests of its own."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import sparing
from sparing.cli.exit_codes import ExitCode


@pytest.fixture
def reported(monkeypatch):
    """(result, path) of every report that is asked for."""
    calls = []
    monkeypatch.setattr(
        sparing.Result, "report", lambda self, path: calls.append((self, path)), raising=False
    )
    return calls


def test_report_of_a_directory(sparing_command, directory, result, reported, tmp_path):
    answer = sparing_command("report", directory, "-o", tmp_path / "page.html")
    assert (answer.code, answer.out) == (ExitCode.OK, f"report: {tmp_path / 'page.html'}\n")
    ((found, path),) = reported
    assert path == tmp_path / "page.html"
    assert found.log_evidence == result.log_evidence


def test_report_of_a_file_to_the_usual_place(sparing_command, result, reported, tmp_path):
    result.save(tmp_path / "run.sparing")
    answer = sparing_command("report", tmp_path / "run.sparing", "--json")
    assert answer.json == {"report": "run.html"}
    assert reported[0][1] == Path("run.html")


def test_watch(sparing_command, directory, monkeypatch, tmp_path):
    calls = []
    live = SimpleNamespace(watch=lambda path, **options: calls.append((path, options)))
    monkeypatch.setitem(sys.modules, "sparing.running.live", live)
    assert sparing_command("watch", directory, "--port", 8123, "--no-browser").code == ExitCode.OK
    assert sparing_command("watch", directory).code == ExitCode.OK
    assert calls == [
        (directory, {"port": 8123, "open_browser": False}),
        (directory, {"port": 0, "open_browser": True}),
    ]
    assert sparing_command("watch", tmp_path).code == ExitCode.USAGE
