"""How candidate starting points are ranked (Section S1.3.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparing.numerics.arrays import Array
from sparing.variational.objective import Objective
from sparing.variational.starts import Candidates


@dataclass(frozen=True)
class RankByLowerBound:
    """With Jensen's lower bound of the entropy: free of noise, and cheap."""

    def scores(self, candidates: Candidates, objective: Objective, seed: int) -> Array:
        """F of each candidate, (C,)."""
        return objective.lower_bounds(candidates.parameters(), candidates.weights.shape[1])


@dataclass(frozen=True)
class RankByMonteCarlo:
    """With the entropy by Monte Carlo, as during the optimisation (the paper)."""

    n_samples: int = 100

    def scores(self, candidates: Candidates, objective: Objective, seed: int) -> Array:
        """F of each candidate, (C,); all of them with the same draws."""
        mixtures = (candidates.mixture(index) for index in range(len(candidates)))
        return np.array([objective.value(mixture, self.n_samples, seed) for mixture in mixtures])
