"""The end of an iteration: judge the solution, decide what comes next (Algorithm 1, line 23).

rho_1..3   reliability features (S2.4.1)       z   standardised residuals of held-out draws
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparing.acquisition.propose import Rule
from sparing.numerics.arrays import Array
from sparing.numerics.random_streams import RandomStreams
from sparing.problem.evaluations import Evaluation
from sparing.problem.problem import Problem
from sparing.surrogate.training_data import (
    joining_values,
    known_noise_variance,
    trimmed_indices,
    working_values,
)
from sparing.variational.divergence import gaussianised_symmetric_kl
from sparing.variational.posterior import Posterior
from sparing.variational.whitening import change_of_coordinates
from sparing.vbmc.algorithm import kept, must_climb
from sparing.vbmc.evidence import Calibration, Evidence, corrected_posterior
from sparing.vbmc.held_out import (
    observation_variance,
    standardised_residuals,
    variance_inflation,
)
from sparing.vbmc.posterior_error import expected_posterior_error
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import IterationInfo, Solution, State
from sparing.vbmc.stopping import (
    Reliability,
    is_accurate,
    is_stable,
    reliability,
    warm_up_is_over,
)


def complete_iteration(
    state: State,
    solution: Solution,
    *,
    evaluations: Sequence[Evaluation],
    n_evaluations: int,
    whitening_tried: bool,
    problem: Problem,
    settings: Settings,
    streams: RandomStreams,
) -> State:
    """Line 23 of Algorithm 1: judge the new solution and decide what comes next.

    The info of the new state carries no timings yet; the caller, who has the clock, adds them.
    """
    expected = solution.elbo.expected_log_joint
    residuals = held_out_residuals(state, evaluations)
    evidence, mixture = corrected_posterior(
        solution.mixture,
        solution.gp,
        solution.elbo,
        calibration(state, residuals, settings),
        settings.evidence,
        streams.generator("evidence", state.iteration),
        warm_up=state.warm_up,
    )
    posterior = Posterior(mixture, solution.transform, problem.names)
    features = _features(state, solution, posterior, evidence, settings)
    posterior_error = _posterior_error(state, solution, evidence, settings, streams)
    info = IterationInfo(
        iteration=state.iteration + 1,
        n_evaluations=n_evaluations,
        n_training=len(solution.gp.training.values),
        elbo=solution.elbo.value,
        elbo_sd=solution.elbo.sd,
        elcbo=solution.elbo.elcbo(settings.variational.beta_lcb),
        log_evidence=evidence.log_evidence,
        log_evidence_sd=evidence.sd,
        n_components=solution.mixture.n_components,
        n_pruned=solution.n_pruned,
        n_hyperparameter_samples=len(solution.gp.hyperparameters),
        retrained=_retrained(state, solution),
        hyperparameter_variance=_spread(expected.mean_by_sample),
        n_held_out=len(residuals),
        held_out_squares=float(residuals @ residuals),
        posterior_error=posterior_error,
        noise_sd=math.sqrt(
            observation_variance(solution.gp) + solution.gp.training.typical_noise_variance
        ),
        jitter=float(np.max(solution.gp.jitter)),
        features=features,
        warm_up=state.warm_up,
        stable=False,
        whitened=solution.transform is not state.transform,
        evidence=evidence,
        posterior=posterior,
        timings={},
    )
    history = (*state.history, info)
    history = (*state.history, replace(info, stable=_may_stop(history, state, settings)))
    warm_up_ends = state.warm_up and _has_arrived(history, solution, evaluations, settings)
    trained_on = tuple(entry.index for entry in kept(state, evaluations))
    trimmed = state.trimmed
    if warm_up_ends:
        trimmed = trimmed_indices(
            evaluations, solution.transform, settings.warm_up.trim_per_dimension
        )
    return State(
        transform=solution.transform,
        mixture=solution.mixture,
        solution=replace(solution, trained_on=trained_on),
        warm_up=state.warm_up and not warm_up_ends,
        warm_up_just_ended=warm_up_ends,
        sampling_stopped=state.sampling_stopped or _sampling_brings_little(history, settings),
        trimmed=trimmed,
        last_whitening=state.iteration if whitening_tried else state.last_whitening,
        history=history,
    )


def _posterior_error(
    state: State,
    solution: Solution,
    evidence: Evidence,
    settings: Settings,
    streams: RandomStreams,
) -> float:
    """The expected gsKL to the truth; NaN during the warm-up and where it is not asked for."""
    if state.warm_up or settings.posterior_error is None:
        return float("nan")
    return expected_posterior_error(
        solution.mixture,
        solution.gp,
        evidence.inflation,
        settings.posterior_error,
        streams.generator("posterior error", state.iteration),
    )


def _may_stop(history: Sequence[IterationInfo], state: State, settings: Settings) -> bool:
    """Whether the solution is stable (S2.4.2) and, where that is tested, accurate."""
    if state.warm_up:
        return False
    reliabilities = [info.features for info in history]
    elcbo = [info.elcbo for info in history]
    if not is_stable(reliabilities, elcbo, settings.stopping):
        return False
    errors = [info.posterior_error for info in history]
    return settings.posterior_error is None or is_accurate(
        errors, state.transform.dimension, settings.stopping
    )


def _has_arrived(
    history: Sequence[IterationInfo],
    solution: Solution,
    evaluations: Sequence[Evaluation],
    settings: Settings,
) -> bool:
    """Whether the warm-up has found the bulk of the posterior (Section 3.5)."""
    warm_up = settings.warm_up
    if must_climb(solution.gp, settings):
        return False
    if warm_up_is_over(_spaced_elcbo(history, settings), warm_up):
        return True
    usable = [entry for entry in evaluations if entry.usable]
    n_recent = warm_up.n_iterations * settings.acquisition.n_active
    if not warm_up.watch_values or len(usable) < n_recent + solution.gp.dimension + 2:
        return False
    _, values = working_values(usable, solution.transform)
    return bool(values.max() < values[:-n_recent].max() + warm_up.tolerance_elcbo)


def _spaced_elcbo(history: Sequence[IterationInfo], settings: Settings) -> list[float]:
    """ELCBOs at least one iteration's usual number of evaluations apart, newest last.

    On the way up an iteration has fewer evaluations than the rules on iterations have in mind.
    """
    chosen = [history[-1]]
    for past in reversed(history[:-1]):
        if chosen[-1].n_evaluations - past.n_evaluations >= settings.acquisition.n_active:
            chosen.append(past)
    return [info.elcbo for info in reversed(chosen)]


def held_out_residuals(state: State, evaluations: Sequence[Evaluation]) -> Array:
    """Residuals of the posterior draws that came in since the last surrogate was trained: (m,)."""
    if state.solution is None:
        return np.empty(0)
    n_seen = state.history[-1].n_evaluations
    draws = [
        entry
        for entry in evaluations
        if entry.usable and entry.index >= n_seen and entry.rule == Rule.POSTERIOR_DRAW.value
    ]
    if not draws:
        return np.empty(0)
    gp = state.solution.gp
    inputs, values = joining_values(draws, state.transform, gp.training)
    return standardised_residuals(gp, inputs, values, known_noise_variance(draws))


def calibration(state: State, residuals: Array, settings: Settings) -> Calibration:
    """What held-out draws, with new residuals (m,), and the last estimates say about the error."""
    counts = [*(past.n_held_out for past in state.history), len(residuals)]
    squares = [*(past.held_out_squares for past in state.history), float(residuals @ residuals)]
    unproven = settings.calibration.unproven_variance
    return Calibration(
        inflation=variance_inflation(counts, squares, settings.calibration),
        error_inflation=variance_inflation(counts, squares, settings.calibration, unproven),
        recent=_recent_estimates(state, settings),
    )


def _recent_estimates(state: State, settings: Settings) -> tuple[float, ...]:
    """The last few log evidences after the warm-up that were estimates at all, oldest first."""
    limits = settings.calibration
    return tuple(
        past.log_evidence
        for past in state.history[-limits.n_estimates :]
        if not past.warm_up and past.log_evidence_sd <= limits.largest_sd
    )


def _features(
    state: State,
    solution: Solution,
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
    linear, offset = change_of_coordinates(old.transform, posterior.transform)
    kl = gaussianised_symmetric_kl(
        posterior.mixture.mean,
        posterior.mixture.covariance,
        linear @ old.mixture.mean + offset,
        linear @ old.mixture.covariance @ linear.T,
    )
    return reliability(
        elbo=solution.elbo.value,
        elbo_before=before.elbo,
        error=evidence.sd,
        symmetric_kl=kl,
        dimension=state.transform.dimension,
        settings=settings.stopping,
    )


def _sampling_brings_little(history: Sequence[IterationInfo], settings: Settings) -> bool:
    """Section 3.4: the spread over hyperparameter samples stayed below the threshold."""
    schedule = settings.hyperparameters
    recent = history[-schedule.n_iterations :]
    if len(recent) < schedule.n_iterations or any(info.warm_up for info in recent):
        return False
    return all(info.hyperparameter_variance < schedule.variance_threshold for info in recent)


def _retrained(state: State, solution: Solution) -> bool:
    """Whether the surrogate's hyperparameters are not those of the iteration before."""
    if state.solution is None:
        return True
    return not np.array_equal(solution.gp.hyperparameters, state.solution.gp.hyperparameters)


def _spread(means: Array) -> float:
    return float(np.var(means, ddof=1)) if len(means) > 1 else 0.0
