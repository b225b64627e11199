"""The surrogate's mean: its integrals against normals, its values and its gradient."""

import numpy as np
import pytest
from tests.variational.support import random_gp, random_gradient_gp, random_mixture

from sparing.surrogate.kernel_expansion import BLOCK, KernelExpansion

MAKERS = [random_gp, random_gradient_gp]


def component_draws(mixture, n, seed):
    """Draws of each component by itself, (K, n, D)."""
    noise = np.random.default_rng(seed).normal(size=(mixture.n_components, n, mixture.dimension))
    return mixture.means[:, None] + mixture.scales[:, None, None] * mixture.lengths * noise


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("dimension", "n_samples"), [(1, 1), (2, 3), (4, 2)])
def test_integrals_are_means_over_draws_of_each_component(dimension, n_samples, make):
    mixture, gp = random_mixture(3, dimension, 1), make(15, dimension, n_samples, 2)
    found = gp.expansion.integrals(*mixture.arrays[1:])
    draws = component_draws(mixture, 40_000, 3)
    values = np.stack([gp.predict_each(points)[0] for points in draws], axis=1)  # (S, K, n)
    error = values.std(axis=2) / np.sqrt(values.shape[2])
    assert found.shape == (n_samples, 3)
    assert np.all(np.abs(found - values.mean(axis=2)) < 4.5 * error)
    assert np.all(error < 0.1)  # the comparison means something


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("dimension", "n_samples"), [(1, 2), (3, 1)])
def test_covariances_of_the_integrals_are_means_over_pairs_of_draws(dimension, n_samples, make):
    mixture, gp = random_mixture(2, dimension, 4), make(6, dimension, n_samples, 5)
    expected, covariances = gp.integrals(*mixture.arrays[1:])
    np.testing.assert_array_equal(expected, gp.expansion.integrals(*mixture.arrays[1:]))
    assert covariances.shape == (n_samples, 2, 2)
    for j, k in ((0, 0), (0, 1), (1, 1)):
        blocks = []
        for seed in range(40):
            a = component_draws(mixture, 200, (seed, 1))[j]
            b = component_draws(mixture, 200, (seed, 2))[k]
            blocks.append(gp.covariance(a, b).mean(axis=(1, 2)))
        error = np.std(blocks, axis=0, ddof=1) / np.sqrt(len(blocks))
        assert np.all(np.abs(covariances[:, j, k] - np.mean(blocks, axis=0)) < 4.5 * error)
    np.testing.assert_allclose(covariances, covariances.transpose(0, 2, 1), rtol=1e-9)


@pytest.mark.parametrize("make", MAKERS)
def test_other_units_give_the_same_integrals(make):
    mixture, gp = random_mixture(3, 2, 6), make(15, 2, 2, 7)
    unit = np.array([0.3, 20.0])
    scaled = gp.expansion.in_units(unit)
    found = scaled.integrals(mixture.means / unit, mixture.scales, mixture.lengths / unit)
    np.testing.assert_allclose(found, gp.expansion.integrals(*mixture.arrays[1:]), rtol=1e-10)
    np.testing.assert_allclose(
        scaled.values(mixture.means / unit), gp.expansion.values(mixture.means), rtol=1e-10
    )


@pytest.mark.parametrize("make", MAKERS)
def test_the_expansion_is_the_mean_of_the_process(make):
    """Against a plain sum over the kernels, at normals too narrow to matter."""
    gp = make(8, 2, 2, 8)
    points = np.random.default_rng(9).normal(size=(5, 2))
    found = gp.expansion.integrals(points, np.full(5, 1e-7), np.ones(2))
    np.testing.assert_allclose(found, gp.predict_each(points)[0], rtol=1e-9)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("dimension", "n_samples"), [(1, 1), (2, 3), (5, 2)])
def test_values_are_the_means_of_the_samples(dimension, n_samples, make):
    gp = make(15, dimension, n_samples, 10, offset=-50.0)
    points = 2.0 * np.random.default_rng(11).normal(size=(BLOCK + 9, dimension))
    found = gp.expansion.values(points)
    assert found.shape == (n_samples, len(points))
    np.testing.assert_allclose(found, gp.predict_each(points)[0], rtol=1e-9)
    assert gp.expansion.values(points[:0]).shape == (n_samples, 0)


@pytest.mark.parametrize("make", MAKERS)
def test_values_far_from_the_data_are_those_of_the_mean_function(make):
    """Beside its own centre a kernel is at most one, whatever rounding says."""
    gp = make(10, 2, 2, 12)
    far = np.array([[1e4, -1e4]])
    np.testing.assert_allclose(gp.expansion.values(far), gp.predict_each(far)[0], rtol=1e-9)
    inputs = gp.training.inputs
    np.testing.assert_allclose(
        gp.expansion.values(inputs), gp.predict_each(inputs)[0], rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("dimension", "n_samples"), [(1, 1), (2, 3), (4, 2)])
def test_the_gradient_is_that_of_the_average_value(dimension, n_samples, make):
    expansion = make(12, dimension, n_samples, 13).expansion
    points, step = np.random.default_rng(14).normal(size=(7, dimension)), 1e-5
    expected = np.empty(points.shape)
    for i, direction in enumerate(step * np.eye(dimension)):
        rise = expansion.values(points + direction) - expansion.values(points - direction)
        expected[:, i] = rise.mean(axis=0) / (2.0 * step)
    np.testing.assert_allclose(expansion.gradient(points), expected, rtol=1e-5, atol=1e-6)


def test_arrays_are_as_compiled_kernels_take_them():
    """Contiguous and writable, whatever was given."""
    inputs = np.asfortranarray(np.ones((4, 2)))
    shapes = np.ones((3, 9))[:, ::1]
    shapes.setflags(write=False)
    slopes = np.ones((3, 4, 2)).swapaxes(1, 2)
    expansion = KernelExpansion.of(inputs, np.ones((6, 4))[::2], shapes, slopes)
    assert expansion.centres.shape == (2, 4)
    assert KernelExpansion.of(inputs, np.ones((3, 4)), shapes).slopes is None
    for array in expansion.arrays:
        assert array.flags.c_contiguous
        assert array.flags.writeable
