"""The expected error of the posterior against the gsKL of functions drawn by brute force."""

import numpy as np
import pytest

from sparing.surrogate.gaussian_process import (
    TrainingSet,
    condition,
)
from sparing.variational.divergence import gaussianised_symmetric_kl
from sparing.variational.mixture import GaussianMixture
from sparing.vbmc.posterior_error import PosteriorErrorSettings, expected_posterior_error

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
    settings = PosteriorErrorSettings(n_points=400, n_functions=400)
    error = expected_posterior_error(Q, gp, inflation, settings, np.random.default_rng(2))
    assert error == pytest.approx(grid_error(gp, inflation), rel=0.3)


def test_falls_with_the_data_and_grows_with_the_inflation():
    def error(n_points, inflation):
        generator = np.random.default_rng(3)
        settings = PosteriorErrorSettings()
        return expected_posterior_error(Q, surrogate(n_points), inflation, settings, generator)

    assert error(4, 1.0) > 3.0 * error(8, 1.0)
    assert error(6, 4.0) > 2.0 * error(6, 1.0)
