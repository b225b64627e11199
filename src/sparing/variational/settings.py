"""Settings of the variational fit; every constant names its origin."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass


class EntropyEstimate(enum.Enum):
    """Which entropy ranks the candidate starting points."""

    MONTE_CARLO = "Monte Carlo, as during the optimisation (Section S1.3.2)"
    LOWER_BOUND = "Jensen's lower bound, free of noise and cheap"


@dataclass(frozen=True)
class VariationalSettings:
    """Constants of the fit, of pruning and of the ELBO; defaults are the default preset."""

    # Candidate starting points per component, and in the first iteration and the first after
    # warm-up (Section S1.3.2).
    n_fast: int = 5
    n_fast_many: int = 50
    candidate_entropy: EntropyEstimate = EntropyEstimate.LOWER_BOUND
    # Fraction of candidates some of whose components start at high training points (not in the
    # paper: splits of existing components cannot reach a mode that q has missed).
    data_fraction: float = 0.25

    # Entropy draws N_s per component during the optimisation (Section S1.1: 100; a multiple of 8
    # fills the vector units), cut so that all components together draw at most
    # max_entropy_samples, since the noise of the gradient depends on the total; and mirrored in
    # pairs ±ε, by which most of the noise in the means' gradient cancels.
    n_entropy_samples: int = 96
    max_entropy_samples: float = 2400
    mirrored_samples: bool = True
    # Draws per component for the ELBO at the end of an iteration (Section S1.1: 2^15), and for
    # comparing two mixtures with common random numbers.
    n_final_entropy_samples: int = 2**12
    n_comparison_samples: int = 512

    # The modified Adam (Section S1.3.3).
    rate_min: float = 0.001
    rate_max_warm_up: float = 0.1
    rate_max: float = 0.02  # paper 0.01; at equal cost 0.02 ended 0.002 to 0.01 nats higher
    rate_decay: float = 200.0
    momentum: float = 0.9
    second_momentum: float = 0.99
    epsilon: float = 1.49e-8
    n_batch: int = 20
    # Whether steps of the means are in units of three sds of q rather than of the coordinates
    # (not in the paper): the same progress for posteriors much narrower or wider than the box.
    standardise_steps: bool = True
    # Thresholds of its stopping rule, which the paper leaves open: change of the ELBO and root
    # mean square change of the parameters over a batch.
    value_tolerance: float = 1e-3
    parameter_tolerance: float = 1e-3
    # Most steps: base + per_component K, at most 10 000 (the paper gives none).
    max_steps_base: int = 500
    max_steps_per_component: int = 10

    # Pruning (Section 3.6) and the risk sensitivity of the ELCBO (Eq. 8).
    min_weight: float = 0.01
    pruning_tolerance: float = 0.01
    # Whether a sudden fall of K is made good in the next iteration (not in the paper).
    restore_components: bool = True
    beta_lcb: float = 3.0

    # Soft bounds (not in the paper): means inside the box of the training inputs widened by
    # box_margin widths on each side, sds of components between two fractions of the box width.
    # The penalty is ½ stiffness excess², in box widths for means and in log units for sds.
    box_margin: float = 0.5
    smallest_sd: float = 1e-5
    largest_sd: float = 1.0
    mean_stiffness: float = 100.0
    scale_stiffness: float = 100.0
    # Price in nats per unit of weight below about weight_threshold (not in the paper): components
    # that earn less die instead of lingering.
    weight_pressure: float = 0.1
    weight_threshold: float = 0.01

    @classmethod
    def paper(cls) -> VariationalSettings:
        """The 2018 algorithm to the letter."""
        return cls(
            candidate_entropy=EntropyEstimate.MONTE_CARLO,
            data_fraction=0.0,
            n_entropy_samples=100,
            max_entropy_samples=math.inf,
            mirrored_samples=False,
            n_final_entropy_samples=2**15,
            rate_max=0.01,
            standardise_steps=False,
            mean_stiffness=0.0,
            scale_stiffness=0.0,
            weight_pressure=0.0,
            restore_components=False,
            max_steps_base=10_000,
        )

    def entropy_samples(self, n_components: int) -> int:
        """Draws N_s per component and step of the optimisation; a multiple of 8 when cut."""
        share = self.max_entropy_samples / n_components
        if share >= self.n_entropy_samples:
            return self.n_entropy_samples
        return max(8, 8 * math.floor(share / 8.0))

    def max_steps(self, n_components: int) -> int:
        """Most steps of one optimisation."""
        return min(10_000, self.max_steps_base + self.max_steps_per_component * n_components)
