"""The vectorising exponential against the C library's."""

import numpy as np
from numba import njit

from sparing.kernels.compilation import SAFE_FAST_MATH
from sparing.kernels.fast_exp import fast_exp


@njit(fastmath=SAFE_FAST_MATH, error_model="numpy")  # as kernels are: it is inlined into them
def apply(values, out):
    for i in range(values.size):
        out[i] = fast_exp(values[i])


def exponentials(values) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    out = np.empty_like(values)
    apply(values, out)
    return out


def test_relative_error_over_the_whole_range():
    values = np.concatenate([np.linspace(-700.0, 709.0, 200_001), np.linspace(-1.0, 1.0, 20_001)])
    exact = np.exp(values)
    error = np.abs(exponentials(values) / exact - 1.0)
    assert (error < 4e-16 * (1.0 + np.abs(values))).all()
    assert error.max() > 0.0  # the comparison is not of a thing with itself


def test_special_values():
    """In every lane of the vector code and in the scalar remainder: hence 67 copies."""
    specials = [0.0, -0.0, -np.inf, -701.0, -1e300, np.nan]
    out = exponentials(np.tile(specials, 67)).reshape(67, 6)
    np.testing.assert_array_equal(out[:, :5], np.tile([1.0, 1.0, 0.0, 0.0, 0.0], (67, 1)))
    assert np.isnan(out[:, 5]).all()


def test_large_arguments_saturate():
    np.testing.assert_allclose(exponentials([709.0, 800.0, np.inf]), np.exp(709.0), rtol=1e-12)
