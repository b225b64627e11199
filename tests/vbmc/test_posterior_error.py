"""The expected error of the posterior against the gsKL of functions drawn by brute force."""

import math

import numpy as np
import pytest

from sparing.surrogate.gaussian_process import TrainingSet, condition
from sparing.variational.divergence import gaussianised_symmetric_kl
from sparing.variational.mixture import GaussianMixture
from sparing.vbmc.posterior_error import ExpectedError, Untested

Q = GaussianMixture(np.ones(1), np.zeros((1, 1)), np.ones(1), np.ones(1))


def surrogate(n_points: int):
    inputs = np.linspace(-3.0, 3.0, n_points)[:, None]
    psi = np.array([np.log(0.8), np.log(0.7), np.log(1e-3), 0.0, 0.0, 0.0])
    return condition(TrainingSet(inputs, -0.5 * inputs[:, 0] ** 2), psi[None, :])


def grid_error(gp, inflation):
    """Median gsKL over functions drawn on a grid."""
    grid = np.linspace(-5.0, 5.0, 201)[:, None]
    mean, _ = gp.predict(grid)
    covariance = inflation * gp.covariance(grid, grid)[0] + 1e-9 * np.eye(201)
    functions = np.random.default_rng(1).multivariate_normal(mean, covariance, size=2000)

    def moments(values):
        weights = np.exp(values - values.max())
        weights /= weights.sum()
        centre = weights @ grid
        return centre, ((grid - centre).T * weights) @ (grid - centre)

    centre = moments(mean)
    return np.median([gaussianised_symmetric_kl(*centre, *moments(f)) for f in functions])


@pytest.mark.parametrize(("n_points", "inflation"), [(4, 1.0), (6, 1.0), (6, 3.0)])
def test_agrees_with_functions_drawn_on_a_grid(n_points, inflation):
    gp = surrogate(n_points)
    strategy = ExpectedError(n_points=400, n_functions=400)
    error = strategy.estimate(Q, gp, inflation, np.random.default_rng(2))
    assert error == pytest.approx(grid_error(gp, inflation), rel=0.3)


def test_falls_with_the_data_and_grows_with_the_inflation():
    def error(n_points, inflation):
        generator = np.random.default_rng(3)
        return ExpectedError().estimate(Q, surrogate(n_points), inflation, generator)

    assert error(4, 1.0) > 3.0 * error(8, 1.0)
    assert error(6, 4.0) > 2.0 * error(6, 1.0)


def test_the_error_is_small_when_the_last_estimates_are_on_average():
    strategy = ExpectedError(tolerance=0.02, n_iterations=2)
    assert strategy.limit(3) == pytest.approx(0.06)
    assert strategy.recent([9.0, 0.03, 0.07]) == pytest.approx(0.05)
    assert strategy.is_small([9.0, 0.03, 0.07], 3)
    assert not strategy.is_small([9.0, 0.03, 0.07], 2)
    assert not strategy.is_small([0.0, math.nan, 0.001], 3)  # during the warm-up there is none


def test_the_paper_does_not_test_the_error():
    untested = Untested()
    assert math.isnan(untested.estimate(Q, surrogate(4), 1.0, np.random.default_rng(1)))
    assert math.isnan(untested.recent([1.0]))
    assert math.isnan(untested.limit(2))
    assert untested.is_small([math.nan, 9.0], 2)


def test_hyperparameter_samples_are_drawn_from_those_there_are():
    """Two samples, of which one is far more uncertain: the estimate lies between theirs."""
    one = surrogate(5)
    psi = np.vstack([one.parameters, one.parameters + np.array([0, 1.0, 0, 0, 0, 0])])
    both = condition(one.training, psi)
    strategy = ExpectedError(n_functions=400)

    def error(gp):
        return strategy.estimate(Q, gp, 1.0, np.random.default_rng(4))

    low, high = error(both.subset(np.array([0]))), error(both.subset(np.array([1])))
    assert low < error(both) < high
