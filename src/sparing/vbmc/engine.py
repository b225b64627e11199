"""The run's mutable core: events in, proposals and states out.

Two kinds of events change it, always in the order of the journal: a proposal (a point is about to
be evaluated) and an evaluation (it came back). Feeding the same events to a fresh engine with the
same seed and settings gives the same state to the last bit; that is how a run is resumed.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice

import numpy as np

from sparing.acquisition.initial_design import INITIAL_DESIGN, initial_design
from sparing.errors import TargetError
from sparing.kernels import compilation
from sparing.numerics.arrays import Array
from sparing.numerics.blas_threads import one_blas_thread
from sparing.numerics.random_streams import RandomStreams
from sparing.problem.evaluations import Evaluation, EvaluationLog, Event, Proposal
from sparing.problem.parameter_transform import ParameterTransform
from sparing.problem.problem import Problem
from sparing.surrogate.interface import Surrogate
from sparing.surrogate.training_data import joining_gradient, joining_values
from sparing.vbmc.algorithm import Algorithm
from sparing.vbmc.exploration import LOOKING
from sparing.vbmc.final import FinalSolution, final_solution, is_within_tolerance
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import Agenda, IterationInfo, Phase, State, initial_state
from sparing.vbmc.stopping import StopReason

Timings = defaultdict[str, float]  # seconds the library spent, by phase

# A design of which nothing is usable is extended this many times before giving up.
MAX_DESIGN_EXTENSIONS = 5


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
        self.timings: list[Timings] = []  # one for each iteration
        transform = ParameterTransform.from_problem(problem, settings.bounded_map)
        self.state = initial_state(transform, starting_points)
        self._algorithm = Algorithm(settings, streams, problem.names)
        self._starting_points = starting_points
        self._n_extensions = 0
        self._design = self._draw_design(extension=0)
        self._n_proposed = 0
        self._n_since_refit = 0
        self._n_asked = 0  # proposals since the refit
        self._live_surrogate: Surrogate | None = None  # with all that came in since the refit
        # The same, counting on that many pending points.
        self._expectant: tuple[Surrogate, int] | None = None
        self._clock = Timings(float)  # since the last iteration

    @property
    def history(self) -> tuple[IterationInfo, ...]:
        """One row per completed iteration, with its timings."""
        return self._rows(0)

    def _rows(self, first: int) -> tuple[IterationInfo, ...]:
        rows = zip(self.state.history[first:], self.timings[first:], strict=True)
        return tuple(IterationInfo(**vars(row), timings=dict(seconds)) for row, seconds in rows)

    # ------------------------------------------------------------------ proposals

    @property
    def n_chosen(self) -> int:
        """How many of the next points are chosen already, whatever the values before them."""
        if not self.state.history:
            return max(0, len(self._design) - self._n_proposed)
        return max(0, len(self.state.agenda.points) - self._n_asked)

    def propose(self) -> Proposal:
        """The next point to evaluate; it counts as pending once it has been applied."""
        identifier = self._n_proposed
        if not self.state.history and identifier < len(self._design):
            return Proposal(identifier, self._design[identifier], INITIAL_DESIGN)
        if self._live_surrogate is None:  # asked beyond the design before it is told
            (point,) = self._design_points(self._starting_points[:0], 1, 0, identifier)
            return Proposal(identifier, point, INITIAL_DESIGN)
        with self._timed("active sampling"):
            surrogate = self._counting_on_pending(self._live_surrogate)
            return self._algorithm.propose(
                self.state, surrogate, identifier, self._n_asked, pending=bool(self.pending)
            )

    def _counting_on_pending(self, live: Surrogate) -> Surrogate:
        """The surrogate that expects its own mean at the pending points, in their order."""
        surrogate, n_expected = self._expectant or (live, 0)
        for proposal in islice(self.pending.values(), n_expected, None):
            noise_variance = surrogate.training.typical_noise_variance  # as noisy as the others
            surrogate = self._fantasised(surrogate, proposal.x, noise_variance)
        self._expectant = surrogate, len(self.pending)
        return surrogate

    def _absorbed(self, surrogate: Surrogate, entry: Evaluation) -> Surrogate:
        """Rank-one update (Algorithm 1, line 13); a failure only lowers the variance there."""
        if not entry.usable:
            return self._fantasised(surrogate, entry.x)
        transform, training = self.state.transform, surrogate.training
        inputs, values = joining_values([entry], transform, training)
        told = (inputs[0], float(values[0]), entry.noise_sd**2)
        gradient = joining_gradient(entry, transform, training)
        return surrogate.append(*told) if gradient is None else surrogate.append(*told, gradient)

    def _fantasised(self, surrogate: Surrogate, x: Array, noise_variance: float = 0.0) -> Surrogate:
        """Pretend the value at x is the surrogate's mean: only the variance changes."""
        u = self.state.transform.to_working(x[None, :])
        mean, _ = surrogate.predict(u)
        return surrogate.append(u[0], float(mean[0]), noise_variance)

    def _draw_design(self, extension: int) -> Array:
        size = min(self._algorithm.n_new_points(self.state), self.max_evaluations)
        own = self._starting_points if extension == 0 else self._starting_points[:0]
        return self._design_points(own, size, extension)[: self.max_evaluations]

    def _design_points(self, own: Array, size: int, *counters: int) -> Array:
        generator = self.streams.generator("initial design", *counters)
        design = self.settings.initial_design
        return initial_design(self.state.transform, own, size, design, generator)

    # ------------------------------------------------------------------ events

    def apply(self, event: Event) -> tuple[IterationInfo, ...]:
        """Take note of an event; an evaluation may complete iterations, which are returned."""
        entry = self._note(event)
        if entry is None:
            return ()
        n_completed = len(self.state.history)
        self._n_since_refit += 1
        self._expectant = None
        if self._live_surrogate is not None:
            with self._timed("active sampling"):
                self._live_surrogate = self._absorbed(self._live_surrogate, entry)
        self._advance()
        return self._rows(n_completed)

    def restore(
        self, events: Iterable[Event], state: State, timings: Iterable[Mapping[str, float]]
    ) -> None:
        """Go on from a snapshot: the events before it, the state it holds, and its timings."""
        for event in events:
            self._note(event)
        self.state = state
        self.timings = [Timings(float, seconds) for seconds in timings]
        self._refresh_surrogate()

    def _note(self, event: Event) -> Evaluation | None:
        """A proposal is pending from now on; an evaluation is logged with the rule of its point."""
        if isinstance(event, Proposal):
            self.pending[event.identifier] = event
            self._n_proposed = max(self._n_proposed, event.identifier + 1)
            self._n_asked += 1
            return None
        if event.identifier is not None:
            proposal = self.pending.pop(event.identifier, None)
            if proposal is not None:
                event = replace(event, rule=proposal.rule)
        self.log.append(event)
        return event

    # ------------------------------------------------------------------ refits

    def _advance(self) -> None:
        budget_spent = len(self.log) >= self.max_evaluations
        n_wanted = self._algorithm.n_new_points(self.state)
        if not self.state.history:
            n_wanted = len(self._design)  # it may be shorter (budget) or longer (extensions)
        if not budget_spent and self._n_since_refit < n_wanted:
            return
        if not self.state.history and not self._design_is_usable(budget_spent):
            return
        self.iterate()
        while self.state.phase is Phase.ADAPTING:  # without new points, Section 3.5
            self.iterate()
        if self.state.history[-1].stable:
            final = self._timed_final(StopReason.STABLE)
            if is_within_tolerance(final, self.settings):
                self._end(StopReason.STABLE, final)
                return
            *before, last = self.state.history
            history = (*before, replace(last, stable=False))
            self.state = replace(self.state, history=history)
        if budget_spent:
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
        informative, n_evaluations = self.log.informative(), len(self.log)
        gradients = any(entry.gradient is not None for entry in informative)
        compilation.compile_all(gradients=gradients)  # once, and not on anybody's clock
        self.state = self._algorithm.iterate(
            self.state, informative, n_evaluations, self._timed, awaited=self._awaited()
        )
        self._refresh_surrogate()
        self.timings.append(self._clock)
        self._clock = Timings(float)

    def _awaited(self) -> Agenda | None:
        """What is left of the agenda while points of a look elsewhere are not known yet."""
        rest = self.state.agenda.points[self._n_asked :]
        if len(rest) or any(proposal.rule in LOOKING for proposal in self.pending.values()):
            return replace(self.state.agenda, points=rest)
        return None

    def _refresh_surrogate(self) -> None:
        """The surrogate new points are chosen with: the last one, wary of what failed."""
        if self.state.trained is None:
            return
        with self._timed("active sampling"):
            surrogate = self.state.trained.surrogate
            for entry in self.log.unusable():
                surrogate = self._fantasised(surrogate, entry.x)
            self._live_surrogate = surrogate
            self._expectant = None
        self._n_since_refit = self._n_asked = 0

    def finish(self, reason: StopReason) -> None:
        """End the run and choose what it returns."""
        self._end(reason, self._timed_final(reason))

    def _timed_final(self, reason: StopReason) -> FinalSolution:
        with self._timed("final fit"):
            return self.final_solution(converged=reason is StopReason.STABLE)

    def _end(self, reason: StopReason, final: FinalSolution) -> None:
        self.stop_reason, self.final = reason, final
        for phase, seconds in self._clock.items():
            self.timings[-1][phase] += seconds
        self._clock = Timings(float)

    def final_solution(self, *, converged: bool) -> FinalSolution:
        """What the run would return as it stands."""
        evaluations = self.log.informative()
        return final_solution(
            self.state, evaluations, self.settings, self.streams, converged=converged
        )

    # ------------------------------------------------------------------ timing

    @contextmanager
    def _timed(self, phase: str) -> Generator[None, None, None]:
        """Time a phase of our own work and keep BLAS to one thread in it.

        The target is called outside any phase, with all threads.
        """
        start = time.perf_counter()
        try:
            with one_blas_thread():
                yield
        finally:
            self._clock[phase] += time.perf_counter() - start
