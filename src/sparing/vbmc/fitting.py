"""Fitting the variational posterior in one iteration (Algorithm 1, lines 21 and 22).

K_t    number of components of q_t        n   training points
"""

from __future__ import annotations

from sparing.numerics.random_streams import RandomStreams
from sparing.variational.components import Progress
from sparing.variational.elbo import evaluate_elbo
from sparing.variational.fit import fit
from sparing.variational.mixture import GaussianMixture
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import INITIAL_COMPONENTS, Phase, Solution, State, TrainedSurrogate
from sparing.vbmc.stopping import is_improving


def fit_posterior(
    state: State,
    trained: TrainedSurrogate,
    start: GaussianMixture,
    settings: Settings,
    streams: RandomStreams,
) -> Solution:
    """Update K, optimise the ELBO from the start, prune."""
    variational, surrogate = settings.variational, trained.surrogate
    generator = streams.generator("variational", state.iteration)
    before = state.trained
    in_new_coordinates = before is not None and trained.transform.number != before.transform.number
    mixture = fit(
        start,
        surrogate,
        # In whitened coordinates the start is the fit of this iteration, which may have grown.
        n_components=max(
            start.n_components, n_components(state, surrogate.training.n_points, settings)
        ),
        settings=variational,
        searching=state.searching,
        first=state.iteration == 0 or state.phase is Phase.ADAPTING or in_new_coordinates,
        generator=generator,
    )
    n_pruned = 0
    if not state.searching:
        beta, n_draws = variational.beta_lcb, variational.n_comparison_samples
        mixture, n_pruned = variational.pruning.prune(mixture, surrogate, beta, n_draws, generator)
    elbo = evaluate_elbo(mixture, surrogate, variational.n_final_entropy_samples, generator)
    return Solution(trained, mixture, elbo, n_pruned)


def n_components(state: State, n_training: int, settings: Settings) -> int:
    """K_t (Section 3.6); two during the warm-up (Section 3.5)."""
    if state.searching:
        return INITIAL_COMPONENTS
    history = state.history
    last_pruned = max((past.iteration for past in history if past.n_pruned > 0), default=-99)
    progress = Progress(
        improving=is_improving([past.elcbo for past in history], settings.stopping),
        stable=bool(history) and history[-1].reliability < 1.0,
        iterations_since_pruning=state.iteration + 1 - last_pruned,
        n_training=n_training,
    )
    return settings.variational.growth.next(state.mixture.n_components, progress)
