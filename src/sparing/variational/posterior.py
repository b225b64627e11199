"""The variational posterior in the user's coordinates.

    q(u)   mixture over working coordinates u (Eq. 6)
    g      the map from the user's x to u, with |du/dx| = exp(-log_jacobian(u))

so that the density of x is q(g(x)) exp(-log_jacobian(g(x))).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from sparing.numerics.arrays import Array
from sparing.problem.parameter_transform import ParameterTransform
from sparing.variational.cut_mixture import CutMixture
from sparing.variational.normal_mixture import Mixture, even_sample
from sparing.variational.pieces import Pieces

# Moments in the user's coordinates have no closed form once a parameter is bounded: quasi-Monte
# Carlo with this many points, the same ones always, so that they are properties of the posterior.
MOMENT_SAMPLES = 2**15


@dataclass(frozen=True, eq=False)
class Posterior:
    """A posterior distribution one can sample and evaluate, in the user's coordinates.

    ``mixture`` and ``transform`` give the same distribution in working coordinates.

    >>> posterior = result.posterior
    >>> posterior.names, posterior.dimension
    (('slope', 'offset'), 2)
    >>> posterior.mean.round(1)
    array([ 1.2, -0.5])
    >>> posterior.sd.round(1)
    array([0.3, 0.2])
    >>> posterior.covariance.shape
    (2, 2)
    """

    mixture: Mixture
    transform: ParameterTransform
    names: tuple[str, ...]

    @property
    def dimension(self) -> int:
        """D, the number of parameters."""
        return self.mixture.dimension

    def sample(self, n: int, seed: int | np.random.Generator | None = None) -> Array:
        """Draw n points: (n, D).

        >>> draws = result.posterior.sample(1000, seed=1)
        >>> draws.shape
        (1000, 2)
        >>> bool(np.mean(draws[:, 0] > 1.0) > 0.7)  # the probability of slope > 1
        True
        """
        return self.transform.to_user(self.mixture.sample(n, np.random.default_rng(seed)))

    def log_density(self, x: ArrayLike) -> Array:
        """Normalised log density at one point (D,) or several (m, D); -inf outside the bounds.

        >>> float(result.posterior.log_density([1.2, -0.5]).round())
        1.0
        >>> result.posterior.log_density([[1.2, -0.5], [0.0, 0.0]]).shape
        (2,)
        """
        points = np.asarray(x, dtype=np.float64)
        rows = np.atleast_2d(points)
        if rows.shape[1] != self.dimension:
            raise ValueError(
                f"x has {rows.shape[1]} columns, but the posterior has {self.dimension} "
                f"parameters ({', '.join(self.names)})"
            )
        inside = self.transform.contains(rows)
        values = np.full(len(rows), -np.inf)
        if np.any(inside):
            u = self.transform.to_working(rows[inside])
            values[inside] = self.mixture.log_density(u) - self.transform.log_jacobian(u)
        return values[0] if points.ndim == 1 else values

    def even_sample(self, n: int) -> Array:
        """Up to n draws that are spread evenly, always the same ones: (m, D), with m <= n.

        For averages, which are far more accurate than those of random draws.

        >>> bool(np.all(abs(result.posterior.even_sample(1000).mean(axis=0) - [1.2, -0.5]) < 0.01))
        True
        """
        return self._even_draws[:n]

    def density(self, x: ArrayLike) -> Array:
        """Normalised density at one point (D,) or several (m, D).

        >>> peak, tail = result.posterior.density([[1.2, -0.5], [2.1, -0.5]])
        >>> bool(tail < 0.02 * peak)  # three standard deviations away
        True
        """
        return _exp(self.log_density(x))

    @property
    def _even_draws(self) -> Array:
        draws = even_sample(self.mixture, MOMENT_SAMPLES)
        return self.transform.to_user(draws[self.mixture.contains(draws)])

    @cached_property
    def _moments(self) -> tuple[Array, Array, Array]:
        """Mean (D,), a scale of each parameter (D,), and the covariance in these scales (D, D).

        The square of a sd may be beyond what a float can hold where the sd is not.
        """
        if self.transform.is_linear:
            linear, offset = self.transform.linear_map()
            scale = power_of_two(linear)
            unit = linear / scale[:, None]
            mean = linear @ self.mixture.mean + offset
            return mean, scale, unit @ self.mixture.covariance @ unit.T
        draws = self._even_draws
        scale = power_of_two(draws.T)
        # Of a periodic parameter the circular mean, and the distances from it on the circle.
        mean = self.transform.mean(draws, scale)
        unit = self.transform.unwrapped(draws, mean) / scale
        return mean, scale, np.atleast_2d(np.cov(unit, rowvar=False))

    @property
    def mean(self) -> Array:
        """Posterior mean, of a periodic parameter the circular one: (D,)."""
        return self._moments[0]

    @property
    def covariance(self) -> Array:
        """Posterior covariance: (D, D); infinite where it is beyond what a float can hold."""
        return self.moments_in(np.ones(self.dimension))[1]

    @property
    def sd(self) -> Array:
        """Posterior standard deviation of each parameter: (D,)."""
        _, scale, covariance = self._moments
        return scale * np.sqrt(np.diag(covariance))

    def moments_in(self, units: Array) -> tuple[Array, Array]:
        """Mean (D,) and covariance (D, D) with each parameter in units (D,) of its own.

        >>> mean, covariance = result.posterior.moments_in(result.posterior.sd)
        >>> covariance.diagonal().round(6)
        array([1., 1.])
        """
        mean, scale, covariance = self._moments
        ratio = scale / units
        with np.errstate(over="ignore"):
            return mean / units, covariance * ratio[:, None] * ratio

    def mode(self) -> Array:
        """The point of highest density in the user's coordinates: (D,).

        >>> result.posterior.mode().round(1)
        array([ 1.2, -0.5])
        """
        start = self.mixture.mode()

        def negative_log_density(u: Array) -> float:
            row = u[None, :]
            return float((self.transform.log_jacobian(row) - self.mixture.log_density(row))[0])

        if self.transform.is_linear:
            return self.transform.to_user(start[None, :])[0]
        best = minimize(negative_log_density, start, method="Nelder-Mead")
        u = best.x if best.fun <= negative_log_density(start) else start
        return self.transform.to_user(u[None, :])[0]

    def quantile(self, probabilities: ArrayLike) -> Array:
        """Marginal quantiles of each parameter: (len(probabilities), D).

        Those of a periodic parameter are taken within half a period of its mean, so that they are
        in order; they may lie beyond a bound.

        >>> low, high = result.posterior.quantile([0.025, 0.975])
        >>> low.round(1), high.round(1)
        (array([ 0.6, -0.9]), array([ 1.8, -0.1]))
        """
        draws = self.unwrapped(self._even_draws)
        return np.quantile(draws, np.atleast_1d(probabilities), axis=0)

    def unwrapped(self, x: Array) -> Array:
        """Points (m, D) with periodic parameters within half a period of their means.

        They may lie beyond a bound, and what belongs together is not torn apart at one.

        >>> draws = result.posterior.sample(10, seed=1)
        >>> bool(np.all(result.posterior.unwrapped(draws) == draws))  # none is periodic
        True
        """
        return self.transform.unwrapped(x, self.mean)

    def marginal_density(self, parameter: int | str, points: ArrayLike) -> Array:
        """Density of one parameter by itself at the given values: (m,).

        Each standardised coordinate s_i is a linear function of u, so its marginal is a mixture of
        one-dimensional normals in closed form, and s_i depends on x_i alone. Where coordinates are
        bent it is one of small pieces of normals, of which each is taken as if they were not.

        >>> low, peak, high = result.posterior.marginal_density("slope", [0.6, 1.2, 1.8])
        >>> bool(peak > 5.0 * low and peak > 5.0 * high)  # two standard deviations away
        True
        """
        index = self.names.index(parameter) if isinstance(parameter, str) else int(parameter)
        values = np.atleast_1d(np.asarray(points, dtype=np.float64))
        s, log_slope, inside = self._standardised(index, values)
        if self.transform.bends:
            log_density = self._pieces.log_density(index, s)
        else:
            log_density = self._log_marginal([index], s[:, None])
        return np.where(inside, _exp(log_density + log_slope), 0.0)

    def pair_density(self, i: int, j: int, x_i: Array, x_j: Array) -> Array:
        """Joint density of two parameters on a grid, (len(x_j), len(x_i)).

        The standardised s = M u + b is linear in u, so two of its coordinates are a mixture too;
        where coordinates are bent, of small pieces.

        >>> low, high = result.posterior.pair_density(0, 1, np.array([1.2]), np.array([-0.9, -0.5]))
        >>> bool(high > 5.0 * low)
        True
        """
        s_i, log_slope_i, _ = self._standardised(i, x_i)
        s_j, log_slope_j, _ = self._standardised(j, x_j)
        if self.transform.bends:
            log_density = self._pieces.pair_log_density(i, j, s_i, s_j)
        else:
            s = np.stack(np.meshgrid(s_i, s_j), axis=-1).reshape(-1, 2)
            log_density = self._log_marginal([i, j], s).reshape(len(x_j), len(x_i))
        return _exp(log_density + log_slope_i + log_slope_j[:, None])

    def _log_marginal(self, indices: list[int], s: Array) -> Array:
        """Log density of those coordinates of s at values (m, d), if none is bent: (m,)."""
        matrix, offset = self.transform.standardised_map()
        matrix, offset = matrix[indices], offset[indices]
        log_density = self.mixture.image(matrix, offset).log_density(s)
        if isinstance(self.mixture, CutMixture):
            log_density += self.mixture.log_acceptance(matrix, offset, s)
        return log_density

    @cached_property
    def _pieces(self) -> Pieces:
        return Pieces.of(self.mixture, self.transform)

    def _standardised(self, index: int, x: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """s_i, log ds_i/dx_i, and whether it is within the bounds, of one parameter: (m,) each."""
        rows = np.tile(self.mean, (len(x), 1))  # the other coordinates do not matter
        rows[:, index] = x
        g = self.transform.coordinates[index]
        log_slope = -g.log_derivative(g.to_unbounded(x)) - np.log(self.transform.width[index])
        s = self.transform.standardised(rows)[:, index]
        return s, log_slope, self.transform.contains(rows)

    def __repr__(self) -> str:
        lines = [
            f"  {name}: {mean:.6g} ± {sd:.3g}"
            for name, mean, sd in zip(self.names, self.mean, self.sd, strict=True)
        ]
        return "\n".join([f"Posterior ({self.mixture.n_components} components)", *lines])


def power_of_two(rows: Array) -> Array:
    """A scale of each row by which division is exact: (m,)."""
    _, exponent = np.frexp(np.max(np.abs(rows), axis=1))
    return np.ldexp(1.0, exponent - 1)


def _exp(log_density: Array) -> Array:
    """The density, infinite or zero where it is beyond what a float can hold."""
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(log_density)
