"""The evidence lower bound: expected log joint by Bayesian quadrature, plus entropy.

Notation (Sections 3.2 and S1.2; K components, n training points, S hyperparameter samples)
    G = E_q[f] = Σ_k w_k I_k               expected log joint, Eq. S9
    E[I_k] = z_kᵀ α + m_0 + ν_k            component_means (S, K), Eq. S19
    J_jk = Cov(I_j, I_k)                   component_covariances (S, K, K), Eq. S17
    Var[G] = Σ_jk w_j w_k J_jk             Eq. S15
Each holds for one hyperparameter sample; Eq. 10 combines the samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparing.numerics.arrays import Array
from sparing.surrogate.interface import Surrogate
from sparing.variational.entropy import entropy_monte_carlo
from sparing.variational.mixture import GaussianMixture
from sparing.variational.normal_mixture import Mixture, even_sample

# Draws for the ELBO where it has no closed form, and those over which its variance is averaged.
N_DRAWS, N_AVERAGED = 1024, 128
FEWEST_DRAWS = 2  # where the mixture is cut off nearly everywhere


@dataclass(frozen=True, eq=False)
class ExpectedLogJoint:
    """Posterior mean and variance of G, marginal (Eq. 10), by sample (S,) and by component."""

    mean: float
    variance: float
    mean_by_sample: Array
    variance_by_sample: Array
    component_means: Array
    component_covariances: Array


@dataclass(frozen=True, eq=False)
class Elbo:
    """ELBO = E[G] + H[q]; sd is that of G, the uncertainty left by the Gaussian process."""

    value: float
    sd: float
    expected_log_joint: ExpectedLogJoint

    def elcbo(self, beta: float) -> float:
        """Evidence lower confidence bound, Eq. 8."""
        return self.value - beta * self.sd


def expected_log_joint(mixture: GaussianMixture, surrogate: Surrogate) -> ExpectedLogJoint:
    """G with its uncertainty, in closed form."""
    integrals = surrogate.integrals(mixture.means, mixture.scales, mixture.lengths)
    return combine_components(mixture.weights, *integrals)


def combine_components(weights: Array, means: Array, covariances: Array) -> ExpectedLogJoint:
    """G from the integrals of its components: Eqs. S9 and S15 per sample, then Eq. 10."""
    mean_by_sample = means @ weights
    variance_by_sample = np.einsum("j,sjk,k->s", weights, covariances, weights)
    variance_by_sample = np.maximum(variance_by_sample, 0.0)  # rounding can take it below
    variance = float(variance_by_sample.mean())
    if mean_by_sample.size > 1:
        variance += float(mean_by_sample.var(ddof=1))
    return ExpectedLogJoint(
        float(mean_by_sample.mean()),
        variance,
        mean_by_sample,
        variance_by_sample,
        means,
        covariances,
    )


def sampled_elbo(mixture: Mixture, surrogate: Surrogate) -> Elbo:
    """The ELBO of any mixture: those of normals of any shape have no closed form."""
    n_draws, draws = N_DRAWS, np.empty((0, mixture.dimension))
    while len(draws) < FEWEST_DRAWS:
        draws = even_sample(mixture, n_draws)
        draws = draws[mixture.contains(draws)]
        n_draws *= 4
    values = surrogate.expansion.values(draws).mean(axis=1)
    few = draws[:N_AVERAGED]  # the first of evenly spread draws are as even
    within = np.maximum(surrogate.covariance(few, few).mean(axis=(1, 2)), 0.0)
    joint = combine_components(np.ones(1), values[:, None], within[:, None, None])
    entropy = -float(mixture.log_density(draws).mean())
    return Elbo(joint.mean + entropy, float(np.sqrt(joint.variance)), joint)


def evaluate_elbo(
    mixture: GaussianMixture,
    surrogate: Surrogate,
    n_entropy_samples: int,
    generator: np.random.Generator,
) -> Elbo:
    """The ELBO with n_entropy_samples draws per component for its entropy."""
    joint = expected_log_joint(mixture, surrogate)
    entropy, _ = entropy_monte_carlo(mixture, n_entropy_samples, generator)
    return Elbo(joint.mean + entropy, float(np.sqrt(joint.variance)), joint)
