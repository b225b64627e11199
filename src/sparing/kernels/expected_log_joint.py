"""Kernels of the expected log joint, the integral of the Gaussian process against the mixture.

Notation (Section S1.2; S hyperparameter samples, subscript s left out below):
    means μ_k (K, D), scales σ_k (K,), lengths λ (D,), weights w_k (K,)   the mixture, Eq. 6
    inputs     Xᵀ   (D, n)        training inputs, transposed so that points are contiguous
    alpha      α    (S, n)        (κ(X, X) + noise)⁻¹ (y - m(X))
    slopes     b    (S, D, n)     where gradients are known, else None: the process's mean is
                                  m + Σ_p (α_p + Σ_i b_pi ∂/∂x_pi) κ(x, x_p)
    hyperparameters (S, 3D + 3)   [log ℓ, log σ_f, log σ_obs, m_0, x_m, log ω]
    τ_k² = σ_k² λ² + ℓ²           per coordinate
    z_k^(p) = ∫ N(x; μ_k, σ_k² Σ) κ(x, x_p) dx
            = σ_f² Π_i (ℓ_i / τ_ki) exp(-½ Σ_i (μ_ki - x_pi)² / τ_ki²)
    I_k = z_kᵀ c + m_0 + ν_k      expected log joint of component k, where
    c_p = α_p + Σ_i b_pi (μ_ki - x_pi) / τ_ki², which is α_p without slopes

None is a type of its own, so these are two compilations: the one without slopes is what it would be
if there were none, and the one with slopes is made only where there are some.
The paper's z_k (Eq. S13) leaves out Λ = (2π)^(D/2) Π ℓ_i, which Eq. S10 puts into κ; not so here.
"""

from __future__ import annotations

import numpy as np

from sparing.kernels.compilation import inline, kernel, warm_up
from sparing.kernels.fast_exp import fast_exp


@inline
def _convolved_kernel(mean, scale, lengths, inputs, psi, inverse_variances, row):
    """z_k for one component and one ψ into row (n,); 1 / τ_k² into inverse_variances (D,)."""
    n_dimensions, n_points = inputs.shape
    log_height = 2.0 * psi[n_dimensions]
    row[:] = 0.0
    for i in range(n_dimensions):
        kernel_variance = np.exp(2.0 * psi[i])
        variance = (scale * lengths[i]) ** 2 + kernel_variance
        log_height += psi[i] - 0.5 * np.log(variance)
        inverse_variances[i] = 1.0 / variance
        half_inverse = 0.5 / variance
        coordinate = inputs[i]
        centre = mean[i]
        for p in range(n_points):
            difference = coordinate[p] - centre
            row[p] -= half_inverse * difference * difference
    for p in range(n_points):
        row[p] = fast_exp(log_height + row[p])


@inline
def _multiply_by_coefficients(mean, inputs, alpha, slopes, inverse_variances, row):
    """z_k^(p) to z_k^(p) c_p, in row (n,)."""
    coefficients = alpha.copy()
    for i in range(slopes.shape[0]):
        coordinate = inputs[i]
        slope = slopes[i]
        centre = mean[i]
        inverse = inverse_variances[i]
        for p in range(row.size):
            coefficients[p] += slope[p] * (centre - coordinate[p]) * inverse
    for p in range(row.size):
        row[p] *= coefficients[p]


@inline
def _mean_function_integral(mean, scale, lengths, psi):
    """m_0 + ν_k, the integral of the negative quadratic mean (Eqs. S19 and S20)."""
    n_dimensions = lengths.size
    value = psi[n_dimensions + 2]
    for i in range(n_dimensions):
        difference = mean[i] - psi[n_dimensions + 3 + i]
        inverse_square = np.exp(-2.0 * psi[2 * n_dimensions + 3 + i])
        value -= 0.5 * inverse_square * (difference * difference + (scale * lengths[i]) ** 2)
    return value


