"""The kernel that optimises the variational posterior: soft bounds and the modified Adam.

Notation (Sections S1.3.1 and S1.3.3)
    φ = (μ (K D entries, row by row), log σ (K,), log λ (D,), η (K,))   parameters, w = softmax(η)
    F(φ)      objective, maximised: expected log joint + entropy - penalty
    α_t       learning rate α_min + (α_max - α_min) exp(-t / τ)
    learning  array of the constants listed by LEARNING_FIELDS
    bounds    (4, D): lower and upper bound of means, lower and upper bound of log(σ_k λ)
    penalties array of the constants listed by PENALTY_FIELDS; all zero: no penalty

The whole loop is one kernel: a step costs tens of microseconds, less than a call from Python.
"""

from __future__ import annotations

import numpy as np

from sparing.kernels.compilation import (
    copy_into,
    inline,
    inlined,
    kernel,
    warm_up,
    warm_up_elsewhere,
)
from sparing.kernels.expected_log_joint import component_integrals, expected_log_joint_and_gradient
from sparing.kernels.mixture import entropy_and_gradient, entropy_lower_bound

LEARNING_FIELDS = (
    "rate_min",
    "rate_max",
    "rate_decay",
    "momentum",
    "second_momentum",
    "epsilon",
    "value_tolerance",
    "parameter_tolerance",
)
PENALTY_FIELDS = ("mean_stiffness", "scale_stiffness", "weight_pressure", "weight_threshold")

# η is kept within this distance of its largest entry: weights stay above 1e-13 and never vanish.
ETA_RANGE = 30.0
# Rejected steps after which the optimisation gives up: the rate has then been halved as often.
MAX_REJECTIONS = 10

# How the optimisation ended.
STOPPED_AT_LIMIT = 0
STOPPED_BY_VALUE = 1
STOPPED_BY_PARAMETERS = 2
STOPPED_NOT_FINITE = 3


@kernel
def unpack_parameters(phi, weights, means, scales, lengths):
    """φ to (w, μ, σ, λ), Section S1.3.1."""
    n_components, n_dimensions = means.shape
    position = 0
    for k in range(n_components):
        for i in range(n_dimensions):
            means[k, i] = phi[position]
            position += 1
    for k in range(n_components):
        scales[k] = np.exp(phi[position])
        position += 1
    for i in range(n_dimensions):
        lengths[i] = np.exp(phi[position])
        position += 1
    largest = np.max(phi[position:])
    for k in range(n_components):
        weights[k] = np.exp(max(phi[position + k] - largest, -ETA_RANGE))
    total = 0.0
    for k in range(n_components):
        total += weights[k]
    for k in range(n_components):
        weights[k] /= total


@kernel
def add_penalty_gradient(phi, weights, means, bounds, penalties, gradient):
    """Return the penalty and subtract its gradient with respect to φ from gradient.

    Means and log(σ_k λ_i) outside their bounds pay ½ stiffness · excess², means in units of the
    box width. Each weight pays pressure · threshold · (1 - exp(-w / threshold)): a constant when
    it is large, a slope towards zero when it is small.
    """
    n_components, n_dimensions = means.shape
    first_scale = n_components * n_dimensions
    first_length = first_scale + n_components
    first_eta = first_length + n_dimensions
    mean_stiffness, scale_stiffness, pressure, threshold = penalties
    penalty = 0.0
    if mean_stiffness > 0.0 or scale_stiffness > 0.0:
        for k in range(n_components):
            for i in range(n_dimensions):
                width = bounds[1, i] - bounds[0, i]
                excess = max(means[k, i] - bounds[1, i], 0.0)
                excess = (excess + min(means[k, i] - bounds[0, i], 0.0)) / width
                penalty += 0.5 * mean_stiffness * excess * excess
                gradient[k * n_dimensions + i] -= mean_stiffness * excess / width
                log_sd = phi[first_scale + k] + phi[first_length + i]
                excess = max(log_sd - bounds[3, i], 0.0) + min(log_sd - bounds[2, i], 0.0)
                penalty += 0.5 * scale_stiffness * excess * excess
                gradient[first_scale + k] -= scale_stiffness * excess
                gradient[first_length + i] -= scale_stiffness * excess
    if pressure > 0.0:
        mean_slope = 0.0
        for k in range(n_components):
            decay = np.exp(-weights[k] / threshold)
            penalty += pressure * threshold * (1.0 - decay)
            mean_slope += weights[k] * pressure * decay
        for k in range(n_components):
            slope = pressure * np.exp(-weights[k] / threshold)
            gradient[first_eta + k] -= weights[k] * (slope - mean_slope)
    return penalty


