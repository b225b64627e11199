"""Acquisition functions against their definitions (Section 3.3, S2.1)."""

import numpy as np
import pytest
from sparing.acquisition.variance_reduction import IntegratedVarianceReduction

from sparing.acquisition.criteria import (
    UncertaintyRule,
    UncertaintySampling,
    log_prospective,
    log_regularisation,
    log_uncertainty,
)
from sparing.surrogate.gaussian_process import (
    TrainingSet,
    condition,
)
from sparing.variational.mixture import GaussianMixture


def surrogate(n_samples: int = 3):
    generator = np.random.default_rng(1)
    inputs = generator.normal(size=(12, 2))
    values = -0.5 * np.sum(inputs**2, axis=1) + 0.3 * np.sin(3 * inputs[:, 0])
    psi = np.array([-0.3, 0.1, 0.2, np.log(1e-3), 0.1, 0.0, 0.0, 0.2, 0.3])
    samples = psi + 0.1 * generator.normal(size=(n_samples, len(psi)))
    return condition(TrainingSet(inputs, values), samples)


MIXTURE = GaussianMixture(
    np.array([0.4, 0.6]),
    np.array([[0.0, 0.5], [-0.4, 0.1]]),
    np.array([0.6, 0.9]),
    np.array([1.0, 0.8]),
)
POINTS = np.random.default_rng(2).normal(size=(20, 2))


def test_a_us_and_a_pro_are_the_products_they_are_defined_as():
    gp = surrogate()
    mean, variance = gp.predict(POINTS)
    q = MIXTURE.density(POINTS)
    a_us = UncertaintySampling(UncertaintyRule.VANILLA, gp, MIXTURE, 0.0)(POINTS)
    a_pro = UncertaintySampling(UncertaintyRule.PROSPECTIVE, gp, MIXTURE, 0.0)(POINTS)
    np.testing.assert_allclose(np.exp(a_us), variance * q**2, rtol=1e-10)
    np.testing.assert_allclose(np.exp(a_pro), variance * q * np.exp(mean), rtol=1e-10)
    np.testing.assert_allclose(a_us, log_uncertainty(variance, np.log(q)), rtol=1e-10)
    np.testing.assert_allclose(a_pro, log_prospective(variance, np.log(q), mean), rtol=1e-10)


def test_regularisation_is_eq_s22():
    variance = np.array([1e-6, 5e-5, 1e-4, 1.0])
    factor = np.exp(log_regularisation(variance, 1e-4))
    np.testing.assert_allclose(factor, [np.exp(-99.0), np.exp(-1.0), 1.0, 1.0])


def test_training_points_are_never_chosen_again():
    gp = surrogate(n_samples=1)
    criterion = UncertaintySampling(UncertaintyRule.PROSPECTIVE, gp, MIXTURE, 1e-4)
    at_data = criterion(gp.training.inputs)
    assert np.max(at_data) < np.max(criterion(POINTS)) - 50.0


def test_zero_variance_gives_a_finite_or_minus_infinite_value_and_no_warning():
    value = log_regularisation(np.array([0.0]), 1e-4)
    assert value[0] < -1e100


@pytest.mark.parametrize("n_samples", [1, 3])
def test_variance_reduction_is_the_drop_after_really_adding_the_point(n_samples):
    gp = surrogate(n_samples)
    references = np.random.default_rng(3).normal(size=(15, 2))
    _, before = gp.predict_each(references)
    values = IntegratedVarianceReduction.create(gp, references)(POINTS)
    for x, value in zip(POINTS[:6], values[:6], strict=True):
        enlarged = condition(gp.training.with_point(x, 123.0), gp.hyperparameters)
        _, after = enlarged.predict_each(references)
        assert np.exp(value) == pytest.approx(np.mean(before - after), rel=1e-5)


def test_variance_reduction_of_several_samples_is_their_average():
    gp = surrogate()
    references = np.random.default_rng(3).normal(size=(15, 2))
    together = IntegratedVarianceReduction.create(gp, references)(POINTS)
    each = [
        IntegratedVarianceReduction.create(gp.subset(np.array([s])), references)(POINTS)
        for s in range(3)
    ]
    np.testing.assert_allclose(np.exp(together), np.mean(np.exp(each), axis=0), rtol=1e-10)


def test_a_known_point_teaches_nothing():
    gp = surrogate()
    references = np.random.default_rng(3).normal(size=(15, 2))
    criterion = IntegratedVarianceReduction.create(gp, references)
    assert np.max(criterion(gp.training.inputs)) < np.max(criterion(POINTS)) - 5.0
