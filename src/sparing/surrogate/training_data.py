"""From the log to what the surrogate is trained on.

x, y_user   evaluations in the user's coordinates
u, y        the same in working coordinates: y = y_user + log |dx/du| (S2.3)
y_max       largest y;   depth = y_max - y
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from sparing.numerics.arrays import Array
from sparing.problem.evaluations import Evaluation, Status
from sparing.problem.parameter_transform import ParameterTransform
from sparing.surrogate.parabola import nearest_parabola
from sparing.surrogate.training_set import TrainingSet


@dataclass(frozen=True)
class CompressedDepths:
    """Values far below the maximum, where accuracy is worth nothing, are drawn together.

    Beyond a depth of d_0 a value's depth d grows only as d_0 (1 + log(d / d_0)), and it gets a
    noise standard deviation of ``slope`` times what that exceeds d_0 by. The order of the values
    stays, and so does everything that carries posterior mass; but a target that spans thousands of
    nats, as real ones do before the mass is found, no longer forces the surrogate to be accurate
    to a few of them where it does not matter. d_0 is ``depth_per_dimension`` D, or the depth above
    which ``fraction_kept`` of the points lie where that is more: on the way up to the mass.
    """

    depth_per_dimension: float = 10.0  # the depth at which the paper trims (Section 3.5)
    fraction_kept: float = 0.5
    slope: float = 0.2

    def applied(self, values: Array, dimension: int) -> tuple[Array, Array, float]:
        """Values to train on and their noise variance, (n,) each, and d_0."""
        maximum = float(np.max(values))
        typical = float(np.max(values) - np.quantile(values, 1.0 - self.fraction_kept))
        limit = max(self.depth_per_dimension * dimension, typical)
        values = compressed(values, maximum, limit)
        noise_sd = self.slope * np.maximum(maximum - values - limit, 0.0)
        return values, noise_sd**2, limit


# Noise of derivatives by working coordinates, for each nat beyond a + b D below the maximum. Where
# two modes meet a log density has a crease, at which slopes turn at once; a process that follows
# each of them exactly promises peaks elsewhere (docs/decisions/0017).
GRADIENT_NOISE, GRADIENT_DEPTH = 0.8, (5.0, 1.0)


@dataclass(frozen=True)
class MeasuredValues:
    """Values as they were measured (the paper)."""

    def applied(self, values: Array, dimension: int) -> tuple[Array, Array, float]:
        """The values, no noise, and no limit."""
        return values, np.zeros(len(values)), math.inf


def compressed(values: Array, maximum: float, limit: float) -> Array:
    """Values whose depth d below the maximum grows logarithmically beyond the limit: (n,)."""
    if math.isinf(limit):
        return values
    depth = np.maximum(maximum - values, 0.0)
    deep = np.maximum(depth, limit)  # where the depth is below the limit the logarithm is zero
    return values + np.where(depth > limit, depth - limit * (1.0 + np.log(deep / limit)), 0.0)


def working_values(
    evaluations: Sequence[Evaluation], transform: ParameterTransform
) -> tuple[Array, Array]:
    """Inputs (n, D) and values (n,) of usable evaluations in working coordinates."""
    x = np.array([entry.x for entry in evaluations])
    inputs = transform.to_working(x)
    values = np.array([entry.value for entry in evaluations]) + transform.log_jacobian(inputs)
    return inputs, values


def working_gradients(
    evaluations: Sequence[Evaluation], transform: ParameterTransform
) -> Array | None:
    """Gradients of the values in working coordinates, (n, D), at the inputs of `working_values`.

    A row of NaN where an evaluation has none; None where none has one.
    """
    rows = [i for i, entry in enumerate(evaluations) if entry.gradient is not None]
    if not rows:
        return None
    gradients = np.full((len(evaluations), transform.dimension), np.nan)
    u = transform.to_working(np.array([evaluations[i].x for i in rows]))
    given = np.array([evaluations[i].gradient for i in rows])
    gradients[rows] = transform.working_gradient(u, given)
    return gradients


def known_noise_variance(evaluations: Sequence[Evaluation]) -> Array:
    """Variance of each value's noise as the target gave it: (n,)."""
    return np.array([entry.noise_sd for entry in evaluations]) ** 2


def training_set(
    evaluations: Sequence[Evaluation],
    transform: ParameterTransform,
    depths: CompressedDepths | MeasuredValues,
) -> TrainingSet:
    """The surrogate's training set: the given evaluations in working coordinates.

    Usable evaluations enter with their values and gradients, points outside the support with a
    stand-in for minus infinity where their neighbours confirm them.
    """
    usable = [entry for entry in evaluations if entry.usable]
    inputs, measured = working_values(usable, transform)
    known = known_noise_variance(usable)
    gradients = working_gradients(usable, transform)
    values, noise_variance, limit = depths.applied(measured, transform.dimension)
    bottom = np.max(measured) - limit
    deep = measured < bottom
    parabola = None
    if gradients is not None or (deep.any() and not transform.bends):
        parabola = nearest_parabola(inputs, measured, gradients)
    gradient_noise_sd = np.zeros(0)
    if gradients is not None:
        gradients[deep] = np.nan  # of what was measured there, not of what is trained on
        if parabola is None or not parabola.explains(inputs, measured):
            depth = np.max(measured) - measured
            gradient_noise_sd = gradient_noise(depth, limit, transform.dimension)
    whole = TrainingSet(
        inputs,
        values,
        known + noise_variance,
        depth_limit=limit,
        typical_noise_variance=float(np.median(known)),
        gradients=gradients,
        log_determinants=-transform.standardised_log_jacobian(inputs),
        identities=np.array([entry.index for entry in usable], dtype=np.int64),
        gradient_noise_sd=gradient_noise_sd,
    )
    # Compressed values are no parabola's; where one explains what was measured they would only bend
    # the surrogate. Bent coordinates have edges that they guard.
    if parabola is not None and not transform.bends:
        kept = ~deep | (parabola.values(inputs) > bottom)
        whole = whole if kept.all() else whole.of_points(np.flatnonzero(kept))
    if not whole.has_gradient.any():
        whole = whole.values_alone()
    outside = [entry for entry in evaluations if entry.status is Status.OUT_OF_SUPPORT]
    return _with_outside(whole, outside, transform) if outside else whole


