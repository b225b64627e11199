"""A run directory with known content, for the tests of the store."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np

from sparing.problem.evaluations import Proposal
from sparing.store import RunDirectory
from sparing.testing.store import example_events

FINGERPRINT = {"names": ["a", "b"], "bounds": {"lower": [-np.inf, 0.0], "upper": [np.inf, 1.0]}}
ROOT = Path(__file__).parent.parent.parent
JOURNAL = "evaluations.jsonl"
X = np.array([0.25, -1.5])


def opened(path, **options):
    return RunDirectory.open(path, FINGERPRINT, **options)


def proposal(identifier=0):
    return Proposal(identifier, X)


def filled(path):
    """A closed run directory with every kind of event; returns the events and the journal."""
    events = example_events()
    with opened(path, seed=5) as store:
        for event in events:
            store.append(event)
    return events, (path / JOURNAL).read_bytes()


def contents(path):
    """Every file below a directory with its bytes."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


def started(script, *arguments, **options):
    """A Python process that runs the script; it can import the tests."""
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, **options)
