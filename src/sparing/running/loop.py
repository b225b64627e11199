"""Ask, evaluate, tell, show: one run or several on one pool, until all have ended.

T      points in flight over all runs together
r_i    evaluations that run i may still make
s_i    its share of T: points it may have in flight
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from sparing.errors import SparingWarning
from sparing.executors.failures import FailedEvaluationError, FailurePolicy
from sparing.executors.pool import EvaluationPool
from sparing.numerics.arrays import Array
from sparing.problem.evaluation_codec import InvalidRecordError, record_to_outcome
from sparing.problem.evaluations import Outcome, Proposal
from sparing.problem.gradients import NO_GRADIENT
from sparing.running.inference import Inference
from sparing.running.interruption import Interruption
from sparing.running.progress.display import Display
from sparing.running.right_gradient import require_right_gradient
from sparing.running.same_target import require_same_target
from sparing.vbmc.state import IterationInfo
from sparing.vbmc.stopping import StopReason

Callback = Callable[[IterationInfo], Any]

# What a callback returns to end the run.
STOP = "stop"


@dataclass(eq=False)
class DrivenRun:
    """A run, and who wants to hear of it."""

    inference: Inference
    display: Display
    callback: Callback | None = None
    begun: bool = False

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.inference.finished

    @property
    def n_left(self) -> int:
        """r_i: none once it has finished, whatever the budget."""
        left = self.inference.max_evaluations - self.inference.n_evaluations
        return 0 if self.finished else max(0, left)

    @property
    def n_in_flight(self) -> int:
        """Points whose values it waits for."""
        return 0 if self.finished else len(self.inference.pending)

    def begin(self) -> None:
        """Show that it is under way, once."""
        if not self.begun:
            self.begun = True
            self.display.start()

    def harvest(self, checked: Callable[[DrivenRun, Proposal, Outcome], Outcome]) -> list[Proposal]:
        """Use what workers left for an earlier process; returns the points nobody evaluates."""
        pending = {proposal.identifier: proposal for proposal in self.inference.pending}
        spool = self.inference.store.spool
        for identifier, record in spool.harvest():
            if identifier in pending and not self.finished:
                try:
                    outcome = record_to_outcome(record)
                except InvalidRecordError as error:  # it is replaced by that of the next worker
                    text = f"{spool.directory}/{identifier}.json cannot be used: {error}"
                    warnings.warn(f"{text}; evaluated again", SparingWarning, stacklevel=2)
                    continue
                proposal = pending.pop(identifier)
                self.inference.tell_outcome(proposal, checked(self, proposal, outcome))
            spool.remove(identifier)
        if not pending and self.n_left == 0:  # resumed with a budget that was spent before
            self.inference.stop(StopReason.BUDGET)
        return [] if self.finished else list(pending.values())

    def ask(self, n: int) -> list[Proposal]:
        """Up to n new points."""
        self.begin()
        proposals = self.inference.ask(n)
        self.display.running(self.n_in_flight)
        return proposals

    def tell(self, proposal: Proposal, outcome: Outcome) -> None:
        """Use an outcome, unless the run has ended meanwhile, and show what it brought."""
        inference = self.inference
        iterations = () if self.finished else inference.record(proposal, outcome)[1]
        inference.store.spool.remove(proposal.identifier)
        self.display.evaluation(inference.n_evaluations, inference.n_failed, outcome.duration)
        self.display.running(self.n_in_flight)
        for info in iterations:
            self.display.iteration(info)
            if self.callback is not None and self.callback(info) == STOP:
                inference.stop()


@dataclass(eq=False)
class RunLoop:
    """Keeps workers busy until runs have ended or somebody interrupts them.

    It has workers inside a ``with`` block, and they end with it.
    """

    open_pool: Callable[[], EvaluationPool]
    policy: FailurePolicy
    batch_size: int | None
    check_target: bool = True
    check_gradient: bool = True
    interruption: Interruption = field(default_factory=Interruption)
    _owners: dict[Proposal, DrivenRun] = field(init=False, default_factory=dict)
    _arrived: list[tuple[Proposal, Outcome]] = field(init=False, default_factory=list)

    def __enter__(self) -> Self:
        self._pool = self.open_pool()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        interrupted = kind is not None and issubclass(kind, KeyboardInterrupt)
        self._pool.close(interrupted=interrupted or self.interruption.signal is not None)

    def require_same_target(self, runs: Sequence[Inference]) -> None:
        """Refuse stored runs of a target that has changed since: one point of all tells."""
        if self.check_target:
            stored = [entry for run in runs for entry in run.evaluations]
            latest = [info for run in runs for info in run.history[-1:]]
            require_same_target(stored, latest, self._evaluate)

    def _evaluate(self, x: Array) -> Outcome | None:
        """What the workers make of a point that no run asked for; None after an interruption."""
        extra = Proposal(0, x)
        self._pool.submit(extra)
        while self.interruption.signal is None:
            outcomes = self.interruption.break_into(self._pool.wait)
            self._arrived += [pair for pair in outcomes if pair[0] is not extra]
            for proposal, outcome in outcomes:
                if proposal is extra:
                    return outcome
        return None

    def drive(self, runs: Sequence[DrivenRun]) -> None:
        """Take up what earlier processes left, then ask, wait and tell."""
        stored = [entry for run in runs for entry in run.inference.evaluations]
        # A gradient that is stored was checked before it was.
        known = any(entry.outcome.gradient is not None for entry in stored)
        self._gradient_is_known = known or not self.check_gradient
        for run, pending in [(run, run.harvest(self._checked)) for run in runs]:
            self._submit(run, pending)
        while not all(run.finished for run in runs) and self.interruption.signal is None:
            try:
                if not self._arrived:
                    self._ask(runs)
                    self._arrived = self.interruption.break_into(self._pool.wait)
                arrived, self._arrived = self._arrived, []
                self._tell(arrived)
            except FailedEvaluationError as failure:  # the record comes before the end
                run = self._owners.get(failure.proposal)
                if run is not None and not run.finished:
                    run.inference.tell_outcome(failure.proposal, failure.outcome)
                raise

    def _checked(self, run: DrivenRun, proposal: Proposal, outcome: Outcome) -> Outcome:
        """The outcome as it is recorded: the first gradient of all is checked before that.

        One that is refused, or that nobody knows of, is not kept; its value is.
        """
        if outcome.gradient is None or self._gradient_is_known:
            return outcome
        doubted = replace(outcome, gradient=None, message=f"{NO_GRADIENT}it is not checked")
        problem = run.inference.problem
        try:
            right = require_right_gradient(problem, proposal.x, outcome, self._evaluate)
        except BaseException:
            run.tell(proposal, doubted)
            raise
        self._gradient_is_known = right
        return outcome if right else doubted

    def _ask(self, runs: Sequence[DrivenRun]) -> None:
        # Points of a run that has ended occupy their workers until they are evaluated.
        n_stray = self._pool.n_in_flight - sum(run.n_in_flight for run in runs)
        n_points = (self.batch_size or self._pool.capacity) - n_stray
        for run, share in zip(runs, shares(n_points, [run.n_left for run in runs]), strict=True):
            if share > run.n_in_flight:
                self._submit(run, run.ask(share - run.n_in_flight))

    def _submit(self, run: DrivenRun, proposals: Sequence[Proposal]) -> None:
        for proposal in proposals:
            self._owners[proposal] = run
            self._pool.submit(proposal, run.inference.store.spool.directory)

    def _tell(self, outcomes: Sequence[tuple[Proposal, Outcome]]) -> None:
        told = []
        for proposal, outcome in outcomes:
            run = self._owners.pop(proposal)
            run.tell(proposal, self._checked(run, proposal, outcome))
            told.append(run.inference)
        for inference in dict.fromkeys(told):
            self.policy.check(inference.evaluations)


def shares(n_points: int, limits: Sequence[int]) -> list[int]:
    """s_i: T points dealt out in turn, first run first; none gets more than its limit r_i.

    With fewer points than runs the last runs wait: as many run at a time as there are workers,
    and a run that has few evaluations left passes the rest of its share on.
    """
    dealt = [0] * len(limits)
    while n_points > 0 and dealt != list(limits):
        for i, limit in enumerate(limits):
            if dealt[i] < limit and n_points > 0:
                dealt[i] += 1
                n_points -= 1
    return dealt
