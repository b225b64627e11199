"""What the variational fit maximises: the ELBO, less soft penalties where there are any.

Notation
    F(φ) = E[G] + H[q] - penalty     φ in parameterisation.py, E[G] in elbo.py, H in entropy.py
    ε                                draws from a standard normal
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparing.kernels.variational import PENALTY_FIELDS, add_penalty_gradient, score_candidates
from sparing.numerics.arrays import Array
from sparing.surrogate.interface import Surrogate
from sparing.surrogate.kernel_expansion import KernelExpansion
from sparing.variational.entropy import entropy_monte_carlo
from sparing.variational.mixture import GaussianMixture
from sparing.variational.parameterisation import to_parameters


@dataclass(frozen=True)
class SoftPenalties:
    """Soft bounds and a price on weights (not in the paper).

    Means stay inside the box of the training inputs widened by ``box_margin`` widths on each side,
    sds of components between two fractions of the box width. The penalty is ½ stiffness excess²,
    in box widths for means and in log units for sds. A weight below about ``weight_threshold``
    pays ``weight_pressure`` nats per unit: components that earn less die instead of lingering.
    """

    box_margin: float = 0.5
    smallest_sd: float = 1e-5
    largest_sd: float = 1.0
    mean_stiffness: float = 100.0
    scale_stiffness: float = 100.0
    weight_pressure: float = 0.1
    weight_threshold: float = 0.01

    @property
    def constants(self) -> Array:
        """In the order of the kernels' PENALTY_FIELDS, (4,)."""
        stiffness = self.mean_stiffness, self.scale_stiffness
        return np.array([*stiffness, self.weight_pressure, self.weight_threshold])

    def bounds(self, surrogate: Surrogate) -> Array:
        """Bounds of means and of log sds from the box of the training inputs, (4, D).

        A coordinate in which all inputs agree takes the surrogate's length scale for its width.
        """
        lower = surrogate.training.inputs.min(axis=0)
        upper = surrogate.training.inputs.max(axis=0)
        width = np.where(upper > lower, upper - lower, surrogate.length_scales)
        margin = self.box_margin * width
        log_width = np.log(width)
        return np.array(
            [
                lower - margin,
                upper + margin,
                log_width + np.log(self.smallest_sd),
                log_width + np.log(self.largest_sd),
            ]
        )

    def confined(self, mixture: GaussianMixture, surrogate: Surrogate) -> GaussianMixture:
        """The mixture with what lies beyond the soft bounds put on them.

        A log joint that changes by millions of nats over the box outweighs any penalty, and the
        quadratic mean may then promise its maximum far from all data.
        """
        bounds = self.bounds(surrogate)
        means = np.clip(mixture.means, bounds[0], bounds[1])
        widest = np.log(np.max(mixture.scales) * mixture.lengths)
        lengths = mixture.lengths * np.exp(np.minimum(bounds[3] - widest, 0.0))
        return GaussianMixture(mixture.weights, means, mixture.scales, lengths)


@dataclass(frozen=True)
class NoPenalties:
    """The ELBO as it is (the paper)."""

    @property
    def constants(self) -> Array:
        """Zeros, with which the kernels leave the penalties out, (4,)."""
        return np.zeros(len(PENALTY_FIELDS))

    def bounds(self, surrogate: Surrogate) -> Array:
        """None that anybody reads, (4, D)."""
        return np.zeros((4, surrogate.dimension))

    def confined(self, mixture: GaussianMixture, surrogate: Surrogate) -> GaussianMixture:
        """The mixture as it is."""
        return mixture


Penalties = SoftPenalties | NoPenalties


@dataclass(frozen=True, eq=False)
class Objective:
    """F for one surrogate, in the arrays that kernels take.

    bounds (4, D), penalties (4,): see kernels/variational.py.
    """

    expansion: KernelExpansion
    bounds: Array
    penalties: Array

    @classmethod
    def create(cls, surrogate: Surrogate, penalties: Penalties) -> Objective:
        """F of the given surrogate with the given penalties."""
        return cls(surrogate.expansion, penalties.bounds(surrogate), penalties.constants)

    def in_units(self, unit: Array) -> Objective:
        """F of the mixture with coordinates x / unit, up to a constant; unit (D,)."""
        bounds = np.concatenate([self.bounds[:2] / unit, self.bounds[2:] - np.log(unit)])
        return Objective(self.expansion.in_units(unit), bounds, self.penalties)

    def value(self, mixture: GaussianMixture, n_samples: int, seed: int) -> float:
        """F with n_samples entropy draws per component; one seed gives every mixture the same ε.

        -inf when it is not a number, so that such a mixture is never preferred.
        """
        entropy, _ = entropy_monte_carlo(mixture, n_samples, np.random.default_rng(seed))
        integrals = self.expansion.integrals(mixture.means, mixture.scales, mixture.lengths)
        joint = float(integrals.mean(axis=0) @ mixture.weights)
        value = joint + entropy - self.penalty(mixture)
        return value if np.isfinite(value) else -np.inf

    def lower_bounds(self, phis: Array, n_components: int) -> Array:
        """F with the entropy's lower bound for each row φ, (C,); -inf when not a number."""
        scores = np.empty(len(phis))
        score_candidates(
            np.ascontiguousarray(phis),
            n_components,
            *self.expansion.arrays,
            self.bounds,
            self.penalties,
            scores,
        )
        return scores

    def penalty(self, mixture: GaussianMixture) -> float:
        """The penalty alone."""
        phi, constants = to_parameters(mixture), (self.bounds, self.penalties)
        gradient = np.zeros_like(phi)
        return add_penalty_gradient(phi, mixture.weights, mixture.means, *constants, gradient)
