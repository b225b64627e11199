"""Acquisition functions against their definitions (Section 3.3, S2.1)."""

import numpy as np

from sparing.acquisition.criteria import (
    log_positive,
    log_prospective,
    log_regularisation,
    log_uncertainty,
)

GENERATOR = np.random.default_rng(2)
VARIANCE, Q = GENERATOR.uniform(0.1, 2.0, size=(2, 20))
MEAN = GENERATOR.normal(size=20)


def test_a_us_and_a_pro_are_the_products_they_are_defined_as():
    a_us = log_uncertainty(VARIANCE, np.log(Q))
    a_pro = log_prospective(VARIANCE, np.log(Q), MEAN)
    np.testing.assert_allclose(np.exp(a_us), VARIANCE * Q**2, rtol=1e-10)
    np.testing.assert_allclose(np.exp(a_pro), VARIANCE * Q * np.exp(MEAN), rtol=1e-10)


def test_regularisation_is_eq_s22():
    variance = np.array([1e-6, 5e-5, 1e-4, 1.0])
    factor = np.exp(log_regularisation(variance, 1e-4))
    np.testing.assert_allclose(factor, [np.exp(-99.0), np.exp(-1.0), 1.0, 1.0])


def test_zero_variance_gives_a_finite_or_minus_infinite_value_and_no_warning():
    value = log_regularisation(np.array([0.0]), 1e-4)
    assert value[0] < -1e100


def test_zero_has_a_logarithm_without_a_warning():
    np.testing.assert_array_equal(log_positive(np.array([1.0, np.e])), [0.0, 1.0])
    assert -1e3 < log_positive(np.array([0.0]))[0] < -700.0
