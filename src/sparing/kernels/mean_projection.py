"""The kernel that fits the mean function, given the covariance, within its bounds.

Notation (D dimensions; coordinates u = (x - centre) / unit)
    p        [m_0, x_m 1..D, log omega_1..D], (2D + 1,), within the box [lower, upper]
    mu, tau  (x_m - centre) / unit and (unit / omega)^2 per dimension
    z        [c, b_1..D, tau_1..D], (2D + 1,): the mean is c + b.u - tau.u^2 / 2, so that b = tau mu
             and c = m_0 - rise with rise = tau.mu^2 / 2
    v        [-c, -b, tau / 2, 1], (2D + 2,): the residual y - m is [1, u, u^2, y] v
    R        upper triangle with r^T A^-1 r = |R v|^2, (2D + 2, 2D + 2)
    F        |R v|^2 / 2
    s, l     slacks, the distances to the bounds, and their multipliers, (4D + 1,) each: per
             dimension those of mu's and of tau's bounds, last the peak's

In z the fit is a convex problem. F is quadratic; bounds of tau and of mu are half-planes of
(b, tau); the upper bound of m_0 is that of the convex function c + sum b^2 / (2 tau). The lower
bound of m_0 alone is not convex, but lies so far below all values that only the result is clipped.
"""

from __future__ import annotations

import numpy as np

from sparing.kernels.compilation import copy_into, inline, kernel, warm_up_elsewhere

# Primal-dual interior-point method (Boyd & Vandenberghe 2004, Section 11.7), with a slack of its
# own for the one bound that is not linear: a step straight along it would leave it at once. Gap to
# the minimum of F in nats, relative to 1 + F, at which it ends.
LARGEST_GAP = 1e-7
# The barrier's weight, as a fraction of the mean of slack times multiplier: after a step that could
# be made (nearly) in full, and after a shorter one. Surrogates of six runs took 10 (D = 2) to 18
# steps (D = 10), at most 66.
FULL_STEP, SHORT_STEP = 0.1, 0.5
LONG_ENOUGH = 0.5
NEARLY = 0.95  # of the way to the nearest bound
MAX_STEPS = 200
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
    for d in range(dimension):
        mu = (p[1 + d] - centre[d]) / unit[d]
        tau = (unit[d] * np.exp(-p[1 + dimension + d])) ** 2
        v[1 + d] = -tau * mu
        v[1 + dimension + d] = 0.5 * tau
    rise = 0.0
    for d in range(dimension):
        rise += 0.25 * v[1 + d] ** 2 / v[1 + dimension + d]
    v[0] = rise - p[0]
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
def _below_peak(z, high):
    """The distance of m_0 to its upper bound."""
    dimension = z.shape[0] // 2
    distance = high[0] - z[0]
    for d in range(dimension):
        distance -= 0.5 * z[1 + d] ** 2 / z[1 + dimension + d]
    return distance


@inline
def _write_slacks(z, low, high, slacks):
    """Write the distances to the bounds."""
    dimension = z.shape[0] // 2
    for d in range(dimension):
        b, tau = z[1 + d], z[1 + dimension + d]
        slacks[4 * d] = b - low[1 + d] * tau
        slacks[4 * d + 1] = high[1 + d] * tau - b
        slacks[4 * d + 2] = tau - low[1 + dimension + d]
        slacks[4 * d + 3] = high[1 + dimension + d] - tau
    slacks[4 * dimension] = _below_peak(z, high)


@inline
def _write_slack_slopes(z, low, high, step, slopes):
    """Write the derivatives of the slacks along the step, (4D + 1,)."""
    dimension = z.shape[0] // 2
    for d in range(dimension):
        db, dtau = step[1 + d], step[1 + dimension + d]
        slopes[4 * d] = db - low[1 + d] * dtau
        slopes[4 * d + 1] = high[1 + d] * dtau - db
        slopes[4 * d + 2] = dtau
        slopes[4 * d + 3] = -dtau
    peak = -step[0]
    for d in range(dimension):
        mu = z[1 + d] / z[1 + dimension + d]
        peak += mu * (0.5 * mu * step[1 + dimension + d] - step[1 + d])
    slopes[4 * dimension] = peak


@inline
def _subtract_forces(z, low, high, forces, gradient):
    """Subtract the slacks' gradients by z, each times its force (4D + 1,)."""
    dimension = z.shape[0] // 2
    peak = forces[4 * dimension]
    gradient[0] += peak
    for d in range(dimension):
        mu = z[1 + d] / z[1 + dimension + d]
        left, right = forces[4 * d], forces[4 * d + 1]
        near, far = forces[4 * d + 2], forces[4 * d + 3]
        gradient[1 + d] += right - left + mu * peak
        gradient[1 + dimension + d] += (
            low[1 + d] * left - high[1 + d] * right - near + far - 0.5 * mu * mu * peak
        )


