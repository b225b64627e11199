"""Factorisations and solves against plain NumPy, and matrices that are not positive definite."""

import numpy as np
import pytest

from sparing.numerics.linear_algebra import (
    add_outer_products,
    border_cholesky,
    border_cholesky_rows,
    invert_from_cholesky,
    invert_lower,
    log_determinant_from_cholesky,
    multiply_lower_rows,
    robust_cholesky,
    solve_cholesky,
    solve_lower,
    solve_lower_rows,
    solve_lower_transposed,
    solve_lower_transposed_rows,
    triangle_of_rows,
)


def positive_definite(n: int, seed: int = 0) -> np.ndarray:
    root = np.random.default_rng(seed).normal(size=(n, n))
    return root @ root.T + 0.1 * np.eye(n)


@pytest.mark.parametrize("n", [1, 2, 17])
def test_factor_of_a_positive_definite_matrix(n):
    matrix = positive_definite(n)
    factor = robust_cholesky(matrix.copy())
    assert factor.jitter == 0.0
    np.testing.assert_allclose(np.tril(factor.lower), np.linalg.cholesky(matrix), rtol=1e-10)


def test_what_lies_above_the_diagonal_survives():
    matrix = positive_definite(6)
    work = matrix.copy()
    factor = robust_cholesky(work)
    assert np.shares_memory(factor.lower, work)
    np.testing.assert_array_equal(np.triu(work, 1), np.triu(matrix, 1))
    invert_from_cholesky(work)
    np.testing.assert_array_equal(np.triu(work, 1), np.triu(matrix, 1))
    np.testing.assert_allclose(np.tril(work), np.tril(np.linalg.inv(matrix)), atol=1e-10)


@pytest.mark.parametrize(
    ("matrix", "largest"),
    [
        (np.ones((5, 5)), 1e-10),  # exact duplicates
        (np.zeros((3, 3)), 1e-10),
        (1e10 * np.ones((40, 40)), 1.0),
        (-np.eye(4), 20.0),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), 20.0),
        (1e-300 * np.ones((3, 3)), 1e-290),
    ],
)
def test_jitter_is_added_recorded_and_sufficient(matrix, largest):
    factor = robust_cholesky(matrix.copy())
    assert 0.0 < factor.jitter <= largest
    lower = np.tril(factor.lower)
    expected = matrix + factor.jitter * np.eye(len(matrix))
    np.testing.assert_allclose(lower @ lower.T, expected, rtol=1e-9, atol=1e-9 * factor.jitter)


def test_the_least_sufficient_jitter_of_the_ladder_is_used():
    matrix = np.array([[1.0, 1.0 + 2e-6], [1.0 + 2e-6, 1.0]])  # smallest eigenvalue -2e-6
    assert robust_cholesky(matrix).jitter == pytest.approx(1e-5, rel=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0), (2, 2), (2, 0)])
def test_non_finite_entries_are_an_error(bad, place):
    matrix = positive_definite(4)
    matrix[place] = matrix[place[::-1]] = bad
    with pytest.raises(ValueError, match="NaN or infinite"):
        robust_cholesky(matrix)


def test_solves_and_products():
    generator = np.random.default_rng(1)
    matrix = positive_definite(9)
    lower = robust_cholesky(matrix.copy()).lower  # what lies above the diagonal must not matter
    clean = np.tril(lower)
    vector, rows = generator.normal(size=9), generator.normal(size=(5, 9))
    np.testing.assert_allclose(solve_lower(lower, vector), np.linalg.solve(clean, vector))
    np.testing.assert_allclose(
        solve_lower_transposed(lower, vector), np.linalg.solve(clean.T, vector)
    )
    np.testing.assert_allclose(solve_cholesky(lower, vector), np.linalg.solve(matrix, vector))
    expected = np.linalg.solve(clean, rows.T).T
    np.testing.assert_allclose(solve_lower_rows(lower, rows.copy()), expected)
    np.testing.assert_allclose(
        solve_lower_transposed_rows(lower, rows.copy()), np.linalg.solve(clean.T, rows.T).T
    )
    np.testing.assert_allclose(multiply_lower_rows(invert_lower(lower), rows.copy()), expected)
    np.testing.assert_allclose(
        log_determinant_from_cholesky(lower), np.linalg.slogdet(matrix).logabsdet
    )


