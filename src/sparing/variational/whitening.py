"""Working coordinates in which the posterior is round: rotated and scaled, or bent as well.

The mixture's components and the surrogate's length scales are aligned with the axes, so a
posterior along a diagonal needs many of both; in whitened coordinates it is round. Whitening
changes nothing in the log (it holds the user's coordinates), so it is a candidate: the new
coordinates are kept only where the surrogate's marginal likelihood is better in them, and the
first ones stay a candidate too. So are those that straighten a curved posterior
(straightening.py), and those in which skewed parameters are stretched (stretching.py).

    Sigma   covariance of q in working coordinates, (D, D), or that of the parabola or the spread
            which the evaluations themselves show (surrogate/known_shapes.py)
    A, b    whitening u' = A (u - b), so that A Sigma A^T is the identity times ``width``^2
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sparing.numerics.arrays import Array
from sparing.problem.bending import Bend, Whitening
from sparing.problem.parameter_transform import ParameterTransform
from sparing.variational.normal_mixture import Mixture, even_sample
from sparing.variational.other_coordinates import moments_in
from sparing.variational.straightening import best_bend, is_scattered, straightened
from sparing.variational.stretching import levelled_stretch

N_DRAWS = 2**11  # by which bends are found


class Shape(Protocol):
    """Where a posterior may be and how wide: q, a parabola of the log joint, the best points."""

    @property
    def mean(self) -> Array:
        """In working coordinates, (D,)."""
        ...

    @property
    def covariance(self) -> Array:
        """In working coordinates, (D, D)."""
        ...


@dataclass(frozen=True)
class LastTry:
    """How long ago other coordinates were sought, and whether they were kept."""

    n_iterations: int
    growth: float  # of the number of evaluations since then
    was_kept: bool


@dataclass(frozen=True)
class Whitened:
    """Other coordinates are tried now and then, and kept where the surrogate gains by them."""

    # Tried after the warm-up, and then again whenever q has become clearly non-spherical...
    every: int = 3  # ...but at most once in this many iterations...
    # ...and, where the present ones were the best, with so many times the evaluations of then.
    growth: float = 1.25
    correlation_floor: float = 0.05  # smaller correlations are noise of the fit: zeroed
    # Not worth the refit: eigenvalues of the whitened covariance within this factor of each other.
    condition_number: float = 2.0
    # Kept only when the surrogate's log marginal likelihood gains at least so many nats: more than
    # it scatters over hyperparameter samples.
    minimal_gain: float = 2.0
    # Bends are tried that bring the posterior nearer to a normal one by so many nats each.
    minimal_straightening: float = 0.1
    width: float = 0.25  # standard deviation of q in whitened coordinates (box width is 1)

    def needed_gain(self, dimension: int, n_points: int, *, searching: bool) -> float:
        """Nats by which others must be better than the present ones.

        On the way up by Schwarz's charge for a scale along each axis as well: as long as most of
        what is known is wrong anyway, only what is clear counts.
        """
        charge = 0.5 * dimension * math.log(n_points) if searching else 0.0
        return self.minimal_gain + charge

    def is_due(self, last: LastTry | None) -> bool:
        """Whether it is time to look for others."""
        if last is None:
            return True
        return last.n_iterations >= self.every and (last.was_kept or last.growth >= self.growth)

    def candidates(
        self, transform: ParameterTransform, shapes: Sequence[Shape], number: int
    ) -> list[ParameterTransform]:
        """Coordinates worth trying: whitened by shapes that are not round, bent, the first ones.

        ``number`` is what they are told apart by.
        """
        found: list[ParameterTransform] = []
        if transform.dimension == 1:
            return found
        for shape in shapes:
            mean, covariance = shape.mean, shape.covariance
            is_round = anisotropy(covariance) < self.condition_number
            if isinstance(shape, Mixture):
                found += self.bent(transform, shape, number, is_round=is_round)
            if transform.bends and isinstance(shape, Mixture):
                found.append(self.unbent(transform, shape, number))
            elif not (transform.bends or is_round):
                matrix = whitening_matrix(covariance, self.correlation_floor, self.width)
                found.append(transform.whitened(mean, matrix, number))
        if transform.whitening is not None or transform.bends:
            found.append(transform.unwhitened())
        return found

    def bent(
        self, transform: ParameterTransform, posterior: Mixture, number: int, *, is_round: bool
    ) -> list[ParameterTransform]:
        """Coordinates in which the posterior is nearly normal; none where it is nearly so now."""
        draws = even_sample(posterior, N_DRAWS)
        draws = draws[posterior.contains(draws)]
        s = transform.to_standardised(draws)
        if not (is_scattered(s) and is_scattered(draws)):
            return []
        if transform.bends and is_round and self.is_normal(draws):
            return []
        found: list[ParameterTransform] = []
        plain = transform.unwhitened()
        first = Whitening.of_points(s, self.width)
        if bends := self.bends_of(first.forwards(s)):
            found.append(plain.whitened(first.centre, first.matrix, number).bent(bends, number))
        stretch = levelled_stretch(s, self.minimal_straightening, self.width)
        if stretch is not None:
            bends = self.bends_of(stretch.forwards(s))
            found.append(plain.bent([stretch, *bends], number))
        return found

    def is_normal(self, draws: Array) -> bool:
        """Whether neither a bend nor a stretch brings draws (N, D) nearer to a normal one."""
        if levelled_stretch(draws, self.minimal_straightening, self.width) is not None:
            return False
        unit = Whitening.of_points(draws, 1.0).forwards(draws)
        return best_bend(unit, self.width, self.minimal_straightening) is None

    def bends_of(self, draws: Array) -> tuple[Bend, ...]:
        """Those that straighten whitened draws (N, D)."""
        return straightened(draws / self.width, self.width, self.minimal_straightening)

    def unbent(
        self, transform: ParameterTransform, posterior: Mixture, number: int
    ) -> ParameterTransform:
        """Whitened coordinates without bends."""
        first = transform.unwhitened()
        mean, covariance = moments_in(posterior, transform, first)
        matrix = whitening_matrix(covariance, self.correlation_floor, self.width)
        return first.whitened(mean, matrix, number)

    def charge(self, transform: ParameterTransform, n_points: int) -> float:
        """Nats by which coordinates must be better for what was fitted: 1/2 log n for each number.

        That is Schwarz's criterion. A bend of points that lie on no ridge gains some nats by
        chance; one of those that do gains more with each of them.
        """
        n_parameters = sum(bend.n_parameters for bend in transform.bends)
        return 0.5 * n_parameters * math.log(n_points)


@dataclass(frozen=True)
class Unwhitened:
    """The coordinates stay as they are (the paper)."""

    def needed_gain(self, dimension: int, n_points: int, *, searching: bool) -> float:
        """More than there is."""
        return math.inf

    def charge(self, transform: ParameterTransform, n_points: int) -> float:
        """Nothing."""
        return 0.0

    def is_due(self, last: LastTry | None) -> bool:
        """Never."""
        return False

    def candidates(
        self, transform: ParameterTransform, shapes: Sequence[Shape], number: int
    ) -> list[ParameterTransform]:
        """None."""
        return []


def whitening_matrix(covariance: Array, correlation_floor: float, width: float) -> Array:
    """A with A Sigma A^T = width^2 I, small correlations of Sigma zeroed first: (D, D)."""
    sds = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(sds, sds)
    correlation[np.abs(correlation) < correlation_floor] = 0.0
    np.fill_diagonal(correlation, 1.0)
    eigenvalues, rotation = np.linalg.eigh(correlation * np.outer(sds, sds))
    eigenvalues = np.maximum(eigenvalues, 1e-12 * eigenvalues[-1])
    # Principal axes become coordinate axes, so what this estimate of Sigma still gets wrong (the
    # length of a long axis, mostly) is a length scale that the surrogate and q can adapt.
    return width * (rotation / np.sqrt(eigenvalues)).T


def anisotropy(covariance: Array) -> float:
    """Ratio of the largest to the smallest eigenvalue of the covariance."""
    eigenvalues = np.linalg.eigvalsh(covariance)
    return float(eigenvalues[-1] / max(eigenvalues[0], np.finfo(float).tiny))
