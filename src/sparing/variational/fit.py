"""Fit the variational posterior to the current surrogate (Sections 3.2 and S1.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparing.surrogate.interface import Surrogate
from sparing.variational.adam import Adam
from sparing.variational.components import Growth, NoGrowth, Pruning
from sparing.variational.mixture import GaussianMixture
from sparing.variational.objective import NoPenalties, Objective, SoftPenalties
from sparing.variational.starts import (
    RankByLowerBound,
    RankByMonteCarlo,
    Starts,
    candidate_mixtures,
)


@dataclass(frozen=True)
class VariationalSettings:
    """Where the fit starts, how it climbs, how many components it has, and what it reports."""

    starts: Starts = Starts()
    ranking: RankByLowerBound | RankByMonteCarlo = RankByLowerBound()
    penalties: SoftPenalties | NoPenalties = SoftPenalties()
    ascent: Adam = Adam()
    growth: Growth | NoGrowth = Growth()
    pruning: Pruning = Pruning()
    # Draws per component for the ELBO at the end of an iteration (Section S1.1: 2^15), and for
    # comparing two mixtures with common random numbers.
    n_final_entropy_samples: int = 2**12
    n_comparison_samples: int = 512
    beta_lcb: float = 3.0  # risk sensitivity of the ELCBO, Eq. 8

    @classmethod
    def paper(cls) -> VariationalSettings:
        """The 2018 algorithm to the letter."""
        return cls(
            starts=Starts(data_fraction=0.0),
            ranking=RankByMonteCarlo(),
            penalties=NoPenalties(),
            ascent=Adam.paper(),
            n_final_entropy_samples=2**15,
        )


def fit(
    mixture: GaussianMixture,
    surrogate: Surrogate,
    *,
    n_components: int,
    settings: VariationalSettings,
    searching: bool,
    first: bool,
    generator: np.random.Generator,
) -> GaussianMixture:
    """Optimise the ELBO from the best of many variations of the current mixture.

    n_components   K of the result, at least that of mixture; new components are split off
    searching      hold w_k = 1/K and learn fast, as in the warm-up (Sections 3.5 and S1.3.3)
    first          compare more starts: first iteration, or the first after the warm-up

    The result is never worse than the current mixture or the best candidate by more than the
    noise of a comparison with common random numbers.
    """
    objective = Objective.create(surrogate, settings.penalties)
    seed = int(generator.integers(2**63))
    candidates = candidate_mixtures(
        mixture,
        surrogate.training,
        settings.starts.data_fraction,
        n_components=n_components,
        n_candidates=settings.starts.n_candidates(n_components, first=first),
        equal_weights=searching,
        generator=generator,
    )
    scores = settings.ranking.scores(candidates, objective, seed)
    incumbent = candidates.mixture(0)
    start = candidates.mixture(int(np.argmax(scores)))
    optimised, _, _ = settings.ascent.ascend(
        objective, start, searching=searching, generator=generator
    )

    def compare(candidate: GaussianMixture) -> float:
        return objective.value(candidate, settings.n_comparison_samples, seed)

    best = max((optimised, start, incumbent), key=compare)
    return settings.penalties.confined(best, surrogate)
