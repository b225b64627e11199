"""Evaluations on any executor: points in, outcomes out, in whatever order they finish.

    waiting     accepted, not handed to the executor yet
    running     handed over (never more than the capacity, so what is handed over starts)
    suspect     was running when a worker died that others shared; runs again in isolation
    stuck       ran past its limit in a worker that cannot be ended; given up, worker occupied

A call that gave no outcome may have left one in the spool before it was lost; that one counts.
Whatever the target does is an outcome. What the executor does (it breaks, loses a call, cannot
pickle) is not the target's failure: it is repaired here, or raised as ExecutorError.
"""

from __future__ import annotations

import concurrent.futures
import math
import time
import warnings
from collections import deque
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sparing.errors import SettingsError, SparingWarning
from sparing.executors.backends import Backend, make_backend
from sparing.executors.failures import (
    ExecutorError,
    FailedEvaluationError,
    FailurePolicy,
    Remainder,
    TimedOutError,
    WorkerDiedError,
)
from sparing.executors.target_call import evaluate, evaluate_together, timed_out, unfinished
from sparing.problem.evaluation_codec import InvalidRecordError, record_to_outcome
from sparing.problem.evaluations import FailureKind, Outcome, Proposal
from sparing.problem.problem import Problem
from sparing.store import Spool, read_spooled_outcome

# A worker keeps the time limit itself where it can; the pool's clock waits this much longer.
LIMIT_GRACE = 5.0

# Seconds between looks at calls whose start is not known yet, when there is a time limit.
LOOK_EVERY = 0.25

# How often a call that the executor lost (not the target's doing) is handed over again.
MAX_LOSSES = 2


@dataclass(eq=False)
class _Task:
    """A point under way."""

    proposal: Proposal
    spool_dir: str | None
    n_tries: int = 0
    n_losses: int = 0
    is_suspect: bool = False
    keeps_to_itself: bool = False  # a call with others raised
    backend: Backend = field(init=False)  # the one it was handed to
    submitted: float = math.nan  # Unix time
    deadline: float | None = None  # by time.monotonic(), known once the call is seen running


