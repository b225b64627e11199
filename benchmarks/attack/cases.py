"""A hostile case, tried in a process of its own, and how it ended."""

from __future__ import annotations

import enum
import os
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np

from sparing.errors import SparingError


class Ending(enum.Enum):
    """What a case may end with; whatever else happens, the library broke."""

    RIGHT = "right"  # the result of a run that nobody attacked, to the last bit where it can be
    REFUSED = "refused"  # with a message for people
    ABSENT = "absent"  # the case needs something that is not installed


class BrokenError(Exception):
    """Something was lost, wrong, or not refused as it should be."""


@dataclass(frozen=True)
class Case:
    """``attack`` gets an empty directory; it returns how it ended, or raises."""

    name: str
    attack: Callable[[Path], Ending]
    limit: float = 60.0  # seconds; then it hangs


@dataclass(frozen=True)
class Verdict:
    """How a case ended; without an ending, ``reason`` says what broke."""

    case: Case
    ending: Ending | None
    reason: str = ""


def require(condition: object, what_broke: str) -> None:
    """BrokenError unless the condition holds."""
    if not condition:
        raise BrokenError(what_broke)


def refused(
    call: Callable[[], object], kinds: tuple[type[Exception], ...] = (SparingError,)
) -> bool:
    """Whether a call is refused by an error of these kinds, with words that can be read."""
    try:
        call()
    except kinds as error:
        text = str(error)
        require(text.strip(), f"{type(error).__name__} without a message")
        readable = all(character.isprintable() or character == "\n" for character in text)
        require(readable, f"a message that cannot be shown: {text!r}")
        return True
    return False


def chosen(items: Iterable[Case], n_cases: int, generator: np.random.Generator) -> list[Case]:
    """So many of a list of cases, or all of them."""
    cases = list(items)
    if len(cases) <= n_cases:
        return cases
    return [cases[i] for i in sorted(generator.choice(len(cases), n_cases, replace=False))]


def judged(case: Case, directory: Path) -> Verdict:
    """Try a case in a forked process, which is ended when it hangs."""
    directory.mkdir()
    answer, log = directory.with_suffix(".answer"), directory.with_suffix(".log")
    child = os.fork()
    if child == 0:
        _try(case, directory, answer, log)
    deadline = time.monotonic() + case.limit
    status = None
    while status is None and time.monotonic() < deadline:
        pid, found = os.waitpid(child, os.WNOHANG)
        status = found if pid else time.sleep(0.01)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # whatever it left, too
    if status is None:
        os.waitpid(child, 0)
        return Verdict(case, None, f"no end after {case.limit:g} s")
    text = answer.read_text() if answer.exists() else ""
    if text in Ending.__members__:
        return Verdict(case, Ending[text])
    return Verdict(case, None, text or f"its process ended with {status}: {_end_of(log)}")


def _try(case: Case, directory: Path, answer: Path, log: Path) -> NoReturn:
    os.setpgid(0, 0)
    descriptor = os.open(log, os.O_CREAT | os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warnings.simplefilter("default")
    warnings.filterwarnings("error", category=RuntimeWarning, module="sparing")  # arithmetic
    try:
        text = case.attack(directory).name
    except BrokenError as error:
        text = str(error)
    except BaseException as error:
        traceback.print_exc()
        text = f"{type(error).__name__}: {error}"
    answer.write_text(text, errors="backslashreplace")
    os._exit(0)


def _end_of(log: Path) -> str:
    return log.read_text(errors="backslashreplace")[-500:] if log.exists() else ""
