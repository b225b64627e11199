"""The kernel that fits the mean function, given the covariance, within its bounds.

Notation (D dimensions; coordinates u = (x - centre) / unit)
    p        [m_0, x_m 1..D, log omega_1..D], (2D + 1,), within the box [lower, upper]
    mu, tau  (x_m - centre) / unit and (unit / omega)^2 per dimension
    z        [c, b_1..D, tau_1..D], (2D + 1,): the mean is c + b.u - tau.u^2 / 2, so that b = tau mu
             and c = m_0 - rise with rise = tau.mu^2 / 2
    v        [-c, -b, tau / 2, 1], (2D + 2,): the residual y - m is [1, u, u^2, y] v
    R        upper triangle with r^T A^-1 r = |R v|^2, (2D + 2, 2D + 2)
    F        |R v|^2 / 2

In z the fit is a convex problem. F is quadratic; bounds of tau and of mu are half-planes of
(b, tau); the upper bound of m_0 is that of the convex function c + sum b^2 / (2 tau). The lower
bound of m_0 alone is not convex, but lies so far below all values that only the result is clipped.
"""

from __future__ import annotations

import numpy as np

from sparing.kernels.compilation import inline, kernel, warm_up

# Barrier method (Boyd & Vandenberghe 2004, Section 11.3). Gap to the minimum of F in nats, relative
# to 1 + F, at which it ends.
LARGEST_GAP = 1e-7
# The barrier's weight falls by this factor whenever Newton's decrement is below so many weights.
# Random problems took 36 (D = 1) to 68 steps (D = 10), at most 104, and all arrived; with a factor
# of 0.01 and two weights, or with five weights, many did not.
WEIGHT_FACTOR = 0.1
CENTRED = 0.5
LAST_CENTRED = 1e-3  # at the smallest weight
MAX_NEWTON_STEPS = 200
# Line search: decrease asked for, as a fraction of what the slope promises.
SUFFICIENT_DECREASE = 0.01
MAX_HALVINGS = 60
# The start keeps this fraction of each interval from its ends.
START_MARGIN = 0.05


@inline
def write_image(triangle, v, image):
    """Write R v into image; return F."""
    size = v.shape[0]
    total = 0.0
    for i in range(size):
        value = 0.0
        for j in range(i, size):
            value += triangle[i, j] * v[j]
        image[i] = value
        total += value * value
    return 0.5 * total


@inline
def write_combination(centre, unit, p, v):
    """Write v of p."""
    dimension = centre.shape[0]
    v[0] = -p[0]
    for d in range(dimension):
        mu = (p[1 + d] - centre[d]) / unit[d]
        tau = (unit[d] * np.exp(-p[1 + dimension + d])) ** 2
        v[0] += 0.5 * tau * mu * mu
        v[1 + d] = -tau * mu
        v[1 + dimension + d] = 0.5 * tau
    v[2 * dimension + 1] = 1.0


@inline
def _write_combination_of(z, v):
    """Write v of z."""
    dimension = z.shape[0] // 2
    for d in range(dimension + 1):
        v[d] = -z[d]
    for d in range(dimension):
        v[1 + dimension + d] = 0.5 * z[1 + dimension + d]
    v[2 * dimension + 1] = 1.0


@inline
def _barrier(z, low, high):
    """Minus the sum of the logarithms of the distances to the bounds; inf beyond them."""
    dimension = z.shape[0] // 2
    below_peak = high[0] - z[0]
    total = 0.0
    for d in range(dimension):
        b, tau = z[1 + d], z[1 + dimension + d]
        below_peak -= 0.5 * b * b / tau
        left, right = b - low[1 + d] * tau, high[1 + d] * tau - b
        near, far = tau - low[1 + dimension + d], high[1 + dimension + d] - tau
        if not (left > 0.0 and right > 0.0 and near > 0.0 and far > 0.0):
            return np.inf
        total -= np.log(left) + np.log(right) + np.log(near) + np.log(far)
    if not below_peak > 0.0:
        return np.inf
    return total - np.log(below_peak)


