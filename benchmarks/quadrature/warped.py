"""The square root of the likelihood as a Gaussian process (Gunter et al. 2014).

The likelihood is l(z) = a + g(z)^2 / 2 with g a Gaussian process, so it cannot fall below a. Then
l has no normal distribution; it is given one by its first two moments, either of l linearised
about the mean of g (WSABI-L) or of l itself (WSABI-M):

    L    E[l] = a + m^2 / 2            C_l(z, z') = m(z) C(z, z') m(z')
    M    E[l] = a + (m^2 + V) / 2      C_l(z, z') = m(z) C(z, z') m(z') + C(z, z')^2 / 2

Notation (D dimensions, n points)
    X, g       inputs in prior units (n, D), g at them (n,)
    m, C, V    posterior mean, covariance and variance of g
    k, A       kernel sigma_f^2 e_p of g (integrals.py), its noisy Gram matrix = L L^T, (n, n)
    alpha      A^-1 g, (n,)
    pi         N(z; 0, I)
    W, T       integrals of k(z, x_i) k(z, x_j) pi and k(z, x_i) k(z, z') k(z', x_j) pi pi', (n, n)
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.quadrature.evidence import Evidence, scaled_likelihoods
from benchmarks.quadrature.integrals import chain_mean, kernel_double_mean, product_mean
from benchmarks.quadrature.process import (
    LastFit,
    ScalePrior,
    condition_on,
    fit,
    half_solve,
    precisions,
    variance,
    with_values,
)
from sparing.numerics.arrays import Array
from sparing.surrogate.gaussian_process import GaussianProcess
from sparing.surrogate.training_set import TrainingSet

OFFSET_FRACTION = 0.8  # a, of the smallest likelihood seen (Gunter et al. 2014, Section 3)


class Moments(enum.Enum):
    """Which moments of l stand for its distribution."""

    LINEARISED = "WSABI-L"
    MATCHED = "WSABI-M"


@dataclass(frozen=True, eq=False)
class WarpedLikelihood:
    """The process of g for likelihoods in units of exp(log_scale), their largest."""

    moments: Moments
    gp: GaussianProcess
    offset: float
    log_scale: float
    theta: Array
    last_fit: LastFit

    @property
    def lengths(self) -> Array:
        """ell, (D,)."""
        return self.gp.sample(0).length_scales

    def evidence(self) -> Evidence:
        """E[Z] and V[Z] by integrating E[l] and C_l against the prior."""
        gp = self.gp
        inputs, p, s2 = gp.training.inputs, precisions(gp), variance(gp)
        alpha = gp.alpha[0]
        W = s2**2 * product_mean(inputs, p, inputs, p)
        T = s2**3 * chain_mean(inputs, p, p, inputs, p)
        shadow = half_solve(gp, W @ alpha)
        mean = self.offset + 0.5 * float(alpha @ W @ alpha)
        spread = float(alpha @ T @ alpha) - float(shadow @ shadow)
        if self.moments is Moments.MATCHED:
            half_W = half_solve(gp, W)  # rows L^-1 W_i
            whitened_W = half_solve(gp, half_W.T)  # L^-1 W L^-T
            whitened_T_trace = float(np.trace(half_solve(gp, half_solve(gp, T).T)))
            mean += 0.5 * (s2 - float(np.trace(whitened_W)))
            spread += 0.5 * (
                s2**2 * kernel_double_mean(2.0 * p)
                - 2.0 * whitened_T_trace
                + float(np.sum(whitened_W * whitened_W))
            )
        return Evidence.from_moments(mean, spread, self.log_scale)

    def log_acquisition(self, z: Array) -> Array:
        """Uncertainty sampling: the log of pi(z)^2 C_l(z, z), up to a constant."""
        m, V = self.gp.predict(z)
        tiny = np.finfo(float).tiny
        if self.moments is Moments.LINEARISED:
            log_variance = np.log(np.maximum(V, tiny)) + 2.0 * np.log(np.maximum(np.abs(m), tiny))
        else:
            log_variance = np.log(np.maximum(V, tiny)) + np.log(np.maximum(m * m + 0.5 * V, tiny))
        return log_variance - np.einsum("md,md->m", z, z)


def warp(log_likelihoods: Array) -> tuple[Array, float, float]:
    """g at the points, the offset a, and the log of the largest likelihood."""
    scaled, log_scale = scaled_likelihoods(log_likelihoods)
    offset = OFFSET_FRACTION * float(np.min(scaled))
    return np.sqrt(2.0 * (scaled - offset)), offset, log_scale


def scale_prior(dimension: int) -> ScalePrior:
    """Log scales a priori: ell about 2 / sqrt(10) prior SDs, sigma_f about the largest g.

    The length is where the published benchmark starts. Gunter et al. put N(0, 1) on the logarithms
    of ell^2 and of the output scale in whatever units the problem has; in prior units, and twice as
    wide, the prior says the same of every problem. The noise is about theirs.
    """
    location = np.append(np.full(dimension, math.log(2.0 / math.sqrt(10.0))), 0.5 * math.log(2.0))
    return ScalePrior(location, np.full(dimension + 1, 1.0), noise_sd=1e-3)


def fitted(
    moments: Moments, inputs: Array, log_likelihoods: Array, start: Array | None = None
) -> WarpedLikelihood:
    """The model of these points with hyperparameters fitted to them; start: an earlier theta."""
    values, offset, log_scale = warp(log_likelihoods)
    prior = scale_prior(inputs.shape[1])
    theta = fit(prior, TrainingSet(inputs, values), start)
    gp = condition_on(prior, theta, inputs, values)
    last_fit = LastFit(len(inputs), log_scale)
    return WarpedLikelihood(moments, gp, offset, log_scale, theta, last_fit)


def extended(
    model: WarpedLikelihood | None, moments: Moments, inputs: Array, log_likelihoods: Array
) -> WarpedLikelihood:
    """The model of these points; model: that of all but the last, None when there is one point."""
    values, offset, log_scale = warp(log_likelihoods)
    if model is None:
        prior = scale_prior(inputs.shape[1])
        theta = prior.start(values)
        gp = condition_on(prior, theta, inputs, values)
        return WarpedLikelihood(moments, gp, offset, log_scale, theta, LastFit(1, log_scale))
    if model.last_fit.is_stale(len(inputs), log_scale):
        return fitted(moments, inputs, log_likelihoods, model.theta)
    gp = with_values(model.gp.append(inputs[-1], values[-1]), values)
    return replace(model, gp=gp, offset=offset, log_scale=log_scale)
