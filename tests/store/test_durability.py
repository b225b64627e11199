"""Real kills of real processes; the long campaigns are ``python -m benchmarks durability``."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.durability import faults_after_kill, main, work
from tests.store.support import ROOT


def run_campaign(*arguments):
    """A campaign in a process of its own, which forks; in memory where there is such a disk."""
    memory = Path("/dev/shm")
    where = ["--directory", str(memory)] if os.access(memory, os.W_OK) else []
    command = [sys.executable, "-m", "benchmarks.durability", *arguments, *where]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def test_no_kill_loses_anything():
    report = run_campaign("kills", "--events", "4", "--random", "20")
    assert int(report.split()[1]) > 100  # write boundaries


def test_stale_locks_are_taken_over_by_one():
    assert "50 stale ones" in run_campaign("locks", "--locks", "50", "--racers", "4")


def test_appends_and_a_full_disk_are_measured():
    report = run_campaign("appends", "full-disk", "--longest", "10", "--rounds", "2")
    assert "append at 10 lines" in report
    assert "full disk: " in report


def test_a_loss_would_be_noticed(tmp_path):
    work(tmp_path, 6, lambda: None)
    journal = tmp_path / "evaluations.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:5]))
    assert faults_after_kill(tmp_path, 6, 5) == []
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:5]))
    assert faults_after_kill(tmp_path, 6, 6) != []


def test_an_unknown_campaign_is_refused():
    with pytest.raises(SystemExit, match="no such campaign: floods"):
        main(["floods"])