@inline
def _add_barrier(z, low, high, weight, slope, gradient, hessian):
    """Add weight times the barrier's derivatives by z; hessian: its lower triangle."""
    size = z.shape[0]
    dimension = size // 2
    below_peak = high[0] - z[0]
    slope[0] = -1.0  # of below_peak
    for d in range(dimension):
        mu = z[1 + d] / z[1 + dimension + d]
        below_peak -= 0.5 * z[1 + d] * mu
        slope[1 + d] = -mu
        slope[1 + dimension + d] = 0.5 * mu * mu
    for i in range(size):
        gradient[i] -= weight * slope[i] / below_peak
        for j in range(i + 1):
            hessian[i, j] += weight * slope[i] * slope[j] / below_peak**2
    for d in range(dimension):
        at_b, at_tau = 1 + d, 1 + dimension + d
        b, tau = z[at_b], z[at_tau]
        mu, bend = b / tau, 1.0 / (tau * below_peak)
        lowest, highest = low[at_b], high[at_b]
        left, right = 1.0 / (b - lowest * tau), 1.0 / (highest * tau - b)
        near, far = 1.0 / (tau - low[at_tau]), 1.0 / (high[at_tau] - tau)
        gradient[at_b] += weight * (right - left)
        gradient[at_tau] += weight * (lowest * left - highest * right - near + far)
        hessian[at_b, at_b] += weight * (left**2 + right**2 + bend)
        hessian[at_tau, at_b] -= weight * (lowest * left**2 + highest * right**2 + mu * bend)
        hessian[at_tau, at_tau] += weight * (
            (lowest * left) ** 2 + (highest * right) ** 2 + near**2 + far**2 + mu * mu * bend
        )


@inline
def _solve_positive(matrix, factor, vector):
    """Overwrite vector with matrix^-1 vector, by Cholesky; False where matrix is not positive."""
    size = vector.shape[0]
    for i in range(size):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if i > j:
                factor[i, j] = total / factor[j, j]
            elif total > 0.0:
                factor[i, i] = np.sqrt(total)
            else:
                return False
    for i in range(size):
        for k in range(i):
            vector[i] -= factor[i, k] * vector[k]
        vector[i] /= factor[i, i]
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            vector[i] -= factor[k, i] * vector[k]
        vector[i] /= factor[i, i]
    return True


