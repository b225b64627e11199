"""A mixture in other coordinates.

A change of whitening is linear, and a mixture of normals stays one. A change of seams or bends is
not: what was a mixture is then fitted to its draws, or keeps its centres and widths to first order.

    u, u'   the old working coordinates and the new ones
"""

from __future__ import annotations

import numpy as np

from sparing.numerics.arrays import Array
from sparing.problem.parameter_transform import ParameterTransform
from sparing.variational.expectation_maximisation import fitted_mixture
from sparing.variational.mixture import GaussianMixture
from sparing.variational.normal_mixture import Mixture, NormalMixture, even_sample, unchanged

# Draws by which a mixture goes to coordinates with other seams or bends, and components then.
N_CARRIED, N_EM_STEPS, N_FITTED = 2**13, 5, 30
STEP = 0.1  # sds by which slopes of bends are told


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
