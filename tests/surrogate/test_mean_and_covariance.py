"""The mean and covariance functions against their formulas."""

import numpy as np
import pytest
from scipy import stats

from sparing.surrogate.covariance import cross_covariance, gram_matrix, scaled_transpose
from sparing.surrogate.layout import Hyperparameters, Layout
from sparing.surrogate.mean import (
    mean_jacobian,
    negative_quadratic_mean,
    scaled_offsets,
    weighted_mean_gradient,
)

GENERATOR = np.random.default_rng(5)
SAMPLE = Hyperparameters(
    length_scales=np.array([0.5, 2.0]),
    output_scale=1.5,
    noise_sd=0.1,
    mean_maximum=-3.0,
    mean_location=np.array([0.2, -0.4]),
    mean_scales=np.array([1.5, 0.7]),
)
POINTS = GENERATOR.normal(size=(7, 2))


def test_covariance_is_the_rescaled_gaussian_of_the_paper():
    """Eq. S10, literally: sigma_f^2 Lambda N(x; x', Sigma_ell)."""
    normalisation = (2.0 * np.pi) ** (2 / 2) * SAMPLE.length_scales.prod()
    expected = [
        [
            SAMPLE.output_scale**2
            * normalisation
            * stats.multivariate_normal(b, np.diag(SAMPLE.length_scales**2)).pdf(a)
            for b in POINTS
        ]
        for a in POINTS[:3]
    ]
    np.testing.assert_allclose(cross_covariance(SAMPLE, POINTS[:3], POINTS), expected, rtol=1e-12)


def test_gram_matrix_is_the_cross_covariance_with_itself():
    gram = gram_matrix(scaled_transpose(POINTS, SAMPLE.length_scales), SAMPLE.output_scale**2)
    np.testing.assert_allclose(gram, cross_covariance(SAMPLE, POINTS, POINTS), rtol=1e-13)
    np.testing.assert_allclose(np.diag(gram), SAMPLE.output_scale**2)


def test_mean_is_the_negative_quadratic_of_the_paper():
    expected = [-3.0 - 0.5 * ((x - 0.2) ** 2 / 1.5**2 + (y + 0.4) ** 2 / 0.7**2) for x, y in POINTS]
    np.testing.assert_allclose(negative_quadratic_mean(SAMPLE, POINTS), expected)


def test_mean_gradient_by_finite_differences():
    weights = GENERATOR.normal(size=7)
    psi = np.concatenate(
        [
            np.log(SAMPLE.length_scales),
            [np.log(SAMPLE.output_scale), np.log(SAMPLE.noise_sd), SAMPLE.mean_maximum],
            SAMPLE.mean_location,
            np.log(SAMPLE.mean_scales),
        ]
    )

    def weighted_mean(vector):
        return weights @ negative_quadratic_mean(Hyperparameters.from_vector(vector), POINTS)

    numeric = []
    for index in range(Layout(2).mean_maximum, 9):
        step = np.zeros(9)
        step[index] = 1e-6
        numeric.append((weighted_mean(psi + step) - weighted_mean(psi - step)) / 2e-6)
    gradient = weighted_mean_gradient(SAMPLE, scaled_offsets(SAMPLE, POINTS), weights)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-7)
    np.testing.assert_allclose(mean_jacobian(SAMPLE, POINTS) @ weights, numeric, rtol=1e-7)


def test_layout_of_the_hyperparameter_vector():
    psi = np.array([0.1, 0.2, 0.3, 0.4, 5.0, 6.0, 7.0, 0.8, 0.9])
    sample = Hyperparameters.from_vector(psi)
    np.testing.assert_allclose(sample.length_scales, np.exp([0.1, 0.2]))
    assert sample.output_scale == pytest.approx(np.exp(0.3))
    assert sample.noise_sd == pytest.approx(np.exp(0.4))
    assert sample.mean_maximum == 5.0
    np.testing.assert_array_equal(sample.mean_location, [6.0, 7.0])
    np.testing.assert_allclose(sample.mean_scales, np.exp([0.8, 0.9]))


@pytest.mark.parametrize("size", [0, 3, 4, 8, 11])
def test_a_vector_of_another_length_is_an_error(size):
    with pytest.raises(ValueError, match=r"3D \+ 3 or 3D \+ 4"):
        Layout.of(np.zeros(size))
