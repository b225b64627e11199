"""The hyperparameters of the Gaussian process as one vector and by name (Section 3.4).

Notation (D dimensions)
    psi      all hyperparameters, scales in log space, (3D + 3,), in the order
             [log ell_1..D, log sigma_f, log sigma_obs, m_0, x_m 1..D, log omega_1..D], and
             log sigma_g behind them where gradients are known, (3D + 4,)
    ell      input length scales, (D,)
    sigma_f  output scale;  sigma_obs  standard deviation of the observation noise
    sigma_g  standard deviation of the noise of derivatives
    m_0      maximum of the mean function;  x_m its location (D,);  omega its length scales (D,)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparing.numerics.arrays import Array


@dataclass(frozen=True)
class Layout:
    """Where each hyperparameter stands in psi."""

    dimension: int
    n_gradient: int = 0  # entries about gradients: 1 where they are known

    @property
    def size(self) -> int:
        """Length of psi, 3D + 3, or one more."""
        return 3 * self.dimension + 3 + self.n_gradient

    @property
    def n_covariance(self) -> int:
        """How many leading entries shape the covariance: ell, sigma_f and sigma_obs."""
        return self.dimension + 2

    @property
    def theta(self) -> NDArray[np.intp]:
        """Positions of all that is not about the mean function: ell, sigma_f and the noise."""
        last = np.arange(3 * self.dimension + 3, self.size)
        return np.concatenate([np.arange(self.n_covariance), last])

    @property
    def mean(self) -> slice:
        """Positions of what is about the mean function: m_0, x_m, omega."""
        return slice(self.n_covariance, 3 * self.dimension + 3)

    @property
    def log_lengths(self) -> slice:
        """Position of log ell."""
        return slice(0, self.dimension)

    @property
    def log_output_scale(self) -> int:
        """Position of log sigma_f."""
        return self.dimension

    @property
    def log_noise_sd(self) -> int:
        """Position of log sigma_obs."""
        return self.dimension + 1

    @property
    def log_gradient_noise_sd(self) -> slice:
        """Position of log sigma_g, which is there with gradients only."""
        return slice(3 * self.dimension + 3, self.size)

    @property
    def mean_maximum(self) -> int:
        """Position of m_0."""
        return self.dimension + 2

    @property
    def mean_location(self) -> slice:
        """Position of x_m."""
        return slice(self.dimension + 3, 2 * self.dimension + 3)

    @property
    def log_mean_scales(self) -> slice:
        """Position of log omega."""
        return slice(2 * self.dimension + 3, 3 * self.dimension + 3)

    @staticmethod
    def of(psi: Array) -> Layout:
        """The layout of a vector (or of rows) of hyperparameters."""
        size = psi.shape[-1]
        if size < 6 or size % 3 == 2:
            raise ValueError(f"a hyperparameter vector has 3D + 3 or 3D + 4 entries, not {size}")
        return Layout(size // 3 - 1, size % 3)


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """One hyperparameter vector in natural units."""

    length_scales: Array
    output_scale: float
    noise_sd: float
    mean_maximum: float
    mean_location: Array
    mean_scales: Array
    gradient_noise_sd: float = 0.0

    @staticmethod
    def from_vector(psi: Array) -> Hyperparameters:
        """Split psi into its parts."""
        layout = Layout.of(psi)
        scales = np.exp(psi[: layout.n_covariance])
        return Hyperparameters(
            length_scales=scales[: layout.dimension],
            output_scale=float(scales[layout.log_output_scale]),
            noise_sd=float(scales[layout.log_noise_sd]),
            mean_maximum=float(psi[layout.mean_maximum]),
            mean_location=psi[layout.mean_location],
            mean_scales=np.exp(psi[layout.log_mean_scales]),
            gradient_noise_sd=float(np.exp(psi[-1])) if layout.n_gradient else 0.0,
        )
