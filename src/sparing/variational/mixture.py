"""The variational posterior q(x), a mixture of Gaussians with a shared diagonal covariance.

Notation (Eq. 6)
    q(x) = Σ_k w_k N(x; μ_k, σ_k² Σ),   Σ = diag(λ_1², ..., λ_D²)
    weights w (K,), means μ (K, D), scales σ (K,), lengths λ (D,)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparing.kernels.mixture import mixture_log_density
from sparing.numerics.arrays import Array
from sparing.variational.normal_mixture import Mixture, NormalMixture

WEIGHT_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class GaussianMixture(Mixture):
    """A validated mixture; its arrays are private copies and must not be written to."""

    weights: Array
    means: Array
    scales: Array
    lengths: Array

    def __post_init__(self) -> None:
        for name in ("weights", "means", "scales", "lengths"):
            # Writable copies: Numba would compile every kernel again for read-only arrays.
            array = np.array(getattr(self, name), dtype=np.float64, order="C")
            object.__setattr__(self, name, array)
        self._check_shapes()
        for name in ("weights", "scales", "lengths"):
            if not (getattr(self, name) > 0.0).all():
                raise ValueError(f"mixture {name} must be positive")
        for name in ("weights", "means", "scales", "lengths"):
            if not np.isfinite(getattr(self, name)).all():
                raise ValueError(f"mixture {name} must be finite")
        total = self.weights.sum()
        if abs(total - 1.0) > WEIGHT_SUM_TOLERANCE:
            raise ValueError(f"mixture weights must sum to one, not {total!r}")
        object.__setattr__(self, "weights", self.weights / total)

    def _check_shapes(self) -> None:
        if self.means.ndim != 2 or min(self.means.shape) < 1:
            raise ValueError(f"mixture means must have shape (K, D), not {self.means.shape}")
        n_components, dimension = self.means.shape
        expected = (("weights", n_components), ("scales", n_components), ("lengths", dimension))
        for name, size in expected:
            shape = getattr(self, name).shape
            if shape != (size,):
                raise ValueError(f"mixture {name} must have shape ({size},), not {shape}")

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """(w, μ, σ, λ), the order in which kernels take them."""
        return self.weights, self.means, self.scales, self.lengths

    def typical_covariance(self) -> Array:
        """The components' on average, (D, D)."""
        return np.diag((self.weights @ self.scales**2) * self.lengths**2)

    def log_density(self, x: Array) -> Array:
        """log q at points x (m, D), finite far out in the tails; (m,)."""
        points = np.array(x, dtype=np.float64, ndmin=2, order="C")
        if points.ndim != 2 or points.shape[1] != self.dimension:
            raise ValueError(f"points must have shape (m, {self.dimension}), not {np.shape(x)}")
        return mixture_log_density(points, *self.arrays)

    def placed(self, component: NDArray[np.intp], z: Array) -> Array:
        """Standard normal z (n, D) as draws from the given components (n,): (n, D)."""
        return self.means[component] + self.scales[component, None] * self.lengths * z

    def image(self, matrix: Array, offset: Array) -> NormalMixture:
        """The distribution of A x + b, with A (d, D) of full rank and b (d,)."""
        scaled = matrix * self.lengths
        factor = np.linalg.cholesky(scaled @ scaled.T)
        means = self.means @ matrix.T + offset
        return NormalMixture(self.weights, means, self.scales[:, None, None] * factor)

    def without(self, component: int) -> GaussianMixture:
        """The mixture less one component, the other weights renormalised (Section 3.6)."""
        kept = np.arange(self.n_components) != component
        weights = self.weights[kept]
        return GaussianMixture(
            weights / weights.sum(), self.means[kept], self.scales[kept], self.lengths
        )
