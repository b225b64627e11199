"""Moves along one coordinate against the plain evaluation of the log posterior."""

import math

import numpy as np
import pytest

from sparing.surrogate.empirical_prior import EmpiricalPrior
from sparing.surrogate.gaussian_process import TrainingSet, log_marginal_likelihood
from sparing.surrogate.layout import Layout
from sparing.surrogate.map_then_slice import log_posterior
from sparing.surrogate.map_then_slice.log_posterior import HyperparameterPosterior


def problem(dimension: int, n: int, scale: float = 1.0):
    generator = np.random.default_rng(dimension)
    inputs = generator.normal(size=(n, dimension))
    values = scale * (-(inputs**2).sum(axis=1) + np.cos(3.0 * inputs[:, 0]))
    training = TrainingSet(inputs, values, generator.uniform(0.0, 0.1, size=n))
    prior = EmpiricalPrior.paper().of(training)
    psi = prior.location + 0.3 * generator.normal(size=prior.location.size)
    return training, prior, prior.clip(psi)


def plain(training, prior, psi) -> float:
    return log_marginal_likelihood(training, psi) + prior.log_density(psi)


@pytest.mark.parametrize(("dimension", "n"), [(1, 2), (1, 12), (3, 5), (3, 40)])
def test_every_coordinate_agrees_with_the_plain_evaluation(dimension, n):
    training, prior, psi = problem(dimension, n)
    density = HyperparameterPosterior(training, prior)
    for index in range(psi.size):
        conditional = density.along(psi, index)
        for change in (0.0, -0.4, 0.7):
            moved = psi.copy()
            moved[index] += change
            if not prior.lower[index] <= moved[index] <= prior.upper[index]:
                assert conditional(moved[index]) == -math.inf
                continue
            expected = plain(training, prior, moved)
            assert conditional(moved[index]) == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_a_wide_range_of_values_costs_no_digits():
    training, prior, psi = problem(2, 30, scale=1e8)
    density = HyperparameterPosterior(training, prior)
    for index in range(psi.size):
        expected = plain(training, prior, psi)
        assert density.along(psi, index)(psi[index]) == pytest.approx(expected, rel=1e-7)


def test_outside_the_bounds_the_density_is_zero():
    training, prior, psi = problem(2, 10)
    density = HyperparameterPosterior(training, prior)
    for index in range(psi.size):
        assert density.along(psi, index)(prior.upper[index] + 1.0) == -math.inf


def test_mean_moves_factorise_once_and_notice_a_new_covariance(monkeypatch):
    training, prior, psi = problem(2, 15)
    calls = []
    original = log_posterior.factorise_covariance

    def counted(*arguments):
        calls.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(log_posterior, "factorise_covariance", counted)
    density = HyperparameterPosterior(training, prior)
    mean_coordinates = range(Layout(2).mean_maximum, psi.size)
    for index in mean_coordinates:
        density.along(psi, index)(psi[index])
    assert len(calls) == 1
    other = psi.copy()
    other[0] += 0.3
    for index in mean_coordinates:
        value = density.along(other, index)(other[index])
        assert value == pytest.approx(plain(training, prior, other), rel=1e-8)
    assert len(calls) == 2