def test_row_solves_overwrite_their_argument_without_a_copy():
    rows = np.ones((3, 4))
    assert np.shares_memory(solve_lower_rows(np.eye(4), rows), rows)
    assert np.shares_memory(solve_lower_transposed_rows(np.eye(4), rows), rows)
    assert np.shares_memory(multiply_lower_rows(np.eye(4), rows), rows)


def test_outer_products_are_added_below_the_diagonal_only():
    generator = np.random.default_rng(2)
    matrix, rows = generator.normal(size=(6, 6)), generator.normal(size=(3, 6))
    work = matrix.copy()
    add_outer_products(work, -0.5, rows)
    expected = matrix - 0.5 * rows.T @ rows
    np.testing.assert_allclose(np.tril(work), np.tril(expected), rtol=1e-12)
    np.testing.assert_array_equal(np.triu(work, 1), np.triu(matrix, 1))


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (40, 7)])
def test_triangle_of_rows_has_their_inner_products(shape):
    rows = np.random.default_rng(3).normal(size=shape)
    before = rows.copy()
    triangle = triangle_of_rows(rows)
    np.testing.assert_array_equal(rows, before)
    assert triangle.flags.c_contiguous
    np.testing.assert_array_equal(np.tril(triangle, -1), 0.0)
    np.testing.assert_allclose(triangle.T @ triangle, rows.T @ rows, atol=1e-12)


def test_a_singular_factor_cannot_be_inverted():
    with pytest.raises(ValueError, match="zero on its diagonal"):
        invert_from_cholesky(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="zero on its diagonal"):
        invert_lower(np.zeros((2, 2)))


def test_border_agrees_with_a_fresh_factor():
    matrix = positive_definite(8)
    lower = np.linalg.cholesky(matrix[:7, :7])
    border = border_cholesky(lower, matrix[7, :7].copy(), matrix[7, 7])
    assert border is not None
    row, pivot = border
    np.testing.assert_allclose(np.append(row, pivot), np.linalg.cholesky(matrix)[7], rtol=1e-9)


def test_border_refuses_a_duplicate():
    lower = np.linalg.cholesky(np.array([[2.0, 0.3], [0.3, 1.0]]))
    assert border_cholesky(lower, np.array([2.0, 0.3]), 2.0) is None
    assert border_cholesky(lower, np.array([2.0, 0.3]), 2.0 + 1e-10) is not None


@pytest.mark.parametrize("k", [1, 3])
def test_a_border_of_several_rows_agrees_with_a_fresh_factor(k):
    matrix = positive_definite(8)
    n = 8 - k
    columns, corner = matrix[n:, :n].copy(), matrix[n:, n:].copy()
    border = border_cholesky_rows(np.linalg.cholesky(matrix[:n, :n]), columns, corner)
    assert border is not None
    np.testing.assert_allclose(np.hstack(border), np.linalg.cholesky(matrix)[n:], atol=1e-9)
    np.testing.assert_array_equal(columns, matrix[n:, :n])  # what was given is left alone
    np.testing.assert_array_equal(corner, matrix[n:, n:])


def test_a_border_of_several_rows_refuses_a_duplicate():
    matrix = np.array([[2.0, 0.3], [0.3, 1.0]])
    lower = np.linalg.cholesky(matrix)
    assert border_cholesky_rows(lower, matrix, matrix) is None
    assert border_cholesky_rows(lower, matrix, matrix + 1e-10 * np.eye(2)) is not None
    columns, corner = np.array([[0.1, 0.2], [0.1, 0.2]]), np.ones((2, 2))  # two rows alike
    assert border_cholesky_rows(lower, columns, corner) is None
    close = np.diag([1.0 + 4.5e-16, 1.0])  # what is left of its first entry is rounding
    assert border_cholesky_rows(np.eye(1), np.array([[1.0], [0.0]]), close) is None
    assert border_cholesky_rows(np.eye(1), np.array([[0.9], [0.0]]), close) is not None
