"""Ctrl-C and SIGTERM: a run ends where nothing is lost, with what it has."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TypeVar

from sparing.results.result import Result
from sparing.results.several_runs import SeveralRuns
from sparing.running.inference import Inference
from sparing.summary.numbers import estimate
from sparing.summary.story import stop_text
from sparing.vbmc.stopping import StopReason

Item = TypeVar("Item")


def how_to_go_on(store: object) -> str:
    """What to do after an interruption, to be added to what is said of it."""
    if not isinstance(store, (str, Path)):
        return ""
    return f": run the same command again, and it goes on from {str(store)!r}"


class _InterruptedWaitError(BaseException):
    """A signal arrived while evaluations were running."""


class Interruption:
    """SIGINT and SIGTERM end the loop at a safe point; a second one ends it anywhere."""

    def __init__(self) -> None:
        self.signal: int | None = None  # the one that arrived
        self._waiting = False  # for evaluations: the only moment a signal may break into

    @contextmanager
    def watched(self) -> Generator[None]:
        """Take note of signals while the block runs; only the main thread gets any."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self._handle) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def break_into(self, wait: Callable[[], list[Item]]) -> list[Item]:
        """What there is to wait for; nothing as soon as a signal arrives."""
        try:
            self._waiting = True
            return wait() if self.signal is None else []
        except _InterruptedWaitError:
            return []
        finally:
            self._waiting = False

    def end(self, runs: Sequence[Inference], store: object) -> None:
        """After a signal, stop the runs; without one, do nothing.

        SIGTERM ends the process, Ctrl-C only where there is nothing to return.
        """
        if self.signal is None:
            return
        # The pooled run, the last one, was told the evaluations of the others.
        proposed = [e for run in runs for e in run.evaluations if e.identifier is not None]
        message = f"interrupted after {len(proposed)} evaluations{how_to_go_on(store)}"
        if self.signal == signal.SIGTERM:
            sys.stderr.write(f"sparing: {message}\n")
            raise SystemExit(128 + signal.SIGTERM)
        for run in runs:
            run.stop(StopReason.INTERRUPTED)
        if not any(run.history for run in runs):
            raise KeyboardInterrupt(message)

    def ending(self, outcome: Result | SeveralRuns, store: object) -> str:
        """How the runs ended, in one line."""
        several = isinstance(outcome, SeveralRuns)
        result = outcome.result if several else outcome
        ended = outcome.verdict if several else stop_text(outcome)
        if self.signal is not None and (several or outcome.stop_reason is StopReason.INTERRUPTED):
            ended = f"interrupted{how_to_go_on(store)}"
        evidence = estimate(result.log_evidence, result.log_evidence_sd)
        return f"log evidence {evidence} after {outcome.n_evaluations} evaluations: {ended}"

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number
        if self._waiting:
            raise _InterruptedWaitError


def _forget_handlers() -> None:
    """In a forked child, such as a worker of a user's pool: a signal is not for its parent's run.

    Ctrl-C reaches every process of a terminal: the coordinator decides, not its workers.
    """
    for number, own in ((signal.SIGINT, signal.SIG_IGN), (signal.SIGTERM, signal.SIG_DFL)):
        handler = signal.getsignal(number)
        if isinstance(getattr(handler, "__self__", None), Interruption):
            signal.signal(number, own)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_handlers)
