"""A mixture of normals cut off at the edge of the support.

    p(u) = m(u) / P inside, and zero outside

Notation (K components, D dimensions, N points)
    m    mixture of normals          P    its mass inside
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import ndtri

from sparing.numerics.arrays import Array
from sparing.numerics.quasi_random import scrambled_halton
from sparing.surrogate.support import Support
from sparing.variational.normal_mixture import (
    Mixture,
    NormalMixture,
    even_sample,
    log_sum_rows,
    unchanged,
)

N_EVEN = 2**15  # draws of the mixture that moments are averages over, the same ones always
FEWEST_INSIDE = 100  # of them
N_AT_ONCE = 2**17  # draws behind the values of a marginal density...
FEWEST, MOST = 32, 512  # ...and for each of them


@dataclass(frozen=True, eq=False)
class CutMixture(Mixture):
    """A mixture and the support that cuts it; weights and means are those before the cut."""

    mixture: NormalMixture
    support: Support

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", self.mixture.weights)
        object.__setattr__(self, "means", self.mixture.means)

    @cached_property
    def even_draws(self) -> Array:
        """Evenly spread draws, always the same ones: (P N_EVEN, D)."""
        draws = even_sample(self.mixture, N_EVEN)
        return draws[self.contains(draws)]

    @property
    def mass(self) -> float:
        """P."""
        return len(self.even_draws) / N_EVEN

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        return self.even_draws.mean(axis=0), np.atleast_2d(np.cov(self.even_draws, rowvar=False))

    @property
    def mean(self) -> Array:
        """E[u], (D,)."""
        return self._moments[0]

    @property
    def covariance(self) -> Array:
        """Cov[u], (D, D)."""
        return self._moments[1]

    def typical_covariance(self) -> Array:
        """The components' covariances before the cut, on average: (D, D)."""
        return self.mixture.typical_covariance()

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Which points (N, D) the density is not zero at: (N,)."""
        return self.support.contains(points)

    def log_density(self, x: Array) -> Array:
        """At points (N, D): (N,)."""
        return np.where(self.contains(x), self.mixture.log_density(x) - np.log(self.mass), -np.inf)

    def sample(self, n: int, generator: np.random.Generator) -> Array:
        """n independent draws, (n, D): those of the mixture that are inside."""
        draws = np.empty((0, self.dimension))
        while len(draws) < n:
            n_more = int(1.1 * (n - len(draws)) / self.mass) + 8
            more = self.mixture.sample(n_more, generator)
            draws = np.vstack([draws, more[self.contains(more)]])
        return draws[:n]

    def placed(self, component: NDArray[np.intp], z: Array) -> Array:
        """Standard normal z (n, D) as draws from the given components before the cut: (n, D)."""
        return self.mixture.placed(component, z)

    def mode(self) -> Array:
        """The highest point found, (D,); at the edge where the mixture's own is beyond it."""
        top = self.mixture.mode()
        if self.contains(top[None])[0]:
            return top
        start = self.even_draws[int(np.argmax(self.mixture.log_density(self.even_draws)))]
        best = minimize(lambda u: -float(self.log_density(u[None])[0]), start, method="Nelder-Mead")
        return np.asarray(best.x, dtype=np.float64)

    def image(self, matrix: Array, offset: Array) -> NormalMixture:
        """The distribution of A u + b before the cut."""
        return self.mixture.image(matrix, offset)

    def log_acceptance(self, matrix: Array, offset: Array, s: Array) -> Array:
        """Log of what the cut does to the density of A u + b at values s (N, d): (N,).

        The share of draws inside given A u + b = s, over P. A draw u of a component becomes one
        that fulfils the condition by adding C A^T (A C A^T)^-1 (s - A u - b).
        """
        image = self.image(matrix, offset)
        terms = image.component_log_densities(s)
        cumulative = np.cumsum(np.exp(terms - log_sum_rows(terms)[:, None]), axis=1)
        n = int(np.clip(N_AT_ONCE // max(len(s), 1), FEWEST, MOST))
        unit = scrambled_halton(n, self.dimension + 1)
        component = (unit[:, 0, None] > cumulative[:, None, :]).sum(axis=2)  # (N, n)
        component = np.minimum(component, self.n_components - 1).ravel()
        z = ndtri(np.clip(unit[:, 1:], 1e-12, 1.0 - 1e-12))
        draws = self.placed(component, np.tile(z, (len(s), 1)))
        cross = self.mixture.covariances @ matrix.T  # (K, D, d)
        gains = np.linalg.solve(matrix @ cross, cross.transpose(0, 2, 1))  # (K, d, D)
        missing = np.repeat(s, n, axis=0) - draws @ matrix.T - offset
        draws = draws + np.einsum("nd,ndi->ni", missing, gains[component])
        inside = self.contains(draws).reshape(len(s), n).mean(axis=1)
        with np.errstate(divide="ignore"):
            return np.log(inside) - np.log(self.mass)


def cut(mixture: Mixture, support: Support | None) -> Mixture:
    """The mixture within the support; as it is without one, or with hardly anything inside."""
    if support is None:
        return mixture
    whole = unchanged(mixture) if not isinstance(mixture, NormalMixture) else mixture
    within = CutMixture(whole, support)
    return within if len(within.even_draws) >= FEWEST_INSIDE else mixture
