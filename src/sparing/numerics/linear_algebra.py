"""Dense linear algebra on symmetric positive definite matrices.

Notation
    A        symmetric matrix, (n, n)
    L        lower Cholesky factor, L L^T = A + jitter I, (n, n), C-contiguous; nothing here
             reads what lies above its diagonal
    b        right-hand side(s): a vector (n,), or one per row (m, n)

LAPACK is column-major. A C-contiguous lower triangle is, without a copy, a column-major upper
triangle U = L^T, so every call below asks LAPACK for "upper" and right-hand sides are kept one
per row. Factors and inverses are computed in place: at n = 600 a second (n, n) array per call
costs as much in page faults as the factorisation itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from sparing.numerics.arrays import Array

dsyrk, dtrmm, dtrsm, dtrsv = get_blas_funcs(("syrk", "trmm", "trsm", "trsv"), dtype=np.float64)
dgeqrf, dpotrf, dpotri, dtrtri = get_lapack_funcs(
    ("geqrf", "potrf", "potri", "trtri"), dtype=np.float64
)

# First jitter relative to the mean diagonal, and its growth: 1e-12 sits well above the rounding
# error of a factorisation (n * 2e-16) and well below any noise variance of practical interest.
FIRST_JITTER = 1e-12
JITTER_GROWTH = 10.0
MACHINE_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class CholeskyFactor:
    """L on and below the diagonal of lower, L L^T = A + jitter I; jitter is mostly 0."""

    lower: Array
    jitter: float


def robust_cholesky(matrix: Array) -> CholeskyFactor:
    """Factorise A, adding the least jitter in a geometric ladder that makes it succeed.

    matrix is symmetric with both triangles filled and C-contiguous. It is overwritten: the factor
    takes its diagonal and what lies below, while what lies above stays as given.

    Raises ValueError when A holds NaN or infinity; otherwise succeeds, since any finite symmetric
    matrix becomes positive definite once the jitter exceeds its norm.
    """
    diagonal = np.diagonal(matrix).copy()
    if _factorise_in_place(matrix):
        return CholeskyFactor(matrix, 0.0)
    below = np.tril_indices(matrix.shape[0], -1)
    if not (np.isfinite(diagonal).all() and np.isfinite(matrix.T[below]).all()):
        raise ValueError("cannot factorise a matrix that holds NaN or infinite entries")
    jitter = FIRST_JITTER * (float(np.mean(np.abs(diagonal))) or 1.0)
    while True:
        matrix[below] = matrix.T[below]
        np.fill_diagonal(matrix, diagonal + jitter)
        if _factorise_in_place(matrix):
            return CholeskyFactor(matrix, jitter)
        jitter *= JITTER_GROWTH


def _factorise_in_place(matrix: Array) -> bool:
    """Replace the lower triangle by L; False when a pivot is not positive."""
    _, info = dpotrf(matrix.T, lower=0, clean=0, overwrite_a=1)
    # Some LAPACKs let NaN pass as a pivot; it then reaches the diagonal.
    return info == 0 and math.isfinite(matrix.trace())


def border_cholesky(lower: Array, column: Array, diagonal: float) -> tuple[Array, float] | None:
    """The last row of the factor of A bordered by one point: its first n entries and its pivot.

    column: covariances of the new point with the old ones, (n,). O(n^2). Returns None when the
    Schur complement is not positive beyond rounding, that is when the bordered A is singular.
    """
    row = solve_lower(lower, column)
    schur_complement = diagonal - float(row @ row)
    if not schur_complement > (row.size + 1) * MACHINE_EPSILON * diagonal:
        return None
    return row, math.sqrt(schur_complement)


def border_cholesky_rows(lower: Array, columns: Array, corner: Array) -> tuple[Array, Array] | None:
    """The last k rows of the factor of A bordered by k more: (k, n), and their own factor (k, k).

    columns: covariances of the new rows with the old ones, (k, n); corner: with each other. None as
    in `border_cholesky`.
    """
    rows = solve_lower_rows(lower, columns.copy())
    complement = corner - rows @ rows.T
    smallest = (lower.shape[0] + len(rows)) * MACHINE_EPSILON * np.diagonal(corner)
    own = complement.copy()
    if not _factorise_in_place(own) or (np.diagonal(own) ** 2 <= smallest).any():
        return None
    return rows, np.tril(own)


def solve_lower(lower: Array, vector: Array) -> Array:
    """L^-1 b for one vector."""
    return dtrsv(lower.T, vector, lower=0, trans=1)


def solve_lower_transposed(lower: Array, vector: Array) -> Array:
    """L^-T b for one vector."""
    return dtrsv(lower.T, vector, lower=0, trans=0)


def solve_lower_rows(lower: Array, rows: Array) -> Array:
    """L^-1 b for every row b of an (m, n) C-contiguous array, overwritten with the result."""
    return dtrsm(1.0, lower.T, rows.T, side=0, lower=0, trans_a=1, overwrite_b=1).T


def solve_lower_transposed_rows(lower: Array, rows: Array) -> Array:
    """L^-T b for every row b of an (m, n) C-contiguous array, overwritten with the result."""
    return dtrsm(1.0, lower.T, rows.T, side=0, lower=0, trans_a=0, overwrite_b=1).T


def add_outer_products(matrix: Array, factor: float, rows: Array) -> None:
    """Add factor * sum_i b_i b_i^T over the rows b, (m, n), to the lower triangle of matrix."""
    dsyrk(factor, rows.T, beta=1.0, c=matrix.T, lower=0, overwrite_c=1)


def triangle_of_rows(rows: Array) -> Array:
    """R of the QR decomposition of an (m, k) array, m >= k: (k, k), C-contiguous, zeros below."""
    k = rows.shape[1]
    packed = dgeqrf(rows)[0]
    return np.triu(packed[:k])


def invert_lower(lower: Array) -> Array:
    """L^-1, (n, n), C-contiguous lower triangle; the triangle above is copied as given."""
    inverse, info = dtrtri(lower.T, lower=0)
    if info != 0:
        raise ValueError("the Cholesky factor has a zero on its diagonal")
    return inverse.T


def multiply_lower_rows(lower: Array, rows: Array) -> Array:
    """T b for a lower triangular T and every row b of an (m, n) C-contiguous array, overwritten."""
    return dtrmm(1.0, lower.T, rows.T, side=0, lower=0, trans_a=1, overwrite_b=1).T


def solve_cholesky(lower: Array, vector: Array) -> Array:
    """(L L^T)^-1 b for one vector."""
    return solve_lower_transposed(lower, solve_lower(lower, vector))


def invert_from_cholesky(lower: Array) -> None:
    """Replace L by the lower triangle of (L L^T)^-1; what lies above the diagonal stays."""
    _, info = dpotri(lower.T, lower=0, overwrite_c=1)
    if info != 0:
        raise ValueError("the Cholesky factor has a zero on its diagonal")


def log_determinant_from_cholesky(lower: Array) -> float:
    """Log |L L^T|."""
    return 2.0 * float(np.log(np.diagonal(lower)).sum())
