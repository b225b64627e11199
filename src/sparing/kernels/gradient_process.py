"""Kernels of a Gaussian process that is told gradients as well as values.

Notation (D dimensions, n points)
    z, ell     inputs over their length scales, (D, n); the length scales, (D,)
    first_row  where the rows of each point begin, (n + 1,): a value, and D derivatives or none
    delta      z_p - z_q for a pair of points
    K          covariance of all rows, (N, N); k is that of the values, Eq. S10:
               cov(f(x_p), d_j f(x_q))     =  k delta_j / ell_j
               cov(d_i f(x_p), f(x_q))     = -k delta_i / ell_i
               cov(d_i f(x_p), d_j f(x_q)) =  k ([i = j] - delta_i delta_j) / (ell_i ell_j)
    A, alpha   K + noise on the diagonal; A^-1 (rows - mean), (N,)
"""

from __future__ import annotations

import numpy as np

from sparing.kernels.compilation import inline, kernel, warm_up
from sparing.kernels.expected_log_joint import component_integrals
from sparing.kernels.fast_exp import fast_exp
from sparing.kernels.variational import warm_up_with_slopes


@inline
def _fill_block(block, k, delta, lengths):
    """The rows of p against the columns of q; the block's shape says which have derivatives."""
    n_rows, n_columns = block.shape
    block[0, 0] = k
    for j in range(1, n_columns):
        block[0, j] = k * delta[j - 1] / lengths[j - 1]
    for i in range(1, n_rows):
        slope = -delta[i - 1] / lengths[i - 1]
        block[i, 0] = k * slope
        for j in range(1, n_columns):
            block[i, j] = k * slope * delta[j - 1] / lengths[j - 1]
        if n_columns > 1:
            block[i, i] += k / (lengths[i - 1] * lengths[i - 1])


@inline
def _difference(a, b, delta):
    """Write a - b into delta and return its squared length."""
    for i in range(delta.size):
        delta[i] = a[i] - b[i]
    total = 0.0
    for i in range(delta.size):
        total += delta[i] * delta[i]
    return total


@kernel
def fill_gradient_rows(z, lengths, variance, first_row, first_point, rows):
    """Write the rows of K that belong to the points from one on, up to their diagonal block."""
    delta = np.empty(z.shape[0])
    above = first_row[first_point]
    for p in range(first_point, z.shape[1]):
        own = slice(first_row[p] - above, first_row[p + 1] - above)
        for q in range(p + 1):
            columns = slice(first_row[q], first_row[q + 1])
            distance = _difference(z[:, p], z[:, q], delta)
            _fill_block(rows[own, columns], variance * fast_exp(-0.5 * distance), delta, lengths)


@kernel
def copy_lower_to_upper(matrix):
    """Make a matrix symmetric whose lower triangle is filled."""
    for r in range(matrix.shape[0]):
        for s in range(r):
            matrix[s, r] = matrix[r, s]


@kernel
def fill_gradient_cross(queries, z, lengths, variance, first_row, covariance):
    """Write the covariance of f at the queries (m, D), over ell too, with all rows: (m, N)."""
    delta = np.empty(z.shape[0])
    for m in range(queries.shape[0]):
        for p in range(z.shape[1]):
            columns = slice(first_row[p], first_row[p + 1])
            distance = _difference(queries[m], z[:, p], delta)
            block = covariance[m : m + 1, columns]
            _fill_block(block, variance * fast_exp(-0.5 * distance), delta, lengths)


@kernel
def fill_gradient_covariance_gradient(z, lengths, variance, first_row, matrix, alpha, gradient):
    """Write d LML / d [log ell_1..D, log sigma_f] into gradient, (D + 1,).

    With W = alpha alpha^T - A^-1 it is 1/2 sum W dK. sigma_f multiplies K; ell_d has
    dK = K (delta_d^2 - 2 [row along d] - 2 [column along d]) + 2 k / ell_d^2 where both are along
    d. matrix holds K above its diagonal and A^-1 on and below it.
    """
    dimension, n = z.shape
    n_rows = matrix.shape[0]
    delta = np.empty(dimension)
    products = np.zeros((n_rows, n_rows))  # W K, both triangles
    for r in range(n_rows):
        for s in range(r):
            products[r, s] = (alpha[r] * alpha[s] - matrix[r, s]) * matrix[s, r]
    for p in range(n):
        for r in range(first_row[p], first_row[p + 1]):
            own = variance
            if r > first_row[p]:
                own /= lengths[r - first_row[p] - 1] ** 2
            products[r, r] = (alpha[r] * alpha[r] - matrix[r, r]) * own
    for r in range(n_rows):
        for s in range(r):
            products[s, r] = products[r, s]
    gradient[:] = 0.0
    for p in range(n):
        start, stop = first_row[p], first_row[p + 1]
        total = 0.0
        for r in range(start, stop):
            row = products[r]
            row_total = 0.0
            for s in range(n_rows):
                row_total += row[s]
            total += row_total
            if r > start:
                gradient[r - start - 1] -= 2.0 * row_total
        gradient[dimension] += total
        for q in range(p):
            begin, end = first_row[q], first_row[q + 1]
            block_total = 0.0
            for r in range(start, stop):
                for s in range(begin, end):
                    block_total += products[r, s]
            distance = _difference(z[:, p], z[:, q], delta)
            for d in range(dimension):
                gradient[d] += delta[d] * delta[d] * block_total
            if stop - start > 1 and end - begin > 1:
                k = variance * fast_exp(-0.5 * distance)
                for d in range(dimension):
                    r, s = start + 1 + d, begin + 1 + d
                    weight = alpha[r] * alpha[s] - matrix[r, s]
                    gradient[d] += 2.0 * weight * k / lengths[d] ** 2
        for r in range(start + 1, stop):
            d = r - start - 1
            weight = alpha[r] * alpha[r] - matrix[r, r]
            gradient[d] += weight * variance / lengths[d] ** 2


@warm_up
def _warm_up() -> None:
    _warm_up_slopes()
    z, lengths, first_row = np.zeros((1, 2)), np.ones(1), np.array([0, 2, 3], dtype=np.int64)
    square = np.eye(3)
    fill_gradient_rows(z, lengths, 1.0, first_row, 0, square)
    copy_lower_to_upper(square)
    fill_gradient_cross(np.zeros((2, 1)), z, lengths, 1.0, first_row, np.zeros((2, 3)))
    fill_gradient_covariance_gradient(z, lengths, 1.0, first_row, square, np.zeros(3), np.zeros(2))


def _warm_up_slopes() -> None:
    """The kernels of the variational fit, of an expansion with slopes."""
    square, slopes = np.zeros((1, 1)), np.zeros((1, 1, 1))
    component_integrals(square, np.ones(1), np.ones(1), square, square, slopes, np.zeros((1, 6)))
    warm_up_with_slopes()
