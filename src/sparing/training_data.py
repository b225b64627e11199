"""From the log to what the surrogate is trained on.

x, y_user   evaluations in the user's coordinates
u, y        the same in working coordinates: y = y_user + log |dx/du| (S2.3)
y_max       largest y;   depth = y_max - y
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparing.evaluation_log import Evaluation
from sparing.linear_algebra import Array
from sparing.parameter_transform import ParameterTransform
from sparing.surrogate.gaussian_process import TrainingSet


@dataclass(frozen=True)
class NoiseShaping:
    """Extra noise for points far below the maximum, where accuracy is worth nothing.

    A point deeper than ``depth_per_dimension`` D gets a noise standard deviation of ``slope``
    times the excess depth, so that the surrogate need not bend to thread points that carry no
    posterior mass.
    """

    depth_per_dimension: float = 10.0  # the depth at which the paper trims (Section 3.5)
    slope: float = 0.05

    def noise_variance(self, values: Array, dimension: int) -> Array:
        """Noise variance of each point: (n,)."""
        depth = np.max(values) - values
        excess = np.maximum(depth - self.depth_per_dimension * dimension, 0.0)
        return (self.slope * excess) ** 2


def working_values(
    evaluations: Sequence[Evaluation], transform: ParameterTransform
) -> tuple[Array, Array]:
    """Inputs (n, D) and values (n,) of usable evaluations in working coordinates."""
    x = np.array([entry.x for entry in evaluations])
    inputs = transform.to_working(x)
    values = np.array([entry.value for entry in evaluations]) + transform.log_jacobian(inputs)
    return inputs, values


def training_set(
    evaluations: Sequence[Evaluation],
    transform: ParameterTransform,
    noise_shaping: NoiseShaping | None,
) -> TrainingSet:
    """The surrogate's training set: the given evaluations in working coordinates."""
    inputs, values = working_values(evaluations, transform)
    if noise_shaping is None:
        noise_variance = np.zeros(len(values))
    else:
        noise_variance = noise_shaping.noise_variance(values, transform.dimension)
    return TrainingSet(inputs, values, noise_variance)


def trimmed_indices(
    evaluations: Sequence[Evaluation], transform: ParameterTransform, depth_per_dimension: float
) -> frozenset[int]:
    """Evaluations more than ``depth_per_dimension`` D below the maximum (Section 3.5)."""
    _, values = working_values(evaluations, transform)
    deep = np.max(values) - values > depth_per_dimension * transform.dimension
    keep_at_least = transform.dimension + 2  # the surrogate needs something to stand on
    if np.sum(~deep) < keep_at_least:
        deep[np.argsort(values)[-keep_at_least:]] = False
    return frozenset(entry.index for entry, drop in zip(evaluations, deep, strict=True) if drop)
