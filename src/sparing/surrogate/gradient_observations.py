"""Rows of values and gradients: n values, and D derivatives at each point that has them.

A point's value comes first, then its derivatives, so that a new point's rows are the last ones.
Derivatives have noise of one level, which is learned, and more where little depends on them
(training_data.py); that of values is as without gradients.

Notation as in `observations`; b are the coefficients of the kernels' own slopes:
    fbar(x) = m(x) + sum_p (alpha_p + sum_i b_pi d / dx_pi) kappa(x, x_p)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sparing.kernels.gradient_process import (
    copy_lower_to_upper,
    fill_gradient_covariance_gradient,
    fill_gradient_cross,
    fill_gradient_rows,
)
from sparing.numerics.arrays import Array
from sparing.surrogate.covariance import scaled_transpose
from sparing.surrogate.kernel_expansion import KernelExpansion
from sparing.surrogate.layout import Hyperparameters
from sparing.surrogate.mean import negative_quadratic_mean, scaled_offsets
from sparing.surrogate.training_set import TrainingSet


@dataclass(frozen=True, eq=False)
class ObservedGradients:
    """Values, and gradients where they are known."""

    training: TrainingSet

    @property
    def first_row(self) -> NDArray[np.int64]:
        """Where each point's rows begin, and their number at the end: (n + 1,)."""
        return self._first_row

    @cached_property
    def _first_row(self) -> NDArray[np.int64]:
        n_rows = 1 + self.training.dimension * self.training.has_gradient
        return np.concatenate([[0], np.cumsum(n_rows)]).astype(np.int64)

    @property
    def n_rows(self) -> int:
        """N."""
        return int(self.first_row[-1])

    @cached_property
    def _derivatives(self) -> NDArray[np.intp]:
        """Rows of the derivatives, (g, D), for the g points that have a gradient."""
        starts = self.first_row[:-1][self.training.has_gradient]
        return starts[:, None] + 1 + np.arange(self.training.dimension)

    def _rows(self, of_values: Array, of_gradients: Array) -> Array:
        """(n,) and (g, D) put in their rows: (N,)."""
        rows = np.empty(self.n_rows)
        rows[self.first_row[:-1]] = of_values
        rows[self._derivatives] = of_gradients
        return rows

    @property
    def _slopes(self) -> Array:
        """The gradients that are known, (g, D)."""
        assert self.training.gradients is not None
        return self.training.gradients[self.training.has_gradient]

    @property
    def observed(self) -> Array:
        """Values and derivatives, (N,)."""
        return self._rows(self.training.values, self._slopes)

    def noise_variance(self, noise_sd: float, gradient_noise_sd: float) -> Array:
        """As declared, and a level for each kind: sigma_obs of values, sigma_g of derivatives."""
        declared = self.training.gradient_noise_sd[self.training.has_gradient, None] ** 2
        of_gradients = np.broadcast_to(gradient_noise_sd**2 + declared, self._slopes.shape)
        return self._rows(noise_sd**2 + self.training.noise_variance, of_gradients)

    def gram(self, lengths: Array, variance: float, out: Array | None = None) -> Array:
        """K, (N, N)."""
        gram = np.empty((self.n_rows, self.n_rows)) if out is None else out
        z = scaled_transpose(self.training.inputs, lengths)
        fill_gradient_rows(z, lengths, variance, self.first_row, 0, gram)
        copy_lower_to_upper(gram)
        return gram

    def cross(self, sample: Hyperparameters, queries: Array) -> Array:
        """Covariance of f at the queries with the rows, (m, N)."""
        lengths = sample.length_scales
        covariance = np.empty((len(queries), self.n_rows))
        fill_gradient_cross(
            np.ascontiguousarray(queries / lengths),
            scaled_transpose(self.training.inputs, lengths),
            lengths,
            sample.output_scale**2,
            self.first_row,
            covariance,
        )
        return covariance

    def mean(self, sample: Hyperparameters) -> Array:
        """m(x) and its derivatives, -(x - x_m) / omega^2."""
        offsets = scaled_offsets(sample, self.training.inputs[self.training.has_gradient])
        values = negative_quadratic_mean(sample, self.training.inputs)
        return self._rows(values, -offsets / sample.mean_scales)

    def noise_traces(self, matrix: Array, alpha: Array) -> Array:
        """Of values and of derivatives, (2,)."""
        rows = alpha**2 - np.diagonal(matrix)
        return np.array([rows[self.first_row[:-1]].sum(), rows[self._derivatives].sum()])

    def features(self, centre: Array, unit: Array) -> Array:
        """phi and dphi/dx_i: [0, e_i, 2 u_i e_i] / unit_i; the observed numbers below."""
        dimension = self.training.dimension
        u = (self.training.inputs - centre) / unit
        features = np.zeros((2 * dimension + 2, self.n_rows))
        features[0, self.first_row[:-1]] = 1.0
        for i in range(dimension):
            along = self._derivatives[:, i]
            features[1 + i, self.first_row[:-1]] = u[:, i]
            features[1 + i, along] = 1.0 / unit[i]
            features[1 + dimension + i, self.first_row[:-1]] = u[:, i] ** 2
            features[1 + dimension + i, along] = 2.0 * u[self.training.has_gradient, i] / unit[i]
        features[-1] = self.observed
        return features

    def covariance_gradient(
        self, lengths: Array, variance: float, matrix: Array, alpha: Array
    ) -> Array:
        """d LML / d [log ell_1..D, log sigma_f], (D + 1,)."""
        gradient = np.empty(lengths.size + 1)
        z = scaled_transpose(self.training.inputs, lengths)
        fill_gradient_covariance_gradient(
            z, lengths, variance, self.first_row, matrix, alpha, gradient
        )
        return gradient

    def expansion(self, alpha: Array, parameters: Array) -> KernelExpansion:
        """A kernel at each point, and its slopes where gradients are known."""
        slopes = np.zeros((len(alpha), self.training.dimension, self.training.n_points))
        slopes[:, :, self.training.has_gradient] = alpha[:, self._derivatives].swapaxes(1, 2)
        values = alpha[:, self.first_row[:-1]]
        return KernelExpansion.of(self.training.inputs, values, parameters, slopes)

    def convolved(
        self, expansion: KernelExpansion, s: int, means: Array, scales: Array, lengths: Array
    ) -> tuple[Array, Array]:
        """(K, K), and z with dz / dx_pi = z (mu_i - x_pi) / tau_i^2, (K, N)."""
        prior, z = expansion.convolutions(s, means, scales, lengths)
        kernel_variance = np.exp(2.0 * expansion.shapes[s, : lengths.size])
        inverse = 1.0 / ((scales[:, None] * lengths) ** 2 + kernel_variance)  # (K, D)
        inputs = self.training.inputs[self.training.has_gradient]
        rows = np.empty((len(means), self.n_rows))
        rows[:, self.first_row[:-1]] = z
        differences = (means[:, None, :] - inputs) * inverse[:, None, :]  # (K, g, D)
        rows[:, self._derivatives] = z[:, self.training.has_gradient, None] * differences
        return prior, rows

    def last_rows(self, sample: Hyperparameters) -> tuple[Array, Array]:
        """Covariances of the last point's rows with those before, and with each other."""
        point = self.training.n_points - 1
        first = int(self.first_row[point])
        lengths, variance = sample.length_scales, sample.output_scale**2
        z = scaled_transpose(self.training.inputs, lengths)
        rows = np.empty((self.n_rows - first, self.n_rows))
        fill_gradient_rows(z, lengths, variance, self.first_row, point, rows)
        noise = self.noise_variance(sample.noise_sd, sample.gradient_noise_sd)[first:]
        return np.ascontiguousarray(rows[:, :first]), rows[:, first:] + np.diag(noise)
