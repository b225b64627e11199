import numpy as np
import pytest
from scipy.integrate import trapezoid
from tests.report.records import made_by_hand

from sparing.plots import region_levels
from sparing.plots.corner import sample_density, sample_pair_density
from sparing.plots.style import axis_grid, posterior_views


@pytest.mark.parametrize("whitened", [False, True])
@pytest.mark.parametrize("pair", [(0, 1), (2, 0), (1, 2)])
def test_pair_density_against_a_histogram_of_draws(pair, whitened):
    posterior = made_by_hand(3, whitened=whitened).posterior
    i, j = pair
    views = [posterior_views(posterior)[index] for index in pair]
    draws = posterior.sample(400_000, seed=3)[:, [i, j]]
    counts, x_edges, y_edges = np.histogram2d(*draws.T, bins=20, range=views)
    cell = np.diff(x_edges)[0] * np.diff(y_edges)[0]
    empirical = counts.T / (len(draws) * cell)
    fine = posterior.pair_density(i, j, axis_grid(views[0], 200), axis_grid(views[1], 200))
    exact = fine.reshape(20, 10, 20, 10).mean(axis=(1, 3))  # averaged over the histogram's cells
    error = np.sqrt(exact / (len(draws) * cell)) + 1e-3 * exact.max()
    assert np.max(np.abs(empirical - exact) / error) < 5.0


def test_pair_density_in_two_dimensions_is_the_density():
    posterior = made_by_hand(2).posterior
    x, y = (axis_grid(view, 30) for view in posterior_views(posterior))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    expected = posterior.density(grid).reshape(30, 30)
    np.testing.assert_allclose(posterior.pair_density(0, 1, x, y), expected, rtol=1e-9)


def test_pair_density_integrates_to_the_marginal():
    posterior = made_by_hand(4).posterior
    views = posterior_views(posterior)
    x, y = axis_grid(views[2], 15), axis_grid(views[3], 2000)
    marginal = trapezoid(posterior.pair_density(2, 3, x, y), y, axis=0)
    expected = posterior.marginal_density(2, x)
    np.testing.assert_allclose(marginal, expected, rtol=0.01, atol=1e-3 * expected.max())


def test_densities_of_samples():
    samples = np.random.default_rng(1).normal(size=(200_000, 2))
    view = (-4.0, 4.0)
    x = axis_grid(view)
    normal = np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(sample_density(samples[:, 0], view), normal, atol=0.01)
    pairs = sample_pair_density(samples, (view, view))
    pairs = pairs / pairs.max()
    expected = np.exp(-0.5 * (x[:, None] ** 2 + x**2))
    np.testing.assert_allclose(pairs, expected, atol=0.1)


def test_region_levels_hold_the_mass_they_name():
    x = np.linspace(-5, 5, 201)
    density = np.exp(-0.5 * (x[:, None] ** 2 + x[None, :] ** 2))
    for mass, level in zip((0.9, 0.5), region_levels(density, (0.9, 0.5)), strict=True):
        # A disc of a standard normal holds 1 - exp(-r^2 / 2), and its edge has that height.
        assert level == pytest.approx(1.0 - mass, abs=0.01)


@pytest.mark.parametrize("density", [np.zeros((4, 4)), np.eye(1)])
def test_region_levels_of_a_degenerate_density(density):
    assert region_levels(density, (0.9, 0.5)) is None
