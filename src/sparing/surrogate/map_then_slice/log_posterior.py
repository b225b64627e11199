"""The log posterior of the hyperparameters, shaped for moves along one coordinate at a time.

Notation (D dimensions, n training points)
    psi      hyperparameters, (3D + 3,); order in layout.py
    A = L L^T  covariance of the values, noise included, (n, n)
    u        inputs centred and divided by the data's extent, (n, D)
    phi      features [1, u_1..D, u_1..D^2], (n, 2D + 1); the mean function is linear in them
    R        triangle of the QR decomposition of L^-1 [phi, y], (2D + 2, 2D + 2)

While only m_0, x_m or omega moves, A stays, and the residual y - m = [phi, y] v has
r^T A^-1 r = |R v|^2: such moves cost O(D) once R is known. |R v|^2 loses no more digits than
solving for the residual does, where a precomputed v^T (R^T R) v would square the condition number.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from sparing.numerics.arrays import Array
from sparing.numerics.linear_algebra import (
    log_determinant_from_cholesky,
    solve_lower,
    solve_lower_rows,
)
from sparing.numerics.slice_sampling import Conditional
from sparing.surrogate.gaussian_process import LOG_2_PI, TrainingSet, factorise_covariance
from sparing.surrogate.hyperparameters import HyperparameterPrior
from sparing.surrogate.layout import Hyperparameters, Layout
from sparing.surrogate.mean import negative_quadratic_mean


class HyperparameterPosterior:
    """log p(psi | y) up to a constant; implements slice_sampling.CoordinateDensity.

    The last covariance's R is remembered, so that a sweep over the mean's coordinates computes it
    once. The memory is invisible from outside: results do not depend on it.
    """

    def __init__(self, training: TrainingSet, prior: HyperparameterPrior) -> None:
        self._training = training
        self._prior = prior
        self._layout = Layout(training.dimension)
        self._centre = training.inputs.mean(axis=0)
        extent = np.ptp(training.inputs, axis=0)
        self._unit = np.where(extent > 0.0, extent, 1.0)
        u = (training.inputs - self._centre) / self._unit
        ones = np.ones(training.n_points)
        self._features = np.vstack([ones, u.T, u.T**2, training.values])  # one per row
        # psi's covariance entries, R for them, and -1/2 log |A| - n/2 log 2 pi.
        self._mean_form: tuple[bytes, Array, float] = (b"", np.empty(0), math.nan)

    def along(self, point: Array, index: int) -> Conditional:
        """See slice_sampling.CoordinateDensity."""
        others = self._prior.log_density(point)
        others -= self._prior.coordinate_log_density(index, float(point[index]))
        if index < self._layout.n_covariance:
            likelihood = self._along_covariance(point, index)
        else:
            likelihood = self._along_mean(point, index)

        def conditional(value: float) -> float:
            prior = self._prior.coordinate_log_density(index, value)
            return others + prior + likelihood(value) if prior > -math.inf else -math.inf

        return conditional

    def _along_covariance(self, point: Array, index: int) -> Conditional:
        """Likelihood as ell_i, sigma_f or sigma_obs moves: A is factorised at every value."""
        training = self._training
        psi = point.copy()
        mean = negative_quadratic_mean(Hyperparameters.from_vector(psi), training.inputs)
        residual = training.values - mean

        def likelihood(value: float) -> float:
            psi[index] = value
            lower = factorise_covariance(training, Hyperparameters.from_vector(psi)).lower
            half = solve_lower(lower, residual)
            return -0.5 * float(half @ half) + _likelihood_constant(lower)

        return likelihood

    def _along_mean(self, point: Array, index: int) -> Conditional:
        """Likelihood as m_0, x_m,d or log omega_d moves: a small least-squares form."""
        _, triangle, constant = self._mean_form_at(point)
        moving = self._moving_part(triangle, point, index)
        coefficients = self._moving_coefficients(point, index)

        def likelihood(value: float) -> float:
            image = coefficients(value) @ moving
            return constant - 0.5 * float(image @ image)

        return likelihood

    def _moving_part(self, triangle: Array, point: Array, index: int) -> Array:
        """R v without what index moves, then R's columns for what it moves; one per row."""
        layout = self._layout
        d = self._dimension_of(index)
        m_0 = float(point[layout.mean_maximum])
        mu = (point[layout.mean_location] - self._centre) / self._unit
        tau = (self._unit * np.exp(-point[layout.log_mean_scales])) ** 2
        if d is None:
            m_0, columns = 0.0, [0]
        else:
            tau[d], columns = 0.0, [0, 1 + d, 1 + layout.dimension + d]
        v = np.concatenate([[0.5 * tau @ mu**2 - m_0], -tau * mu, 0.5 * tau, [1.0]])
        return np.vstack([triangle @ v, triangle[:, columns].T])

    def _moving_coefficients(self, point: Array, index: int) -> Callable[[float], Array]:
        """Weights of the rows of _moving_part as the entry takes a value.

        With mu = (x_m - centre) / unit and tau = (unit / omega)^2, dimension d contributes
        -tau mu^2 / 2 + tau mu u - tau u^2 / 2 to the mean function.
        """
        layout = self._layout
        d = self._dimension_of(index)
        if d is None:
            return lambda value: np.array([1.0, -value])
        centre, unit = float(self._centre[d]), float(self._unit[d])
        location = float(point[layout.mean_location][d])
        log_scale = float(point[layout.log_mean_scales][d])
        moves_location = index < layout.log_mean_scales.start

        def coefficients(value: float) -> Array:
            mu = ((value if moves_location else location) - centre) / unit
            tau = (unit * math.exp(-(log_scale if moves_location else value))) ** 2
            return np.array([1.0, 0.5 * tau * mu * mu, -tau * mu, 0.5 * tau])

        return coefficients

    def _dimension_of(self, index: int) -> int | None:
        """The dimension whose x_m or omega stands at index; None for m_0."""
        if index == self._layout.mean_maximum:
            return None
        return (index - self._layout.mean_location.start) % self._layout.dimension

    def _mean_form_at(self, point: Array) -> tuple[bytes, Array, float]:
        """The likelihood by the mean function alone, remembered while the covariance stays."""
        key = point[: self._layout.n_covariance].tobytes()
        if self._mean_form[0] != key:
            sample = Hyperparameters.from_vector(point)
            lower = factorise_covariance(self._training, sample).lower
            half = solve_lower_rows(lower, self._features.copy())
            triangle: Array = np.asarray(np.linalg.qr(half.T, mode="r"))
            self._mean_form = (key, triangle, _likelihood_constant(lower))
        return self._mean_form


def _likelihood_constant(lower: Array) -> float:
    return -0.5 * (log_determinant_from_cholesky(lower) + lower.shape[0] * LOG_2_PI)
