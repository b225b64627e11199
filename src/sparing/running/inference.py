"""A run driven from outside by ``ask`` and ``tell``; ``sparing.infer`` drives it to its end.

Every proposal and every evaluation goes to the store before it is used, and what the store holds
already is replayed first, so that a run goes on where it stopped.
"""

from __future__ import annotations

import functools
import math
import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from sparing.errors import SparingWarning
from sparing.executors.target_call import evaluate
from sparing.numerics.random_streams import RandomStreams
from sparing.problem.evaluation_codec import checked_outcome
from sparing.problem.evaluations import Evaluation, Event, Outcome, Proposal, Status
from sparing.problem.problem import Problem
from sparing.problem.region import Points
from sparing.problem.user_values import is_whole, short_text
from sparing.results.files.state_codec import state_to_parts
from sparing.results.result import Result
from sparing.running.arguments import check_arguments
from sparing.running.current_result import current_result
from sparing.running.replay import replay
from sparing.running.right_gradient import require_right_gradient
from sparing.running.same_target import require_same_target
from sparing.running.stored_run import open_store, settings_to_go_on_with
from sparing.running.telling import told_log_prior, told_outcome, told_point
from sparing.store import MemoryStore, Store
from sparing.vbmc.engine import Engine
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import IterationInfo
from sparing.vbmc.stopping import StopReason

Method = TypeVar("Method", bound=Callable[..., Any])

# NumPy's defaults: what the user, or the target, has made of them (np.seterr(all="raise")) is for
# their own code.
FLOATING_POINT: Any = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


def _one_at_a_time(method: Method) -> Method:
    """Let threads that share a run take turns: an event is chosen, journalled and used as one."""

    @functools.wraps(method)
    def locked(self: Inference, *arguments: Any, **options: Any) -> Any:
        in_use = self._in_use  # pyright: ignore[reportPrivateUsage] (of this module)
        with in_use, np.errstate(**FLOATING_POINT):
            return method(self, *arguments, **options)

    return cast(Method, locked)


