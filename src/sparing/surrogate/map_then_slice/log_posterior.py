"""The log posterior of the hyperparameters, shaped for moves along one coordinate at a time.

psi         hyperparameters, (3D + 3,); order in layout.py
A = L L^T   covariance of the values, noise included, (n, n)
"""

from __future__ import annotations

import math

import numpy as np

from sparing.numerics.arrays import Array
from sparing.numerics.slice_sampling import Conditional
from sparing.surrogate.gaussian_process import (
    TrainingSet,
    factorise_covariance,
    log_marginal_likelihood,
)
from sparing.surrogate.hyperparameters import HyperparameterPrior
from sparing.surrogate.layout import Hyperparameters, Layout


class HyperparameterPosterior:
    """log p(psi | y) up to a constant; implements slice_sampling.CoordinateDensity.

    The last L is remembered, so that a sweep over the mean's coordinates computes it once. The
    memory is invisible from outside: results do not depend on it.
    """

    def __init__(self, training: TrainingSet, prior: HyperparameterPrior) -> None:
        self._training = training
        self._prior = prior
        self._n_covariance = Layout(training.dimension).n_covariance
        self._factor = b"", np.empty(0)  # psi's covariance entries, and L for them

    def along(self, point: Array, index: int) -> Conditional:
        """See slice_sampling.CoordinateDensity."""
        others = self._prior.log_density(point)
        others -= self._prior.coordinate_log_density(index, float(point[index]))
        psi = point.copy()

        def conditional(value: float) -> float:
            prior = self._prior.coordinate_log_density(index, value)
            if prior == -math.inf:
                return prior
            psi[index] = value
            return others + prior + self._log_likelihood(psi)

        return conditional

    def _log_likelihood(self, psi: Array) -> float:
        key = psi[: self._n_covariance].tobytes()
        if self._factor[0] != key:
            sample = Hyperparameters.from_vector(psi)
            self._factor = key, factorise_covariance(self._training, sample).lower
        return log_marginal_likelihood(self._training, psi, self._factor[1])
