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
from sparing.problem.parameter_transform import ParameterTransform
from sparing.variational.expectation_maximisation import fitted_mixture
from sparing.variational.mixture import GaussianMixture
from sparing.variational.normal_mixture import Mixture, NormalMixture, even_sample

N_TURNED, N_EM_STEPS = 2**12, 5  # draws by which a mixture goes to coordinates with other seams


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
    width: float = 0.25  # standard deviation of q in whitened coordinates (box width is 1)

    def candidates(
        self, transform: ParameterTransform, shapes: Sequence[Shape], iteration: int, last: int
    ) -> list[ParameterTransform]:
        """Coordinates worth trying: whitened by shapes that are not round, and the first ones.

        ``last`` is the iteration in which others were tried before.
        """
        if transform.dimension == 1 or iteration - last < self.every or not shapes:
            return []
        found = []
        for shape in shapes:
            if anisotropy(shape.covariance) >= self.condition_number:
                matrix = whitening_matrix(shape.covariance, self.correlation_floor, self.width)
                found.append(transform.whitened(shape.mean, matrix, iteration + 1))
        if transform.whitening is not None:
            found.append(transform.unwhitened())
        return found


@dataclass(frozen=True)
class Unwhitened:
    """The coordinates stay as they are (the paper)."""

    minimal_gain: ClassVar[float] = math.inf

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
    linear, offset = change_of_coordinates(old, new)
    lengths = np.sqrt(np.sum((linear * mixture.lengths) ** 2, axis=1))
    return GaussianMixture(
        mixture.weights, mixture.means @ linear.T + offset, mixture.scales, lengths
    )


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
    """A mixture in new coordinates: the same one, unless seams were turned; then fitted to it."""
    if old.turning == new.turning:
        return mixture.image(*change_of_coordinates(old, new))
    points = new.to_working(old.to_user(even_sample(mixture, N_TURNED)))
    even = np.full(N_TURNED, 1.0 / N_TURNED)
    generator = np.random.default_rng(0)  # where the fit begins is no matter of chance
    return fitted_mixture(points, even, mixture.n_components, N_EM_STEPS, generator)


def moments_in(
    mixture: Mixture, old: ParameterTransform, new: ParameterTransform
) -> tuple[Array, Array]:
    """Mean (D,) and covariance (D, D) of a mixture in new coordinates."""
    if old.turning == new.turning:
        linear, offset = change_of_coordinates(old, new)
        return linear @ mixture.mean + offset, linear @ mixture.covariance @ linear.T
    turned = in_coordinates(mixture, old, new)
    return turned.mean, turned.covariance


def change_of_coordinates(old: ParameterTransform, new: ParameterTransform) -> tuple[Array, Array]:
    """(L, c) of u_new = L u_old + c: two whitenings of the same standardised coordinates."""
    old_matrix, old_offset = old.standardised_map()  # s = M u + b
    new_matrix, new_offset = new.standardised_map()
    inverse = np.linalg.inv(new_matrix)
    return inverse @ old_matrix, inverse @ (old_offset - new_offset)
