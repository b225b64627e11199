"""The likelihood and its logarithm as two Gaussian processes (Osborne et al. 2012).

The logarithm knows that a likelihood is positive, the likelihood can be integrated. The evidence is
linear in the likelihood l, and to first order about the mean m_l of its process

    Z = int l pi  ~  int m_l pi + int (m_l + gamma) delta pi,   delta = m_t - t(m_l)

where t(l) = log(l / gamma + 1) is modelled by the second process. The difference delta is known
wherever one looks, and a third process, through the points and candidates between them, makes its
integral closed. As in the authors' program every process has mean zero.

Notation (D dimensions, n points, c candidates)
    X, l, t     inputs in prior units (n, D), likelihoods over their largest and t of them (n,)
    S           points and candidates, (n + c, D);  delta there, (n + c,)
    m, C        posterior means and covariances; subscripts l, t and d for the process of delta
    k, A, alpha kernel sigma_f^2 e_p (integrals.py), noisy Gram matrix, A^-1 times the values
    pi          N(z; 0, I)
    u           the mean of Z is u^T A_l^-1 l + gamma int m_d pi, (n,)
    theta       log length scales and log output scale
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.quadrature.evidence import Evidence
from benchmarks.quadrature.integrals import chain_mean, kernel_mean, product_mean
from benchmarks.quadrature.process import (
    LastFit,
    ScalePrior,
    condition_on,
    half_solve,
    precisions,
    variance,
)
from sparing.numerics.arrays import Array
from sparing.numerics.linear_algebra import solve_cholesky
from sparing.surrogate.covariance import cross_covariance
from sparing.surrogate.gaussian_process import GaussianProcess

GAMMA = 0.01  # of the largest likelihood (the authors' program)
NOISE_SD = 1e-3
# The correction varies over a tenth of the log likelihood's length, and half its height.
CORRECTION_LENGTH = 0.1
CORRECTION_HEIGHT = 0.5
# Of finite differences in theta: of its log posterior, and of the evidence.
THETA_STEP = 1e-3


def log_transform(likelihood: Array) -> Array:
    """t(l)."""
    return np.log1p(likelihood / GAMMA)


@dataclass(frozen=True, eq=False)
class Fit:
    """theta of the three processes; scale_variances (D,): of the log lengths of t, or None."""

    likelihood: Array
    transformed: Array
    correction: Array
    scale_variances: Array | None
    last: LastFit


@dataclass(frozen=True, eq=False)
class DoublyBayesianLikelihood:
    """The three processes for likelihoods in units of exp(log_scale), their largest.

    With fit.scale_variances (BBQ*) the length scales of t are marginalised to first order.
    """

    likelihood: GaussianProcess
    transformed: GaussianProcess
    correction: GaussianProcess
    log_scale: float
    fit: Fit

    @property
    def lengths(self) -> Array:
        """Length scales of t, (D,)."""
        return self.transformed.sample(0).length_scales

    def evidence(self) -> Evidence:
        """E[Z] and V[Z]; a negative mean is replaced by that without the correction."""
        gp, mean = self.likelihood, self.mean_evidence
        if not mean > 0.0:
            means = variance(gp) * kernel_mean(gp.training.inputs, precisions(gp))
            mean = float(means @ gp.alpha[0])
        return Evidence.from_moments(mean, self._evidence_variance(), self.log_scale)

    @cached_property
    def mean_evidence(self) -> float:
        """E[Z] with the correction."""
        gp = self.correction
        constant = variance(gp) * kernel_mean(gp.training.inputs, precisions(gp)) @ gp.alpha[0]
        return float(self._weights @ self.likelihood.alpha[0] + GAMMA * constant)

    def log_acquisition(self, z: Array) -> Array:
        """The log of the variance that knowing l(z) is expected to take from Z.

        The mean of Z becomes E[Z] + r (l(z) - m_l(z)), r = (u(z) - k_l(z)^T A_l^-1 u) / V_l(z), and
        V[Z] falls by the variance of that mean on average. t(z) is normal, so that
        l = gamma (exp(t) - 1) is log-normal but for a shift. (The authors maximise the mean square
        instead. It has the same maximum, unless the two processes disagree about E[l(z)]; then it
        turns away from where that of t is lower, which may be the peak.)
        """
        _, l_variance = self.likelihood.predict(z)
        t_mean, t_variance = self.transformed.predict(z)
        if self.fit.scale_variances is not None:
            t_variance = t_variance + self._length_gradients(z) ** 2 @ self.fit.scale_variances
        k = cross_covariance(self.likelihood.sample(0), z, self.likelihood.training.inputs)
        response = (self._functional(z) - k @ self._solved_weights) / (l_variance + NOISE_SD**2)
        tiny = np.finfo(float).tiny
        # log (e^v - 1) = v + log(1 - e^-v), safe for a large variance v
        log_spread = 2.0 * (t_mean + t_variance) + np.log(-np.expm1(-t_variance) + tiny)
        return 2.0 * np.log(np.abs(response) + tiny) + log_spread

    @cached_property
    def _weights(self) -> Array:
        """u, (n,)."""
        return self._functional(self.likelihood.training.inputs)

    @cached_property
    def _solved_weights(self) -> Array:
        """A_l^-1 u, (n,)."""
        return solve_cholesky(self.likelihood.cholesky[0], self._weights)

    def _functional(self, z: Array) -> Array:
        """int k_l(z', z) (1 + m_d(z')) pi dz' for each z, (m,)."""
        l_gp, d_gp = self.likelihood, self.correction
        p_l, p_d = precisions(l_gp), precisions(d_gp)
        products = product_mean(z, p_l, d_gp.training.inputs, p_d) @ d_gp.alpha[0]
        return variance(l_gp) * (kernel_mean(z, p_l) + variance(d_gp) * products)

    def _evidence_variance(self) -> float:
        """int int (m_l + gamma) C_t (m_l + gamma)' pi pi', and in BBQ* what theta adds."""
        l_gp, t_gp = self.likelihood, self.transformed
        inputs, alpha = l_gp.training.inputs, variance(l_gp) * l_gp.alpha[0]
        p_l, p_t = precisions(l_gp), precisions(t_gp)
        origin, flat = np.zeros((1, inputs.shape[1])), np.zeros(inputs.shape[1])
        both = alpha @ chain_mean(inputs, p_l, p_t, inputs, p_l) @ alpha
        one = alpha @ chain_mean(inputs, p_l, p_t, origin, flat)[:, 0]
        none = chain_mean(origin, flat, p_t, origin, flat)[0, 0]
        prior = variance(t_gp) * (both + 2.0 * GAMMA * one + GAMMA**2 * none)
        shadow = half_solve(t_gp, self._transformed_products(t_gp))
        total = float(prior - shadow @ shadow)
        if self.fit.scale_variances is not None:
            total += float(self._evidence_gradients() ** 2 @ self.fit.scale_variances)
        return total

    def _transformed_products(self, t_gp: GaussianProcess) -> Array:
        """int (m_l(z) + gamma) k_t(z, x_i) pi dz, (n,)."""
        l_gp = self.likelihood
        inputs, p_t = t_gp.training.inputs, precisions(t_gp)
        products = product_mean(inputs, p_t, l_gp.training.inputs, precisions(l_gp))
        products = variance(l_gp) * products @ l_gp.alpha[0]
        return variance(t_gp) * (products + GAMMA * kernel_mean(inputs, p_t))

    def _evidence_gradients(self) -> Array:
        """d / d log ell_t of int (m_l + gamma) m_t pi, (D,), by central differences."""
        prior = transformed_prior(self.lengths.size)
        training = self.transformed.training

        def integral(theta: Array) -> float:
            t_gp = condition_on(prior, theta, training.inputs, training.values)
            return float(self._transformed_products(t_gp) @ t_gp.alpha[0])

        steps = THETA_STEP * np.eye(self.fit.transformed.size)[: self.lengths.size]
        theta = self.fit.transformed
        rises = [integral(theta + step) - integral(theta - step) for step in steps]
        return np.array(rises) / (2.0 * THETA_STEP)

    def _length_gradients(self, z: Array) -> Array:
        """d m_t(z) / d log ell_t, (m, D).

        With k' the derivative of a kernel, k'^T alpha - k^T A^-1 (K' alpha).
        """
        gp = self.transformed
        inputs, sample = gp.training.inputs, gp.sample(0)
        k = cross_covariance(sample, z, inputs)
        return self._kernel_gradients(k, z) - k @ self._solved_gram_gradients

    @cached_property
    def _solved_gram_gradients(self) -> Array:
        """A_t^-1 (dK_t / d log ell) alpha_t, (n, D)."""
        gp = self.transformed
        inputs = gp.training.inputs
        gradients = self._kernel_gradients(cross_covariance(gp.sample(0), inputs, inputs), inputs)
        return np.column_stack([solve_cholesky(gp.cholesky[0], g) for g in gradients.T])

    def _kernel_gradients(self, k: Array, z: Array) -> Array:
        """sum_i alpha_i k(z, x_i) (z_d - x_id)^2 / ell_d^2, (m, D), for k (m, n)."""
        gp = self.transformed
        x, alpha = gp.training.inputs, gp.alpha[0][:, None]
        squares = k @ (alpha * x * x) - 2.0 * z * (k @ (alpha * x)) + z * z * (k @ alpha)
        return squares * precisions(gp)


def likelihood_prior(dimension: int) -> ScalePrior:
    """Lengths about the prior SD (the authors' program), heights about the largest likelihood."""
    return ScalePrior(np.zeros(dimension + 1), np.ones(dimension + 1), NOISE_SD)


def transformed_prior(dimension: int) -> ScalePrior:
    """As for the likelihood, with heights about those of t."""
    height = 0.5 * math.log1p(1.0 / GAMMA)
    location = np.append(np.zeros(dimension), math.log(height))
    return ScalePrior(location, np.ones(dimension + 1), NOISE_SD)


def correction_prior(transformed_theta: Array) -> ScalePrior:
    """Scales of delta in proportion to those of t."""
    dimension = transformed_theta.size - 1
    ratios = np.append(np.full(dimension, CORRECTION_LENGTH), CORRECTION_HEIGHT)
    return ScalePrior(transformed_theta + np.log(ratios), np.ones(dimension + 1), NOISE_SD)
