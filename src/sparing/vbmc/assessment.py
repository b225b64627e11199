"""The end of an iteration: judge the solution, decide what comes next (Algorithm 1, line 23).

rho_1..3   reliability features (S2.4.1)       z   standardised residuals of held-out draws
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparing.numerics.arrays import Array
from sparing.numerics.random_streams import RandomStreams
from sparing.problem.evaluations import Evaluation
from sparing.problem.parameter_transform import ParameterTransform
from sparing.surrogate.known_support import KnownSupport
from sparing.surrogate.training_data import (
    joining_values,
    known_noise_variance,
    trimmed_indices,
    working_values,
)
from sparing.variational.cut_mixture import CutMixture, narrowed
from sparing.variational.divergence import gaussianised_symmetric_kl
from sparing.variational.elbo import Elbo, sampled_elbo
from sparing.variational.normal_mixture import Mixture, NormalMixture
from sparing.variational.other_coordinates import in_coordinates, moments_in
from sparing.variational.posterior import Posterior
from sparing.vbmc.evidence import Evidence
from sparing.vbmc.exploration import RIM, SECOND, TEST
from sparing.vbmc.held_out import TrackRecord, standardised_residuals
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import Agenda, Iteration, Phase, Solution, State
from sparing.vbmc.stopping import Reliability, is_stable
from sparing.vbmc.training import sampling_brings_little

WITHIN_SHARE = 0.1  # of what is drawn near the best points, within a declared support


def complete_iteration(
    state: State,
    solution: Solution,
    row: Iteration,
    agenda: Agenda,
    evaluations: Sequence[Evaluation],
    settings: Settings,
    *,
    whitening_tried: bool,
) -> State:
    """The state after an iteration whose solution was judged (row): what comes next."""
    history = (*state.history, row)
    arrived = state.searching and has_arrived(history, solution, evaluations, settings)
    trimmed = state.trimmed
    if arrived:
        depth = settings.warm_up.trimmed_depth
        trimmed = trimmed_indices(evaluations, solution.transform, depth)
    return State(
        transform=solution.transform,
        mixture=solution.mixture,
        trained=solution.trained,
        phase=next_phase(state.phase, arrived=arrived),
        sampling_stopped=state.sampling_stopped
        or sampling_brings_little(history, settings.sampling),
        trimmed=trimmed,
        last_whitening=state.iteration if whitening_tried else state.last_whitening,
        agenda=agenda,
        history=history,
    )


def _earlier_posterior(state: State, transform: ParameterTransform) -> list[NormalMixture]:
    """That of the last iteration in the given coordinates; none during the warm-up."""
    if state.searching or not state.history or state.history[-1].warm_up:
        return []
    old = state.history[-1].posterior
    return [in_coordinates(old.mixture, old.transform, transform)]


def _within(solution: Solution) -> list[NormalMixture]:
    """The best points, where there is an edge: q knows of none, and may lie beyond it."""
    if solution.trained.support is None:
        return []
    training = solution.surrogate.training
    best = np.argsort(-training.values)[: 2 * training.dimension + 2]
    points = training.inputs[best]
    spread = np.atleast_2d(np.cov(points, rowvar=False))
    spread = spread + 1e-9 * np.diag(solution.surrogate.length_scales**2)
    covariances = np.broadcast_to(spread, (len(points), *spread.shape))
    around = NormalMixture.of_covariances(np.ones(len(points)), points, covariances)
    if isinstance(solution.trained.support, KnownSupport):  # it may be thin
        around = narrowed(around, solution.trained.support.declared, points, WITHIN_SHARE)
    return [around]


def next_phase(phase: Phase, *, arrived: bool) -> Phase:
    """Searching until it has arrived, adapting for one iteration, then settled."""
    if phase is Phase.SEARCHING:
        return Phase.ADAPTING if arrived else Phase.SEARCHING
    return Phase.SETTLED


@dataclass(frozen=True, eq=False)
class Estimate:
    """The posterior and the evidence of a solution, and the held-out residuals behind its error."""

    evidence: Evidence
    mixture: Mixture
    residuals: Array


def estimated(
    state: State,
    solution: Solution,
    residuals: Array,
    found: Sequence[NormalMixture],
    settings: Settings,
    streams: RandomStreams,
) -> Estimate:
    """What is believed of a solution: q, the posterior before and ``found`` are the proposals."""
    squares = float(residuals @ residuals)
    evidence, mixture = settings.evidence.estimate(
        solution.mixture,
        solution.surrogate,
        solution.elbo,
        track_record(state.history, len(residuals), squares),
        streams.generator("evidence", state.iteration),
        searching=state.searching,
        proposals=[*found, *_earlier_posterior(state, solution.transform), *_within(solution)],
        support=solution.trained.support,
    )
    return Estimate(evidence, mixture, residuals)


def judged(
    state: State,
    solution: Solution,
    estimate: Estimate,
    n_evaluations: int,
    names: tuple[str, ...],
    settings: Settings,
    streams: RandomStreams,
) -> Iteration:
    """The row of the history for a new solution; whether it is stable is not known yet."""
    surrogate, elbo, evidence = solution.surrogate, solution.elbo, estimate.evidence
    if isinstance(estimate.mixture, CutMixture):  # q knows of no edge, and its bound is none
        elbo = sampled_elbo(estimate.mixture, surrogate)
    posterior = Posterior(estimate.mixture, solution.transform, names)
    posterior_error = math.nan
    if not state.searching:
        generator = streams.generator("posterior error", state.iteration)
        posterior_error = settings.accuracy.estimate(
            estimate.mixture, surrogate, evidence.inflation, generator
        )
    residuals = estimate.residuals
    return Iteration(
        iteration=state.iteration + 1,
        n_evaluations=n_evaluations,
        n_training=surrogate.training.n_points,
        elbo=elbo.value,
        elbo_sd=elbo.sd,
        elcbo=elbo.elcbo(settings.variational.beta_lcb),
        log_evidence=evidence.log_evidence,
        log_evidence_sd=evidence.sd,
        n_components=solution.mixture.n_components,
        n_pruned=solution.n_pruned,
        n_hyperparameter_samples=surrogate.n_samples,
        retrained=solution.trained.retrained,
        hyperparameter_variance=_spread(elbo.expected_log_joint.mean_by_sample),
        n_held_out=len(residuals),
        held_out_squares=float(residuals @ residuals),
        posterior_error=posterior_error,
        noise_sd=math.sqrt(surrogate.noise_variance + surrogate.training.typical_noise_variance),
        jitter=float(np.max(surrogate.jitter)),
        features=features(state, elbo, posterior, evidence, settings),
        warm_up=state.searching,
        stable=False,
        whitened=solution.transform.number != state.transform.number,
        evidence=evidence,
        posterior=posterior,
    )


def may_stop(
    history: Sequence[Iteration], state: State, settings: Settings, loosened: float = 1.0
) -> bool:
    """Whether the solution is stable (S2.4.2) and, where that is tested, accurate.

    With a tolerance ``loosened`` by that factor.
    """
    if state.searching:
        return False
    reliabilities = [past.features and past.features.loosened(loosened) for past in history]
    elcbo = [past.elcbo for past in history]
    if not is_stable(reliabilities, elcbo, settings.stopping):
        return False
    errors = [past.posterior_error for past in history]
    return settings.accuracy.is_small(errors, state.transform.dimension)


def has_arrived(
    history: Sequence[Iteration],
    solution: Solution,
    evaluations: Sequence[Evaluation],
    settings: Settings,
) -> bool:
    """Whether the warm-up has found the bulk of the posterior (Section 3.5)."""
    usable = [entry for entry in evaluations if entry.usable]
    _, values = working_values(usable, solution.transform)
    elcbo = spaced_elcbo(history, settings.n_active)
    return settings.warm_up.is_over(elcbo, values, solution.surrogate, settings.n_active)


def spaced_elcbo(history: Sequence[Iteration], n_active: int) -> list[float]:
    """ELCBOs at least one iteration's usual number of evaluations apart, newest last.

    On the way up an iteration has fewer evaluations than the rules on iterations have in mind.
    """
    chosen = [history[-1]]
    for past in reversed(history[:-1]):
        if chosen[-1].n_evaluations - past.n_evaluations >= n_active:
            chosen.append(past)
    return [past.elcbo for past in reversed(chosen)]


def held_out_residuals(
    state: State, evaluations: Sequence[Evaluation], settings: Settings
) -> Array:
    """Residuals of the held-out draws that came in since the last surrogate was trained: (m,)."""
    if state.trained is None:
        return np.empty(0)
    surrogate = state.trained.surrogate
    n_seen = state.history[-1].n_evaluations
    new = [entry for entry in evaluations if entry.usable and entry.index >= n_seen]
    names = {rule.name for rule in settings.rules if rule.held_out} | {TEST, SECOND, RIM}
    draws = [entry for entry in new if entry.rule in names]
    # Journals of the first release name no rule: they go on with its guess, whose turn it was.
    if not (state.searching or settings.warm_up.must_climb(surrogate)):
        draws += [entry for entry in new if not entry.rule and _had_turn(entry, settings)]
    if not draws:
        return np.empty(0)
    inputs, values = joining_values(draws, state.trained.transform, surrogate.training)
    return standardised_residuals(surrogate, inputs, values, known_noise_variance(draws))


def _had_turn(entry: Evaluation, settings: Settings) -> bool:
    rules = settings.rules
    return entry.identifier is not None and rules[entry.identifier % len(rules)].held_out


def track_record(history: Sequence[Iteration], n_new: int = 0, squares: float = 0.0) -> TrackRecord:
    """The history's, with new held-out residuals: their number and the sum of their squares."""
    return TrackRecord(
        n_held_out=(*(past.n_held_out for past in history), n_new),
        squares=(*(past.held_out_squares for past in history), squares),
        estimates=tuple(past.log_evidence for past in history),
        sds=tuple(math.inf if past.warm_up else past.log_evidence_sd for past in history),
        n_evaluations=tuple(past.n_evaluations for past in history),
    )


def features(
    state: State,
    elbo: Elbo,
    posterior: Posterior,
    evidence: Evidence,
    settings: Settings,
) -> Reliability | None:
    """rho_1 to rho_3 against the previous iteration (S2.4.1); None without one.

    rho_2 is the error of the log evidence: in the paper the ELBO's sd, in the default inflated by
    what held-out draws show.
    """
    if not state.history:
        return None
    before = state.history[-1]
    old = before.posterior
    kl = gaussianised_symmetric_kl(
        posterior.mixture.mean,
        posterior.mixture.covariance,
        *moments_in(old.mixture, old.transform, posterior.transform),
    )
    gain = elbo.value - before.elbo
    return Reliability.of(gain, evidence.sd, kl, posterior.dimension, settings.stopping)


def _spread(means: Array) -> float:
    return float(np.var(means, ddof=1)) if len(means) > 1 else 0.0
