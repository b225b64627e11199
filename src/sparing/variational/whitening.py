"""Rotate and scale the working coordinates by q's covariance, or by what gradients say of it.

The mixture's components and the surrogate's length scales are aligned with the axes, so a
posterior along a diagonal needs many of both; in whitened coordinates it is round. Whitening
changes nothing in the log (it holds the user's coordinates), so it is a candidate: the new
coordinates are kept only where the surrogate's marginal likelihood is better in them, and the
first ones stay a candidate too.

    Sigma   covariance of q in working coordinates, (D, D), or that of the parabola which gradients
            describe (surrogate/parabola.py)
    A, b    whitening u' = A (u - b), so that A Sigma A^T is the identity times ``width``^2
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from sparing.numerics.arrays import Array
from sparing.problem.bending import Whitening
from sparing.problem.parameter_transform import ParameterTransform
from sparing.variational.expectation_maximisation import fitted_mixture
from sparing.variational.mixture import GaussianMixture
from sparing.variational.normal_mixture import (
    Mixture,
    NormalMixture,
    even_sample,
    unchanged,
)
from sparing.variational.straightening import best_bend, straightened

# Draws by which a mixture goes to coordinates with other seams or bends, and components then.
N_CARRIED, N_EM_STEPS, N_FITTED = 2**13, 5, 30
N_DRAWS = 2**11  # by which bends are found
STEP = 0.1  # sds by which slopes of bends are told


class Shape(Protocol):
    """Where a posterior may be and how wide: q, or a parabola of the log joint."""

    @property
    def mean(self) -> Array:
        """In working coordinates, (D,)."""
        ...

    @property
    def covariance(self) -> Array:
        """In working coordinates, (D, D)."""
        ...


@dataclass(frozen=True)
class Whitened:
    """Other coordinates are tried now and then, and kept where the surrogate gains by them."""

    # Tried after the warm-up, and then again whenever q has become clearly non-spherical...
    every: int = 3  # ...but at most once in this many iterations
    correlation_floor: float = 0.05  # smaller correlations are noise of the fit: zeroed
    # Not worth the refit: eigenvalues of the whitened covariance within this factor of each other.
    condition_number: float = 2.0
    # Kept only when the surrogate's log marginal likelihood gains at least so many nats: more than
    # it scatters over hyperparameter samples.
    minimal_gain: float = 2.0
    # Bends are tried that bring the posterior nearer to a normal one by so many nats each.
    minimal_straightening: float = 0.1
    width: float = 0.25  # standard deviation of q in whitened coordinates (box width is 1)

    def candidates(
        self, transform: ParameterTransform, shapes: Sequence[Shape], iteration: int, last: int
    ) -> list[ParameterTransform]:
        """Coordinates worth trying: whitened by shapes that are not round, bent, the first ones.

        ``last`` is the iteration in which others were tried before.
        """
        if transform.dimension == 1 or iteration - last < self.every or not shapes:
            return []
        number, found = iteration + 1, []
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
        if transform.whitening is not None:
            found.append(transform.unwhitened())
        return found

    def bent(
        self, transform: ParameterTransform, posterior: Mixture, number: int, *, is_round: bool
    ) -> list[ParameterTransform]:
        """Coordinates in which the posterior is nearly normal; none where it is nearly so now."""
        draws = even_sample(posterior, N_DRAWS)
        draws = draws[posterior.contains(draws)]
        if transform.bends and is_round:
            unit = Whitening.of_points(draws, 1.0).forwards(draws)
            if best_bend(unit, self.width, self.minimal_straightening) is None:
                return []
        s = transform.to_standardised(draws)
        first = Whitening.of_points(s, self.width)
        unit = first.forwards(s) / self.width
        bends = straightened(unit, self.width, self.minimal_straightening)
        if not bends:
            return []
        whitened = transform.unwhitened().whitened(first.centre, first.matrix, number)
        return [whitened.bent(bends, number)]

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

    minimal_gain: ClassVar[float] = math.inf

    def charge(self, transform: ParameterTransform, n_points: int) -> float:
        """Nothing."""
        return 0.0

    def candidates(
        self, transform: ParameterTransform, shapes: Sequence[Shape], iteration: int, last: int
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


def carry_over(
    mixture: GaussianMixture, old: ParameterTransform, new: ParameterTransform
) -> GaussianMixture:
    """The mixture in new coordinates; of the components' covariances only the diagonal is kept."""
    if old.turning != new.turning:
        return _turned(mixture, old, new)
    if not is_linear_change(old, new):
        return _unbent(mixture, old, new)
    linear, offset = change_of_coordinates(old, new)
    lengths = np.sqrt(np.sum((linear * mixture.lengths) ** 2, axis=1))
    return GaussianMixture(
        mixture.weights, mixture.means @ linear.T + offset, mixture.scales, lengths
    )


