"""Closed integrals against numerical quadrature, coordinate by coordinate."""

import numpy as np
import pytest
from benchmarks.quadrature.integrals import (
    chain_mean,
    kernel_double_mean,
    kernel_mean,
    product_mean,
)
from scipy.integrate import dblquad, quad

A = np.array([[0.4, -1.3], [1.7, 0.2]])
B = np.array([[-0.6, 0.9], [0.1, 2.1], [0.4, -1.3]])
P = np.array([4.0, 0.6])
Q = np.array([0.3, 9.0])
LINK = np.array([1.5, 0.2])


def normal(z):
    return np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)


def bump(z, centre, precision):
    return np.exp(-0.5 * precision * (z - centre) ** 2)


def single(integrand, *arguments):
    """The product over coordinates of one-dimensional integrals; arguments are (D,) each."""
    return np.prod(
        [
            quad(lambda z, *numbers: integrand(z, *numbers) * normal(z), -9, 9, numbers)[0]
            for numbers in zip(*arguments, strict=True)
        ]
    )


def double(integrand, *arguments):
    def weighted(y, x, *numbers):
        return integrand(x, y, *numbers) * normal(x) * normal(y)

    return np.prod(
        [
            dblquad(weighted, -8, 8, -8, 8, numbers, epsabs=1e-10)[0]
            for numbers in zip(*arguments, strict=True)
        ]
    )


def test_kernel_mean():
    expected = [single(bump, a, P) for a in A]
    np.testing.assert_allclose(kernel_mean(A, P), expected, rtol=1e-8)


def test_kernel_double_mean():
    assert kernel_double_mean(P) == pytest.approx(double(bump, P), rel=1e-7)


def test_product_mean():
    def integrand(z, a, p, b, q):
        return bump(z, a, p) * bump(z, b, q)

    expected = [[single(integrand, a, P, b, Q) for b in B] for a in A]
    np.testing.assert_allclose(product_mean(A, P, B, Q), expected, rtol=1e-8)


@pytest.mark.parametrize("q", [Q, np.zeros(2)], ids=["two kernels", "a kernel and a constant"])
def test_chain_mean(q):
    def integrand(x, y, a, p, link, b, q):
        return bump(x, a, p) * bump(x, y, link) * bump(y, b, q)

    expected = [[double(integrand, a, P, LINK, b, q) for b in B[:2]] for a in A]
    np.testing.assert_allclose(chain_mean(A, P, LINK, B[:2], q), expected, rtol=1e-7)


def test_narrow_kernels():
    """A kernel far narrower than the prior takes the prior's density at its centre."""
    narrow = np.full(2, 1e8)
    volume = 2 * np.pi / 1e8
    density = np.prod(normal(A), axis=1)
    np.testing.assert_allclose(kernel_mean(A, narrow), volume * density, rtol=1e-7)
    same = np.diag(product_mean(A, narrow, A, narrow))
    np.testing.assert_allclose(same, volume / 2 * density, rtol=1e-7)
