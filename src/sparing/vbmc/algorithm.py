"""Algorithm 1: which points are evaluated, and what an iteration makes of them.

No target call, clock or output here: state and evaluations in, proposals and states out.

    t      iteration, counted from 1            n_gp   hyperparameter samples
    q_t    variational posterior                K_t    its number of components
    psi    GP hyperparameters                   n      training points
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from sparing.acquisition.initial_design import design_size
from sparing.acquisition.way_home import WAY_HOME
from sparing.numerics.random_streams import RandomStreams
from sparing.problem.evaluations import Evaluation, Proposal
from sparing.problem.parameter_transform import ParameterTransform
from sparing.surrogate.interface import Surrogate
from sparing.surrogate.known_shapes import best_points, known_parabola
from sparing.variational.cut_mixture import cut
from sparing.variational.normal_mixture import Mixture, NormalMixture, unchanged
from sparing.variational.other_coordinates import carry_over
from sparing.variational.whitening import LastTry, Shape
from sparing.vbmc.answer import is_contradicted
from sparing.vbmc.assessment import (
    Estimate,
    complete_iteration,
    estimated,
    held_out_residuals,
    judged,
)
from sparing.vbmc.fitting import fit_posterior
from sparing.vbmc.looking import looked_elsewhere
from sparing.vbmc.seams import with_best_seams
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import Agenda, Phase, Solution, State, TrainedSurrogate
from sparing.vbmc.training import train_surrogate

# Times a phase of the work; whoever owns the clock gives one.
Stopwatch = Callable[[str], AbstractContextManager[None]]


@dataclass(frozen=True, eq=False)
class Algorithm:
    """Algorithm 1 with its strategies, its randomness, and the names of the parameters."""

    settings: Settings
    streams: RandomStreams
    names: tuple[str, ...]

    def n_new_points(self, state: State) -> int:
        """How many evaluations the coming iteration makes before it refits."""
        settings = self.settings
        if state.trained is None:
            return design_size(settings.initial_design.n_points, state.transform.dimension)
        if state.phase is Phase.ADAPTING:
            return 0  # Section 3.5: q adapts first
        if len(state.agenda.points):
            return len(state.agenda.points)
        return settings.warm_up.n_points(state.trained.surrogate, settings.n_active)

    def propose(
        self, state: State, surrogate: Surrogate, identifier: int, position: int, *, pending: bool
    ) -> Proposal:
        """Lines 4 to 15: the next point to evaluate, the one at that position of the iteration.

        ``surrogate`` is the last one with everything that arrived since appended (rank-one
        updates), ``pending`` says whether other points are being evaluated.
        """
        if position < len(state.agenda.points):
            return Proposal(identifier, state.agenda.points[position], state.agenda.rule)
        warm_up, rules = self.settings.warm_up, self.settings.rules
        # What was taken for the bulk may turn out to lie far below it: then the search goes on.
        searching = state.searching or warm_up.must_climb(surrogate)
        if searching:
            rules = warm_up.pending_rules if pending else warm_up.rules
        rule = rules[identifier % len(rules)]
        mixture: Mixture = state.mixture
        support = None if state.trained is None else state.trained.support
        if not searching or support is not None:  # q knows of no edge
            mixture = state.history[-1].posterior.mixture
            # q may have followed the surrogate to where nothing is believed.
            if getattr(rule, "reaches_out", False):
                union = NormalMixture.union([unchanged(mixture), unchanged(state.mixture)])
                mixture = cut(union, support, surrogate.training.inputs)
        generator = self.streams.generator("acquisition", identifier)
        name = WAY_HOME
        u = warm_up.way_home(surrogate, state.transform, identifier, generator)
        if u is None:
            name, u = rule.name, rule.choose(surrogate, mixture, generator)
        x = state.transform.to_user(state.transform.within_reach(u[None, :]))
        while not state.transform.supports(x)[0]:  # a draw from the posterior in its place
            x = state.transform.to_user(mixture.sample(1, generator))
        return Proposal(identifier, x[0], name)

    def iterate(
        self,
        state: State,
        evaluations: Sequence[Evaluation],
        n_evaluations: int,
        stopwatch: Stopwatch,
        *,
        awaited: Agenda | None = None,
    ) -> State:
        """Lines 16 to 23: train, fit, try other coordinates, judge.

        ``evaluations`` are those a surrogate learns from, of ``n_evaluations`` in all.
        ``awaited``: what a look elsewhere asked for is not known yet, and these of its points have
        not been proposed either; None: it is.
        """
        settings, streams = self.settings, self.streams
        state = with_best_seams(state, evaluations)
        with stopwatch("surrogate"):
            trained = train_surrogate(state, state.transform, evaluations, settings, streams)
        with stopwatch("variational"):
            solution = fit_posterior(state, trained, state.mixture, settings, streams)
        with stopwatch("assessment"):
            estimate = self.estimate(state, solution, evaluations)
        with stopwatch("coordinates"):
            candidates = self.other_coordinates(state, estimate.mixture, evaluations)
            best = self.in_best_coordinates(state, solution, candidates or (), evaluations)
        with stopwatch("assessment"):
            if best is not solution:
                solution, estimate = best, self.estimate(state, best, evaluations)
            row = judged(state, solution, estimate, n_evaluations, self.names, settings, streams)
        with stopwatch("look elsewhere"):
            row, agenda = looked_elsewhere(
                state, solution, estimate, row, evaluations, settings, streams, awaited=awaited
            )
        return complete_iteration(
            state,
            solution,
            row,
            agenda,
            evaluations,
            settings,
            whitening_tried=candidates is not None,
        )

    def estimate(
        self, state: State, solution: Solution, evaluations: Sequence[Evaluation]
    ) -> Estimate:
        """The surrogate's posterior and evidence."""
        residuals = held_out_residuals(state, evaluations, self.settings)
        return estimated(state, solution, residuals, (), self.settings, self.streams)

    def other_coordinates(
        self, state: State, posterior: Mixture, evaluations: Sequence[Evaluation]
    ) -> list[ParameterTransform] | None:
        """Coordinates worth trying beside the current ones; None where it is too early to look."""
        strategy = self.settings.coordinates
        if not strategy.is_due(last_try(state)):
            return None
        transform = state.transform
        # What the evaluations show before anything has been found.
        told: list[Shape | None] = [known_parabola(evaluations, transform)]
        if state.searching:
            told.append(best_points(evaluations, transform))
        shapes: list[Shape] = [] if state.searching else [posterior]
        shapes += [shape for shape in told if shape is not None]
        if not shapes:
            return None
        found = strategy.candidates(transform, shapes, state.iteration + 1)
        if found and (proven := proven_coordinates(state, evaluations)) is not None:
            found.append(proven)
        return found

    def in_best_coordinates(
        self,
        state: State,
        solution: Solution,
        candidates: Sequence[ParameterTransform],
        evaluations: Sequence[Evaluation],
    ) -> Solution:
        """The same iteration in the coordinates in which the surrogate describes the values best.

        Judged by the marginal likelihood: the ELBO of a surrogate that is wrong may be anything.
        """
        settings, streams = self.settings, self.streams
        present = best = solution.trained
        for transform in candidates:
            trained = train_surrogate(state, transform, evaluations, settings, streams)
            needed = 0.0
            if best is present:
                n_points, dimension = best.surrogate.training.n_points, transform.dimension
                searching = state.searching
                needed = settings.coordinates.needed_gain(dimension, n_points, searching=searching)
            if self.score(trained, best) >= self.score(best, trained) + needed:
                best = trained
        if best is present:
            return solution
        start = carry_over(solution.mixture, solution.transform, best.transform)
        return fit_posterior(state, best, start, settings, streams)

    def score(self, trained: TrainedSurrogate, other: TrainedSurrogate) -> float:
        """The marginal likelihood of what both are trained on, less what its coordinates cost."""
        # What one of them leaves out would count against the other.
        shared = trained.surrogate.training.shared_with(other.surrogate.training)
        charge = self.settings.coordinates.charge(trained.transform, shared.n_points)
        return self.settings.surrogate.score(trained.surrogate, shared) - charge


