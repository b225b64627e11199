"""What the variational fit maximises: the ELBO, less soft penalties in the default preset.

Notation
    F(φ) = E[G] + H[q] - penalty     φ in parameterisation.py, E[G] in elbo.py, H in entropy.py
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparing.kernels.expected_log_joint import component_integrals
from sparing.kernels.variational import add_penalty_gradient, score_candidates
from sparing.numerics.arrays import Array
from sparing.surrogate.gaussian_process import GaussianProcess
from sparing.variational.elbo import kernel_arrays
from sparing.variational.entropy import entropy_lower_bound, entropy_monte_carlo
from sparing.variational.mixture import GaussianMixture
from sparing.variational.parameterisation import to_parameters
from sparing.variational.settings import EntropyEstimate, VariationalSettings


@dataclass(frozen=True, eq=False)
class Objective:
    """F for one Gaussian process, in the arrays that kernels take.

    inputs Xᵀ (D, n), alpha (S, n), hyperparameters (S, 3D + 3), bounds (4, D), penalties (4,):
    see kernels/variational.py.
    """

    inputs: Array
    alpha: Array
    hyperparameters: Array
    bounds: Array
    penalties: Array

    @classmethod
    def create(cls, gp: GaussianProcess, settings: VariationalSettings) -> Objective:
        """F of the given process, with the penalties of the settings."""
        penalties = np.array(
            [
                settings.mean_stiffness,
                settings.scale_stiffness,
                settings.weight_pressure,
                settings.weight_threshold,
            ]
        )
        return cls(*kernel_arrays(gp), _soft_bounds(gp, settings), penalties)

    def in_units(self, unit: Array) -> Objective:
        """F of the mixture with coordinates x / unit, up to a constant; unit (D,)."""
        dimension = unit.size
        log_unit = np.log(unit)
        hyperparameters = self.hyperparameters.copy()
        hyperparameters[:, :dimension] -= log_unit
        hyperparameters[:, dimension + 3 : 2 * dimension + 3] /= unit
        hyperparameters[:, 2 * dimension + 3 :] -= log_unit
        bounds = np.concatenate([self.bounds[:2] / unit, self.bounds[2:] - log_unit])
        inputs = self.inputs / unit[:, None]
        return Objective(inputs, self.alpha, hyperparameters, bounds, self.penalties)

    def confined(self, mixture: GaussianMixture) -> GaussianMixture:
        """The mixture with what lies beyond the soft bounds put on them.

        A log joint that changes by millions of nats over the box outweighs any penalty, and the
        quadratic mean may then promise its maximum far from all data.
        """
        if self.penalties[0] == 0.0:  # the paper has no bounds
            return mixture
        means = np.clip(mixture.means, self.bounds[0], self.bounds[1])
        widest = np.log(np.max(mixture.scales) * mixture.lengths)
        lengths = mixture.lengths * np.exp(np.minimum(self.bounds[3] - widest, 0.0))
        return GaussianMixture(mixture.weights, means, mixture.scales, lengths)

    def value(
        self, mixture: GaussianMixture, estimate: EntropyEstimate, n_samples: int, seed: int
    ) -> float:
        """F with the given entropy; the same seed gives every mixture the same draws ε.

        -inf when it is not a number, so that such a mixture is never preferred.
        """
        match estimate:
            case EntropyEstimate.LOWER_BOUND:
                entropy = entropy_lower_bound(mixture)
            case EntropyEstimate.MONTE_CARLO:
                generator = np.random.default_rng(seed)
                entropy, _ = entropy_monte_carlo(mixture, n_samples, generator)
        integrals = component_integrals(
            mixture.means,
            mixture.scales,
            mixture.lengths,
            self.inputs,
            self.alpha,
            self.hyperparameters,
        )
        joint = float(integrals.mean(axis=0) @ mixture.weights)
        value = joint + entropy - self.penalty(mixture)
        return value if np.isfinite(value) else -np.inf

    def lower_bounds(self, phis: Array, n_components: int) -> Array:
        """F with the entropy's lower bound for each row φ, (C,); -inf when not a number."""
        scores = np.empty(len(phis))
        score_candidates(
            np.ascontiguousarray(phis),
            n_components,
            self.inputs,
            self.alpha,
            self.hyperparameters,
            self.bounds,
            self.penalties,
            scores,
        )
        return scores

    def penalty(self, mixture: GaussianMixture) -> float:
        """The penalty alone."""
        phi = to_parameters(mixture)
        return float(
            add_penalty_gradient(
                phi, mixture.weights, mixture.means, self.bounds, self.penalties, np.zeros_like(phi)
            )
        )


def _soft_bounds(gp: GaussianProcess, settings: VariationalSettings) -> Array:
    """Bounds of means and of log sds from the box of the training inputs, (4, D).

    A coordinate in which all inputs agree takes the process's length scale for its width.
    """
    lower = gp.training.inputs.min(axis=0)
    upper = gp.training.inputs.max(axis=0)
    length_scales = np.exp(gp.hyperparameters[:, : gp.dimension].mean(axis=0))
    width = np.where(upper > lower, upper - lower, length_scales)
    margin = settings.box_margin * width
    log_width = np.log(width)
    return np.array(
        [
            lower - margin,
            upper + margin,
            log_width + np.log(settings.smallest_sd),
            log_width + np.log(settings.largest_sd),
        ]
    )
