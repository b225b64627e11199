"""Log evidence from the surrogate rather than from the bound.

The ELBO is below the surrogate's own log evidence by KL(q || posterior of the surrogate). With q
as the proposal, importance sampling removes that gap at no evaluation of the target. The surrogate
is uncertain, and the expectation of exp(f) is larger than exp of the expectation of f:

    log Z = mean over psi of log mean_s w_s,   w_s = exp(f(x_s) + V(x_s) / 2) / q(x_s),   x_s ~ q.

    f, V    posterior mean and variance of the surrogate for one hyperparameter sample psi
    q(x)    variational posterior                 k   Pareto shape of the largest weights

V is cut at ``largest_variance``: where the surrogate extrapolates, exp(V / 2) is not to be trusted
(docs/decisions/0006). The largest weights are replaced by quantiles of a fitted Pareto tail
(Vehtari et al., "Pareto smoothed importance sampling"); k > 0.7 says that q misses part of the
posterior, and then the bound is returned instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparing.numerics.arrays import Array
from sparing.surrogate.interface import Surrogate
from sparing.variational.elbo import Elbo
from sparing.variational.mixture import GaussianMixture
from sparing.vbmc.held_out import Calibration, HeldOutCalibration, TrackRecord
from sparing.vbmc.importance import (
    LARGEST_PARETO_K,
    WeightedDraws,
    corrected_mixture,
    log_sum,
    pareto_smooth,
    weighted_draws,
)


@dataclass(frozen=True)
class Evidence:
    """A log evidence with its standard deviation and how it was obtained.

    ``curvature`` is what exp(V / 2) added, ``inflation`` the factor by which held-out draws
    multiply the surrogate's variance; they are 0 and 1, and ``pareto_k`` and ``effective_samples``
    NaN, when no importance correction was asked for.
    """

    log_evidence: float
    sd: float
    corrected: bool
    pareto_k: float
    effective_samples: float
    curvature: float
    inflation: float


@dataclass(frozen=True)
class ImportanceCorrected:
    """The evidence and the posterior of the surrogate, by importance sampling from q."""

    n_samples: int = 2**11
    n_samples_in_warm_up: int = 2**8  # nothing but the display looks at the evidence then
    largest_variance: float = 0.5
    calibration: HeldOutCalibration = HeldOutCalibration()

    def estimate(
        self,
        mixture: GaussianMixture,
        surrogate: Surrogate,
        elbo: Elbo,
        record: TrackRecord,
        generator: np.random.Generator,
        *,
        searching: bool = False,
    ) -> tuple[Evidence, GaussianMixture]:
        """The log evidence, and the mixture moved to what it missed."""
        n_samples = self.n_samples_in_warm_up if searching else self.n_samples
        draws = weighted_draws(mixture, surrogate, n_samples, self.largest_variance, generator)
        calibration = self.calibration.calibration(record)
        return corrected_evidence(draws, elbo, calibration), corrected_mixture(mixture, draws)


@dataclass(frozen=True)
class LowerBound:
    """The bound itself and q as it is (Algorithm 1, line 24)."""

    def estimate(
        self,
        mixture: GaussianMixture,
        surrogate: Surrogate,
        elbo: Elbo,
        record: TrackRecord,
        generator: np.random.Generator,
        *,
        searching: bool = False,
    ) -> tuple[Evidence, GaussianMixture]:
        """The ELBO with its standard deviation."""
        evidence = Evidence(elbo.value, elbo.sd, False, np.nan, np.nan, 0.0, 1.0)
        return evidence, mixture


def corrected_evidence(draws: WeightedDraws, elbo: Elbo, calibration: Calibration) -> Evidence:
    """Correct the ELBO by importance sampling where the weights allow it.

    The error has five parts: the surrogate's own (that of the ELBO, inflated by what held-out
    draws show), half of the curvature term, which is as uncertain as V is, how much the estimate
    still moves from one iteration to the next, the Monte Carlo error, and, where the correction is
    refused, its size.
    """
    estimates = [_importance_estimate(row) for row in draws.log_weights]
    log_means, sds, sizes, shapes = zip(*estimates, strict=True)
    log_evidence, pareto_k = float(np.mean(log_means)), float(np.median(shapes))
    effective, monte_carlo_sd = float(np.mean(sizes)), float(np.mean(sds))
    flat = float(np.mean([_log_mean(row) for row in draws.flat_log_weights]))
    curvature = log_evidence - flat
    surrogate_sd = float(np.sqrt(calibration.error_inflation)) * elbo.sd
    rest = pareto_k, effective, curvature, calibration.inflation
    if not np.isfinite(log_evidence):
        return Evidence(elbo.value, surrogate_sd, False, *rest)
    movement = float(
        np.std([*calibration.recent, log_evidence], ddof=min(1, len(calibration.recent)))
    )
    sd = float(np.sqrt(surrogate_sd**2 + 0.25 * curvature**2 + movement**2))
    if pareto_k > LARGEST_PARETO_K:
        # What the correction would have been is not reliable, but it is the size of the gap.
        sd = float(np.hypot(sd, log_evidence - elbo.value))
        return Evidence(elbo.value, sd, False, *rest)
    return Evidence(log_evidence, float(np.hypot(sd, monte_carlo_sd)), True, *rest)


def _importance_estimate(log_weights: Array) -> tuple[float, float, float, float]:
    """The log of the mean weight, its sd, the effective number of draws, and k."""
    smoothed, pareto_k = pareto_smooth(log_weights)
    log_mean = _log_mean(smoothed)
    relative = np.exp(smoothed - log_mean)
    sd = float(np.std(relative) / np.sqrt(len(relative)))
    return log_mean, sd, float(len(relative) / np.mean(relative**2)), pareto_k


def _log_mean(log_weights: Array) -> float:
    return log_sum(log_weights) - float(np.log(len(log_weights)))
