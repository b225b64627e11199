"""The prior of the hyperparameters: its density, and the points it looks at."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from sparing.surrogate.hyperparameters import HyperparameterPrior, high_posterior_density_set
from sparing.surrogate.training_set import TrainingSet


def some_prior() -> HyperparameterPrior:
    return HyperparameterPrior(
        location=np.array([0.5, -1.0, 2.0, 0.0, 0.0, 1.0]),
        scale=np.array([1.0, np.inf, 0.3, 2.0, np.inf, np.inf]),
        lower=np.full(6, -5.0),
        upper=np.full(6, 5.0),
    )


def test_log_density_is_student_within_the_bounds():
    prior = some_prior()
    psi = np.array([1.0, 0.3, 1.5, -2.0, 4.0, 0.0])
    expected = sum(stats.t(3, prior.location[i], prior.scale[i]).logpdf(psi[i]) for i in (0, 2, 3))
    assert prior.log_density(psi) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("index", range(6))
@pytest.mark.parametrize("value", [-5.001, 5.001, np.nan])
def test_log_density_is_minus_infinity_outside(index, value):
    psi = np.zeros(6)
    psi[index] = value
    assert some_prior().log_density(psi) == -math.inf
    assert some_prior().coordinate_log_density(index, value) == -math.inf


def test_gradient_by_finite_differences():
    prior = some_prior()
    psi = np.array([1.0, 0.3, 1.5, -2.0, 4.0, 0.0])
    numeric = [
        (prior.log_density(psi + step) - prior.log_density(psi - step)) / 2e-6
        for step in 1e-6 * np.eye(6)
    ]
    np.testing.assert_allclose(prior.gradient(psi), numeric, atol=1e-8)


@pytest.mark.parametrize("index", range(6))
def test_coordinate_log_density_differs_from_the_whole_by_a_constant(index):
    prior = some_prior()
    differences = []
    for value in (-1.0, 0.5, 3.0):
        psi = np.ones(6)
        psi[index] = value
        whole = prior.log_density(psi)
        differences.append(whole - prior.coordinate_log_density(index, value))
    np.testing.assert_allclose(differences, differences[0], rtol=1e-12)


def test_shifting_moves_only_the_mean_maximum():
    prior = some_prior()
    psi = np.array([1.0, 0.3, 1.5, -2.0, 4.0, 0.0])
    moved = psi.copy()
    moved[3] -= 7.0
    assert prior.shifted(7.0).log_density(moved) == pytest.approx(prior.log_density(psi))


def test_some_entries_have_a_prior_of_their_own():
    prior = some_prior()
    psi = np.array([1.0, 0.3, 1.5, -2.0, 4.0, 0.0])
    expected = sum(stats.t(3, prior.location[i], prior.scale[i]).logpdf(psi[i]) for i in (0, 2))
    for entries in (np.array([0, 1, 2]), np.array([2, 0, 5])):
        some = prior.of_entries(entries)
        assert some.log_density(psi[entries]) == pytest.approx(expected, rel=1e-12)
        np.testing.assert_array_equal(some.gradient(psi[entries]), prior.gradient(psi)[entries])
    first = prior.of_entries(np.arange(3))
    assert first.log_density(np.array([1.0, 5.1, 1.5])) == -math.inf


def test_high_posterior_density_set_is_best_first_and_never_tiny():
    training = TrainingSet(np.arange(10.0)[:, None], np.array([5, 1, 9, 3, 7, 2, 8, 0, 6, 4.0]))
    inputs, values = high_posterior_density_set(training, 0.5)
    np.testing.assert_array_equal(values, [9, 8, 7, 6, 5])
    np.testing.assert_array_equal(inputs[:, 0], [2, 6, 4, 8, 0])
    small = TrainingSet(np.zeros((6, 4)), np.arange(6.0))
    assert len(high_posterior_density_set(small, 0.1)[1]) == 5
    single = TrainingSet(np.zeros((1, 4)), np.zeros(1))
    assert len(high_posterior_density_set(single, 0.8)[1]) == 1


def test_bad_arguments_are_errors():
    prior = some_prior()
    with pytest.raises(ValueError, match="below upper"):
        dataclasses.replace(prior, lower=prior.upper)
    with pytest.raises(ValueError, match="alike"):
        dataclasses.replace(prior, lower=prior.lower[:3])
    with pytest.raises(ValueError, match="finite"):
        dataclasses.replace(prior, upper=np.full(6, np.inf))
