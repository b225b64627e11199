import numpy as np
import pytest

from sparing.plots import region_levels
from sparing.plots.corner import sample_density, sample_pair_density
from sparing.plots.style import axis_grid


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


@pytest.mark.parametrize("density", [np.zeros((4, 4)), np.eye(1), np.full((2, 2), 1e308)])
def test_region_levels_of_a_degenerate_density(density):
    assert region_levels(density, (0.9, 0.5)) is None
