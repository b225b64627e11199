"""The attacks themselves: a few are tried, and whatever breaks is seen to be broken."""

import os
import time

import numpy as np
import pytest
from benchmarks.__main__ import main
from benchmarks.attack import command
from benchmarks.attack.cases import Case, Ending, judged, refused, require

from sparing.errors import SparingError


def raise_(error):
    raise error


def broken_promise(directory):
    require(not list(directory.iterdir()), "the directory is not empty")
    require(False, "an evaluation was lost")


ENDINGS = {
    "right": (lambda directory: Ending.RIGHT, Ending.RIGHT, ""),
    "refused": (lambda directory: Ending.REFUSED, Ending.REFUSED, ""),
    "a broken promise": (broken_promise, None, "an evaluation was lost"),
    "a raw error": (lambda directory: {}["key"], None, "KeyError: 'key'"),
    "sys.exit": (lambda directory: raise_(SystemExit(0)), None, "SystemExit: 0"),
    "a death": (lambda directory: os._exit(3), None, "its process ended with"),
    "an endless loop": (lambda directory: time.sleep(600.0), None, "no end after 0.5 s"),
}


@pytest.mark.parametrize(("attack", "ending", "reason"), ENDINGS.values(), ids=ENDINGS)
def test_how_a_case_ends(tmp_path, attack, ending, reason):
    limit = 0.5 if "no end" in reason else 60.0
    verdict = judged(Case("a case", attack, limit), tmp_path / "case")
    assert verdict.ending is ending
    assert reason in verdict.reason


@pytest.mark.parametrize("text", ["", "\x1b[2J"], ids=["silent", "unreadable"])
def test_a_refusal_has_words_that_can_be_read(text):
    class RefusalError(SparingError):
        __str__ = Exception.__str__

    assert refused(lambda: raise_(RefusalError("give another directory")))
    assert not refused(lambda: None)
    with pytest.raises(Exception, match="message"):
        refused(lambda: raise_(RefusalError(text)))


def test_what_breaks_is_counted_and_told(monkeypatch, capsys):
    cases = [
        Case("held", lambda directory: Ending.RIGHT),
        Case("absent", lambda directory: Ending.ABSENT),
        Case("lost", broken_promise),
    ]
    kind = ("a made-up kind", lambda n_cases, generator: cases)
    monkeypatch.setattr(command, "KINDS", {"made-up": kind})
    assert main(["attack"]) == 1
    printed = capsys.readouterr().out
    assert "BROKE lost: an evaluation was lost" in printed
    assert "| a made-up kind | 2 | 1 | 1 | 0 | 1 |" in printed
    assert main(["attack", "no-such-kind"]) == 2


def test_every_kind_has_cases_that_depend_on_the_seed_alone():
    for name, (_, kind) in command.KINDS.items():
        first, again = (kind(3, np.random.default_rng(7)) for _ in range(2))
        assert [case.name for case in first] == [case.name for case in again]
        assert 1 <= len(first) <= 3, name


def test_a_few_hold(capsys):
    assert main(["attack", "writes", "damage", "made-up", "links", "misuse", "--cases", "3"]) == 0
    assert "| **all** | 15 | 15 |" in capsys.readouterr().out
