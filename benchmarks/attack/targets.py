"""Targets that do what no target should, and targets that are not the one they were."""

from __future__ import annotations

import decimal
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import sparing
from benchmarks.attack.cases import BrokenError, Case, Ending, chosen, refused, require
from benchmarks.attack.runs import BEGUN, bits, infer, log_density, reference
from benchmarks.faults import FAULTS, IN_WORKERS
from benchmarks.killed_runs import results_in
from sparing.errors import SparingError, TargetChangedError


class _EvilError(Exception):
    """Has no words for itself."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class _Float(float):
    def __float__(self) -> float:
        raise KeyError("no number")


def _raise(error: BaseException) -> Any:
    raise error


def _recurse(x: np.ndarray) -> Any:
    return _recurse(x)


def _write_everywhere(_x: np.ndarray) -> Any:
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b"\xff" * 4096)
        except OSError:
            continue
    return log_density(_x)


def _close_everything(x: np.ndarray) -> Any:
    os.closerange(3, 64)
    return log_density(x)


def _change_x(x: np.ndarray) -> Any:
    value = log_density(x)
    x[:] = np.nan
    return value


def _seed_everything(x: np.ndarray) -> Any:
    np.random.seed(0)  # noqa: NPY002
    np.seterr(all="raise")
    warnings.simplefilter("error")
    return log_density(x)


def _change_directory(x: np.ndarray) -> Any:
    os.chdir("/")
    return log_density(x)


def _start_a_thread(x: np.ndarray) -> Any:
    threading.Thread(target=time.sleep, args=(30.0,), daemon=True).start()
    return log_density(x)


def _take_signals(x: np.ndarray) -> Any:
    for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return log_density(x)


# Everywhere: what is no value is a failure, and a run without values is refused.
ANYWHERE: dict[str, Callable[[Any], Any]] = {
    **{name: fault for name, fault in FAULTS.items() if name not in IN_WORKERS},
    "text": lambda _x: "-1.0",
    "bytes": lambda _x: b"1",
    "True": lambda _x: True,
    "the class": lambda _x: float,
    "a generator": lambda x: (value for value in x),
    "a huge integer": lambda _x: 10**400,
    "a decimal NaN": lambda _x: decimal.Decimal("sNaN"),
    "a masked value": lambda _x: np.ma.masked,
    "a lying float": lambda _x: _Float(1.0),
    "negative noise": lambda x: (log_density(x), -1.0),
    "NaN noise": lambda x: (log_density(x), float("nan")),
    "huge noise": lambda x: (log_density(x), 1e200),
    "a triple": lambda x: (log_density(x), 0.0, 0.0),
    "a structured array": lambda _x: np.zeros(1, dtype=[("a", float)]),
    "half a character": lambda _x: _raise(ValueError("\ud800 \x1b[2J \u202e")),
    "a megabyte of text": lambda _x: _raise(ValueError("long " * 200_000)),
    "an error without words": lambda _x: _raise(_EvilError()),
    "a group of errors": lambda _x: _raise(ExceptionGroup("many", [ValueError("one")])),
    "StopIteration": lambda _x: _raise(StopIteration(1)),
    "RecursionError": _recurse,
    "MemoryError": lambda _x: _raise(MemoryError()),
}
# In a worker only: in this process they are the user's own.
IN_A_WORKER: dict[str, Callable[[Any], Any]] = {
    **{name: FAULTS[name] for name in IN_WORKERS},
    "sys.exit": lambda _x: sys.exit("enough"),
    "os._exit": lambda _x: os._exit(0),
    "os.abort": lambda _x: os.abort(),
    "KeyboardInterrupt": lambda _x: _raise(KeyboardInterrupt()),
    "GeneratorExit": lambda _x: _raise(GeneratorExit()),
    "stops itself": lambda _x: os.kill(os.getpid(), signal.SIGSTOP),
}
# They give the right value: so must the run.
GIVES_THE_VALUE: dict[str, Callable[[Any], Any]] = {
    "changes x": _change_x,
    "seeds NumPy": _seed_everything,
    "changes the directory": _change_directory,
    "starts a thread": _start_a_thread,
}
GIVES_THE_VALUE_IN_A_WORKER: dict[str, Callable[[Any], Any]] = {
    "writes to descriptors": _write_everywhere,
    "closes descriptors": _close_everything,
    "takes signals": _take_signals,
}


def evil_targets(n_cases: int, generator: np.random.Generator) -> list[Case]:
    """One evaluation in five, then all of them, go wrong in one way."""
    cases = []
    for options, faults in (({}, ANYWHERE), ({"workers": 2, "time_limit": 1.0}, IN_A_WORKER)):
        for name, fault in faults.items():
            for share in (0.2, 1.0):
                attack = partial(_faulty, fault=fault, share=share, options=options)
                cases.append(Case(f"{name}, {share:.0%}", attack))
    for options, targets in (
        ({}, GIVES_THE_VALUE),
        ({"workers": 1, "time_limit": 20.0}, GIVES_THE_VALUE | GIVES_THE_VALUE_IN_A_WORKER),
    ):
        for name, target in targets.items():
            attack = partial(_harmless, target=target, options=options)
            cases.append(Case(f"{name}{', in a worker' if options else ''}", attack))
    return chosen(cases, n_cases, generator)


def _faulty(directory: Path, fault: Any, share: float, options: dict[str, Any]) -> Ending:
    store = directory / "run"

    def target(x: np.ndarray) -> Any:
        seed = int.from_bytes(np.asarray(x).tobytes()[:8], "little")
        return fault(x) if np.random.default_rng(seed).random() < share else log_density(x)

    found: list[sparing.Result] = []
    if refused(lambda: found.append(infer(store, target, **options))):
        require(share > 0.5, "it was refused because of a few evaluations")
        require(results_in(store), "nothing was recorded")
        return Ending.REFUSED
    result = found[0]
    good = [entry for entry in result.evaluations if entry.usable]
    require(len(good) < result.n_evaluations, "no evaluation failed")
    values = [log_density(entry.x) for entry in good]
    require([entry.value for entry in good] == values, "a value is wrong")
    result.summary().encode()
    require(np.isfinite(result.log_evidence), "a result that is no number")
    return Ending.RIGHT


def _harmless(directory: Path, target: Any, options: dict[str, Any]) -> Ending:
    result = infer(directory / "run", target, **options)
    require(bits(result) == reference(), "it ended with another result")
    return Ending.RIGHT


# ----------------------------------------------------------------------- targets that changed


CHANGES: dict[str, Callable[[Any], Any]] = {
    "a constant": lambda x: log_density(x) + 1.0,
    "a small constant": lambda x: log_density(x) + 1e-3,
    "the scale": lambda x: 1.01 * log_density(x),
    "the place": lambda x: log_density(x + 0.01),
    "zero": lambda _x: 0.0,
    "the support": lambda _x: -np.inf,
    "another order": lambda x: log_density(x[::-1]),
    "noise": lambda x: (log_density(x) - 5.0, 0.1),
}


def changed_targets(n_cases: int, generator: np.random.Generator) -> list[Case]:
    """The target is edited between two calls on one store."""
    cases = [
        Case(f"{name}, {when}", partial(_changed, target=target, finished=when == "finished"))
        for name, target in CHANGES.items()
        for when in ("finished", "unfinished")
    ]
    return chosen(cases, n_cases, generator)


def _changed(directory: Path, target: Any, finished: bool) -> Ending:
    store = directory / "run"
    infer(store, max_evaluations=BEGUN)
    try:
        infer(store, target, max_evaluations=BEGUN if finished else BEGUN + 6)
    except TargetChangedError:
        require(bits(infer(store)) == reference(), "the run has changed, too")
        return Ending.REFUSED
    except SparingError as error:
        raise BrokenError(f"refused for another reason: {error}") from error
    raise BrokenError("two targets were mixed")
