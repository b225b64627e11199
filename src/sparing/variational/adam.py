"""Stochastic gradient ascent on the ELBO by the modified Adam (Section S1.3.3).

Random draws come from a pool that is filled once; each step reads a stretch of it that begins at
a random place. Drawing anew at every step would cost as much as the rest of the step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sparing.kernels.variational import maximise_objective
from sparing.numerics.arrays import Array
from sparing.variational.mixture import GaussianMixture
from sparing.variational.objective import Objective
from sparing.variational.parameterisation import from_parameters, normalised, to_parameters

# The pool holds at least this many draws, and this many times what one step reads.
MIN_POOL = 1 << 16
POOL_STEPS = 4


@dataclass(frozen=True)
class MirroredDraws:
    """Entropy draws in pairs ±ε, by which most of the noise in the means' gradient cancels.

    ``n_per_component`` draws N_s (Section S1.1: 100; a multiple of 8 fills the vector units), cut
    so that all components together draw at most ``n_at_most``, since the noise of the gradient
    depends on the total.
    """

    n_per_component: int = 96
    n_at_most: float = 2400

    def n_samples(self, n_components: int) -> int:
        """Draws N_s per component and step; a multiple of 8 when cut."""
        share = self.n_at_most / n_components
        if share >= self.n_per_component:
            return self.n_per_component
        return max(8, 8 * math.floor(share / 8.0))

    def n_fresh(self, n_samples: int) -> int:
        """How many of the draws are not the mirror image of another."""
        return (n_samples + 1) // 2


@dataclass(frozen=True)
class IndependentDraws:
    """Independent entropy draws (Section S1.1)."""

    n_per_component: int = 100

    def n_samples(self, n_components: int) -> int:
        """Draws N_s per component and step."""
        return self.n_per_component

    def n_fresh(self, n_samples: int) -> int:
        """All of them."""
        return n_samples


@dataclass(frozen=True)
class StepsInSds:
    """Steps of the means in units of three sds of q.

    The same progress for posteriors much narrower or wider than the box. The plausible box, the
    paper's unit, is that wide when it holds the central 87 % of the posterior.
    """

    sds_per_unit: float = 3.0

    def unit(self, mixture: GaussianMixture) -> Array:
        """One unit of each coordinate, (D,)."""
        return self.sds_per_unit * np.sqrt(np.diagonal(mixture.covariance))


@dataclass(frozen=True)
class StepsInBoxWidths:
    """Steps of the means in the coordinates themselves: the plausible box has width one."""

    def unit(self, mixture: GaussianMixture) -> Array:
        """One, (D,)."""
        return np.ones(mixture.dimension)


@dataclass(frozen=True)
class Adam:
    """The modified Adam (Section S1.3.3)."""

    draws: MirroredDraws | IndependentDraws = MirroredDraws()
    steps: StepsInSds | StepsInBoxWidths = StepsInSds()
    rate_min: float = 0.001
    rate_max_warm_up: float = 0.1
    rate_max: float = 0.02  # paper 0.01; at equal cost 0.02 ended 0.002 to 0.01 nats higher
    rate_decay: float = 200.0
    momentum: float = 0.9
    second_momentum: float = 0.99
    epsilon: float = 1.49e-8
    n_batch: int = 20
    # Thresholds of its stopping rule, which the paper leaves open: change of the ELBO and root
    # mean square change of the parameters over a batch.
    value_tolerance: float = 1e-3
    parameter_tolerance: float = 1e-3
    # Most steps: base + per_component K, at most 10 000 (the paper gives none).
    max_steps_base: int = 500
    max_steps_per_component: int = 10

    @classmethod
    def paper(cls) -> Adam:
        """Sections S1.1 and S1.3.3."""
        return cls(
            draws=IndependentDraws(),
            steps=StepsInBoxWidths(),
            rate_max=0.01,
            max_steps_base=10_000,
        )

    def max_steps(self, n_components: int) -> int:
        """Most steps of one optimisation."""
        return min(10_000, self.max_steps_base + self.max_steps_per_component * n_components)

    def ascend(
        self,
        objective: Objective,
        start: GaussianMixture,
        *,
        searching: bool,
        generator: np.random.Generator,
    ) -> tuple[GaussianMixture, int, int]:
        """Optimise from start: the mixture, the number of steps, and what STOPPED_* them.

        While searching, in the warm-up, learning is fast and the weights are left alone.
        """
        n_components, dimension = start.means.shape
        n_samples = self.draws.n_samples(n_components)
        n_fresh = self.draws.n_fresh(n_samples)
        per_step = n_components * dimension * n_fresh
        pool = generator.standard_normal(max(MIN_POOL, POOL_STEPS * per_step))
        max_steps = self.max_steps(n_components)
        first = generator.integers(0, pool.size - per_step + 1, size=max_steps, dtype=np.int64)
        rate_max = self.rate_max_warm_up if searching else self.rate_max
        rates = self.rate_min, rate_max, self.rate_decay
        momenta = self.momentum, self.second_momentum, self.epsilon
        tolerances = self.value_tolerance, self.parameter_tolerance
        learning = np.array([*rates, *momenta, *tolerances])  # in the order of LEARNING_FIELDS
        unit = self.steps.unit(start)
        objective = objective.in_units(unit)
        expansion, draws = objective.expansion.arrays, (pool, first, n_samples, n_fresh)
        soft_bounds = objective.bounds, objective.penalties
        steps = learning, self.n_batch, 0 if searching else 1
        phi = to_parameters(_scaled(start, 1.0 / unit))
        status, n_steps = maximise_objective(
            phi, n_components, *expansion, *draws, *soft_bounds, *steps
        )
        optimised = _scaled(from_parameters(phi, n_components, dimension), unit)
        return normalised(optimised), int(n_steps), int(status)


def _scaled(mixture: GaussianMixture, factor: Array) -> GaussianMixture:
    """The distribution of x factor, coordinate by coordinate."""
    return GaussianMixture(
        mixture.weights, mixture.means * factor, mixture.scales, mixture.lengths * factor
    )
