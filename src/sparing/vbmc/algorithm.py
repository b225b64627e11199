"""One iteration of Algorithm 1 as pure functions: state and evaluations in, solutions out.

No target call, clock or output here; ``engine.py`` calls the phases in order and times them:
``propose`` (lines 4 to 15), ``train_surrogate`` (16 to 20), ``fit_posterior`` (21 to 22),
``other_coordinates`` and ``better_surrogate``, and ``assessment.complete_iteration`` (23).

    t      iteration, counted from 1            n_gp   hyperparameter samples
    q_t    variational posterior                K_t    its number of components
    psi    GP hyperparameters                   n      training points
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparing.acquisition.propose import next_point
from sparing.numerics.arrays import Array
from sparing.numerics.random_streams import RandomStreams
from sparing.problem.evaluations import Evaluation
from sparing.problem.parameter_transform import ParameterTransform
from sparing.surrogate.gaussian_process import GaussianProcess, condition
from sparing.surrogate.hyperparameters import empirical_bayes_prior
from sparing.surrogate.map_then_slice.training import best_log_posterior, train
from sparing.surrogate.training_data import training_set
from sparing.variational.components import next_n_components, prune, restored_n_components
from sparing.variational.elbo import evaluate_elbo
from sparing.variational.fit import fit
from sparing.variational.mixture import GaussianMixture
from sparing.variational.whitening import anisotropy, whitening_matrix
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import INITIAL_COMPONENTS, Solution, State
from sparing.vbmc.stopping import is_improving


def n_new_points(state: State, settings: Settings) -> int:
    """How many evaluations the coming iteration makes before it refits."""
    if state.iteration == 0:
        return settings.initial_design.size(state.transform.dimension)
    if state.warm_up_just_ended:
        return 0  # Section 3.5: q adapts first
    if state.solution is not None and must_climb(state.solution.gp, settings):
        return settings.acquisition.n_climbing
    return settings.acquisition.n_active


def propose(
    state: State,
    gp: GaussianProcess,
    count: int,
    settings: Settings,
    streams: RandomStreams,
    *,
    pending: bool,
) -> tuple[Array, str]:
    """The next point to evaluate, in the user's coordinates, (D,), and its rule's name.

    ``gp`` is the last surrogate with everything that arrived since appended (rank-one updates),
    ``count`` the running number of the proposal, ``pending`` whether others are being evaluated.
    """
    # What was taken for the bulk may turn out to lie far below it: then the search goes on.
    searching = state.warm_up or must_climb(gp, settings)
    rule = settings.acquisition.rule(count, warm_up=searching, pending=pending)
    generator = streams.generator("acquisition", count)
    mixture = state.mixture if searching else state.history[-1].posterior.mixture
    u = next_point(rule, count, gp, mixture, settings.acquisition, generator)
    return state.transform.to_user(_within_reach(u[None, :], state.transform))[0], rule.value


def must_climb(gp: GaussianProcess, settings: Settings) -> bool:
    """Whether even the best few points differ by more than points of one posterior do."""
    best = np.sort(gp.training.values)[-2 * gp.dimension - 2 :]
    return settings.warm_up.watch_values and float(np.ptp(best)) > 2.0 * gp.dimension


def _within_reach(u: Array, transform: ParameterTransform) -> Array:
    """Keep proposals near the plausible box: a density that never falls has no mass to find."""
    lower, upper = transform.reachable_box()
    matrix, offset = transform.standardised_map()
    s = u @ matrix.T + offset
    if np.all((s >= lower) & (s <= upper)):
        return u
    return (np.clip(s, lower, upper) - offset) @ np.linalg.inv(matrix).T


def train_surrogate(
    state: State,
    transform: ParameterTransform,
    evaluations: Sequence[Evaluation],
    settings: Settings,
    streams: RandomStreams,
) -> GaussianProcess:
    """Lines 16 to 20 of Algorithm 1: sample the hyperparameters, or optimise them."""
    training = training_set(kept(state, evaluations), transform, settings.deep_values)
    if transform is state.transform and not retraining_is_due(state, training.n_points, settings):
        assert state.solution is not None
        return condition(training, state.solution.gp.hyperparameters)
    generator = streams.generator("hyperparameters", state.iteration)
    prior = empirical_bayes_prior(training, np.ones(transform.dimension), settings.surrogate)
    previous = None
    if state.solution is not None and transform is state.solution.transform:
        previous = state.solution.gp.hyperparameters
    n_samples = None
    if not state.sampling_stopped:
        n_samples = settings.hyperparameters.n_samples(len(training.values), warm_up=state.warm_up)
    psi = train(training, prior, settings.surrogate, n_samples, generator, previous)
    return condition(training, psi)


def retraining_is_due(state: State, n_training: int, settings: Settings) -> bool:
    """Whether the training set has grown enough since the hyperparameters were last trained."""
    if state.solution is None or state.warm_up or state.warm_up_just_ended:
        return True
    last = next(info.n_training for info in reversed(state.history) if info.retrained)
    return n_training >= (1.0 + settings.hyperparameters.retraining_growth) * last


def kept(state: State, evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """The evaluations that train the surrogate."""
    return [entry for entry in evaluations if entry.index not in state.trimmed]


def fit_posterior(
    state: State,
    transform: ParameterTransform,
    mixture: GaussianMixture,
    gp: GaussianProcess,
    settings: Settings,
    streams: RandomStreams,
) -> Solution:
    """Lines 21 and 22 of Algorithm 1: update K, optimise the ELBO, prune."""
    variational = settings.variational
    generator = streams.generator("variational", state.iteration)
    first = state.iteration == 0 or state.warm_up_just_ended
    fitted = fit(
        mixture,
        gp,
        # In whitened coordinates the start is the fit of this iteration, which may have grown.
        n_components=max(
            mixture.n_components, _n_components(state, len(gp.training.values), settings)
        ),
        settings=variational,
        equal_weights=state.warm_up,
        many_starts=first or transform is not state.transform,
        fast_learning=state.warm_up,
        generator=generator,
    ).mixture
    n_pruned = 0
    if not state.warm_up:
        fitted, n_pruned = prune(fitted, gp, variational, generator)
    elbo = evaluate_elbo(fitted, gp, variational.n_final_entropy_samples, generator)
    return Solution(transform, gp, fitted, elbo, n_pruned)


def _n_components(state: State, n_training: int, settings: Settings) -> int:
    """K_t (Section 3.6); two during the warm-up (Section 3.5)."""
    if state.warm_up:
        return INITIAL_COMPONENTS
    current = state.mixture.n_components
    if settings.variational.restore_components:
        recent = [info.n_components for info in state.history if not info.warm_up]
        current = restored_n_components(current, recent)
    elcbo = [info.elcbo for info in state.history]
    last_pruned = max((info.iteration for info in state.history if info.n_pruned > 0), default=-99)
    return next_n_components(
        current,
        improving=is_improving(elcbo, settings.stopping),
        stable=bool(state.history) and state.history[-1].reliability < 1.0,
        iterations_since_pruning=state.iteration + 1 - last_pruned,
        n_training=n_training,
    )


def other_coordinates(
    state: State, solution: Solution, settings: Settings
) -> list[ParameterTransform]:
    """Coordinates worth trying: whitened by q where it is not round, and the first ones again."""
    whitening = settings.whitening
    if whitening is None or state.warm_up or state.transform.dimension == 1:
        return []
    if state.iteration - state.last_whitening < whitening.every:
        return []
    candidates = []
    covariance = solution.mixture.covariance
    if anisotropy(covariance) >= whitening.condition_number:
        matrix = whitening_matrix(covariance, whitening.correlation_floor, whitening.width)
        candidates.append(state.transform.whitened(solution.mixture.mean, matrix))
    if state.transform.whitening is not None:
        candidates.append(replace(state.transform, whitening=None))
    return candidates


def better_surrogate(
    state: State,
    current: GaussianProcess,
    candidates: Sequence[ParameterTransform],
    evaluations: Sequence[Evaluation],
    settings: Settings,
    streams: RandomStreams,
) -> tuple[ParameterTransform, GaussianProcess] | None:
    """The coordinates in which the surrogate describes the values best, if not the current ones.

    Judged by the marginal likelihood: the ELBO of a surrogate that is wrong may be anything.
    """
    assert settings.whitening is not None
    best, threshold = None, surrogate_score(current, settings) + settings.whitening.minimal_gain
    for transform in candidates:
        gp = train_surrogate(state, transform, evaluations, settings, streams)
        score = surrogate_score(gp, settings)
        if score >= threshold:
            best, threshold = (transform, gp), score
    return best


def surrogate_score(gp: GaussianProcess, settings: Settings) -> float:
    """How well the surrogate describes its values, in nats; comparable between coordinates."""
    prior = empirical_bayes_prior(gp.training, np.ones(gp.dimension), settings.surrogate)
    return best_log_posterior(gp.training, prior, settings.surrogate, gp.hyperparameters)
