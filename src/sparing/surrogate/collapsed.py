"""The posterior of the covariance's hyperparameters, the mean function integrated out.

Given the covariance the mean function is a linear model: with u = (x - centre) / unit it is
phi(x)^T beta, phi = [1, u, u^2], and only the sign of its curvature and the bounds of m_0, x_m and
omega keep beta from being exactly normal. Integrating beta out (universal kriging) leaves D + 2
hyperparameters instead of 3D + 3, takes away the directions in which the likelihood is a million
times stiffer than in the rest, and counts the freedom the mean function used up: maximising over
it instead makes sigma_f too small by a factor of sqrt(1 - (2D + 1) / n).

Notation (D dimensions, n training points)
    theta    [log ell_1..D, log sigma_f, log sigma_obs], and log sigma_g where gradients are known
    p        [m_0, x_m 1..D, log omega_1..D], (2D + 1,); psi has both (layout.py)
    A = L L^T  covariance of the N rows (observations.py), noise included, (N, N)
    B        diag(1 / s), the weak normal prior of beta, (2D + 1, 2D + 1)
    R        triangle of [L^-1 [phi, y]; [B, 0]], (2D + 2, 2D + 2); G = R_beta^T R_beta is the
             precision of beta
    F        the least |R v|^2 / 2 within the bounds (kernels/mean_projection.py)

    log p(y | theta) = -F - 1/2 log |A| - 1/2 log |G| + const

Where the bounds do not bind this is exact. Where they do, F is the least within them, while |G|
still counts the whole normal: what share of it the bounds leave is taken not to depend on theta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from sparing.kernels.mean_projection import project_mean
from sparing.kernels.mean_sampling import UNIFORMS_AT_MOST, draw_mean, sample_mean
from sparing.numerics.arrays import Array
from sparing.numerics.linear_algebra import (
    add_outer_products,
    invert_from_cholesky,
    log_determinant_from_cholesky,
    robust_cholesky,
    solve_lower_rows,
    solve_lower_transposed,
    solve_lower_transposed_rows,
    triangle_of_rows,
)
from sparing.surrogate.hyperparameters import HyperparameterPrior
from sparing.surrogate.layout import Layout
from sparing.surrogate.observations import observations
from sparing.surrogate.training_set import TrainingSet

# SD of the coefficients of the mean function's prior, in ranges of the values: a quadratic that
# steep over the data's extent has been ruled out by looking at them.
COEFFICIENT_RANGES = 10.0
# Attempts to draw the mean function exactly: the bounds leave less than a fiftieth of the normal
# for hardly more data than coefficients only.
MEAN_ATTEMPTS = 200
# Slice sampling it instead: sweeps, and uniform numbers laid in per move.
MEAN_SWEEPS = 3
UNIFORMS_PER_MOVE = 8


@dataclass(frozen=True, eq=False)
class CollapsedValue:
    """log p(theta | y) up to a constant, the best p there (2D + 1,), and R."""

    theta: Array
    value: float
    mean: Array
    triangle: Array

    def with_mean(self, mean: Array) -> Array:
        """psi with the given mean function, (2D + 1,)."""
        first = Layout((mean.size - 1) // 2).n_covariance
        return np.concatenate([self.theta[:first], mean, self.theta[first:]])


class CollapsedPosterior:
    """log p(theta | y); the values' maximum has to be near zero (`shifted_to_zero`)."""

    def __init__(self, training: TrainingSet, prior: HyperparameterPrior) -> None:
        self.layout = training.layout
        self.n_mean = 2 * training.dimension + 1  # length of p
        self.training = training
        self._observed = observations(training)
        centre = training.inputs.mean(axis=0)
        extent = np.ptp(training.inputs, axis=0)
        unit = np.where(extent > 0.0, extent, 1.0)
        self._features = self._observed.features(centre, unit)
        spread = max(float(np.ptp(training.values)), 1.0)
        self._prior_rows = np.zeros((self.n_mean, self.n_mean + 1))
        np.fill_diagonal(self._prior_rows, 1.0 / (COEFFICIENT_RANGES * spread))
        self.n_theta = self.layout.theta.size
        self.prior = prior.of_entries(self.layout.theta)
        lower, upper = prior.lower[self.layout.mean], prior.upper[self.layout.mean]
        self._centre, self._unit = centre, unit
        self._frame = (centre, unit, lower, upper)  # what the kernels of p ask for

    def at(self, theta: Array) -> CollapsedValue:
        """The log posterior at theta and the mean function that goes with it."""
        return self._evaluate(theta)[0]

    def correlation_with_nearest(self, theta: Array) -> float:
        """Of a point with its nearest, on average; at 0 the kernel is white noise to the data."""
        if self.training.n_points < 2:
            return 1.0
        scaled = self.training.inputs / np.exp(theta[self.layout.log_lengths])
        distances = KDTree(scaled).query(scaled, 2)[0][:, 1]
        return float(np.mean(np.exp(-0.5 * distances**2)))

    def with_gradient(self, theta: Array) -> tuple[CollapsedValue, Array]:
        """The log posterior and its gradient.

        R v stays at its minimum as theta moves, so F's gradient is the partial one. That of
        log |A| + log |G| is tr[(A^-1 - W^T W) dA] with W = R_beta^-T phi^T A^-1.
        """
        found, matrix, half = self._evaluate(theta)
        v = self._combination(found.mean)
        alpha = solve_lower_transposed(matrix, half.T @ v)
        beta_triangle = np.ascontiguousarray(found.triangle[:-1, :-1].T)
        # Rows of half become columns of the orthogonal factor; L^-T of them gives W.
        factors = np.ascontiguousarray(solve_lower_rows(beta_triangle, half[:-1].T.copy()).T)
        factors = solve_lower_transposed_rows(matrix, factors)
        invert_from_cholesky(matrix)
        add_outer_products(matrix, -1.0, factors)
        layout = self.layout
        lengths = np.exp(theta[layout.log_lengths])
        variance = math.exp(2.0 * theta[layout.log_output_scale])
        of_covariance = self._observed.covariance_gradient(lengths, variance, matrix, alpha)
        traces = self._observed.noise_traces(matrix, alpha)
        levels = [math.exp(2.0 * entry) for entry in theta[layout.log_noise_sd :]]
        gradient = np.concatenate([of_covariance, levels * traces])
        return found, gradient + self.prior.gradient(theta)

    def draw_mean(self, found: CollapsedValue, generator: np.random.Generator) -> Array:
        """psi's mean entries drawn from their posterior given the covariance, (2D + 1,)."""
        p = found.mean.copy()
        normals = generator.standard_normal((MEAN_ATTEMPTS, p.size))
        if not draw_mean(found.triangle, *self._frame, normals, p):
            self._walk_from_best(found.triangle, p, generator)
        return p

    def _walk_from_best(self, triangle: Array, p: Array, generator: np.random.Generator) -> None:
        """Move p from the best mean function to one that is nearly a draw."""
        image_gradient = triangle @ self._combination_jacobian(p)
        precision = image_gradient.T @ image_gradient
        scale = 1.0 / np.sqrt(np.maximum(np.diagonal(precision), np.finfo(np.float64).tiny))
        # Directions of unit variance, orthogonal in the precision; a ridge where it is singular.
        correlation = precision * np.outer(scale, scale) + 1e-9 * np.eye(p.size)
        directions = scale * np.linalg.inv(np.linalg.cholesky(correlation))
        n_uniforms = UNIFORMS_AT_MOST + MEAN_SWEEPS * p.size * UNIFORMS_PER_MOVE
        uniforms = generator.random(n_uniforms)
        sample_mean(triangle, *self._frame, np.ascontiguousarray(directions), p, uniforms)

    def _evaluate(self, theta: Array) -> tuple[CollapsedValue, Array, Array]:
        """The log posterior, A's factor (K above it), and L^-1 [phi, y]."""
        layout, observed = self.layout, self._observed
        scales = np.exp(theta)
        variance = float(scales[layout.log_output_scale]) ** 2
        matrix = observed.gram(scales[: layout.dimension], variance)
        noise = observed.noise_variance(float(scales[layout.log_noise_sd]), float(scales[-1]))
        matrix.reshape(-1)[:: observed.n_rows + 1] += noise
        robust_cholesky(matrix)
        half = solve_lower_rows(matrix, self._features.copy())
        triangle = triangle_of_rows(np.vstack([half.T, self._prior_rows]))
        mean = np.empty(self.n_mean)
        loss = project_mean(triangle, *self._frame, mean)
        log_determinant = log_determinant_from_cholesky(matrix)
        log_determinant += log_determinant_from_cholesky(np.abs(triangle[:-1, :-1]))
        value = -loss - 0.5 * log_determinant + self.prior.log_density(theta)
        return CollapsedValue(theta, value, mean, triangle), matrix, half

    def _combination(self, p: Array) -> Array:
        """v(p), (2D + 2,)."""
        mu, tau = self._curve(p)
        constant = 0.5 * float(tau @ mu**2) - p[0]
        return np.concatenate([[constant], -tau * mu, 0.5 * tau, [1.0]])

    def _combination_jacobian(self, p: Array) -> Array:
        """dv / dp, (2D + 2, 2D + 1)."""
        dimension = self.layout.dimension
        mu, tau = self._curve(p)
        jacobian = np.zeros((self.n_mean + 1, self.n_mean))
        jacobian[0, 0] = -1.0
        location, scale = np.arange(1, dimension + 1), np.arange(dimension + 1, self.n_mean)
        jacobian[0, location] = tau * mu / self._unit
        jacobian[location, location] = -tau / self._unit
        jacobian[0, scale] = -tau * mu**2
        jacobian[location, scale] = 2.0 * tau * mu
        jacobian[scale, scale] = -tau
        return jacobian

    def _curve(self, p: Array) -> tuple[Array, Array]:
        dimension = self.layout.dimension
        mu = (p[1 : dimension + 1] - self._centre) / self._unit
        return mu, (self._unit * np.exp(-p[dimension + 1 :])) ** 2