def _with_outside(
    training: TrainingSet, outside: Sequence[Evaluation], transform: ParameterTransform
) -> TrainingSet:
    """The set with stand-ins for the points outside the support that their neighbours confirm."""
    u = transform.to_working(np.array([entry.x for entry in outside]))
    confirmed, stand_ins = confirmed_outside(u, training.inputs, training.values)
    u = u[confirmed]
    noise_variance = np.full(len(u), OUTSIDE_NOISE_SD**2)
    identities = np.array([entry.index for entry in outside], dtype=np.int64)[confirmed]
    gradients = training.gradients
    if gradients is not None:
        gradients = np.vstack([gradients, np.full(u.shape, np.nan)])
    inputs = np.vstack([training.inputs, u])
    return replace(
        training,
        inputs=inputs,
        values=np.concatenate([training.values, stand_ins]),
        noise_variance=np.concatenate([training.noise_variance, noise_variance]),
        gradients=gradients,
        log_determinants=-transform.standardised_log_jacobian(inputs),
        identities=np.concatenate([training.identities, identities]),
        gradient_noise_sd=np.concatenate([training.gradient_noise_sd, np.zeros(len(u))]),
    )


def gradient_noise(depth: Array, limit: float, dimension: int) -> Array:
    """Sds that gradients get at depths (n,) below the maximum, where less depends on them: (n,).

    None where values of all depths are as they were measured.
    """
    if math.isinf(limit):
        return np.zeros(len(depth))
    base, per_dimension = GRADIENT_DEPTH
    return GRADIENT_NOISE * np.maximum(depth - base - per_dimension * dimension, 0.0)


# Outside the support the log density is minus infinity, which no smooth surrogate can follow. A
# value this far below the maximum leaves e^-10 of the density there, which is as good as none.
OUTSIDE_DEPTH = 10.0
OUTSIDE_NOISE_SD = 0.5  # the stand-in is a bound, not a measurement
# A target that fails now and then may return -inf anywhere. A point counts as outside when most of
# its nearest neighbours are: isolated ones in the bulk are then disregarded (one in a thousand is
# not, at one failure in ten).
N_NEIGHBOURS = 5
N_CONFIRMING = 3


def confirmed_outside(
    outside: Array, inside: Array, values: Array
) -> tuple[NDArray[np.bool_], Array]:
    """Which points outside the support their neighbours confirm, (k,), and their stand-in values.

    ``outside`` (k, D) and ``inside`` (n, D) in working coordinates, ``values`` (n,) inside. The
    stand-in is never above the nearest value inside, so that it cannot raise a density that falls
    to zero towards the edge.
    """
    everything = np.vstack([inside, outside])
    scale = np.maximum(everything.std(axis=0), np.finfo(float).tiny)
    tree = KDTree(everything / scale)
    # Each point finds itself first. Neighbours that do not exist have the index len(everything).
    _, neighbours = tree.query(outside / scale, k=N_NEIGHBOURS + 1)
    own = len(inside) + np.arange(len(outside))
    others = (neighbours >= len(inside)) & (neighbours != own[:, None])
    others &= neighbours < len(everything)
    confirmed = others.sum(axis=1) >= N_CONFIRMING
    _, nearest = KDTree(inside / scale).query(outside[confirmed] / scale)
    stand_in = np.max(values) - OUTSIDE_DEPTH - inside.shape[1]
    return confirmed, np.minimum(stand_in, values[nearest])


def joining_values(
    evaluations: Sequence[Evaluation],
    transform: ParameterTransform,
    training: TrainingSet,
) -> tuple[Array, Array]:
    """Inputs and values of usable evaluations as they would join the training set."""
    inputs, values = working_values(evaluations, transform)
    maximum = max(float(training.values.max()), float(values.max()))
    return inputs, compressed(values, maximum, training.depth_limit)


def joining_gradient(
    entry: Evaluation, transform: ParameterTransform, training: TrainingSet
) -> Array | None:
    """The gradient of a usable evaluation as it would join a training set with gradients: (D,).

    None where it has noise: it counts from the next training on.
    """
    gradients = working_gradients([entry], transform)
    if gradients is None or training.gradients is None:
        return None
    depth = float(training.values.max()) - working_values([entry], transform)[1]
    has_noise = gradient_noise(depth, training.depth_limit, transform.dimension)[0] > 0.0
    return None if has_noise else gradients[0]


def trimmed_indices(
    evaluations: Sequence[Evaluation], transform: ParameterTransform, depth_per_dimension: float
) -> frozenset[int]:
    """Evaluations more than ``depth_per_dimension`` D below the maximum (Section 3.5)."""
    evaluations = [entry for entry in evaluations if entry.usable]
    _, values = working_values(evaluations, transform)
    deep = np.max(values) - values > depth_per_dimension * transform.dimension
    keep_at_least = transform.dimension + 2  # the surrogate needs something to stand on
    if np.sum(~deep) < keep_at_least:
        deep[np.argsort(values)[-keep_at_least:]] = False
    return frozenset(entry.index for entry, drop in zip(evaluations, deep, strict=True) if drop)
