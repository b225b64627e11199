"""The adaptive number of mixture components (Section 3.6).

Notation
    ELCBO = E[G] + H[q] - β sqrt(Var[G])      Eq. 8, by which components are judged
    ξ_sk                                      draws from component k, for the entropy
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparing.surrogate.interface import Surrogate
from sparing.variational.elbo import combine_components, expected_log_joint
from sparing.variational.entropy import entropy_from_noise
from sparing.variational.mixture import GaussianMixture

# "Recently" in the rule for two extra components: n_recent of Section 3.6.
RECENT_ITERATIONS = 4


@dataclass(frozen=True)
class Progress:
    """What the number of components depends on."""

    improving: bool
    stable: bool
    iterations_since_pruning: int
    n_training: int


@dataclass(frozen=True)
class Growth:
    """Components are added while it helps (Section 3.6)."""

    def next(self, current: int, progress: Progress) -> int:
        """K of the next iteration, at most n^(2/3); it never falls here.

        One more while the solution improves and nothing was pruned in the last iteration; two more
        when it is stable and nothing was pruned recently.
        """
        wanted = current
        if progress.improving and progress.iterations_since_pruning > 1:
            wanted += 1
        if progress.stable and progress.iterations_since_pruning > RECENT_ITERATIONS:
            wanted += 2
        # 8^(2/3) rounds to just below 4
        largest = math.floor(progress.n_training ** (2.0 / 3.0) + 1e-9)
        return max(current, min(wanted, largest))


@dataclass(frozen=True)
class NoGrowth:
    """q keeps its components, where it is nothing but one proposal among others."""

    def next(self, current: int, progress: Progress) -> int:
        """K, as it is."""
        return current


@dataclass(frozen=True)
class Pruning:
    """Light components are removed where that costs less than ε of ELCBO (Section 3.6)."""

    min_weight: float = 0.01
    tolerance: float = 0.01

    def prune(
        self,
        mixture: GaussianMixture,
        surrogate: Surrogate,
        beta_lcb: float,
        n_draws: int,
        generator: np.random.Generator,
    ) -> tuple[GaussianMixture, int]:
        """The mixture without them, and how many they were; n_draws per component for the entropy.

        Components with w_k < w_min are tried in random order. A removal that raises the ELCBO is
        accepted however large the rise. The draws ξ and the integrals I_k, J_jk of the remaining
        components are the same before and after, so the difference carries little noise.
        """
        joint = expected_log_joint(mixture, surrogate)
        means, covariances = joint.component_means, joint.component_covariances
        noise = generator.standard_normal((mixture.n_components, n_draws, mixture.dimension))

        def elcbo(candidate: GaussianMixture, kept: NDArray[np.intp]) -> float:
            combined = combine_components(
                candidate.weights, means[:, kept], covariances[:, kept][:, :, kept]
            )
            entropy, _ = entropy_from_noise(candidate, noise[kept])
            return combined.mean + entropy - beta_lcb * math.sqrt(combined.variance)

        kept = np.arange(mixture.n_components)
        reference = elcbo(mixture, kept)
        order = generator.permutation(np.flatnonzero(mixture.weights < self.min_weight))
        for original_index in order:
            if kept.size == 1:
                break
            position = int(np.flatnonzero(kept == original_index)[0])
            if mixture.weights[position] >= self.min_weight:
                continue  # renormalising has lifted it over the threshold
            smaller = mixture.without(position)
            smaller_kept = np.delete(kept, position)
            value = elcbo(smaller, smaller_kept)
            if reference - value < self.tolerance:
                mixture, kept, reference = smaller, smaller_kept, value
        return mixture, len(noise) - kept.size
