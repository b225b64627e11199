"""Looking elsewhere at the end of an iteration, before the solution may count as stable.

What to look for is the strategy's (`exploration`); here is what it is told, and what becomes of
what it finds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparing.numerics.random_streams import RandomStreams
from sparing.problem.evaluations import Evaluation
from sparing.problem.parameter_transform import ParameterTransform
from sparing.surrogate.support import learnt_support, outside_points
from sparing.surrogate.training_data import working_gradients, working_values
from sparing.variational.cut_mixture import CutMixture
from sparing.variational.mixture import GaussianMixture
from sparing.variational.normal_mixture import unchanged
from sparing.variational.other_coordinates import in_coordinates
from sparing.variational.whitening import Whitened
from sparing.vbmc.assessment import Estimate, estimated, judged, may_stop
from sparing.vbmc.exploration import EDGE, LOOKING, SECOND, TEST
from sparing.vbmc.hidden_modes import Known
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import Agenda, Iteration, Solution, State, TrainedSurrogate
from sparing.vbmc.stopping import Stopping
from sparing.vbmc.training import train_surrogate

# Runs that are to be more accurate than the others look when these would, and again after so many
# times the evaluations of the last look.
USUAL_TOLERANCE = Stopping().tolerance_sd
LOOKED_LATELY = 1.25
SURPRISE = 2.0  # standard deviations by which a value in the tails may exceed what was predicted


def looked_elsewhere(
    state: State,
    solution: Solution,
    estimate: Estimate,
    row: Iteration,
    evaluations: Sequence[Evaluation],
    settings: Settings,
    streams: RandomStreams,
    awaited: Agenda | None = None,
) -> tuple[Iteration, Agenda]:
    """The row with what a look elsewhere made of it, and what comes next.

    Before the solution would do, what is found joins it, and nothing is evaluated for it; nobody
    looks before what the last look asked for is known.
    """
    if awaited is not None:
        return row, awaited
    history = (*state.history, row)
    stable = may_stop(history, state, settings)
    calm = stable or is_calm(history, state, evaluations, settings)
    due = settings.exploration.is_due(state.phase, stable=calm)
    if not due or isinstance(row.posterior.mixture, GaussianMixture):  # q itself: the paper
        return replace(row, stable=stable), Agenda()
    generator = streams.generator("look elsewhere", state.iteration)
    known = what_is_known(solution.trained, row, evaluations)
    surprising = SURPRISE * math.sqrt(row.evidence.inflation)
    no_surprise = state.agenda.rule in (TEST, SECOND) and np.all(estimate.residuals < surprising)

    def otherwise() -> Known:
        return in_plain_coordinates(known, row, state, evaluations, settings, streams)

    look = settings.exploration.look(
        known,
        row.evidence.inflation,
        generator,
        tested=state.agenda.rule if no_surprise else "",
        otherwise=otherwise if calm and known.transform.bends else None,
    )
    if look.found is not None:
        estimate = estimated(state, solution, estimate.residuals, [look.found], settings, streams)
        names, n_evaluations = row.posterior.names, row.n_evaluations
        row = judged(state, solution, estimate, n_evaluations, names, settings, streams)
    points = look.points if calm else look.points[:0]
    x = solution.transform.to_user(solution.transform.within_reach(points))
    x = x[solution.transform.supports(x)]
    return replace(row, stable=stable and not len(x)), Agenda(x, look.rule)


def is_calm(
    history: Sequence[Iteration],
    state: State,
    evaluations: Sequence[Evaluation],
    settings: Settings,
) -> bool:
    """Whether a run that is to be more accurate than most would do for them, and has not looked.

    It may never be as accurate as that, and should not look elsewhere at its end alone.
    """
    loosened = USUAL_TOLERANCE / settings.stopping.tolerance_sd
    if not (loosened > 1.0 and may_stop(history, state, settings, loosened)):
        return False
    looked = [i for i, entry in enumerate(evaluations, 1) if entry.rule in LOOKING]
    is_on = len(state.agenda.points) > 0  # a look that asked for more
    return is_on or not looked or len(evaluations) >= LOOKED_LATELY * looked[-1]


def what_is_known(
    trained: TrainedSurrogate, row: Iteration, evaluations: Sequence[Evaluation]
) -> Known:
    """What a look elsewhere starts from."""
    usable = [entry for entry in evaluations if entry.usable]
    inputs, values = working_values(usable, trained.transform)
    posterior, log_evidence = row.posterior.mixture, row.log_evidence
    if isinstance(posterior, CutMixture):  # of the mixture before the cut, beyond the edge as well
        log_evidence -= math.log(posterior.mass)
    return Known(
        transform=trained.transform,
        surrogate=trained.surrogate,
        posterior=unchanged(posterior),
        log_evidence=log_evidence,
        inputs=inputs,
        values=values,
        rules=tuple(entry.rule for entry in usable),
        other_rules=tuple(entry.rule for entry in evaluations if not entry.usable),
        support=trained.support,
        outside=outside_points(evaluations, trained.transform),
        edge_is_proven=edge_is_proven(evaluations, trained.transform),
        gradients=working_gradients(usable, trained.transform),
    )


def in_plain_coordinates(
    known: Known,
    row: Iteration,
    state: State,
    evaluations: Sequence[Evaluation],
    settings: Settings,
    streams: RandomStreams,
) -> Known:
    """The same by a surrogate whose coordinates are whitened alone."""
    number = state.iteration + 2  # none has it yet
    plain = Whitened().unbent(known.transform, known.posterior, number)
    trained = train_surrogate(state, plain, evaluations, settings, streams)
    mixture = in_coordinates(known.posterior, known.transform, plain)
    posterior = replace(row.posterior, mixture=mixture, transform=plain)
    return what_is_known(trained, replace(row, posterior=posterior), evaluations)


def edge_is_proven(evaluations: Sequence[Evaluation], transform: ParameterTransform) -> bool:
    """Whether the last D + 2 points at the edge lie where they should by all other points.

    A simple edge that separates a few points may still be the wrong one.
    """
    tests = [entry for entry in evaluations if entry.rule == EDGE][-transform.dimension - 2 :]
    if len(tests) < transform.dimension + 2:
        return False
    support = learnt_support([entry for entry in evaluations if entry not in tests], transform)
    if support is None:
        return False
    inside = support.contains(transform.to_working(np.array([entry.x for entry in tests])))
    return all(entry.usable == is_inside for entry, is_inside in zip(tests, inside, strict=True))
