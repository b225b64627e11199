"""Kernels of the Gaussian process: covariance matrices and the gradient of the likelihood.

Notation
    z        inputs divided by their length scales, x / ell. Training inputs come transposed,
             (D, n), so that the innermost loops run along contiguous points and vectorise
    variance sigma_f^2, the covariance at zero distance (Eq. S10)
    K        sigma_f^2 exp(-|z_p - z_q|^2 / 2), (n, n)
    A        K + noise on the diagonal, (n, n)
    alpha    A^-1 (y - m), (n,)
"""

from __future__ import annotations

import numpy as np

from sparing.kernels.compilation import kernel, warm_up
from sparing.kernels.fast_exp import fast_exp


@kernel
def fill_gram_matrix(z, variance, gram):
    """Write K (Eq. S10) into gram, both triangles."""
    dimension, n = z.shape
    for p in range(n):
        row = gram[p]
        row[: p + 1] = 0.0
        for d in range(dimension):
            z_d = z[d]
            z_dp = z_d[p]
            for q in range(p + 1):
                difference = z_d[q] - z_dp
                row[q] += difference * difference
        for q in range(p + 1):
            row[q] = variance * fast_exp(-0.5 * row[q])
        for q in range(p):
            gram[q, p] = row[q]


@kernel
def fill_cross_covariance(queries, z, variance, covariance):
    """Write kappa(query, x_p) into covariance, (m, n); queries are scaled by ell too, (m, D)."""
    dimension, n = z.shape
    for i in range(queries.shape[0]):
        row = covariance[i]
        row[:] = 0.0
        for d in range(dimension):
            z_d = z[d]
            query_d = queries[i, d]
            for p in range(n):
                difference = z_d[p] - query_d
                row[p] += difference * difference
        for p in range(n):
            row[p] = variance * fast_exp(-0.5 * row[p])


@kernel
def fill_covariance_gradient(z, variance, matrix, alpha, weights, gradient):
    """Write d LML / d [log ell_1..D, log sigma_f] into gradient, (D + 1,).

    d LML / d theta = 1/2 tr[(alpha alpha^T - A^-1) dK / d theta], where
    dK_pq / d log ell_d = K_pq (z_dp - z_dq)^2  and  dK / d log sigma_f = 2 K.
    matrix holds K above its diagonal and A^-1 on and below it; weights: scratch, (n,).
    """
    dimension, n = z.shape
    gradient[:] = 0.0
    for p in range(n):
        alpha_p = alpha[p]
        for q in range(p):  # each pair p > q stands for two entries, which cancels the 1/2
            weights[q] = (alpha_p * alpha[q] - matrix[p, q]) * matrix[q, p]
        total = 0.0
        for q in range(p):
            total += weights[q]
        gradient[dimension] += 2.0 * total + (alpha_p * alpha_p - matrix[p, p]) * variance
        for d in range(dimension):
            z_d = z[d]
            z_dp = z_d[p]
            total_d = 0.0
            for q in range(p):
                difference = z_d[q] - z_dp
                total_d += weights[q] * difference * difference
            gradient[d] += total_d


@warm_up
def _warm_up() -> None:
    z, square = np.zeros((1, 2)), np.eye(2)
    fill_gram_matrix(z, 1.0, square)
    fill_cross_covariance(np.zeros((2, 1)), z, 1.0, np.zeros((2, 2)))
    fill_covariance_gradient(z, 1.0, square, np.zeros(2), np.zeros(2), np.zeros(2))
