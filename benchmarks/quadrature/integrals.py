"""Integrals of squared exponential kernels against the standard normal, in closed form.

Each is a product of one- or two-dimensional normal integrals, one per coordinate. Eight digits are
left for kernels 1e4 times narrower than pi.

Notation (D dimensions)
    pi(z)      N(z; 0, I), the prior in prior units
    e_p(z, a)  exp(-1/2 sum_d p_d (z_d - a_d)^2), a kernel of unit height
    p          precisions, (D,): 1 / ell^2 of a kernel; 0 makes the kernel a constant, one
    a, b       centres, (n, D) and (m, D)
"""

from __future__ import annotations

import numpy as np

from benchmarks.problems.base import Array


def kernel_mean(a: Array, p: Array) -> Array:
    """The integral of e_p(z, a) pi(z) dz for each centre, (n,)."""
    shrunk = p / (1.0 + p)
    return np.exp(-0.5 * (a * a) @ shrunk - 0.5 * np.log1p(p).sum())


def kernel_double_mean(p: Array) -> float:
    """The integral of e_p(z, z') pi(z) pi(z') dz dz'."""
    return float(np.exp(-0.5 * np.log1p(2.0 * p).sum()))


def product_mean(a: Array, p: Array, b: Array, q: Array) -> Array:
    """The integral of e_p(z, a) e_q(z, b) pi(z) dz for each pair of centres, (n, m)."""
    total = 1.0 + p + q
    exponent = _quadratic_form(a, p * (1.0 + q) / total, b, q * (1.0 + p) / total, p * q / total)
    return np.exp(exponent - 0.5 * np.log(total).sum())


def chain_mean(a: Array, p: Array, link: Array, b: Array, q: Array) -> Array:
    """The integral of e_p(z, a) e_link(z, z') e_q(z', b) pi(z) pi(z') dz dz', (n, m).

    In each coordinate (z, z') has the precision matrix [[1 + p + r, -r], [-r, 1 + q + r]] with
    r = link, and the linear terms (p a, q b).
    """
    determinant = (1.0 + p) * (1.0 + q) + link * (2.0 + p + q)
    exponent = _quadratic_form(
        a,
        p * ((1.0 + q) * (1.0 + link) + link) / determinant,
        b,
        q * ((1.0 + p) * (1.0 + link) + link) / determinant,
        p * q * link / determinant,
    )
    return np.exp(exponent - 0.5 * np.log(determinant).sum())


def _quadratic_form(a: Array, own_a: Array, b: Array, own_b: Array, cross: Array) -> Array:
    """-1/2 (sum own_a a^2 + sum own_b b^2) + sum cross a b for each pair, (n, m)."""
    squares = ((a * a) @ own_a)[:, None] + (b * b) @ own_b
    return (a * cross) @ b.T - 0.5 * squares
