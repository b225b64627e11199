"""The run: the only owner of mutable state, and the only caller of the pure step.

Driven from outside by ``ask`` and ``tell``; ``driver.infer`` does so in this process.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import ThreadpoolController

from sparing.acquisition.initial_design import initial_design
from sparing.errors import SettingsError, TargetError
from sparing.evaluation_log import Evaluation, EvaluationLog, Proposal, Status
from sparing.executors import classify
from sparing.final import FinalSolution, final_solution, warnings_for_the_user
from sparing.kernels import compilation
from sparing.linear_algebra import Array
from sparing.parameter_transform import ParameterTransform
from sparing.problem import Problem
from sparing.random_streams import RandomStreams
from sparing.result import Result
from sparing.settings import Settings
from sparing.step import (
    IterationInfo,
    Solution,
    carry_over,
    complete_iteration,
    fit_posterior,
    initial_state,
    n_new_points,
    preferred,
    propose,
    train_surrogate,
    whitening_candidate,
)
from sparing.stopping import StopReason
from sparing.surrogate.gaussian_process import GaussianProcess, append_point, predict
from sparing.training_data import working_values

# A design of which nothing is usable is extended this many times before giving up.
MAX_DESIGN_EXTENSIONS = 5


class Inference:
    """A run driven from outside: ``ask`` for points, ``tell`` their values, read ``result``.

    Arguments are those of ``infer``, less the ones about execution and display.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        x0: ArrayLike | None = None,
        seed: int | None = None,
        max_evaluations: int | None = None,
        tolerance: float = 0.1,
        settings: Settings | None = None,
    ) -> None:
        base = Settings() if settings is None else settings
        _check_arguments(problem, max_evaluations, tolerance, base)
        self.problem = problem
        self.settings = replace(base, stopping=replace(base.stopping, tolerance_sd=tolerance))
        self.max_evaluations = (
            base.budget(problem.dimension) if max_evaluations is None else int(max_evaluations)
        )
        self._streams = RandomStreams(seed)
        starting_points = problem.starting_points(x0)
        transform = ParameterTransform.from_problem(problem, base.bounded_map)
        self._log = EvaluationLog()
        self._state = initial_state(transform, starting_points)
        self._design = self._draw_design(starting_points, extension=0)
        self._n_proposed = 0
        self._pending: dict[int, Proposal] = {}
        self._n_since_refit = 0
        self._live_surrogate: GaussianProcess | None = None
        self._timings: dict[str, float] = {}
        self._blas = ThreadpoolController()
        self._stop_reason = StopReason.UNFINISHED
        self._final: FinalSolution | None = None

    # ------------------------------------------------------------------ driving the run

    @property
    def finished(self) -> bool:
        """Whether the run has ended; ``ask`` then has nothing left to propose."""
        return self._stop_reason is not StopReason.UNFINISHED

    @property
    def n_evaluations(self) -> int:
        """How many evaluations have been told."""
        return len(self._log)

    @property
    def n_failed(self) -> int:
        """How many evaluations failed."""
        return sum(entry.status is Status.FAILED for entry in self._log)

    @property
    def history(self) -> tuple[IterationInfo, ...]:
        """One row per completed iteration."""
        return self._state.history

    @property
    def seed(self) -> int:
        """The seed in use; pass it again for the same run."""
        return self._streams.seed

    def ask(self, n: int = 1) -> list[Proposal]:
        """Up to n points to evaluate next; fewer when the budget ends, none when finished.

        Points asked for and not told yet are pending: they shape the next ones.
        """
        if n < 1:
            raise ValueError(f"ask(n) needs n >= 1, got {n}")
        if self.finished:
            return []
        room = self.max_evaluations - len(self._log) - len(self._pending)
        with self._phase("active sampling"):
            return [self._next_proposal() for _ in range(min(n, room))]

    def tell(
        self,
        proposal: Proposal,
        value: float | None = None,
        *,
        error: str | BaseException | None = None,
        duration: float = math.nan,
    ) -> Evaluation:
        """Report a proposal's log joint density, or the ``error`` that prevented one.

        The value is the log joint (log likelihood plus log prior when the problem has a prior):
        what ``problem.log_joint(proposal.x)`` returns. May refit the model, which takes a while.
        """
        if proposal.identifier not in self._pending:
            raise ValueError(
                f"proposal {proposal.identifier} is not pending: it was told before, or belongs "
                "to another run"
            )
        status, message = Status.FAILED, str(error)
        if error is None:
            if value is None:
                raise ValueError("tell() needs the value of the log joint, or error=")
            status, message = classify(float(value))
        number = math.nan if status is Status.FAILED or value is None else float(value)
        del self._pending[proposal.identifier]
        entry = Evaluation(
            index=len(self._log),
            x=proposal.x,
            value=number,
            status=status,
            duration=duration,
            message=message,
            identifier=proposal.identifier,
        )
        self._log.append(entry)
        self._n_since_refit += 1
        if self._live_surrogate is not None:
            with self._phase("active sampling"):
                self._live_surrogate = self._absorb(self._live_surrogate, entry)
        self._advance()
        return entry

    def stop(self, reason: StopReason = StopReason.CALLBACK) -> None:
        """End the run now; ``result`` then gives what there is."""
        if not self.finished:
            if not self._state.history:
                self._iterate()
            self._finish(reason)

    def result(self) -> Result:
        """The result; before the run has finished, the current one."""
        if not self._state.history:
            raise TargetError(
                f"no result yet: {len(self._log.usable())} usable of {len(self._log)} evaluations"
                f" told, and the initial design has {len(self._design)} points"
            )
        state, settings = self._state, self.settings
        final = self._final
        if final is None:
            final = final_solution(state, settings, self._streams, converged=False)
        evaluations = tuple(self._log)
        return Result(
            problem=self.problem,
            posterior=final.posterior,
            elbo=final.elbo,
            elbo_sd=final.elbo_sd,
            evidence=final.evidence,
            converged=self._stop_reason is StopReason.STABLE,
            stop_reason=self._stop_reason,
            evaluations=evaluations,
            history=state.history,
            warnings=warnings_for_the_user(final, state, evaluations, self._stop_reason, settings),
            settings=settings,
            seed=self.seed,
        )

    # ------------------------------------------------------------------ proposals

    def _draw_design(self, starting_points: Array, extension: int) -> Array:
        design = self.settings.initial_design
        size = min(design.size(self.problem.dimension), self.max_evaluations)
        generator = self._streams.generator("initial design", extension)
        return initial_design(self._state.transform, starting_points, size, design.kind, generator)[
            : self.max_evaluations
        ]

    def _next_proposal(self) -> Proposal:
        identifier = self._n_proposed
        if identifier < len(self._design):
            x = self._design[identifier]
        elif self._live_surrogate is None:  # asked beyond the design before it is told
            generator = self._streams.generator("initial design", 0, identifier)
            kind = self.settings.initial_design.kind
            x = initial_design(
                self._state.transform, np.empty((0, self.problem.dimension)), 1, kind, generator
            )[0]
        else:
            surrogate = self._live_surrogate
            for pending in self._pending.values():
                surrogate = self._fantasise(surrogate, pending.x)
            x = propose(self._state, surrogate, identifier, self.settings, self._streams)
        proposal = Proposal(identifier, x)
        self._n_proposed += 1
        self._pending[identifier] = proposal
        return proposal

    def _absorb(self, surrogate: GaussianProcess, entry: Evaluation) -> GaussianProcess:
        """Rank-one update (Algorithm 1, line 13); a failure only lowers the variance there."""
        if not entry.usable:
            return self._fantasise(surrogate, entry.x)
        inputs, values = working_values([entry], self._state.transform)
        return append_point(surrogate, inputs[0], float(values[0]))

    def _fantasise(self, surrogate: GaussianProcess, x: Array) -> GaussianProcess:
        """Pretend the value at x is the surrogate's mean: only the variance changes."""
        u = self._state.transform.to_working(x[None, :])
        mean, _ = predict(surrogate, u)
        return append_point(surrogate, u[0], float(mean[0]))

    # ------------------------------------------------------------------ refits

    def _advance(self) -> None:
        """Refit when the iteration has its points; finish when a rule says so."""
        budget_spent = len(self._log) >= self.max_evaluations
        n_wanted = n_new_points(self._state, self.settings)
        if not budget_spent and self._n_since_refit < min(n_wanted, self._n_design_missing()):
            return
        if not self._design_usable(budget_spent):
            return
        self._iterate()
        while self._state.warm_up_just_ended:  # an iteration without new points, Section 3.5
            self._iterate()
        if self._state.history[-1].stable:
            self._finish(StopReason.STABLE)
        elif budget_spent:
            self._finish(StopReason.BUDGET)

    def _n_design_missing(self) -> int:
        """During the design: its size (it may have been extended); later no limit."""
        return len(self._design) if not self._state.history else self.max_evaluations

    def _design_usable(self, budget_spent: bool) -> bool:
        """Extend a design that gave nothing to work with; give up when that does not help."""
        if self._state.history or len(self._log.usable()) >= 2:
            return True
        extensions = len(self._design) // self.settings.initial_design.size(self.problem.dimension)
        if budget_spent or extensions > MAX_DESIGN_EXTENSIONS:
            reasons = sorted({entry.message for entry in self._log.unusable()})
            raise TargetError(
                f"{len(self._log.unusable())} of {len(self._log)} evaluations of the initial "
                "design gave no finite log density, so there is nothing to build on. "
                f"What happened: {'; '.join(reasons[:3])}. Check the target at the plausible "
                "box, or give x0 at a point where it is finite."
            )
        empty = np.empty((0, self.problem.dimension))
        self._design = np.vstack([self._design, self._draw_design(empty, extensions)])
        return False

    def _iterate(self) -> None:
        """One iteration of Algorithm 1 after its evaluations."""
        compilation.compile_all()  # once per process, and not on anybody's clock
        state, settings, streams = self._state, self.settings, self._streams
        informative = self._log.informative()
        with self._phase("surrogate"):
            gp = train_surrogate(state, state.transform, informative, settings, streams)
        with self._phase("variational"):
            solution = fit_posterior(state, state.transform, state.mixture, gp, settings, streams)
        candidate = whitening_candidate(state, solution, settings)
        if candidate is not None:
            with self._phase("whitening"):
                solution = preferred(solution, self._whitened(solution, candidate), settings)
        with self._phase("assessment"):
            self._state = complete_iteration(
                state,
                solution,
                evaluations=informative,
                n_evaluations=len(self._log),
                whitening_tried=candidate is not None,
                problem=self.problem,
                settings=settings,
                streams=streams,
            )
        with self._phase("active sampling"):
            surrogate = solution.gp
            for entry in self._log.unusable():
                surrogate = self._fantasise(surrogate, entry.x)
            self._live_surrogate = surrogate
        self._n_since_refit = 0
        self._write_timings()

    def _whitened(self, solution: Solution, candidate: ParameterTransform) -> Solution:
        """The same iteration in the candidate's coordinates."""
        state, settings, streams = self._state, self.settings, self._streams
        gp = train_surrogate(state, candidate, self._log.informative(), settings, streams)
        start = carry_over(solution.mixture, solution.transform, candidate)
        return fit_posterior(state, candidate, start, gp, settings, streams)

    def _finish(self, reason: StopReason) -> None:
        self._stop_reason = reason
        with self._phase("final fit"):
            self._final = final_solution(
                self._state, self.settings, self._streams, converged=reason is StopReason.STABLE
            )
        self._write_timings()

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        """Time a phase of our own work and keep BLAS to one thread in it.

        Matrices here are small: more threads only wait for each other (up to 100 times slower on
        a busy machine). The target is called outside any phase, with all threads.
        """
        start = time.perf_counter()
        try:
            with self._blas.limit(limits=1):
                yield
        finally:
            self._timings[name] = self._timings.get(name, 0.0) + time.perf_counter() - start

    def _write_timings(self) -> None:
        """Add what was measured since the last call to the newest row of the history."""
        *earlier, last = self._state.history
        names = {**last.timings, **self._timings}
        merged = {n: last.timings.get(n, 0.0) + self._timings.get(n, 0.0) for n in names}
        history = (*earlier, replace(last, timings=merged))
        self._state = replace(self._state, history=history)
        self._timings = {}


def _check_arguments(
    problem: Problem, max_evaluations: int | None, tolerance: float, settings: Settings
) -> None:
    """Refuse what cannot be meant, before the first evaluation; every fault at once."""
    faults: list[str] = []
    if not isinstance(problem, Problem):
        faults.append(f"problem must be a sparing.Problem, got {type(problem).__name__}")
    if not isinstance(settings, Settings):
        faults.append(f"settings must be a sparing.Settings, got {type(settings).__name__}")
    if max_evaluations is not None and (
        isinstance(max_evaluations, bool)
        or int(max_evaluations) != max_evaluations
        or max_evaluations < 2
    ):
        faults.append(f"max_evaluations must be a whole number >= 2, got {max_evaluations!r}")
    if not (np.isfinite(tolerance) and tolerance > 0):
        faults.append(f"tolerance must be a positive number, got {tolerance!r}")
    if faults:
        raise SettingsError(faults)