@inline
def write_coefficients(triangle, noise, z):
    """Write the z without bounds at which R v is noise (2D + 1,) but for its last entry."""
    size = z.shape[0]
    for i in range(size - 1, -1, -1):
        z[i] = triangle[i, size] - noise[i]
        for j in range(i + 1, size):
            z[i] -= triangle[i, j] * z[j]
        z[i] /= triangle[i, i]
    for i in range(1 + size // 2, size):
        z[i] *= -2.0


@inline
def write_mean(centre, unit, z, p):
    """Write p of z."""
    dimension = centre.shape[0]
    p[0] = z[0]
    for d in range(dimension):
        b, tau = z[1 + d], z[1 + dimension + d]
        p[0] += 0.5 * b * b / tau
        p[1 + d] = centre[d] + unit[d] * b / tau
        p[1 + dimension + d] = np.log(unit[d]) - 0.5 * np.log(tau)


@inline
def _move_inside(low, high, z):
    """Move z to a nearby point well within the bounds."""
    dimension = z.shape[0] // 2
    rise = 0.0
    for d in range(dimension):
        at_b, at_tau = 1 + d, 1 + dimension + d
        ratio = (high[at_tau] / low[at_tau]) ** START_MARGIN
        tau = min(max(z[at_tau], low[at_tau] * ratio), high[at_tau] / ratio)
        margin = START_MARGIN * (high[at_b] - low[at_b])
        mu = min(max(z[at_b] / tau, low[at_b] + margin), high[at_b] - margin)
        z[at_b], z[at_tau] = tau * mu, tau
        rise += 0.5 * tau * mu * mu
    z[0] = min(z[0], high[0] - rise - 1.0)  # a nat below the highest peak


@inline
def _descend(triangle, low, high, z):
    """Move z, within the bounds, to the minimum of F there."""
    size = z.shape[0]
    v, image, trial_image = np.empty(size + 1), np.empty(size + 1), np.empty(size + 1)
    gradient, step, trial, slope = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    curvature, hessian = np.empty((size, size)), np.empty((size, size))
    factor = np.empty((size, size))
    unit = np.full(size, -1.0)  # dv / dz
    unit[1 + size // 2 :] = 0.5
    for i in range(size):
        for j in range(i + 1):
            total = 0.0
            for k in range(j + 1):
                total += triangle[k, i] * triangle[k, j]
            curvature[i, j] = unit[i] * unit[j] * total
    n_bounds = 2 * size - 1
    _write_combination_of(z, v)
    loss = write_image(triangle, v, image)
    # Without bounds F is half the square of the triangle's corner: no gap is larger.
    gap = loss - 0.5 * triangle[size, size] ** 2
    weight = max(gap, LARGEST_GAP * (1.0 + loss)) / n_bounds
    for _ in range(MAX_NEWTON_STEPS):
        for i in range(size):
            total = 0.0
            for k in range(i + 1):
                total += triangle[k, i] * image[k]
            gradient[i] = unit[i] * total
            for j in range(i + 1):
                hessian[i, j] = curvature[i, j]
        _add_barrier(z, low, high, weight, slope, gradient, hessian)
        step[:] = gradient
        if not _solve_positive(hessian, factor, step):
            break
        decrement = 0.0
        for i in range(size):
            decrement += gradient[i] * step[i]
        smallest_weight = LARGEST_GAP * (1.0 + loss) / n_bounds
        if weight <= smallest_weight and decrement < LAST_CENTRED * weight:
            break
        value = loss + weight * _barrier(z, low, high)
        length = 1.0
        moved = False
        for _ in range(MAX_HALVINGS):
            for i in range(size):
                trial[i] = z[i] - length * step[i]
            barrier = _barrier(trial, low, high)
            if barrier < np.inf:
                _write_combination_of(trial, v)
                new = write_image(triangle, v, trial_image)
                if new + weight * barrier <= value - SUFFICIENT_DECREASE * length * decrement:
                    loss = new
                    z[:] = trial
                    image[:] = trial_image
                    moved = True
                    break
            length *= 0.5
        if not moved and weight <= smallest_weight:
            break  # rounding hides what is left to gain
        if not moved or decrement < CENTRED * weight:
            weight = max(WEIGHT_FACTOR * weight, smallest_weight)


@kernel
def project_mean(triangle, centre, unit, lower, upper, p):
    """Write the p within the box that minimises F; return F there."""
    dimension = centre.shape[0]
    size = 2 * dimension + 1
    low, high = lower.copy(), upper.copy()  # of m_0, mu and tau
    for d in range(dimension):
        low[1 + d] = (lower[1 + d] - centre[d]) / unit[d]
        high[1 + d] = (upper[1 + d] - centre[d]) / unit[d]
        low[1 + dimension + d] = (unit[d] * np.exp(-upper[1 + dimension + d])) ** 2
        high[1 + dimension + d] = (unit[d] * np.exp(-lower[1 + dimension + d])) ** 2
    z = np.empty(size)
    write_coefficients(triangle, np.zeros(size), z)
    if not _barrier(z, low, high) < np.inf:
        _move_inside(low, high, z)
        _descend(triangle, low, high, z)
    write_mean(centre, unit, z, p)
    for i in range(size):
        p[i] = min(max(p[i], lower[i]), upper[i])
    v, image = np.empty(size + 1), np.empty(size + 1)
    write_combination(centre, unit, p, v)
    return write_image(triangle, v, image)


@warm_up
def _warm_up() -> None:
    lower, upper = np.full(3, -1.0), np.full(3, 1.0)
    project_mean(np.eye(4), np.zeros(1), np.ones(1), lower, upper, np.empty(3))
