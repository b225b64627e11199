import numpy as np
import pytest
from tests.hand_made import make_result

from sparing.errors import SettingsError
from sparing.results.predictive import posterior_predictive


def measure(x, generator):
    return generator.normal(x[0], 0.5, 3)


def test_moments_of_a_conjugate_model():
    """x ~ N(1, 0.3^2) and y | x ~ N(x, 0.5^2), so y ~ N(1, 0.34), and two of them share x."""
    draws = posterior_predictive(make_result(mean=1.0, sd=0.3), measure, 20_000, seed=2)
    assert draws.shape == (20_000, 3)
    np.testing.assert_allclose(draws.mean(axis=0), 1.0, atol=0.015)
    covariance = np.cov(draws, rowvar=False)
    np.testing.assert_allclose(np.diagonal(covariance), 0.34, atol=0.012)
    np.testing.assert_allclose(covariance[0, 1], 0.09, atol=0.012)


def test_same_seed_same_data():
    result = make_result()
    one, two = (posterior_predictive(result, measure, 5, seed=1) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, posterior_predictive(result, measure, 5, seed=2))


def test_single_numbers():
    assert posterior_predictive(make_result(), lambda x, generator: x[0] > 0, 7).shape == (7,)


def test_a_simulator_may_change_its_argument():
    def careless(x, generator):
        x[:] = 0.0
        return 1

    assert posterior_predictive(make_result(), careless, 3).tolist() == [1, 1, 1]


def test_faults():
    with pytest.raises(SettingsError, match="n must be at least 1"):
        posterior_predictive(make_result(), measure, 0)
    with pytest.raises(SettingsError, match=r"one shape, but returned \(1,\) and \(2,\)"):
        sizes = iter([1, 2])
        posterior_predictive(make_result(), lambda x, generator: np.zeros(next(sizes)), 2)
