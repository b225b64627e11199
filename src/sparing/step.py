"""One iteration of Algorithm 1 as pure functions: state and evaluations in, state and info out.

No target call, clock or output here; ``inference.py`` calls the phases in order and times them.

    t      iteration, counted from 1            n_gp   hyperparameter samples
    q_t    variational posterior                K_t    its number of components
    psi    GP hyperparameters                   n      training points

Phases of an iteration: ``next_proposal`` (lines 4 to 15), ``train_surrogate`` (16 to 20),
``fit_posterior`` (21 to 22), ``try_whitening``, ``complete_iteration`` (23).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sparing.acquisition.propose import Rule, next_point
from sparing.diagnostics import standardised_residuals, variance_inflation
from sparing.evaluation_log import Evaluation
from sparing.evidence import Evidence, estimate_evidence
from sparing.linear_algebra import Array
from sparing.parameter_transform import ParameterTransform
from sparing.posterior import Posterior
from sparing.problem import Problem
from sparing.random_streams import RandomStreams
from sparing.settings import Settings
from sparing.stopping import (
    Reliability,
    is_improving,
    is_stable,
    reliability,
    warm_up_is_over,
)
from sparing.surrogate.gaussian_process import GaussianProcess, condition
from sparing.surrogate.hyperparameters import empirical_bayes_prior
from sparing.surrogate.training import fit_map, sample_posterior
from sparing.training_data import training_set, trimmed_indices
from sparing.variational.components import next_n_components, prune
from sparing.variational.divergence import gaussianised_symmetric_kl
from sparing.variational.elbo import Elbo, evaluate_elbo
from sparing.variational.fit import fit
from sparing.variational.mixture import GaussianMixture
from sparing.whitening import anisotropy, change_of_coordinates, whitening_matrix

# The first q: two components near x0, small against the plausible box, which has width 1
# (Section 3.5 asks for "small values" only).
INITIAL_COMPONENTS = 2
INITIAL_SCALE = 0.01


@dataclass(frozen=True)
class IterationInfo:
    """What one iteration did; the rows of ``result.history``."""

    iteration: int
    n_evaluations: int
    n_training: int
    elbo: float
    elbo_sd: float
    elcbo: float
    log_evidence: float
    log_evidence_sd: float
    n_components: int
    n_pruned: int
    n_hyperparameter_samples: int
    hyperparameter_variance: float  # of the expected log joint over hyperparameter samples
    n_held_out: int  # posterior draws predicted by the surrogate before they were evaluated
    held_out_squares: float  # sum of their squared standardised residuals
    jitter: float  # largest variance added to the surrogate's diagonal to factorise it
    features: Reliability | None
    warm_up: bool
    stable: bool
    whitened: bool
    evidence: Evidence
    posterior: Posterior
    timings: Mapping[str, float]  # seconds the library spent, by phase

    @property
    def n(self) -> int:
        """Number of evaluations so far."""
        return self.n_evaluations

    @property
    def K(self) -> int:  # noqa: N802 (the paper's letter)
        """Number of mixture components."""
        return self.n_components

    @property
    def reliability(self) -> float:
        """The reliability index rho(t) (S2.4.1); NaN in the first iteration."""
        return float("nan") if self.features is None else self.features.index

    @property
    def seconds(self) -> float:
        """Seconds the library itself spent in this iteration, target time excluded."""
        return float(sum(self.timings.values()))


@dataclass(frozen=True, eq=False)
class Solution:
    """A surrogate and the variational posterior fitted to it, in the same coordinates."""

    transform: ParameterTransform
    gp: GaussianProcess
    mixture: GaussianMixture
    elbo: Elbo
    n_pruned: int
    trained_on: tuple[int, ...] = ()  # evaluations of the surrogate; set once it is accepted


@dataclass(frozen=True, eq=False)
class State:
    """All that the next iteration needs, apart from the log."""

    transform: ParameterTransform
    mixture: GaussianMixture
    solution: Solution | None  # of the last iteration; None before the first
    warm_up: bool
    warm_up_just_ended: bool
    sampling_stopped: bool  # StopSampling of Algorithm 1
    trimmed: frozenset[int]  # evaluations left out of the training set for good
    last_whitening: int  # iteration at which a whitening was last tried
    history: tuple[IterationInfo, ...]

    @property
    def iteration(self) -> int:
        """t, the number of completed iterations."""
        return len(self.history)


def initial_state(transform: ParameterTransform, starting_points: Array) -> State:
    """Line 1 of Algorithm 1: q_0 near x0, or at the centre of the plausible box."""
    dimension = transform.dimension
    points = starting_points[:INITIAL_COMPONENTS]
    centres = transform.to_working(points) if len(points) else np.zeros((1, dimension))
    means = centres[np.arange(INITIAL_COMPONENTS) % len(centres)]
    mixture = GaussianMixture(
        weights=np.full(INITIAL_COMPONENTS, 1.0 / INITIAL_COMPONENTS),
        means=means,
        scales=np.full(INITIAL_COMPONENTS, INITIAL_SCALE),
        lengths=np.ones(dimension),
    )
    return State(
        transform=transform,
        mixture=mixture,
        solution=None,
        warm_up=True,
        warm_up_just_ended=False,
        sampling_stopped=False,
        trimmed=frozenset(),
        last_whitening=0,
        history=(),
    )


def n_new_points(state: State, settings: Settings) -> int:
    """How many evaluations the coming iteration makes before it refits."""
    if state.iteration == 0:
        return settings.initial_design.size(state.transform.dimension)
    if state.warm_up_just_ended:
        return 0  # Section 3.5: q adapts first
    return settings.acquisition.n_active


def propose(
    state: State,
    gp: GaussianProcess,
    count: int,
    settings: Settings,
    streams: RandomStreams,
    *,
    pending: bool,
) -> Array:
    """The next point to evaluate, in the user's coordinates: (D,).

    ``gp`` is the last surrogate with everything that arrived since appended (rank-one updates),
    ``count`` the running number of the proposal, ``pending`` whether others are being evaluated.
    """
    rule = settings.acquisition.rule(count, warm_up=state.warm_up, pending=pending)
    generator = streams.generator("acquisition", count)
    u = next_point(rule, count, gp, state.mixture, settings.acquisition, generator)
    return state.transform.to_user(_within_reach(u[None, :], state.transform))[0]


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
    training = training_set(_kept(state, evaluations), transform, settings.noise_shaping)
    generator = streams.generator("hyperparameters", state.iteration)
    prior = empirical_bayes_prior(training, np.ones(transform.dimension), settings.surrogate)
    previous = None
    if state.solution is not None and transform is state.solution.transform:
        previous = state.solution.gp.hyperparameters
    best = fit_map(training, prior, settings.surrogate, generator, previous)
    if state.sampling_stopped:
        return condition(training, best[None, :])
    n_samples = settings.hyperparameters.n_samples(len(training.values), warm_up=state.warm_up)
    samples = sample_posterior(training, prior, settings.surrogate, best, n_samples, generator)
    return condition(training, samples)


def _kept(state: State, evaluations: Sequence[Evaluation]) -> list[Evaluation]:
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
    elcbo = [info.elcbo for info in state.history]
    last_pruned = max((info.iteration for info in state.history if info.n_pruned > 0), default=-99)
    return next_n_components(
        state.mixture.n_components,
        improving=is_improving(elcbo, settings.stopping),
        stable=bool(state.history) and state.history[-1].reliability < 1.0,
        iterations_since_pruning=state.iteration + 1 - last_pruned,
        n_training=n_training,
    )


def whitening_candidate(
    state: State, solution: Solution, settings: Settings
) -> ParameterTransform | None:
    """New coordinates worth trying, or None: after the warm-up, when q is not round."""
    whitening = settings.whitening
    if whitening is None or state.warm_up or state.transform.dimension == 1:
        return None
    if state.iteration - state.last_whitening < whitening.every:
        return None
    covariance = solution.mixture.covariance
    if anisotropy(covariance) < whitening.condition_number:
        return None
    matrix = whitening_matrix(covariance, whitening.correlation_floor, whitening.width)
    return state.transform.whitened(solution.mixture.mean, matrix)


def preferred(current: Solution, whitened: Solution, settings: Settings) -> Solution:
    """The whitened solution where its ELBO gains enough, else the current one."""
    if settings.whitening is None:
        return current
    gain = whitened.elbo.value - current.elbo.value
    return whitened if gain >= settings.whitening.minimal_gain else current


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
    stopping = settings.stopping
    posterior = Posterior(solution.mixture, solution.transform, problem.names)
    expected = solution.elbo.expected_log_joint
    residuals = held_out_residuals(state, evaluations, settings)
    evidence = estimate_evidence(
        solution.mixture,
        solution.gp,
        solution.elbo,
        variance_inflation(
            [*(past.n_held_out for past in state.history), len(residuals)],
            [*(past.held_out_squares for past in state.history), float(residuals @ residuals)],
            settings.calibration,
        ),
        settings.evidence,
        streams.generator("evidence", state.iteration),
    )
    features = _features(state, solution, posterior, evidence, settings)
    info = IterationInfo(
        iteration=state.iteration + 1,
        n_evaluations=n_evaluations,
        n_training=len(solution.gp.training.values),
        elbo=solution.elbo.value,
        elbo_sd=solution.elbo.sd,
        elcbo=solution.elbo.elcbo(stopping.beta_lcb),
        log_evidence=evidence.log_evidence,
        log_evidence_sd=evidence.sd,
        n_components=solution.mixture.n_components,
        n_pruned=solution.n_pruned,
        n_hyperparameter_samples=len(solution.gp.hyperparameters),
        hyperparameter_variance=_spread(expected.mean_by_sample),
        n_held_out=len(residuals),
        held_out_squares=float(residuals @ residuals),
        jitter=float(np.max(solution.gp.jitter)),
        features=features,
        warm_up=state.warm_up,
        stable=False,
        whitened=solution.transform is not state.transform,
        evidence=evidence,
        posterior=posterior,
        timings={},
    )
    elcbo = [*(past.elcbo for past in state.history), info.elcbo]
    reliabilities = [*(past.features for past in state.history), features]
    stable = not state.warm_up and is_stable(reliabilities, elcbo, stopping)
    history = (*state.history, replace(info, stable=stable))
    warm_up_ends = state.warm_up and warm_up_is_over(elcbo, settings.warm_up)
    trained_on = tuple(entry.index for entry in _kept(state, evaluations))
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


def held_out_residuals(
    state: State, evaluations: Sequence[Evaluation], settings: Settings
) -> Array:
    """Residuals of the posterior draws that came in since the last surrogate was trained: (m,)."""
    if state.solution is None or state.warm_up:
        return np.empty(0)
    seen = state.history[-1].n_evaluations
    draws = [
        entry
        for entry in evaluations
        if entry.usable
        and entry.index >= seen
        and entry.identifier is not None
        and settings.acquisition.rule(entry.identifier, warm_up=False, pending=False)
        is Rule.POSTERIOR_DRAW
    ]
    if not draws:
        return np.empty(0)
    batch = training_set(draws, state.transform, None)
    return standardised_residuals(
        state.solution.gp, batch.inputs, batch.values, batch.noise_variance
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


def _spread(means: Array) -> float:
    return float(np.var(means, ddof=1)) if len(means) > 1 else 0.0
