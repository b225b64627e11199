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
from scipy.spatial import KDTree
from scipy.special import ndtri

from sparing.errors import TargetError
from sparing.numerics.arrays import Array
from sparing.numerics.quasi_random import scrambled_halton
from sparing.surrogate.known_support import AnySupport, KnownSupport
from sparing.surrogate.support import Contains, Support
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
MOST_HALVINGS = 40  # of components that lie nearly all beyond the edge


@dataclass(frozen=True, eq=False)
class CutMixture(Mixture):
    """A mixture and the support that cuts it; weights and means are those before the cut."""

    mixture: NormalMixture
    support: AnySupport | RememberedSupport

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", self.mixture.weights)
        object.__setattr__(self, "means", self.mixture.means)

    @cached_property
    def even_inside(self) -> NDArray[np.bool_]:
        """Which of the even draws of the mixture, always the same ones, are inside: (N_EVEN,)."""
        return self.contains(even_sample(self.mixture, N_EVEN))

    @cached_property
    def even_draws(self) -> Array:
        """Those that are: (P N_EVEN, D)."""
        return even_sample(self.mixture, N_EVEN)[self.even_inside]

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


@dataclass(frozen=True, eq=False)
class RememberedSupport:
    """What is left of a declared support without its function: the sides of even draws.

    A point is on the side of the nearest of them.
    """

    mixture: NormalMixture  # whose draws they are
    inside: NDArray[np.bool_]  # (N_EVEN,)
    learnt: Support | None = None

    @cached_property
    def _nearest(self) -> KDTree:
        return KDTree(even_sample(self.mixture, N_EVEN) / self._scales)

    @cached_property
    def _scales(self) -> Array:
        return np.sqrt(np.diag(self.mixture.covariance))

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Whether points (N, D) are inside, nearly: (N,)."""
        return self.inside[self._nearest.query(points / self._scales)[1]]


@dataclass(frozen=True, eq=False)
class RememberedCut(CutMixture):
    """A mixture cut at a declared support, of which the function is lost (in a file)."""

    support: RememberedSupport

    @cached_property
    def even_inside(self) -> NDArray[np.bool_]:
        """Which of the mixture's evenly spread draws are inside, exactly: (N_EVEN,)."""
        return self.support.inside

    def sample(self, n: int, generator: np.random.Generator) -> Array:
        """n of the even draws, (n, D), with repetitions: no other point is surely inside."""
        return self.even_draws[generator.integers(len(self.even_draws), size=n)]


def cut(mixture: Mixture, support: AnySupport | None, inside: Array | None = None) -> Mixture:
    """The mixture within the support; as it is without one, or with hardly anything inside.

    Within a declared support in any case, from points ``inside`` (n, D) where need be.
    """
    if support is None:
        return mixture
    whole = unchanged(mixture) if not isinstance(mixture, NormalMixture) else mixture
    within = CutMixture(whole, support)
    if len(within.even_draws) >= FEWEST_INSIDE:
        return within
    if not isinstance(support, KnownSupport) or inside is None:
        return mixture
    certain = KnownSupport(support.transform)
    return CutMixture(narrowed(whole, certain.contains, inside, FEWEST_INSIDE / N_EVEN), certain)


def narrowed(
    mixture: NormalMixture, contains: Contains, inside: Array, share: float
) -> NormalMixture:
    """The mixture, its components made narrower until that share of it is inside.

    Without a component that is inside by its mean, there is one at each of the points ``inside``.
    """
    chosen = contains(mixture.means)
    if chosen.any():
        narrow = mixture.part(chosen)
    else:
        shape = mixture.typical_covariance()
        covariances = np.broadcast_to(shape, (len(inside), *shape.shape))
        narrow = NormalMixture.of_covariances(np.ones(len(inside)), inside, covariances)
    for _ in range(MOST_HALVINGS):
        if contains(even_sample(narrow, N_EVEN)).mean() > share:
            return narrow
        narrow = NormalMixture(narrow.weights, narrow.means, 0.5 * narrow.factors)
    raise TargetError("support is so thin that not even the nearest points are inside")