@kernel
def component_integrals(means, scales, lengths, inputs, alpha, slopes, hyperparameters):
    """I_k (S, K), the posterior mean of each component's integral (Eq. S19)."""
    n_components = means.shape[0]
    n_dimensions, n_points = inputs.shape
    result = np.empty((alpha.shape[0], n_components))
    inverse_variances = np.empty(n_dimensions)
    row = np.empty(n_points)
    for sample in range(alpha.shape[0]):
        psi = hyperparameters[sample]
        for k in range(n_components):
            _convolved_kernel(means[k], scales[k], lengths, inputs, psi, inverse_variances, row)
            value = 0.0
            if slopes is None:
                for p in range(n_points):
                    value += row[p] * alpha[sample, p]
            else:
                _multiply_by_coefficients(
                    means[k], inputs, alpha[sample], slopes[sample], inverse_variances, row
                )
                for p in range(n_points):
                    value += row[p]
            result[sample, k] = value + _mean_function_integral(means[k], scales[k], lengths, psi)
    return result


@inline
def expected_log_joint_and_gradient(
    weights, means, scales, lengths, inputs, alpha, slopes, hyperparameters, gradients
):
    """Σ_k w_k I_k averaged over the S samples (Eqs. 10 and S9), and its gradient.

    gradients: those by μ, log σ, log λ and w, which are overwritten.
    """
    gradient_means, gradient_log_scales, gradient_log_lengths, gradient_weights = gradients
    n_samples = alpha.shape[0]
    n_components = weights.size
    n_dimensions, n_points = inputs.shape
    gradient_means[:] = 0.0
    gradient_log_scales[:] = 0.0
    gradient_log_lengths[:] = 0.0
    gradient_weights[:] = 0.0
    inverse_variances = np.empty(n_dimensions)
    row = np.empty(n_points)
    for sample in range(n_samples):
        psi = hyperparameters[sample]
        for k in range(n_components):
            scale = scales[k]
            _convolved_kernel(means[k], scale, lengths, inputs, psi, inverse_variances, row)
            if slopes is None:
                for p in range(n_points):
                    row[p] *= alpha[sample, p]
            else:
                kernels = row.copy()
                _multiply_by_coefficients(
                    means[k], inputs, alpha[sample], slopes[sample], inverse_variances, row
                )
            integral = 0.0
            for p in range(n_points):
                integral += row[p]
            gradient_weights[k] += integral + _mean_function_integral(means[k], scale, lengths, psi)
            weight = weights[k]
            for i in range(n_dimensions):
                coordinate = inputs[i]
                centre = means[k, i]
                first_moment = 0.0
                second_moment = 0.0
                for p in range(n_points):
                    difference = coordinate[p] - centre
                    product = row[p] * difference
                    first_moment += product
                    second_moment += product * difference
                if slopes is not None:  # c_p moves with μ and τ too
                    slope = slopes[sample, i]
                    for p in range(n_points):
                        product = kernels[p] * slope[p]  # pyright: ignore[reportPossiblyUnboundVariable]
                        first_moment += product
                        second_moment += 2.0 * product * (coordinate[p] - centre)
                inverse_square = np.exp(-2.0 * psi[2 * n_dimensions + 3 + i])
                gradient_means[k, i] += weight * (
                    first_moment * inverse_variances[i]
                    - inverse_square * (centre - psi[n_dimensions + 3 + i])
                )
                variance = (scale * lengths[i]) ** 2
                stretch = (weight * variance) * (
                    inverse_variances[i] * (second_moment * inverse_variances[i] - integral)
                    - inverse_square
                )
                gradient_log_scales[k] += stretch
                gradient_log_lengths[i] += stretch
    for k in range(n_components):
        gradient_weights[k] /= n_samples
        gradient_log_scales[k] /= n_samples
        for i in range(n_dimensions):
            gradient_means[k, i] /= n_samples
    for i in range(n_dimensions):
        gradient_log_lengths[i] /= n_samples
    value = 0.0
    for k in range(n_components):
        value += weights[k] * gradient_weights[k]
    return value


@kernel
def convolved_kernels(means, scales, lengths, inputs, psi):
    """z_k (K, n) for one hyperparameter vector ψ."""
    n_dimensions, n_points = inputs.shape
    result = np.empty((means.shape[0], n_points))
    inverse_variances = np.empty(n_dimensions)
    for k in range(means.shape[0]):
        _convolved_kernel(means[k], scales[k], lengths, inputs, psi, inverse_variances, result[k])
    return result


@warm_up
def _warm_up() -> None:
    inputs, alpha, hyperparameters = np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((1, 6))
    mixture = (np.zeros((1, 1)), np.ones(1), np.ones(1))
    component_integrals(*mixture, inputs, alpha, None, hyperparameters)
    convolved_kernels(*mixture, inputs, hyperparameters[0])