def _unbent(
    mixture: GaussianMixture, old: ParameterTransform, new: ParameterTransform
) -> GaussianMixture:
    """The mixture in coordinates with other bends.

    Each component keeps its centre; the common lengths are those of the components there, to first
    order, on average.
    """

    def mapped(u: Array) -> Array:
        return new.from_standardised(old.to_standardised(u))

    K, D = mixture.means.shape
    steps = STEP * mixture.scales[:, None, None] * np.diag(mixture.lengths)  # (K, D, D)
    ends = [mapped((mixture.means[:, None] + sign * steps).reshape(-1, D)) for sign in (1.0, -1.0)]
    moved = (ends[0] - ends[1]).reshape(K, D, D) / (2.0 * STEP * mixture.scales[:, None, None])
    lengths = np.sqrt(mixture.weights @ np.square(moved).sum(axis=1))
    return GaussianMixture(mixture.weights, mapped(mixture.means), mixture.scales, lengths)


def _turned(
    mixture: GaussianMixture, old: ParameterTransform, new: ParameterTransform
) -> GaussianMixture:
    """The mixture in coordinates with other seams and no whitening.

    Each component keeps its centre, and its width there to first order.
    """
    first = old.unwhitened()
    mixture = carry_over(mixture, old, first)
    means = new.to_working(first.to_user(mixture.means))
    old_v, new_v = (u * old.width + old.centre for u in (mixture.means, means))
    log_slopes = [
        f.log_derivative(old_v[:, i].copy()) - g.log_derivative(new_v[:, i].copy())
        for i, (f, g) in enumerate(zip(old.coordinates, new.coordinates, strict=True))
    ]
    lengths = mixture.lengths * np.exp(np.array(log_slopes) @ mixture.weights)
    return GaussianMixture(mixture.weights, means, mixture.scales, lengths)


def in_coordinates(
    mixture: Mixture, old: ParameterTransform, new: ParameterTransform
) -> NormalMixture:
    """A mixture in new coordinates: the same one, unless seams or bends differ; then fitted."""
    if old.number == new.number:
        return unchanged(mixture)
    if is_linear_change(old, new):
        return mixture.image(*change_of_coordinates(old, new))
    points = _carried(mixture, old, new)
    even = np.full(len(points), 1.0 / len(points))
    generator = np.random.default_rng(0)  # where the fit begins is no matter of chance
    n_components = max(N_FITTED, mixture.n_components)
    return fitted_mixture(points, even, n_components, N_EM_STEPS, generator)


def moments_in(
    mixture: Mixture, old: ParameterTransform, new: ParameterTransform
) -> tuple[Array, Array]:
    """Mean (D,) and covariance (D, D) of a mixture in new coordinates."""
    if is_linear_change(old, new):
        linear, offset = change_of_coordinates(old, new)
        return linear @ mixture.mean + offset, linear @ mixture.covariance @ linear.T
    if old.number == new.number:
        return mixture.mean, mixture.covariance
    points = _carried(mixture, old, new)
    return points.mean(axis=0), np.atleast_2d(np.cov(points, rowvar=False))


def _carried(mixture: Mixture, old: ParameterTransform, new: ParameterTransform) -> Array:
    """Even draws in new coordinates, (m, D)."""
    draws = even_sample(mixture, N_CARRIED)
    return new.to_working(old.to_user(draws[mixture.contains(draws)]))


def is_linear_change(old: ParameterTransform, new: ParameterTransform) -> bool:
    """Whether one coordinates are a linear function of the others."""
    return old.turning == new.turning and not (old.bends or new.bends)


def change_of_coordinates(old: ParameterTransform, new: ParameterTransform) -> tuple[Array, Array]:
    """(L, c) of u_new = L u_old + c: two whitenings of the same standardised coordinates."""
    old_matrix, old_offset = old.standardised_map()  # s = M u + b
    new_matrix, new_offset = new.standardised_map()
    inverse = np.linalg.inv(new_matrix)
    return inverse @ old_matrix, inverse @ (old_offset - new_offset)