@inline
def _write_hessian(z, low, high, slacks, multipliers, curvature, slope, hessian):
    """Add l / s times the square of each slack's gradient, and the peak's own, to the curvature.

    Only the lower triangle of the hessian is written.
    """
    size = z.shape[0]
    dimension = size // 2
    multiplier = multipliers[4 * dimension]
    slope[0] = -1.0  # of the peak's slack
    for d in range(dimension):
        mu = z[1 + d] / z[1 + dimension + d]
        slope[1 + d] = -mu
        slope[1 + dimension + d] = 0.5 * mu * mu
    for i in range(size):
        for j in range(i + 1):
            stiffness = multiplier / slacks[4 * dimension] * slope[i] * slope[j]
            hessian[i, j] = curvature[i, j] + stiffness
    for d in range(dimension):
        at_b, at_tau = 1 + d, 1 + dimension + d
        mu, bend = z[at_b] / z[at_tau], multiplier / z[at_tau]
        lowest, highest = low[at_b], high[at_b]
        left = multipliers[4 * d] / slacks[4 * d]
        right = multipliers[4 * d + 1] / slacks[4 * d + 1]
        near = multipliers[4 * d + 2] / slacks[4 * d + 2]
        far = multipliers[4 * d + 3] / slacks[4 * d + 3]
        hessian[at_b, at_b] += left + right + bend
        hessian[at_tau, at_b] -= lowest * left + highest * right + mu * bend
        hessian[at_tau, at_tau] += (
            lowest**2 * left + highest**2 * right + near + far + mu * mu * bend
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
        total = vector[i]
        for k in range(i):
            total -= factor[i, k] * vector[k]
        vector[i] = total / factor[i, i]
    for i in range(size - 1, -1, -1):
        total = vector[i]
        for k in range(i + 1, size):
            total -= factor[k, i] * vector[k]
        vector[i] = total / factor[i, i]
    return True


@inline
def write_coefficients(triangle, noise, z):
    """Write the z without bounds at which R v is noise (2D + 1,) but for its last entry."""
    size = z.shape[0]
    for i in range(size - 1, -1, -1):
        total = triangle[i, size] - noise[i]
        for j in range(i + 1, size):
            total -= triangle[i, j] * z[j]
        z[i] = total / triangle[i, i]
    for i in range(1 + size // 2, size):
        z[i] *= -2.0


@inline
def write_mean(centre, unit, z, p):
    """Write p of z."""
    dimension = centre.shape[0]
    rise = 0.0
    for d in range(dimension):
        rise += 0.5 * z[1 + d] ** 2 / z[1 + dimension + d]
    p[0] = z[0] + rise
    for d in range(dimension):
        b, tau = z[1 + d], z[1 + dimension + d]
        p[1 + d] = centre[d] + unit[d] * b / tau
        p[1 + dimension + d] = np.log(unit[d]) - 0.5 * np.log(tau)


@inline
def _move_inside(low, high, z):
    """Move z to a nearby point well within the bounds."""
    dimension = z.shape[0] // 2
    for d in range(dimension):
        at_b, at_tau = 1 + d, 1 + dimension + d
        ratio = (high[at_tau] / low[at_tau]) ** START_MARGIN
        tau = min(max(z[at_tau], low[at_tau] * ratio), high[at_tau] / ratio)
        margin = START_MARGIN * (high[at_b] - low[at_b])
        mu = min(max(z[at_b] / tau, low[at_b] + margin), high[at_b] - margin)
        z[at_b], z[at_tau] = tau * mu, tau
    rise = 0.0
    for d in range(dimension):
        rise += 0.5 * z[1 + d] ** 2 / z[1 + dimension + d]
    z[0] = min(z[0], high[0] - rise - 1.0)  # a nat below the highest peak


@inline
def _write_bounds(centre, unit, lower, upper, low, high):
    """Write the bounds of mu and tau that follow from those of x_m and log omega."""
    dimension = centre.shape[0]
    for d in range(dimension):
        low[1 + d] = (lower[1 + d] - centre[d]) / unit[d]
        high[1 + d] = (upper[1 + d] - centre[d]) / unit[d]
        low[1 + dimension + d] = (unit[d] * np.exp(-upper[1 + dimension + d])) ** 2
        high[1 + dimension + d] = (unit[d] * np.exp(-lower[1 + dimension + d])) ** 2


@inline
def _write_curvature(triangle, factors, curvature):
    """Write the lower triangle of d2F / dz2; factors: dv / dz."""
    size = factors.shape[0]
    for i in range(size):
        for j in range(i + 1):
            total = 0.0
            for k in range(j + 1):
                total += triangle[k, i] * triangle[k, j]
            curvature[i, j] = factors[i] * factors[j] * total


@inline
def _write_gradient(triangle, factors, image, gradient):
    """Write dF / dz."""
    for i in range(factors.shape[0]):
        total = 0.0
        for k in range(i + 1):
            total += triangle[k, i] * image[k]
        gradient[i] = factors[i] * total


@inline
def _longest_step(slacks, slopes, multipliers, change):
    """How much of the step leaves slacks and multipliers positive, at most all of it."""
    length = 1.0
    for k in range(slacks.shape[0]):
        if change[k] < 0.0:
            length = min(length, -NEARLY * multipliers[k] / change[k])
        if slopes[k] < 0.0:
            length = min(length, -NEARLY * slacks[k] / slopes[k])
    return length


# Its parts are inlined one by one, not within a function around them: Numba copies what it inlines,
# in a time that grows with the square of its size (a quarter of the time of all kernels).
@kernel
def project_mean(triangle, centre, unit, lower, upper, p):
    """Write the p within the box that minimises F; return F there."""
    size = p.shape[0]
    n_bounds = 2 * size - 1
    low, high = lower.copy(), upper.copy()  # of m_0, mu and tau
    _write_bounds(centre, unit, lower, upper, low, high)
    free, slacks = np.empty(size), np.empty(n_bounds)
    v, image = np.empty(size + 1), np.empty(size + 1)
    write_coefficients(triangle, np.zeros(size), free)
    z = free.copy()
    _write_slacks(z, low, high, slacks)
    if not slacks.min() > 0.0:
        gradient, step, slope = np.empty(size), np.empty(size), np.empty(size)
        square = (size, size)
        curvature, hessian, factor = np.empty(square), np.empty(square), np.empty(square)
        slopes, forces = np.empty(n_bounds), np.empty(n_bounds)
        multipliers, change = np.empty(n_bounds), np.empty(n_bounds)
        factors = np.full(size, -1.0)  # dv / dz
        factors[1 + size // 2 :] = 0.5
        _write_curvature(triangle, factors, curvature)
        _move_inside(low, high, z)
        _write_combination_of(z, v)
        loss = write_image(triangle, v, image)
        _write_slacks(z, low, high, slacks)
        # Without bounds F is half the square of the triangle's corner: no gap is larger.
        gap = max(loss - 0.5 * triangle[size, size] ** 2, LARGEST_GAP * (1.0 + loss))
        weight = gap / n_bounds
        for k in range(n_bounds):
            multipliers[k] = weight / slacks[k]
        for _ in range(MAX_STEPS):
            _write_gradient(triangle, factors, image, gradient)
            excess = _below_peak(z, high) - slacks[n_bounds - 1]  # over the slack of its own
            copy_into(step, gradient)
            _subtract_forces(z, low, high, multipliers, step)
            fault = abs(multipliers[n_bounds - 1] * excess)
            for i in range(size):
                fault += abs(step[i] * (z[i] - free[i]))
            largest_gap = LARGEST_GAP * (1.0 + loss)
            if gap <= largest_gap and fault <= largest_gap:
                break
            _write_hessian(z, low, high, slacks, multipliers, curvature, slope, hessian)
            for k in range(n_bounds):
                forces[k] = weight / slacks[k]
            forces[n_bounds - 1] -= multipliers[n_bounds - 1] / slacks[n_bounds - 1] * excess
            copy_into(step, gradient)
            _subtract_forces(z, low, high, forces, step)
            if not _solve_positive(hessian, factor, step):
                break
            for i in range(size):
                step[i] = -step[i]
            _write_slack_slopes(z, low, high, step, slopes)
            slopes[n_bounds - 1] += excess
            for k in range(n_bounds):
                change[k] = (weight - multipliers[k] * slopes[k]) / slacks[k] - multipliers[k]
            length = _longest_step(slacks, slopes, multipliers, change)
            for i in range(size):
                z[i] += length * step[i]
            for k in range(n_bounds):
                slacks[k] += length * slopes[k]  # taken from z, rounding could make them negative
                multipliers[k] += length * change[k]
            gap = 0.0
            for k in range(n_bounds):
                gap += multipliers[k] * slacks[k]
            _write_combination_of(z, v)
            loss = write_image(triangle, v, image)
            weight = (FULL_STEP if length > LONG_ENOUGH else SHORT_STEP) * gap / n_bounds
            weight = max(weight, FULL_STEP * LARGEST_GAP * (1.0 + loss) / n_bounds)
    write_mean(centre, unit, z, p)
    for i in range(size):
        p[i] = min(max(p[i], lower[i]), upper[i])
    write_combination(centre, unit, p, v)
    return write_image(triangle, v, image)


@warm_up_elsewhere
def _warm_up() -> None:
    lower, upper = np.full(3, -1.0), np.full(3, 1.0)
    project_mean(np.eye(4), np.zeros(1), np.ones(1), lower, upper, np.empty(3))
