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
from sparing.variational.normal_mixture import NormalMixture

WEIGHT_SUM_TOLERANCE = 1e-9
# The mode search stops when no start moves by more than this fraction of its component's width.
MODE_TOLERANCE = 1e-10
MODE_MAX_STEPS = 2000


@dataclass(frozen=True, eq=False)
class GaussianMixture:
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
    def n_components(self) -> int:
        """Number of components K."""
        return self.means.shape[0]

    @property
    def dimension(self) -> int:
        """Number of dimensions D."""
        return self.means.shape[1]

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """(w, μ, σ, λ), the order in which kernels take them."""
        return self.weights, self.means, self.scales, self.lengths

    @property
    def mean(self) -> Array:
        """E_q[x], (D,)."""
        return self.weights @ self.means

    @property
    def covariance(self) -> Array:
        """Cov_q[x], (D, D)."""
        deviations = self.means - self.mean
        between = (deviations.T * self.weights) @ deviations
        within = np.diag((self.weights @ self.scales**2) * self.lengths**2)
        return within + between

    def log_density(self, x: Array) -> Array:
        """log q at points x (m, D), finite far out in the tails; (m,)."""
        points = np.array(x, dtype=np.float64, ndmin=2, order="C")
        if points.ndim != 2 or points.shape[1] != self.dimension:
            raise ValueError(f"points must have shape (m, {self.dimension}), not {np.shape(x)}")
        return mixture_log_density(points, *self.arrays)

    def sample(self, n: int, generator: np.random.Generator) -> Array:
        """n independent draws, (n, D)."""
        component = generator.choice(self.n_components, size=n, p=self.weights)
        return self.placed(component, generator.standard_normal((n, self.dimension)))

    def placed(self, component: NDArray[np.intp], z: Array) -> Array:
        """Standard normal z (n, D) as draws from the given components (n,): (n, D)."""
        return self.means[component] + self.scales[component, None] * self.lengths * z

    def image(self, matrix: Array, offset: Array) -> NormalMixture:
        """The distribution of A x + b, with A (d, D) of full rank and b (d,)."""
        scaled = matrix * self.lengths
        factor = np.linalg.cholesky(scaled @ scaled.T)
        means = self.means @ matrix.T + offset
        return NormalMixture(self.weights, means, self.scales[:, None, None] * factor)

    def mode(self) -> Array:
        """The highest point of q found from the component means, (D,).

        Where ∇q = 0, x = Σ_k c_k μ_k / Σ_k c_k with c_k = w_k N_k(x) / σ_k² (Σ is shared and
        drops out). Iterating that map (mean shift) never lowers q.
        """
        points = self.means.copy()
        width = self.scales[:, None] * self.lengths
        for _ in range(MODE_MAX_STEPS):
            pull = self._responsibilities(points) / self.scales**2
            moved = (pull @ self.means) / pull.sum(axis=1, keepdims=True)
            step = np.max(np.abs(moved - points) / width)
            points = moved
            if step < MODE_TOLERANCE:
                break
        return points[int(np.argmax(self.log_density(points)))]

    def _responsibilities(self, points: Array) -> Array:
        """w_k N_k(x) / q(x) at points (m, D); (m, K)."""
        scaled = (points[:, None, :] - self.means) / self.lengths
        distance = np.einsum("mkd,mkd->mk", scaled, scaled) / self.scales**2
        terms = np.log(self.weights) - self.dimension * np.log(self.scales) - 0.5 * distance
        terms = np.exp(terms - terms.max(axis=1, keepdims=True))
        return terms / terms.sum(axis=1, keepdims=True)

    def without(self, component: int) -> GaussianMixture:
        """The mixture less one component, the other weights renormalised (Section 3.6)."""
        kept = np.arange(self.n_components) != component
        weights = self.weights[kept]
        return GaussianMixture(
            weights / weights.sum(), self.means[kept], self.scales[kept], self.lengths
        )