_unpack_parameters = inlined(unpack_parameters)
_add_penalty_gradient = inlined(add_penalty_gradient)
_component_integrals = inlined(component_integrals)


@kernel
def score_candidates(phis, n_components, inputs, alpha, hyperparameters, bounds, penalties, scores):
    """Write F of every row φ of phis into scores, with the entropy's lower bound for H."""
    shape = (n_components, inputs.shape[0])
    weights, means = np.empty(shape[0]), np.empty(shape)
    scales, lengths = np.empty(shape[0]), np.empty(shape[1])
    gradient = np.zeros(phis.shape[1])  # of the penalty; not used
    for row in range(phis.shape[0]):
        phi = phis[row]
        _unpack_parameters(phi, weights, means, scales, lengths)
        value = entropy_lower_bound(weights, means, scales, lengths)
        value -= _add_penalty_gradient(phi, weights, means, bounds, penalties, gradient)
        integrals = _component_integrals(means, scales, lengths, inputs, alpha, hyperparameters)
        for k in range(n_components):
            value += weights[k] * np.mean(integrals[:, k])
        scores[row] = value if np.isfinite(value) else -np.inf


@inline
def _write_gradient(weights, joint_parts, entropy_parts, gradient):
    """Add the gradients of the two terms by μ, log σ, log λ and w into that by φ."""
    joint_means, joint_scales, joint_lengths, joint_weights = joint_parts
    entropy_means, entropy_scales, entropy_lengths, entropy_weights = entropy_parts
    n_components, n_dimensions = joint_means.shape
    position = 0
    for k in range(n_components):
        for i in range(n_dimensions):
            gradient[position] = joint_means[k, i] + entropy_means[k, i]
            position += 1
    for k in range(n_components):
        gradient[position] = joint_scales[k] + entropy_scales[k]
        position += 1
    for i in range(n_dimensions):
        gradient[position] = joint_lengths[i] + entropy_lengths[i]
        position += 1
    mean_slope = 0.0
    for k in range(n_components):
        mean_slope += weights[k] * (joint_weights[k] + entropy_weights[k])
    for k in range(n_components):  # Jacobian of the softmax: dw_j / dη_k = w_j (δ_jk - w_k)
        slope = joint_weights[k] + entropy_weights[k]
        gradient[position + k] = weights[k] * (slope - mean_slope)


@inline
def _all_finite(value, gradient):
    total = value
    for entry in gradient:
        total += 0.0 * entry  # NaN for an infinite or NaN entry, without a branch
    return np.isfinite(total)


@inline
def _trend(values):
    """Least-squares slope of values against their index, and its standard error."""
    n = values.size
    centre = 0.5 * (n - 1)
    spread = n * (n * n - 1.0) / 12.0  # Σ (index - centre)²
    mean = np.mean(values)
    covariance = 0.0
    variation = 0.0
    for j in range(n):
        covariance += (j - centre) * (values[j] - mean)
        variation += (values[j] - mean) ** 2
    slope = covariance / spread
    residual = max(variation - slope * covariance, 0.0) / (n - 2.0)
    return slope, np.sqrt(residual / spread)


@inline
def _adam_update(current, gradient, moments, n_updates, rate, learning, n_components):
    """One step of Adam uphill; moments (2, size of φ) are updated, η kept within its range."""
    momentum, second_momentum, epsilon = learning[3], learning[4], learning[5]
    correction = 1.0 - momentum**n_updates
    second_correction = 1.0 - second_momentum**n_updates
    for j in range(current.size):
        moments[0, j] += (1.0 - momentum) * (gradient[j] - moments[0, j])
        moments[1, j] += (1.0 - second_momentum) * (gradient[j] ** 2 - moments[1, j])
        root = np.sqrt(moments[1, j] / second_correction)
        current[j] += rate * (moments[0, j] / correction) / (root + epsilon)
    first_eta = current.size - n_components
    lowest = np.max(current[first_eta:]) - ETA_RANGE
    for j in range(first_eta, current.size):
        current[j] = max(current[j], lowest)


