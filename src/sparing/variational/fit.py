"""Fit the variational posterior to the current Gaussian process (Sections 3.2 and S1.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparing.numerics.arrays import Array
from sparing.surrogate.gaussian_process import GaussianProcess
from sparing.variational.adam import AscentEnd, maximise
from sparing.variational.mixture import GaussianMixture
from sparing.variational.objective import Objective
from sparing.variational.settings import EntropyEstimate, VariationalSettings
from sparing.variational.starts import Candidates, candidate_mixtures


@dataclass(frozen=True, eq=False)
class FitResult:
    """The fitted mixture, and what it took."""

    mixture: GaussianMixture
    n_steps: int
    stopped_by: AscentEnd
    n_candidates: int


def fit(
    mixture: GaussianMixture,
    gp: GaussianProcess,
    *,
    n_components: int,
    settings: VariationalSettings,
    equal_weights: bool,
    many_starts: bool,
    fast_learning: bool,
    generator: np.random.Generator,
) -> FitResult:
    """Optimise the ELBO from the best of many variations of the current mixture.

    n_components     K of the result, at least that of mixture; new components are split off
    equal_weights    hold w_k = 1/K (warm-up, Section 3.5)
    many_starts      first iteration and first after warm-up (Section S1.3.2)
    fast_learning    the warm-up's learning rate (Section S1.3.3)

    The result is never worse than the current mixture or the best candidate by more than the
    noise of a comparison with common random numbers.
    """
    objective = Objective.create(gp, settings)
    n_candidates = n_components * (settings.n_fast_many if many_starts else settings.n_fast)
    seed = int(generator.integers(2**63))
    candidates = candidate_mixtures(
        mixture,
        gp.training,
        settings,
        n_components=n_components,
        n_candidates=n_candidates,
        equal_weights=equal_weights,
        generator=generator,
    )
    scores = _scores(candidates, objective, settings, seed)
    incumbent = candidates.mixture(0)
    start = candidates.mixture(int(np.argmax(scores)))
    optimised, n_steps, stopped_by = maximise(
        objective,
        start,
        settings,
        equal_weights=equal_weights,
        fast_learning=fast_learning,
        generator=generator,
    )

    def compare(candidate: GaussianMixture) -> float:
        n_draws = settings.n_comparison_samples
        return objective.value(candidate, EntropyEstimate.MONTE_CARLO, n_draws, seed)

    best = max((optimised, start, incumbent), key=compare)
    return FitResult(objective.confined(best), n_steps, stopped_by, n_candidates)


def _scores(
    candidates: Candidates, objective: Objective, settings: VariationalSettings, seed: int
) -> Array:
    """F of each candidate with the entropy that ranks them, (C,)."""
    match settings.candidate_entropy:
        case EntropyEstimate.LOWER_BOUND:
            return objective.lower_bounds(candidates.parameters(), candidates.weights.shape[1])
        case EntropyEstimate.MONTE_CARLO:
            n_samples = settings.n_entropy_samples
            mixtures = (candidates.mixture(index) for index in range(len(candidates)))
            return np.array(
                [
                    objective.value(mixture, EntropyEstimate.MONTE_CARLO, n_samples, seed)
                    for mixture in mixtures
                ]
            )