def last_try(state: State) -> LastTry | None:
    """What came of the last look for other coordinates; None where there was none yet."""
    last, history = state.last_whitening, state.history
    if not 0 <= last < len(history):
        return None
    if history[last].warm_up and not state.searching:
        return None  # the posterior had not been found
    before = history[last - 1].posterior.transform.number if last else 0
    return LastTry(
        n_iterations=state.iteration - last,
        growth=history[-1].n_evaluations / history[last].n_evaluations,
        was_kept=history[last].posterior.transform.number != before,
    )


def proven_coordinates(
    state: State, evaluations: Sequence[Evaluation]
) -> ParameterTransform | None:
    """Those of the solution with the smallest error so far; None where nothing is new about them.

    Of those that no value contradicts. Others are made from what the surrogate takes for the
    posterior. Once it has made something up, so are they, and nothing but these leads back
    (docs/decisions/0019).
    """
    current = state.transform
    settled = [past for past in state.history if not past.warm_up]
    settled.sort(key=lambda past: past.log_evidence_sd)
    best = next((past for past in settled if not is_contradicted(past, evaluations)), None)
    if best is None:
        return None
    transform = best.posterior.transform
    is_new = transform.number not in (current.number, current.turning)
    return transform if is_new and transform.turning == current.turning else None
