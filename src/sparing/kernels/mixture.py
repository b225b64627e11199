"""Kernels of the Gaussian mixture: log density, entropy by Monte Carlo, and its lower bound.

Notation (Eq. 6; arrays named after what they hold):
    weights  w_k        (K,)     means    μ_k     (K, D)
    scales   σ_k        (K,)     lengths  λ       (D,)
    normals  ε          (P,)     a pool of standard normal draws
    r_l(x) = w_l N(x; μ_l, σ_l² Σ) / q(x), the responsibility of component l

Inner loops run over points, which are contiguous, so that they vectorise. All coordinates are
divided by λ first: Σ then is the identity and only σ_k remains.
"""

from __future__ import annotations

import numpy as np

from sparing.kernels.compilation import inline, kernel, warm_up
from sparing.kernels.fast_exp import fast_exp

BLOCK = 128  # points per block of the log density: its buffers then stay in the cache
LOG_2_PI = 1.8378770664093453


@inline
def _log_terms(points, n_points, centres, scales, log_weights, terms, largest):
    """log[w_l N(x; μ_l, σ_l² I)] + (D/2) log 2π of each point, and its maximum over l.

    points (D, ≥ n_points), centres (K, D), log_weights (K,), terms (K, ≥ n_points) out,
    largest (≥ n_points,) out. Everything divided by λ.
    """
    n_dimensions = points.shape[0]
    n_components = centres.shape[0]
    largest[:n_points] = -np.inf
    for component in range(n_components):
        row = terms[component]
        row[:n_points] = 0.0
        for i in range(n_dimensions):
            coordinate = points[i]
            centre = centres[component, i]
            for p in range(n_points):
                difference = coordinate[p] - centre
                row[p] += difference * difference
        half_precision = 0.5 / (scales[component] * scales[component])
        offset = log_weights[component] - n_dimensions * np.log(scales[component])
        for p in range(n_points):
            value = offset - half_precision * row[p]
            row[p] = value
            largest[p] = max(largest[p], value)


@inline
def _exponentiate(terms, n_points, largest, total):
    """Replace each term by exp(term - largest) and sum over components into total."""
    total[:n_points] = 0.0
    for component in range(terms.shape[0]):
        row = terms[component]
        for p in range(n_points):
            value = fast_exp(row[p] - largest[p])
            row[p] = value
            total[p] += value


@kernel
def mixture_log_density(points, weights, means, scales, lengths):
    """log q(x), Eq. 6, at points (m, D); -inf where even the largest term overflows."""
    n_points, n_dimensions = points.shape
    n_components = weights.size
    result = np.empty(n_points)
    block = np.empty((n_dimensions, BLOCK))
    terms = np.empty((n_components, BLOCK))
    largest = np.empty(BLOCK)
    total = np.empty(BLOCK)
    log_weights = np.log(weights)
    centres = means / lengths
    constant = -0.5 * n_dimensions * LOG_2_PI - np.sum(np.log(lengths))
    for start in range(0, n_points, BLOCK):
        size = min(BLOCK, n_points - start)
        for p in range(size):
            for i in range(n_dimensions):
                block[i, p] = points[start + p, i] / lengths[i]
        _log_terms(block, size, centres, scales, log_weights, terms, largest)
        _exponentiate(terms, size, largest, total)
        for p in range(size):
            if largest[p] == -np.inf:
                result[start + p] = -np.inf
            else:
                result[start + p] = constant + largest[p] + np.log(total[p])
    return result


