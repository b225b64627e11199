"""Drive a run to its end: ask, evaluate, tell, show; on any executor, interruptible, resumable."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from numpy.typing import ArrayLike

from sparing.evaluation_log import Proposal
from sparing.executors.failures import FailedEvaluationError, FailurePolicy
from sparing.executors.outcome import Outcome, record_to_outcome
from sparing.executors.pool import EvaluationPool
from sparing.inference import Inference
from sparing.kernels.announce import compile_with_notice
from sparing.problem import Problem
from sparing.progress import Display, make_display
from sparing.result import Result
from sparing.settings import Settings
from sparing.state import IterationInfo
from sparing.stopping import StopReason
from sparing.store import Store

Callback = Callable[[IterationInfo], Any]

# What a callback returns to end the run.
STOP = "stop"


def infer(
    problem: Problem,
    *,
    x0: ArrayLike | None = None,
    seed: int | None = None,
    max_evaluations: int | None = None,
    batch_size: int | None = None,
    executor: Executor | Any | None = None,
    workers: int | None = None,
    time_limit: float | None = None,
    failures: FailurePolicy | None = None,
    tolerance: float = 0.1,
    store: str | Path | Store | None = None,
    tag: str = "",
    settings: Settings | None = None,
    progress: bool = True,
    callback: Callback | None = None,
) -> Result:
    """Infer the posterior and the log evidence of a problem.

    x0               a point, or several, to start from; none: the plausible box is sampled
    seed             same seed, same result; None draws one (``result.seed`` has it)
    max_evaluations  the budget; default 50 (D + 2)
    batch_size       points in flight at a time; default: one for every worker
    executor         any concurrent.futures.Executor, a Dask client; None: in this process
    workers          without an executor: evaluate in that many processes on this machine
    time_limit       seconds one evaluation may take; it is then ended and recorded as timed out
    failures         what to do when evaluations fail; default: record them and go on
    tolerance        stop when the solution is stable to this error of the log evidence
    store            a path: every evaluation is durable before it is used, and the same call
                     again resumes
    tag              a note that is part of the run's identity in its store, such as a data version
    settings         ``Settings()``, or ``Settings.paper()`` for the 2018 algorithm
    progress         show a live display
    callback         called with each iteration's info; returning "stop" ends the run

    Ctrl-C ends the run and returns the result so far; with a store, the same call goes on.
    """
    policy = FailurePolicy() if failures is None else failures
    run = Inference(
        problem,
        x0=x0,
        seed=seed,
        max_evaluations=max_evaluations,
        tolerance=tolerance,
        store=store,
        tag=tag,
        settings=settings,
    )
    with (
        run,
        make_display(progress, problem, run.max_evaluations) as display,
        EvaluationPool(
            problem,
            executor,
            workers=workers,
            time_limit=time_limit,
            policy=policy,
            spool_dir=run.store.spool.directory,
        ) as pool,
    ):
        compile_with_notice(display.compiling)
        display.start()
        loop = _Loop(run, pool, policy, display, callback, batch_size)
        with _interruptible(loop):
            loop.take_up()
            loop.run()
        if loop.signal is not None:
            _end_interrupted(loop, store)
        result = run.result()
        display.finish(result.summary())
    return result


class _Loop:
    """Keeps the workers busy until the run is finished or somebody interrupts it."""

    def __init__(
        self,
        run: Inference,
        pool: EvaluationPool,
        policy: FailurePolicy,
        display: Display,
        callback: Callback | None,
        batch_size: int | None,
    ) -> None:
        self.inference = run
        self.signal: int | None = None
        self.waiting = False  # for evaluations: the only moment an interrupt may break into
        self._pool = pool
        self._policy = policy
        self._display = display
        self._callback = callback
        self._batch_size = batch_size
        self._n_shown = 0

    def take_up(self) -> None:
        """Go on with what an earlier process left: results in the spool, points in flight."""
        spool = self.inference.store.spool
        pending = {proposal.identifier: proposal for proposal in self.inference.pending}
        for identifier, record in spool.harvest():
            if identifier in pending and not self.inference.finished:
                self.inference.tell_outcome(pending.pop(identifier), record_to_outcome(record))
            spool.remove(identifier)
        if not self.inference.finished:
            for proposal in pending.values():
                self._pool.submit(proposal)
        self._n_shown = len(self.inference.history)

    def run(self) -> None:
        """Ask, wait, tell."""
        inference, pool = self.inference, self._pool
        while not inference.finished and self.signal is None:
            room = (self._batch_size or pool.capacity) - pool.n_in_flight
            if room > 0:
                for proposal in inference.ask(room):
                    pool.submit(proposal)
                self._display.running(pool.n_in_flight)
            for proposal, outcome in self._wait():
                if not inference.finished:
                    inference.tell_outcome(proposal, outcome)
                inference.store.spool.remove(proposal.identifier)
                self._show(outcome.duration)
            self._policy.check(inference.n_failed, inference.n_evaluations, inference.evaluations)

    def _wait(self) -> list[tuple[Proposal, Outcome]]:
        self.waiting = True
        try:
            return self._pool.wait() if self.signal is None else []
        except _InterruptedWaitError:
            return []
        except FailedEvaluationError as failure:  # the policy ends the run; the record comes first
            self.inference.tell_outcome(failure.proposal, failure.outcome)
            raise
        finally:
            self.waiting = False

    def _show(self, seconds: float) -> None:
        """Show an evaluation that took so long, and the iterations it completed."""
        self._display.evaluation(self.inference.n_evaluations, self.inference.n_failed, seconds)
        self._display.running(self._pool.n_in_flight)
        for info in self.inference.history[self._n_shown :]:
            self._display.iteration(info)
            self._n_shown += 1
            if self._callback is not None and self._callback(info) == STOP:
                self.inference.stop()


class _InterruptedWaitError(BaseException):
    """A signal arrived while evaluations were running."""


@contextmanager
def _interruptible(loop: _Loop) -> Iterator[None]:
    """SIGINT and SIGTERM end the loop at a safe point; a second one ends it anywhere."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return

    def handle(number: int, _frame: FrameType | None) -> None:
        if loop.signal is not None:
            raise KeyboardInterrupt
        loop.signal = number
        if loop.waiting:
            raise _InterruptedWaitError

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_interrupted(loop: _Loop, store: object) -> None:
    """Stop the run; leave the process where there is nothing to return or SIGTERM asked for it."""
    inference = loop.inference
    where = ""
    if isinstance(store, (str, Path)):
        where = f"; the same call with store={str(store)!r} goes on"
    message = f"interrupted after {inference.n_evaluations} evaluations{where}"
    if loop.signal == signal.SIGTERM:
        sys.stderr.write(f"sparing: {message}\n")
        raise SystemExit(128 + signal.SIGTERM)
    inference.stop(StopReason.INTERRUPTED)
    if not inference.history:
        raise KeyboardInterrupt(message)