class Inference:
    """A run driven from outside: ``ask`` for points, ``tell`` their values, read ``result``.

    Arguments are those of ``infer``, less the ones about execution and display. With ``store`` a
    path, every evaluation is durable before it is used and the same path again resumes the run;
    use it as a context manager, or ``close`` it, to release the path. Threads may share it: they
    take turns, so one that asks waits while another's ``tell`` refits the model.

    >>> with sparing.Inference(problem, seed=1, max_evaluations=14, store="run") as run:
    ...     while not run.finished:
    ...         for proposal in run.ask(2):
    ...             evaluation = run.tell(proposal, problem.log_joint(proposal.x))
    >>> run.n_evaluations, run.n_failed, run.max_evaluations, run.seed
    (14, 0, 14, 1)
    >>> run.evaluations[-1].x.shape, run.history[-1].n_evaluations, run.pending
    ((2,), 14, ())
    >>> run.result().stop_reason
    <StopReason.BUDGET: 'the evaluation budget is used up'>
    """

    def __init__(
        self,
        problem: Problem,
        *,
        x0: Points | None = None,
        seed: int | None = None,
        max_evaluations: int | None = None,
        tolerance: float = 0.1,
        store: str | Path | Store | None = None,
        tag: str = "",
        settings: Settings | None = None,
    ) -> None:
        check_arguments(
            problem=problem,
            settings=settings,
            seed=seed,
            max_evaluations=max_evaluations,
            tolerance=tolerance,
            store=store,
            tag=tag,
        )
        base = settings_to_go_on_with(store) if settings is None else settings
        self._in_use = threading.RLock()
        self.problem = problem
        self.settings = replace(
            base, stopping=replace(base.stopping, tolerance_sd=float(tolerance))
        )
        starting_points = problem.starting_points(x0)
        self.store = open_store(store, problem, self.settings, starting_points, seed, tag)
        try:
            streams, budget = RandomStreams(self.store.seed), self._budget(max_evaluations)
            self._engine = Engine(problem, self.settings, streams, starting_points, budget)
            self._replay()
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------------ reading

    @property
    def finished(self) -> bool:
        """Whether the run has ended; ``ask`` then has nothing left to propose."""
        return self._engine.stop_reason is not StopReason.UNFINISHED

    @property
    def max_evaluations(self) -> int:
        """The budget."""
        return self._engine.max_evaluations

    @property
    def n_evaluations(self) -> int:
        """How many evaluations have been told."""
        return len(self._engine.log)

    @property
    def n_failed(self) -> int:
        """How many evaluations gave no value (points out of support not counted)."""
        return sum(entry.failed for entry in self._engine.log)

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """All evaluations told so far."""
        return tuple(self._engine.log)

    @property
    def pending(self) -> tuple[Proposal, ...]:
        """Proposals that were asked for and not told yet, also by an earlier process."""
        return tuple(self._engine.pending.values())

    @property
    def n_chosen(self) -> int:
        """How many of the next points are chosen already, whatever the values before them.

        >>> sparing.Inference(problem, seed=1).n_chosen  # the initial design
        10
        """
        return self._engine.n_chosen

    @property
    def history(self) -> tuple[IterationInfo, ...]:
        """One row per completed iteration."""
        return self._engine.history

    @property
    def seed(self) -> int:
        """The seed in use; pass it again for the same run."""
        return self._engine.streams.seed

    # ------------------------------------------------------------------ driving

    @_one_at_a_time
    def ask(self, n: int = 1) -> list[Proposal]:
        """Up to n points to evaluate next; fewer when the budget ends, none when finished.

        Points asked for and not told yet are pending: they shape the next ones.

        >>> run = sparing.Inference(problem, seed=1)
        >>> [proposal.identifier for proposal in run.ask(3)]
        [0, 1, 2]
        >>> len(run.pending)
        3
        """
        if not is_whole(n, 1):
            raise ValueError(f"ask(n) needs a whole number n >= 1, got {short_text(n)}")
        engine = self._engine
        room = engine.max_evaluations - len(engine.log) - len(engine.pending)
        proposals: list[Proposal] = []
        for _ in range(0 if self.finished else min(int(n), room)):
            proposals.append(engine.propose())
            self._take(proposals[-1])
        return proposals

    def tell(
        self,
        point: Proposal | ArrayLike,
        value: float | None = None,
        *,
        noise_sd: float = 0.0,
        gradient: ArrayLike | None = None,
        error: str | BaseException | None = None,
        duration: float = math.nan,
    ) -> Evaluation:
        """Report the log joint density at a proposal, or the ``error`` that prevented one.

        ``point`` is a proposal of ``ask``, in any order and at any time, or a point (D,) that you
        evaluated on your own, recorded as it is, on a hard bound too. The value is the log joint
        (log likelihood plus log prior when the problem has a prior): what ``problem.log_joint(x)``
        returns. ``noise_sd`` is the standard deviation of its noise, for a value that is an
        estimate. ``gradient`` (D,) is that of the log joint, the prior's part included, as
        ``problem.log_joint_and_gradient(x)`` has it; one that is not finite counts as not given.
        May refit the model, which takes a while.

        >>> run = sparing.Inference(problem, seed=1)
        >>> first, second = run.ask(2)
        >>> run.tell(second, problem.log_joint(second.x)).status
        <Status.OK: 'ok'>
        >>> run.tell(first, error="the solver diverged").status
        <Status.FAILED: 'failed'>
        >>> run.tell([1.0, -0.4], problem.log_joint([1.0, -0.4])).identifier is None
        True
        """
        if error is None and value is None:
            raise ValueError("tell() needs the value of the log joint, or error=")
        if error is not None:
            outcome = Outcome(math.nan, Status.FAILED, duration, str(error) or repr(error))
        else:
            outcome = told_outcome(self.problem, value, noise_sd, gradient, duration)
            log_prior = told_log_prior(self.problem, self._engine.pending, point)
            outcome = replace(outcome, log_prior=log_prior)
        return self.tell_outcome(point, outcome)

    def tell_outcome(self, point: Proposal | ArrayLike, outcome: Outcome) -> Evaluation:
        """Report all that is known of one evaluation; see ``tell``.

        >>> from sparing.executors import evaluate
        >>> run = sparing.Inference(problem, seed=1)
        >>> (proposal,) = run.ask()
        >>> evaluation = run.tell_outcome(proposal, evaluate(problem, proposal.x))
        >>> evaluation.status, evaluation.worker != ""
        (<Status.OK: 'ok'>, True)
        """
        return self.record(point, outcome)[0]

    @_one_at_a_time
    def record(
        self, point: Proposal | ArrayLike, outcome: Outcome
    ) -> tuple[Evaluation, tuple[IterationInfo, ...]]:
        """Report one evaluation; returns it as it is logged, and the iterations it completed.

        >>> from sparing.executors import evaluate
        >>> run = sparing.Inference(problem, seed=1)
        >>> for proposal in run.ask(10):
        ...     evaluation, iterations = run.record(proposal, evaluate(problem, proposal.x))
        >>> evaluation.index, [info.iteration for info in iterations]
        (9, [1])
        """
        identifier, x = told_point(self.problem, self._engine.pending, point)
        outcome = checked_outcome(outcome)
        iterations = self._take(Evaluation(len(self._engine.log), identifier, x, outcome))
        if iterations and not self.finished and not isinstance(self.store, MemoryStore):
            self._write_snapshot()
        return self._engine.log[-1], iterations

    def _write_snapshot(self) -> None:
        """It saves recomputation on resuming; the journal alone would do."""
        arrays, metadata = state_to_parts(self._engine.state, self._engine.timings)
        try:
            self.store.write_snapshot(len(self.store.events()), arrays, metadata)
        except Exception as error:  # whatever a store of the user's own raises
            text = f"the run has to go on without a snapshot: {error}"
            warnings.warn(text, SparingWarning, stacklevel=2)

    def _take(self, event: Event) -> tuple[IterationInfo, ...]:
        """Journal first, then use; the iterations that the event completed."""
        self.problem.read_points(event.x)  # a rule may propose what is no point
        self.store.append(event)
        return self._engine.apply(event)

    def check_target(self) -> None:
        """Call the problem's log density at a point told, which must have the value told still.

        For a run that was stored, where its log density is what you tell: `TargetChangedError`
        when that has changed meanwhile. ``infer`` does so by itself.

        >>> run = sparing.Inference(problem, seed=1)
        >>> evaluation = run.tell([1.0, -0.4], problem.log_joint([1.0, -0.4]))
        >>> run.check_target()
        """
        call = functools.partial(evaluate, self.problem)
        require_same_target(self.evaluations, self.history[-1:], call)

    def check_gradient(self) -> None:
        """Compare the first gradient told with values of the problem's log density next to it.

        `WrongGradientError` when they do not fit. ``infer`` does so by itself.

        >>> steep = sparing.Problem(lambda x: (-float(x @ x), -2.0 * x), [-2], [2], gradient=True)
        >>> run = sparing.Inference(steep, seed=1)
        >>> evaluation = run.tell([0.5], -0.25, gradient=[-1.0])
        >>> run.check_gradient()
        """
        call = functools.partial(evaluate, self.problem)
        for entry in self.evaluations:
            if entry.gradient is not None:
                require_right_gradient(self.problem, entry.x, entry.outcome, call)
                return

    @_one_at_a_time
    def stop(self, reason: StopReason = StopReason.CALLBACK) -> None:
        """End the run now; ``result`` then gives what there is.

        >>> run = sparing.Inference(problem, seed=1)
        >>> for proposal in run.ask(10):
        ...     evaluation = run.tell(proposal, problem.log_joint(proposal.x))
        >>> run.stop()
        >>> run.finished, run.ask()
        (True, [])
        """
        if not self.finished:
            if not self.history and len(self._engine.log.usable()) >= 2:
                self._engine.iterate()
            if self.history:
                self._engine.finish(reason)

    @_one_at_a_time
    def result(self) -> Result:
        """The result; before the run has finished, the current one.

        >>> run = sparing.Inference(problem, seed=1)
        >>> for proposal in run.ask(10):
        ...     evaluation = run.tell(proposal, problem.log_joint(proposal.x))
        >>> run.result().stop_reason
        <StopReason.UNFINISHED: 'the run has not ended yet'>
        """
        return current_result(self._engine, self.problem, self.settings, self.store.warnings)

    # ------------------------------------------------------------------ durability

    def _budget(self, max_evaluations: int | None) -> int:
        """The budget, at least what is stored: with less, a run that has ended would change."""
        asked = max_evaluations or self.settings.budget(self.problem.dimension)
        n_stored = sum(isinstance(event, Evaluation) for event in self.store.events())
        return max(int(asked), n_stored)

    @_one_at_a_time
    def _replay(self) -> None:
        replay(self.store, self._engine, self.problem, self.settings)

    @_one_at_a_time
    def close(self) -> None:
        """Release the store; the run can be resumed from it.

        >>> run = sparing.Inference(problem, seed=1, store="run")
        >>> proposals = run.ask(2)
        >>> run.close()
        >>> resumed = sparing.Inference(problem, store="run")
        >>> len(resumed.pending)
        2
        >>> resumed.close()
        """
        self.store.close()

    def __enter__(self) -> Inference:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
