import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid
from scipy.optimize import minimize
from tests.variational.support import random_mixture

from sparing.variational.mixture import GaussianMixture


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": [0.5, 0.6]}, "sum to one"),
        ({"weights": [1.0, 0.0]}, "positive"),
        ({"weights": [1.0]}, r"weights must have shape \(2,\)"),
        ({"means": [[0.0], [np.nan]]}, "finite"),
        ({"means": [0.0, 1.0]}, r"shape \(K, D\)"),
        ({"scales": [1.0, -1.0]}, "positive"),
        ({"scales": [1.0, np.nan]}, "positive"),
        ({"lengths": [np.inf]}, "finite"),
        ({"lengths": [1.0, 1.0]}, r"lengths must have shape \(1,\)"),
    ],
)
def test_bad_mixtures_are_refused(changes, message):
    arguments = {
        "weights": [0.5, 0.5],
        "means": [[0.0], [1.0]],
        "scales": [1.0, 2.0],
        "lengths": [1.0],
    }
    with pytest.raises(ValueError, match=message):
        GaussianMixture(**(arguments | changes))


def test_weights_are_normalised_and_arrays_copied():
    weights = np.array([0.5, 0.5 + 5e-10])
    mixture = GaussianMixture(weights, np.zeros((2, 1)), np.ones(2), np.ones(1))
    assert mixture.weights.sum() == pytest.approx(1.0, abs=1e-15)
    weights[0] = 9.0
    assert mixture.weights[0] < 1.0


def test_log_density_integrates_to_one():
    mixture = random_mixture(4, 1, 1)
    grid = np.linspace(-15.0, 15.0, 20001)
    assert trapezoid(np.exp(mixture.log_density(grid[:, None])), grid) == pytest.approx(
        1.0, abs=1e-9
    )


def test_log_density_far_in_the_tails():
    mixture = GaussianMixture([0.3, 0.7], [[0.0, 0.0], [1.0, 0.0]], [1.0, 1.0], [1.0, 2.0])
    value = mixture.log_density(np.array([[1e3, 0.0], [0.0, 1e200]]))
    nearest = np.log(0.7) + stats.norm.logpdf(999.0) + stats.norm.logpdf(0.0, scale=2.0)
    assert value[0] == pytest.approx(nearest, rel=1e-9)
    assert value[1] == -np.inf


def test_log_density_refuses_the_wrong_dimension():
    with pytest.raises(ValueError, match=r"\(m, 2\)"):
        random_mixture(2, 2, 1).log_density(np.zeros((4, 3)))


def test_moments_and_samples():
    mixture = random_mixture(4, 3, 2)
    draws = mixture.sample(200_000, np.random.default_rng(3))
    standard_error = np.sqrt(np.diag(mixture.covariance) / draws.shape[0])
    assert np.all(np.abs(draws.mean(axis=0) - mixture.mean) < 4.5 * standard_error)
    np.testing.assert_allclose(np.cov(draws.T), mixture.covariance, atol=0.03)


def test_mode_against_a_general_optimiser():
    for seed in range(6):
        mixture = random_mixture(6, 3, seed)
        searches = [
            minimize(lambda x, q=mixture: -q.log_density(x)[0], start, tol=1e-10)
            for start in mixture.means
        ]
        best = min(searches, key=lambda search: search.fun)
        assert mixture.log_density(mixture.mode())[0] >= -best.fun - 1e-9
        np.testing.assert_allclose(mixture.mode(), best.x, atol=1e-4)


def test_mode_of_one_component_is_its_mean():
    mixture = random_mixture(1, 4, 1)
    np.testing.assert_allclose(mixture.mode(), mixture.means[0], rtol=1e-14)


def test_without_renormalises():
    mixture = random_mixture(3, 2, 6)
    smaller = mixture.without(1)
    np.testing.assert_allclose(smaller.weights.sum(), 1.0)
    ratio = mixture.weights[0] / mixture.weights[2]
    assert smaller.weights[0] / smaller.weights[1] == pytest.approx(ratio)
    np.testing.assert_array_equal(smaller.means, mixture.means[[0, 2]])