@inline
def _finish_batch(phi, batch_sum, values, n_batch, learning):
    """Put the batch's mean into φ, which holds that of the batch before; the status if settled.

    values: F at every step so far.
    """
    value_tolerance, parameter_tolerance = learning[6], learning[7]
    change = 0.0
    for j in range(phi.size):
        mean = batch_sum[j] / n_batch
        batch_sum[j] = 0.0
        change += (mean - phi[j]) ** 2
        phi[j] = mean
    status = STOPPED_AT_LIMIT
    if values.size >= 2 * n_batch:
        slope, error = _trend(values[values.size // 2 :])
        if max(slope, error) * n_batch < value_tolerance:
            status = STOPPED_BY_VALUE
        if np.sqrt(change / phi.size) < parameter_tolerance:
            status = STOPPED_BY_PARAMETERS
    return status


# F and its gradient are several helpers, not one (mean_projection.py has the reason).
@kernel
def maximise_objective(
    phi,
    n_components,
    inputs,
    alpha,
    hyperparameters,
    normals,
    first_normals,
    n_samples,
    n_fresh,
    bounds,
    penalties,
    learning,
    n_batch,
    optimise_weights,
):
    """Run the modified Adam (Section S1.3.3) from φ, which becomes the mean of the last batch.

    first_normals (max steps,): where in the pool of normals each step's draws begin. After
    every n_batch steps the optimisation stops if one of these is below its tolerance:
    - the change of F over a batch, from a linear regression on the later half of all steps so
      far. Its standard error must be as small: F is noisy, and over a single batch the noise
      exceeds any useful tolerance, so that the rule would stop at random;
    - the root mean square change of φ, averaged over a batch, from the batch before.
    Averaging the last batch removes most of Adam's own jitter, which has the size of α_min. A
    step to a point where F or its gradient is not finite is taken back and the rate halved.

    Returns (status, steps taken).
    """
    shape = (n_components, inputs.shape[0])
    weights, means = np.empty(shape[0]), np.empty(shape)
    scales, lengths = np.empty(shape[0]), np.empty(shape[1])
    joint_parts = (np.empty(shape), np.empty(shape[0]), np.empty(shape[1]), np.empty(shape[0]))
    entropy_parts = (np.empty(shape), np.empty(shape[0]), np.empty(shape[1]), np.empty(shape[0]))
    gradient, moments = np.empty(phi.size), np.zeros((2, phi.size))
    current, accepted, batch_sum = phi.copy(), phi.copy(), np.zeros(phi.size)
    values = np.empty(first_normals.size)
    rate_factor, n_updates, n_rejected = 1.0, 0, 0
    status = STOPPED_AT_LIMIT
    for t in range(first_normals.size):
        _unpack_parameters(current, weights, means, scales, lengths)
        value = expected_log_joint_and_gradient(
            weights, means, scales, lengths, inputs, alpha, hyperparameters, joint_parts
        )
        value += entropy_and_gradient(
            weights, means, scales, lengths, normals, first_normals[t], n_samples, n_fresh,
            entropy_parts,
        )  # fmt: skip
        _write_gradient(weights, joint_parts, entropy_parts, gradient)
        value -= _add_penalty_gradient(current, weights, means, bounds, penalties, gradient)
        if optimise_weights == 0:
            gradient[phi.size - n_components :] = 0.0
        if not _all_finite(value, gradient):
            n_rejected += 1
            if n_updates == 0 or n_rejected > MAX_REJECTIONS:
                status = STOPPED_NOT_FINITE
                break
            copy_into(current, accepted)
            moments[0] = 0.0
            rate_factor *= 0.5
            continue
        copy_into(accepted, current)
        batch_sum += current
        values[n_updates] = value
        n_updates += 1
        rate = learning[0] + (learning[1] - learning[0]) * np.exp(-t / learning[2])  # Eq. S21
        _adam_update(
            current, gradient, moments, n_updates, rate_factor * rate, learning, n_components
        )
        if n_updates % n_batch == 0:
            status = _finish_batch(phi, batch_sum, values[:n_updates], n_batch, learning)
            if status != STOPPED_AT_LIMIT:
                break
    if n_updates < n_batch:
        copy_into(phi, accepted)
    return status, n_updates


@warm_up
def _warm_up() -> None:
    phi, one, expansion, bounds, penalties = _tiny_arguments()
    learning, first = np.ones(len(LEARNING_FIELDS)), np.zeros(1, dtype=np.int64)
    unpack_parameters(phi, np.ones(1), np.zeros((1, 1)), one, one)
    add_penalty_gradient(phi, one, np.zeros((1, 1)), bounds, penalties, np.zeros(4))
    maximise_objective(phi, 1, *expansion, one, first, 1, 1, bounds, penalties, learning, 1, 1)


@warm_up_elsewhere
def _warm_up_scores() -> None:
    phi, one, expansion, bounds, penalties = _tiny_arguments()
    score_candidates(phi[None, :], 1, *expansion, bounds, penalties, one)


def _tiny_arguments():
    square = np.zeros((1, 1))
    expansion, penalties = (square, square, np.zeros((1, 6))), np.zeros(len(PENALTY_FIELDS))
    return np.zeros(4), np.ones(1), expansion, np.zeros((4, 1)), penalties
