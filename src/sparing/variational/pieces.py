"""A posterior in bent coordinates as many small normals, for densities of one and two parameters.

A bend takes a normal to something that has no name; a small part of one it takes to a normal,
nearly. With z ~ N(0, I) a component is the sum of parts,

    mu_k + L_k (sqrt(1 - h^2) z_n + h e),   e ~ N(0, I),   n = 1..N

and where s(e) is the coordinate of such a point,

    s(h e) ~ N(s(0) + sum_j c_j, sum_j a_j^2 + 2 c_j^2)

with a_j and c_j, the odd and even parts of s(h e_j) - s(0) along each axis: to second order in h.

Notation
--------
z_n     evenly spread standard normals, each in a component of the mixture
h       how wide a piece is, in units of its component
a, c    (N, D): how far all coordinates move along one axis
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sparing.numerics.arrays import Array
from sparing.problem.parameter_transform import ParameterTransform
from sparing.variational.normal_mixture import Mixture, even_places

N_PIECES = 2**14
# The sds of pieces, in those of the component that each is of and of the posterior, whichever is
# less. For a drug's kinetics, a banana, two ridges and two funnels they leave a total variation of
# 0.0005 to 0.004 for one parameter and 0.003 to 0.01 for two, in a tenth of a second for a picture
# of two, and no wiggles; mixtures fitted to draws 0.004 to 0.01 and 0.012, with wiggles. Half of
# the pieces leave up to twice as much, pieces of twice the width 0.03.
SHARE_OF_COMPONENT, SHARE_OF_POSTERIOR = 0.5, 0.25
SMALLEST_REST = 1e-9  # of a variance: what is left of it once the other is known
REACH = 5.0  # sds beyond which a piece adds nothing to the density of a pair


@dataclass(frozen=True, eq=False)
class Pieces:
    """N normals of equal weight, in standardised coordinates."""

    means: Array  # (N, D)
    covariances: Array  # (N, D, D)

    @classmethod
    def of(cls, mixture: Mixture, transform: ParameterTransform) -> Pieces:
        """Those of a mixture in working coordinates; where it is cut, those about points inside."""
        within, total = mixture.typical_covariance(), mixture.covariance
        widest = np.sqrt(np.mean(np.diag(within) / np.diag(total)))
        h = min(SHARE_OF_COMPONENT, SHARE_OF_POSTERIOR / widest)
        component, z = even_places(mixture, N_PIECES)
        z *= np.sqrt(1.0 - h**2)
        u = mixture.placed(component, z)
        inside = mixture.contains(u)
        component, z, s = component[inside], z[inside], transform.to_standardised(u[inside])
        means, covariances = s.copy(), np.zeros((*s.shape, s.shape[1]))
        for axis in h * np.eye(mixture.dimension):
            ahead, behind = (
                transform.to_standardised(mixture.placed(component, z + side)) - s
                for side in (axis, -axis)
            )
            odd, even = 0.5 * (ahead - behind), 0.5 * (ahead + behind)
            means += even
            covariances += (
                odd[:, :, None] * odd[:, None, :] + 2.0 * even[:, :, None] * even[:, None, :]
            )
        return cls(means, covariances)

    def log_density(self, i: int, s: Array) -> Array:
        """Of one coordinate at values (m,): (m,)."""
        sd = np.sqrt(self.covariances[:, i, i])
        return _log([_normals(value - self.means[:, i], sd).mean() for value in s])

    def pair_log_density(self, i: int, j: int, s_i: Array, s_j: Array) -> Array:
        """Of two coordinates on a grid, (len(s_j), len(s_i)).

        The density of s_j times that of s_i given it, of the pieces that are near.
        """
        variance_i, variance_j = self.covariances[:, i, i], self.covariances[:, j, j]
        sd, slope = np.sqrt(variance_j), self.covariances[:, i, j] / variance_j
        rest = np.sqrt(np.maximum(variance_i - slope**2 * variance_j, SMALLEST_REST * variance_i))
        rows = []
        for value in s_j:
            offset = value - self.means[:, j]
            near = np.abs(offset) < REACH * sd
            middles = self.means[near, i] + slope[near] * offset[near]
            given = _normals(s_i - middles[:, None], rest[near, None])
            rows.append(_normals(offset[near], sd[near]) @ given / len(self.means))
        return _log(rows)


def _normals(offset: Array, sd: Array) -> Array:
    return np.exp(-0.5 * (offset / sd) ** 2) / (np.sqrt(2.0 * np.pi) * sd)


def _log(densities: ArrayLike) -> Array:
    with np.errstate(divide="ignore"):  # far out
        return np.log(densities)
