"""Integrated variance reduction: how much an evaluation at x would teach about the posterior.

    a(x) = mean over s of C(s, x)^2 / (V(x) + sigma_obs^2)

is the exact drop of the surrogate's variance V(s) when x joins the training set, averaged over
reference points s drawn from the current posterior and over hyperparameter samples.

    R   reference points, (r, D)          X   training inputs, (n, D)
    C   posterior covariance of f         V   posterior variance of f
    S   hyperparameter samples
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparing.linear_algebra import Array
from sparing.surrogate.gaussian_process import (
    GaussianProcess,
    posterior_covariance,
    predict_each,
)
from sparing.surrogate.layout import Layout


@dataclass(frozen=True, eq=False)
class IntegratedVarianceReduction:
    """The criterion as a callable: candidates (m, D) -> log a(x), (m,)."""

    gp: GaussianProcess
    references: Array

    def __call__(self, candidates: Array) -> Array:
        """Log acquisition at the candidates."""
        covariance = posterior_covariance(self.gp, self.references, candidates)  # (S, r, m)
        _, variance = predict_each(self.gp, candidates)  # (S, m)
        noise = np.exp(
            2.0 * self.gp.hyperparameters[:, Layout(self.gp.dimension).log_noise_sd, None]
        )
        drop = np.mean(covariance**2, axis=1) / (variance + noise)
        return np.log(np.maximum(drop.mean(axis=0), np.finfo(float).tiny))
