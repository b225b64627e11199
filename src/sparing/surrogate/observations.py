"""What of the log joint was observed: rows of numbers, each a linear functional of f.

The Gaussian process and its training work on rows alone. Where only values are known there is one
a point; `gradient_observations` has D more at each point whose gradient is known as well.

Notation (D dimensions, n points, N rows, m queries, K normals)
    z        inputs over their length scales, transposed for the kernels, (D, n)
    kappa    covariance of f (Eq. S10); K its rows' own, (N, N)
    phi      features of the mean function, [1, u, u^2] with u = (x - centre) / unit (collapsed.py)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sparing.kernels.gaussian_process import fill_covariance_gradient
from sparing.numerics.arrays import Array
from sparing.surrogate.covariance import cross_covariance, gram_matrix, scaled_transpose
from sparing.surrogate.kernel_expansion import KernelExpansion
from sparing.surrogate.layout import Hyperparameters
from sparing.surrogate.mean import negative_quadratic_mean
from sparing.surrogate.training_set import TrainingSet


class Observations(Protocol):
    """The rows that a training set gives."""

    @property
    def n_rows(self) -> int:
        """N."""
        ...

    @property
    def first_row(self) -> NDArray[np.int64]:
        """Where each point's rows begin, its value first, and their number at the end: (n + 1,)."""
        ...

    @property
    def observed(self) -> Array:
        """The numbers themselves, (N,)."""
        ...

    def noise_variance(self, noise_sd: float, gradient_noise_sd: float) -> Array:
        """Of each row, the noise that was declared and that of the given levels: (N,)."""
        ...

    def gram(self, lengths: Array, variance: float, out: Array | None = None) -> Array:
        """K, (N, N), into out when given."""
        ...

    def cross(self, sample: Hyperparameters, queries: Array) -> Array:
        """Covariance of f at the queries with the rows, (m, N)."""
        ...

    def mean(self, sample: Hyperparameters) -> Array:
        """What the mean function makes of the rows, (N,)."""
        ...

    def noise_traces(self, matrix: Array, alpha: Array) -> Array:
        """Sums of alpha^2 less the inverse's diagonal over the rows of each level of noise.

        Of values, and of derivatives where there are any; matrix as in `covariance_gradient`.
        """
        ...

    def features(self, centre: Array, unit: Array) -> Array:
        """What the rows make of phi, and the observed numbers below: (2D + 2, N)."""
        ...

    def covariance_gradient(
        self, lengths: Array, variance: float, matrix: Array, alpha: Array
    ) -> Array:
        """d LML / d [log ell_1..D, log sigma_f], (D + 1,).

        matrix: K above its diagonal and the inverse of the noisy one on and below it.
        """
        ...

    def expansion(self, alpha: Array, parameters: Array) -> KernelExpansion:
        """The process's mean from alpha (S, N) and psi (S, p)."""
        ...

    def convolved(
        self, expansion: KernelExpansion, s: int, means: Array, scales: Array, lengths: Array
    ) -> tuple[Array, Array]:
        """Prior covariance of I_j and I_k (K, K), and that of I_k with the rows (K, N)."""
        ...

    def last_rows(self, sample: Hyperparameters) -> tuple[Array, Array]:
        """Covariances of the last point's k rows with those before and with each other.

        (k, N - k), and (k, k) with their noise.
        """
        ...


@dataclass(frozen=True, eq=False)
class ObservedValues:
    """Values alone: one row a point."""

    training: TrainingSet

    @property
    def n_rows(self) -> int:
        """N = n."""
        return self.training.n_points

    @property
    def first_row(self) -> NDArray[np.int64]:
        """0 to n."""
        return np.arange(self.n_rows + 1)

    @property
    def observed(self) -> Array:
        """y, (n,)."""
        return self.training.values

    def noise_variance(self, noise_sd: float, gradient_noise_sd: float) -> Array:
        """sigma_obs^2 and what was declared, (n,)."""
        return noise_sd**2 + self.training.noise_variance

    def gram(self, lengths: Array, variance: float, out: Array | None = None) -> Array:
        """kappa(X, X), (n, n)."""
        return gram_matrix(scaled_transpose(self.training.inputs, lengths), variance, out)

    def cross(self, sample: Hyperparameters, queries: Array) -> Array:
        """kappa(queries, X), (m, n)."""
        return cross_covariance(sample, queries, self.training.inputs)

    def mean(self, sample: Hyperparameters) -> Array:
        """m(X), (n,)."""
        return negative_quadratic_mean(sample, self.training.inputs)

    def noise_traces(self, matrix: Array, alpha: Array) -> Array:
        """Of values alone, (1,)."""
        return np.array([float(alpha @ alpha) - float(matrix.trace())])

    def features(self, centre: Array, unit: Array) -> Array:
        """[1, u, u^2, y] of each point, (2D + 2, n)."""
        u = (self.training.inputs - centre) / unit
        return np.vstack([np.ones(self.n_rows), u.T, u.T**2, self.training.values])

    def covariance_gradient(
        self, lengths: Array, variance: float, matrix: Array, alpha: Array
    ) -> Array:
        """d LML / d [log ell_1..D, log sigma_f], (D + 1,)."""
        z = scaled_transpose(self.training.inputs, lengths)
        gradient = np.empty(lengths.size + 1)
        fill_covariance_gradient(z, variance, matrix, alpha, np.empty(self.n_rows), gradient)
        return gradient

    def expansion(self, alpha: Array, parameters: Array) -> KernelExpansion:
        """A kernel at each point."""
        return KernelExpansion.of(self.training.inputs, alpha, parameters)

    def convolved(
        self, expansion: KernelExpansion, s: int, means: Array, scales: Array, lengths: Array
    ) -> tuple[Array, Array]:
        """(K, K) and z of Eq. S13, (K, n)."""
        return expansion.convolutions(s, means, scales, lengths)

    def last_rows(self, sample: Hyperparameters) -> tuple[Array, Array]:
        """kappa between the last point and the others, and its variance."""
        inputs, noise = self.training.inputs, self.training.noise_variance[-1:, None]
        own = sample.output_scale**2 + sample.noise_sd**2 + noise
        return cross_covariance(sample, inputs[-1:], inputs[:-1]), own


def observations(training: TrainingSet) -> Observations:
    """The rows of a training set."""
    if training.gradients is None:
        return ObservedValues(training)
    # Imported here: whoever has no gradients need not wait for its kernels to be compiled.
    from sparing.surrogate.gradient_observations import ObservedGradients

    return ObservedGradients(training)
