import numpy as np
import pytest
from tests.variational.support import random_mixture

from sparing.variational.parameterisation import from_parameters, normalised, to_parameters


@pytest.mark.parametrize(("n_components", "dimension"), [(1, 1), (4, 1), (1, 3), (5, 3)])
def test_round_trip_keeps_the_density(n_components, dimension):
    mixture = random_mixture(n_components, dimension, 1)
    phi = to_parameters(mixture)
    assert phi.size == n_components * (dimension + 2) + dimension  # Section 3.1
    back = from_parameters(phi, n_components, dimension)
    points = np.random.default_rng(2).normal(size=(50, dimension))
    np.testing.assert_allclose(back.log_density(points), mixture.log_density(points), rtol=1e-12)
    assert np.mean(back.lengths**2) == pytest.approx(1.0)


def test_redundant_directions_do_not_matter():
    mixture = random_mixture(3, 2, 3)
    phi = to_parameters(mixture)
    assert phi[-3:].mean() == pytest.approx(0.0, abs=1e-14)
    shifted = phi.copy()
    shifted[6:9] += 1.7  # log σ
    shifted[9:11] -= 1.7  # log λ
    shifted[11:] += 40.0  # η
    for one, other in zip(
        from_parameters(phi, 3, 2).arrays, from_parameters(shifted, 3, 2).arrays, strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_vanishing_weights_stay_positive():
    phi = to_parameters(random_mixture(3, 2, 4))
    phi[-1] = -1e4
    weights = from_parameters(phi, 3, 2).weights
    assert 0.0 < weights[-1] < 1e-12


def test_normalised_is_idempotent():
    mixture = normalised(random_mixture(3, 4, 5))
    np.testing.assert_allclose(normalised(mixture).scales, mixture.scales, rtol=1e-15)