@inline
def entropy_and_gradient(
    weights, means, scales, lengths, normals, first, n_samples, n_fresh, gradients
):
    """Monte Carlo entropy of the mixture and its reparameterised gradient (Section S1.1).

    Component k uses the N_s = n_samples points ξ_s = μ_k + σ_k λ ε_s; the draws ε (K, D, n_fresh)
    start at normals[first], and samples beyond n_fresh mirror earlier ones (ε, then -ε). The
    gradients, by μ, log σ, log λ and w, are overwritten.

    The value is H = Σ_k w_k (H_k - log w_k) + Σ_k w_k E_k[log r_k]: component entropies H_k are
    known, so only the last term is noisy. Gradients are the paper's, without its 1/K² and with
    the denominator (σ_l λ)².
    """
    gradient_means, gradient_log_scales, gradient_log_lengths, gradient_weights = gradients
    n_components, n_dimensions = means.shape
    gradient_means[:] = 0.0
    gradient_log_scales[:] = 0.0
    gradient_log_lengths[:] = 0.0
    gradient_weights[:] = 0.0
    log_weights = np.log(weights)
    points = np.empty((n_dimensions, n_samples))
    terms = np.empty((n_components, n_samples))
    largest = np.empty(n_samples)
    total = np.empty(n_samples)
    precision_sum = np.empty(n_samples)
    pull = np.empty((n_dimensions, n_samples))
    centres = np.empty((n_components, n_dimensions))
    component_constant = 0.5 * n_dimensions * (LOG_2_PI + 1.0) + np.sum(np.log(lengths))
    entropy = 0.0
    for k in range(n_components):
        for component in range(n_components):  # centred on μ_k: nothing cancels below
            for i in range(n_dimensions):
                centres[component, i] = (means[component, i] - means[k, i]) / lengths[i]
        for i in range(n_dimensions):
            start = first + (k * n_dimensions + i) * n_fresh
            for s in range(n_fresh):
                points[i, s] = scales[k] * normals[start + s]
            for s in range(n_fresh, n_samples):
                points[i, s] = -points[i, s - n_fresh]
        _log_terms(points, n_samples, centres, scales, log_weights, terms, largest)
        own = 0.0  # Σ_s log[w_k N_k(ξ_s)] up to the constant shared with log q
        for s in range(n_samples):
            own += terms[k, s] - largest[s]
        _exponentiate(terms, n_samples, largest, total)
        density = 0.0
        for s in range(n_samples):
            density += np.log(total[s])
            total[s] = 1.0 / total[s]
        log_responsibility = (own - density) / n_samples
        component_entropy = component_constant + n_dimensions * np.log(scales[k])
        entropy += weights[k] * (component_entropy - log_weights[k] + log_responsibility)
        # d H / d w_k, first term: -E_k[log q], by the same split.
        gradient_weights[k] += component_entropy - log_weights[k] + log_responsibility
        mixture = weights, scales, lengths
        _accumulate_path_gradient(
            k, mixture, centres, points, terms, total, precision_sum, pull, gradients
        )
    return entropy


@inline
def _accumulate_path_gradient(
    k, mixture, centres, points, terms, inverse_total, precision_sum, pull, gradients
):
    """Add the samples of component k: -∇log q at ξ, carried to the parameters by dξ/dφ."""
    weights, scales, lengths = mixture
    gradient_means, gradient_log_scales, gradient_log_lengths, gradient_weights = gradients
    n_dimensions, n_samples = points.shape
    weight = weights[k] / n_samples
    precision_sum[:] = 0.0
    pull[:] = 0.0
    for component in range(weights.size):
        row = terms[component]
        centre = centres[component]
        precision = 1.0 / (scales[component] * scales[component])
        responsibility_sum = 0.0
        for s in range(n_samples):
            responsibility = row[s] * inverse_total[s]
            responsibility_sum += responsibility
            row[s] = responsibility * precision
            precision_sum[s] += row[s]
        for i in range(n_dimensions):
            target = pull[i]
            coordinate = centre[i]
            for s in range(n_samples):
                target[s] += row[s] * coordinate
        # d H / d w_l, second term: -Σ_s w_k q_l(ξ_sk) / q(ξ_sk).
        gradient_weights[component] -= weight * responsibility_sum / weights[component]
    for i in range(n_dimensions):
        force_sum = 0.0  # Σ_s Σ_l r_l (ξ - μ_l) / σ_l²
        stretch_sum = 0.0  # the same times the displacement ξ - μ_k
        for s in range(n_samples):
            force = precision_sum[s] * points[i, s] - pull[i, s]
            force_sum += force
            stretch_sum += force * points[i, s]
        gradient_means[k, i] += weight * force_sum / lengths[i]
        gradient_log_scales[k] += weight * stretch_sum
        gradient_log_lengths[i] += weight * stretch_sum


@inline
def entropy_lower_bound(weights, means, scales, lengths):
    """H ≥ -Σ_k w_k log Σ_l w_l γ_lk with γ_lk = N(μ_l; μ_k, (σ_l² + σ_k²) Σ) (Jensen)."""
    n_components, n_dimensions = means.shape
    constant = -0.5 * n_dimensions * LOG_2_PI - np.sum(np.log(lengths))
    terms = np.empty(n_components)  # log w_l γ_lk without its constant
    bound = 0.0
    for k in range(n_components):
        largest = -np.inf
        for component in range(n_components):
            variance = scales[component] ** 2 + scales[k] ** 2
            distance = 0.0
            for i in range(n_dimensions):
                distance += ((means[component, i] - means[k, i]) / lengths[i]) ** 2
            terms[component] = (
                np.log(weights[component])
                - 0.5 * n_dimensions * np.log(variance)
                - 0.5 * distance / variance
            )
            largest = max(largest, terms[component])
        total = 0.0
        for component in range(n_components):
            total += np.exp(terms[component] - largest)
        bound -= weights[k] * (constant + (largest + np.log(total)))
    return bound


@warm_up
def _warm_up() -> None:
    one, square = np.ones(1), np.zeros((1, 1))
    mixture_log_density(square, one, square, one, one)