class EvaluationPool:
    """Evaluates proposals on an executor, or in this process.

    executor    a `concurrent.futures.Executor` or a Dask client; None: see `workers`
    workers     points in flight; without executor, that many processes on this machine.
                Neither: in this process
    time_limit  seconds per evaluation
    policy      what happens on failures

    >>> from sparing.executors import EvaluationPool
    >>> pool = EvaluationPool(problem, workers=2, time_limit=60.0)
    >>> pool.capacity, pool.calls_together
    (2, False)
    >>> pool.submit(sparing.Proposal(0, np.array([1.2, -0.3])))
    >>> pool.n_in_flight
    1
    >>> ((proposal, outcome),) = pool.wait()
    >>> proposal.identifier, outcome.value
    (0, -0.5)
    >>> pool.close()
    """

    def __init__(
        self,
        problem: Problem,
        executor: Any = None,
        *,
        workers: int | None = None,
        time_limit: float | None = None,
        policy: FailurePolicy | None = None,
    ) -> None:
        if time_limit is not None and not (math.isfinite(time_limit) and time_limit > 0.0):
            raise SettingsError([f"time_limit must be a positive number, not {time_limit!r}"])
        self._problem = problem
        self._time_limit = time_limit
        self._policy = FailurePolicy() if policy is None else policy
        self._backend = make_backend(executor, workers, time_limit)
        if self._backend is not None:
            self._backend.check_picklable(problem)
        self._waiting: deque[_Task] = deque()
        self._suspects: deque[_Task] = deque()
        self._running: dict[Future[Any], _Task] = {}
        self._stuck: list[Future[Any]] = []
        self._last_expiry = -math.inf  # by time.monotonic()
        self._broken: list[Backend] = []
        self._finished: list[tuple[Proposal, Outcome]] = []

    @property
    def capacity(self) -> int:
        """How many points are worth having in flight, at least 1."""
        return max(1, self._n_workers_left())

    @property
    def calls_together(self) -> bool:
        """Whether all points that wait are evaluated by one call."""
        return self._backend is None and self._problem.vectorised

    @property
    def n_in_flight(self) -> int:
        """Points submitted and not yet returned by `wait`."""
        return sum(map(len, (self._waiting, self._suspects, self._running, self._finished)))

    def submit(self, proposal: Proposal, spool_dir: str | None = None) -> None:
        """Take a point. It is started at once where there is room; in this process, by `wait`.

        ``spool_dir`` is where its worker leaves the outcome before it returns it.
        """
        self._waiting.append(_Task(proposal, spool_dir))
        if self._backend is not None:
            self._hand_over()

    def wait(self, timeout: float | None = None) -> list[tuple[Proposal, Outcome]]:
        """Outcomes as soon as there is one; none when the timeout passes or nothing is in flight.

        Raises FailedEvaluationError when the policy says so, ExecutorError when the executor
        cannot go on. What else had finished is returned by the next call.
        """
        until = math.inf if timeout is None else time.monotonic() + timeout
        while self.n_in_flight and not self._finished:
            if self._backend is None:
                tasks = self._next_call()
                points = [task.proposal.x for task in tasks]
                if len(tasks) == 1:
                    self._take(tasks, [evaluate(self._problem, points[0])])
                else:
                    self._take(tasks, evaluate_together(self._problem, points))
                continue
            self._hand_over()
            if self._running:
                pause = min(until - time.monotonic(), self._pause())
                self._collect(None if pause == math.inf else max(pause, 0.0))
                self._expire()
            else:
                self._wait_for_a_worker(until)
            if time.monotonic() >= until:
                break
        finished, self._finished = self._finished, []
        return finished

    def close(self, cancel: bool = True, *, interrupted: bool = False) -> None:
        """Give up what is in flight (those points stay without an outcome) or let it end.

        A user's executor is not shut down. But when somebody has interrupted the run, a process
        pool of the user's would wait for its calls before this process can end: they are ended.
        """
        if cancel:
            for future in self._running:
                future.cancel()
        if interrupted:
            self._end_calls()
        for backend in (*self._broken, self._backend):
            if backend is not None:
                backend.close(cancel)
        self._waiting.clear()
        self._suspects.clear()
        self._running.clear()

    def _end_calls(self) -> None:
        """End calls in executors of the user's that cannot be cancelled."""
        backends = {
            task.backend: None for future, task in self._running.items() if not future.done()
        }
        for backend in backends:
            if not backend.owned and backend.end_calls():
                text = f"evaluations were running in {backend.name}: its workers were ended"
                warnings.warn(text, SparingWarning, stacklevel=2)

    def __enter__(self) -> EvaluationPool:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # ------------------------------------------------------------------ in this process

    def _next_call(self) -> list[_Task]:
        """The next point, or all that wait and may be evaluated by one call."""
        if self.calls_together and not self._waiting[0].keeps_to_itself:
            return [task for task in self._waiting if not task.keeps_to_itself]
        return [self._waiting[0]]

    def _take(self, tasks: list[_Task], outcomes: list[Outcome] | None) -> None:
        """Settle what was evaluated by one call; where that raised, they go one by one."""
        for task, outcome in zip(tasks, outcomes or [None] * len(tasks), strict=True):
            if outcome is None:
                task.keeps_to_itself = True
                continue
            self._waiting.remove(task)
            task.n_tries += 1
            self._settle(task, outcome)

    # ------------------------------------------------------------------ handing over

    def _n_workers_left(self) -> int:
        """The executor's capacity less the workers that are stuck."""
        self._stuck = [future for future in self._stuck if not future.done()]
        return 1 if self._backend is None else self._backend.capacity - len(self._stuck)

    def _hand_over(self) -> None:
        """Start what there is room for, suspects first."""
        assert self._backend is not None
        while len(self._running) < self._n_workers_left():
            suspect_runs = any(task.is_suspect for task in self._running.values())
            if self._suspects and (self._backend.isolates_side_by_side or not suspect_runs):
                task = self._suspects.popleft()
            elif self._waiting:
                task = self._waiting.popleft()
            else:
                return
            self._start(task)

    def _start(self, task: _Task) -> None:
        assert self._backend is not None
        proposal = task.proposal
        arguments = (self._problem, proposal.x, proposal.identifier, task.spool_dir)
        for _ in range(2):
            backend = self._backend
            start = backend.submit_isolated if task.is_suspect else backend.submit
            task.submitted, task.deadline, task.backend = time.time(), None, backend
            try:
                future = start(arguments, self._time_limit)
            except BrokenExecutor:
                self._replace(backend)
                continue
            except Exception as error:  # say it with the point kept: it stays in flight
                self._waiting.appendleft(task)
                raise ExecutorError(f"{backend.name}.submit failed: {error}") from error
            task.n_tries += 1
            self._running[future] = task
            return
        self._waiting.appendleft(task)
        raise ExecutorError(f"{self._backend.name} broke at once when it was made again")

    def _replace(self, broken: Backend) -> None:
        """Another backend instead of a broken one, once however many calls report it."""
        if broken is self._backend:
            self._backend = broken.replacement()
            self._broken.append(broken)  # its isolated calls go on

    # ------------------------------------------------------------------ collecting

    def _pause(self) -> float:
        """How long nothing has to be looked at."""
        assert self._backend is not None
        if self._time_limit is None or self._backend.keeps_time_limit:
            return math.inf
        deadlines = [task.deadline for task in self._running.values()]
        if None in deadlines:
            return LOOK_EVERY
        return min(d for d in deadlines if d is not None) - time.monotonic()

    def _collect(self, timeout: float | None) -> None:
        done, _ = concurrent.futures.wait(
            list(self._running), timeout, concurrent.futures.FIRST_COMPLETED
        )
        # In the order of submission, which `done`, a set, has lost.
        for future in [future for future in self._running if future in done]:
            task = self._running.pop(future)
            error = CancelledError() if future.cancelled() else future.exception()
            if error is None:
                self._settle(task, record_to_outcome(future.result()))
            else:
                self._repair(task, future, error)
            task.backend.release(future)

    def _repair(self, task: _Task, future: Future[Any], error: BaseException) -> None:
        """A call that gave no outcome: the time limit, a dead worker, or the executor itself."""
        broken = isinstance(error, BrokenExecutor)
        died = isinstance(error, WorkerDiedError)
        spooled = _spooled(task)
        if spooled is not None:
            self._settle(task, spooled)
        elif isinstance(error, TimedOutError):
            self._settle(task, timed_out(self._time_limit, task.submitted))
        elif (broken or (died and not error.certain)) and not task.is_suspect:
            if broken:
                self._replace(task.backend)
            task.is_suspect = True
            task.n_tries -= 1  # what happens to others is not a try
            self._suspects.append(task)
        elif broken or died:
            message = str(error) if died else task.backend.describe_death(future)
            self._settle(task, unfinished(FailureKind.WORKER_DIED, message, task.submitted))
        elif isinstance(error, CancelledError | KeyboardInterrupt) and task.n_losses < MAX_LOSSES:
            task.n_losses += 1
            task.n_tries -= 1
            self._waiting.appendleft(task)
        else:
            self._waiting.appendleft(task)
            reason = f"{type(error).__name__}: {error}"
            raise ExecutorError(f"{task.backend.name} did not run a call: {reason}") from error

    def _expire(self) -> None:
        """Give up on calls past their limit in executors that cannot keep it."""
        if self._time_limit is None:
            return
        now = time.monotonic()
        for future, task in list(self._running.items()):
            if task.backend.keeps_time_limit or future.done():
                continue
            if task.deadline is None:
                if future.running():
                    task.deadline = now + self._time_limit + LIMIT_GRACE
            elif now >= task.deadline:
                del self._running[future]
                self._last_expiry = now
                if getattr(future, "cancel_ends_call", False):
                    future.cancel()
                else:
                    self._stuck.append(future)
                    self._warn_stuck(task)
                late = timed_out(self._time_limit, task.submitted)
                self._settle(task, _spooled(task) or late)

    def _wait_for_a_worker(self, until: float) -> None:
        """All workers are stuck: give them as long again, then give up."""
        assert self._backend is not None
        give_up = self._last_expiry + (self._time_limit or 0.0)
        pause = min(until, give_up) - time.monotonic()
        concurrent.futures.wait(self._stuck, max(pause, 0.0), concurrent.futures.FIRST_COMPLETED)
        if self._n_workers_left() < 1 and time.monotonic() >= give_up:
            raise ExecutorError(
                f"all workers of {self._backend.name} are occupied by evaluations past their "
                "time limit, which it cannot end; workers=N (LocalProcesses) can"
            )

    def _warn_stuck(self, task: _Task) -> None:
        warnings.warn(
            f"evaluation {task.proposal.identifier} is past its time limit and {task.backend.name} "
            f"cannot end it: its worker stays occupied, {self._n_workers_left()} left. A result "
            "that still arrives is not used.",
            SparingWarning,
            stacklevel=4,
        )

    def _settle(self, task: _Task, outcome: Outcome) -> None:
        """Finish a task, or try again as the policy says."""
        if outcome.kind is not None:
            reaction = self._policy.reaction(outcome.kind)
            if task.n_tries <= reaction.retries:
                if task.spool_dir is not None:  # what is there next is of the next try
                    Spool(Path(task.spool_dir)).remove(task.proposal.identifier)
                # A suspect that killed its worker keeps to itself.
                (self._suspects if task.is_suspect else self._waiting).appendleft(task)
                return
            if task.n_tries > 1:
                text = f"{outcome.message} (after {task.n_tries} tries)"
                outcome = replace(outcome, message=text)
            if reaction.then is Remainder.RAISE:
                raise FailedEvaluationError(task.proposal, outcome)
        self._finished.append((task.proposal, outcome))


def _spooled(task: _Task) -> Outcome | None:
    """What a worker had left in the spool before its call was lost."""
    if task.spool_dir is None:
        return None
    with suppress(InvalidRecordError):
        record = read_spooled_outcome(task.spool_dir, task.proposal.identifier)
        return None if record is None else record_to_outcome(record)
    return None
