"""The run's mutable core: events in, proposals and states out.

Two kinds of events change it, always in the order of the journal: a proposal (its point will be
evaluated) and an evaluation (it came back). Feeding the same events to a fresh engine with the same
seed and settings gives the same state to the last bit; that is how a run is resumed.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice

import numpy as np

from sparing.acquisition.initial_design import initial_design
from sparing.errors import TargetError
from sparing.kernels import compilation
from sparing.numerics.arrays import Array
from sparing.numerics.blas_threads import one_blas_thread
from sparing.numerics.random_streams import RandomStreams
from sparing.problem.evaluations import Evaluation, EvaluationLog, Event, Proposal
from sparing.problem.parameter_transform import ParameterTransform
from sparing.problem.problem import Problem
from sparing.surrogate.gaussian_process import GaussianProcess, append_point, predict
from sparing.surrogate.training_data import joining_values
from sparing.variational.whitening import carry_over
from sparing.vbmc.algorithm import (
    better_surrogate,
    fit_posterior,
    n_new_points,
    other_coordinates,
    propose,
    train_surrogate,
)
from sparing.vbmc.assessment import complete_iteration
from sparing.vbmc.final import FinalSolution, final_solution
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import IterationInfo, Solution, State, initial_state
from sparing.vbmc.stopping import StopReason

# A design of which nothing is usable is extended this many times before giving up.
MAX_DESIGN_EXTENSIONS = 5

# The rule of points that no surrogate had a part in.
INITIAL_DESIGN = "initial design"


class Engine:
    """Log, state and pending proposals of one run; no I/O, and no call of the target."""

    def __init__(
        self,
        problem: Problem,
        settings: Settings,
        streams: RandomStreams,
        starting_points: Array,
        max_evaluations: int,
    ) -> None:
        self.problem = problem
        self.settings = settings
        self.streams = streams
        self.max_evaluations = max_evaluations
        self.log = EvaluationLog()
        self.pending: dict[int, Proposal] = {}
        self.stop_reason = StopReason.UNFINISHED
        self.final: FinalSolution | None = None
        transform = ParameterTransform.from_problem(problem, settings.bounded_map)
        self.state = initial_state(transform, starting_points)
        self._starting_points = starting_points
        self._n_extensions = 0
        self._design = self._draw_design(extension=0)
        self._n_proposed = 0
        self._n_since_refit = 0
        self._live_surrogate: GaussianProcess | None = None
        # The same, counting on the first so many pending points; none since an evaluation came in.
        self._expecting: tuple[GaussianProcess, int] | None = None
        self._timings: dict[str, float] = {}

    # ------------------------------------------------------------------ proposals

    def propose(self) -> Proposal:
        """The next point, given what is pending; nothing changes until the proposal is applied."""
        with self._phase("active sampling"):
            x, rule = self._next_point()
        return Proposal(self._n_proposed, x, rule)

    def _next_point(self) -> tuple[Array, str]:
        """A point (D,) in the user's coordinates, and the name of the rule that chose it."""
        identifier = self._n_proposed
        if not self.state.history and identifier < len(self._design):
            return self._design[identifier], INITIAL_DESIGN
        surrogate = self._surrogate_with_pending()
        if surrogate is None:  # asked beyond the design before it is told
            generator = self.streams.generator("initial design", 0, identifier)
            kind = self.settings.initial_design.kind
            nothing = np.empty((0, self.problem.dimension))
            points = initial_design(self.state.transform, nothing, 1, kind, generator)
            return points[0], INITIAL_DESIGN
        return propose(
            self.state,
            surrogate,
            identifier,
            self.settings,
            self.streams,
            pending=bool(self.pending),
        )

    def _surrogate_with_pending(self) -> GaussianProcess | None:
        """The live surrogate that counts on the pending points, in their order."""
        if self._live_surrogate is None:
            return None
        surrogate, n_expected = self._expecting or (self._live_surrogate, 0)
        for proposal in islice(self.pending.values(), n_expected, None):
            surrogate = self._expect(surrogate, proposal.x)
        self._expecting = surrogate, len(self.pending)
        return surrogate

    def _expect(self, surrogate: GaussianProcess, x: Array) -> GaussianProcess:
        """The surrogate that counts on a value at x, as noisy as the others."""
        return self._fantasise(surrogate, x, surrogate.training.typical_noise_variance)

    def _absorb(self, surrogate: GaussianProcess, entry: Evaluation) -> GaussianProcess:
        """Rank-one update (Algorithm 1, line 13); a failure only lowers the variance there."""
        if not entry.usable:
            return self._fantasise(surrogate, entry.x)
        inputs, values = joining_values([entry], self.state.transform, surrogate.training)
        return append_point(surrogate, inputs[0], float(values[0]), entry.noise_sd**2)

    def _fantasise(
        self, surrogate: GaussianProcess, x: Array, noise_variance: float = 0.0
    ) -> GaussianProcess:
        """Pretend the value at x is the surrogate's mean: only the variance changes."""
        u = self.state.transform.to_working(x[None, :])
        mean, _ = predict(surrogate, u)
        return append_point(surrogate, u[0], float(mean[0]), noise_variance)

    def _draw_design(self, extension: int) -> Array:
        design = self.settings.initial_design
        size = min(design.size(self.problem.dimension), self.max_evaluations)
        generator = self.streams.generator("initial design", extension)
        own = self._starting_points if extension == 0 else self._starting_points[:0]
        points = initial_design(self.state.transform, own, size, design.kind, generator)
        return points[: self.max_evaluations]

    # ------------------------------------------------------------------ events

    def apply(self, event: Event) -> tuple[IterationInfo, ...]:
        """Take an event into account; the iterations that it completed.

        A proposal is pending from now on. An evaluation is logged and learned from, and the model
        is refitted when the iteration has its points.
        """
        self._register(event)
        if isinstance(event, Proposal):
            return ()
        self._n_since_refit += 1
        if self._live_surrogate is not None:
            with self._phase("active sampling"):
                self._live_surrogate = self._absorb(self._live_surrogate, event)
        n_before = self.state.iteration
        self._advance()
        return self.state.history[n_before:]

    def restore(self, events: Iterable[Event], state: State) -> None:
        """Take up a run at a snapshot's state, which the events before it led to."""
        for event in events:
            self._register(event)
        self.state = state
        self._refresh_surrogate()

    def _register(self, event: Event) -> None:
        """Keep the books: what is pending, and the log, in which evaluations have their rule."""
        if isinstance(event, Proposal):
            self.pending[event.identifier] = event
            self._n_proposed = max(self._n_proposed, event.identifier + 1)
            return
        if event.identifier in self.pending:
            event = replace(event, rule=self.pending.pop(event.identifier).rule)
        self.log.append(event)
        self._expecting = None

    # ------------------------------------------------------------------ refits

    def _advance(self) -> None:
        budget_spent = len(self.log) >= self.max_evaluations
        n_wanted = n_new_points(self.state, self.settings)
        if not self.state.history:
            n_wanted = len(self._design)  # it may be shorter (budget) or longer (extensions)
        if not budget_spent and self._n_since_refit < n_wanted:
            return
        if not self.state.history and not self._design_is_usable(budget_spent):
            return
        self.iterate()
        while self.state.warm_up_just_ended:  # an iteration without new points, Section 3.5
            self.iterate()
        if self.state.history[-1].stable:
            self.finish(StopReason.STABLE)
        elif budget_spent:
            self.finish(StopReason.BUDGET)

    def _design_is_usable(self, budget_spent: bool) -> bool:
        """Extend a design that gave nothing to work with; give up when that does not help."""
        if len(self.log.usable()) >= 2:
            return True
        if budget_spent or self._n_extensions == MAX_DESIGN_EXTENSIONS:
            failures = self.log.unusable()
            reasons = sorted({entry.message for entry in failures})
            raise TargetError(
                f"{len(failures)} of {len(self.log)} evaluations of the initial design gave no "
                f"finite log density, so there is nothing to build on. What happened: "
                f"{'; '.join(reasons[:3])}. Check the target within the plausible box, or give "
                "x0 at a point where it is finite."
            )
        self._n_extensions += 1
        self._design = np.vstack([self._design, self._draw_design(self._n_extensions)])
        return False

    def iterate(self) -> None:
        """One iteration of Algorithm 1 after its evaluations."""
        compilation.compile_all()  # once per process, and not on anybody's clock
        state, settings, streams = self.state, self.settings, self.streams
        informative = self.log.informative()
        with self._phase("surrogate"):
            gp = train_surrogate(state, state.transform, informative, settings, streams)
        with self._phase("variational"):
            solution = fit_posterior(state, state.transform, state.mixture, gp, settings, streams)
        candidates = other_coordinates(state, solution, settings)
        if candidates:
            with self._phase("whitening"):
                solution = self._in_better_coordinates(solution, candidates)
        with self._phase("assessment"):
            self.state = complete_iteration(
                state,
                solution,
                evaluations=informative,
                n_evaluations=len(self.log),
                whitening_tried=bool(candidates),
                problem=self.problem,
                settings=settings,
                streams=streams,
            )
        self._refresh_surrogate()
        self._write_timings()

    def _in_better_coordinates(
        self, solution: Solution, candidates: Sequence[ParameterTransform]
    ) -> Solution:
        """The same iteration in other coordinates, where they suit the surrogate better."""
        state, settings, streams = self.state, self.settings, self.streams
        informative = self.log.informative()
        found = better_surrogate(state, solution.gp, candidates, informative, settings, streams)
        if found is None:
            return solution
        transform, gp = found
        start = carry_over(solution.mixture, solution.transform, transform)
        return fit_posterior(state, transform, start, gp, settings, streams)

    def _refresh_surrogate(self) -> None:
        """The surrogate new points are chosen with: the last one, wary of what failed."""
        if self.state.solution is None:
            return
        with self._phase("active sampling"):
            surrogate = self.state.solution.gp
            for entry in self.log.unusable():
                surrogate = self._fantasise(surrogate, entry.x)
            self._live_surrogate, self._expecting = surrogate, None
        self._n_since_refit = 0

    def finish(self, reason: StopReason) -> None:
        """End the run and choose what it returns."""
        self.stop_reason = reason
        with self._phase("final fit"):
            self.final = final_solution(
                self.state, self.settings, self.streams, converged=reason is StopReason.STABLE
            )
        self._write_timings()

    # ------------------------------------------------------------------ timing

    @contextmanager
    def _phase(self, name: str) -> Generator[None, None, None]:
        """Time a phase of our own work and keep BLAS to one thread in it.

        The target is called outside any phase, with all threads.
        """
        start = time.perf_counter()
        try:
            with one_blas_thread():
                yield
        finally:
            self._timings[name] = self._timings.get(name, 0.0) + time.perf_counter() - start

    def _write_timings(self) -> None:
        """Add what was measured since the last call to the newest row of the history."""
        *earlier, last = self.state.history
        names = {**last.timings, **self._timings}
        merged = {n: last.timings.get(n, 0.0) + self._timings.get(n, 0.0) for n in names}
        history = (*earlier, replace(last, timings=merged))
        self.state = replace(self.state, history=history)
        self._timings = {}
