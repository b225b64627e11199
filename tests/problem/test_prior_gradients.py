"""Derivatives of log priors, beside differences of logpdf."""

import numpy as np
import pytest
from scipy import stats

from sparing.problem import prior_gradients
from sparing.problem.prior_gradients import difference_steps, differences
from sparing.problem.priors import IndependentPrior, parse_prior

# distribution and points in its support
CLOSED = {
    "norm": (stats.norm(0.4, 1.7), [-3.0, 0.4, 2.0]),
    "norm by keyword": (stats.norm(scale=1.7, loc=0.4), [-3.0, 0.5, 2.0]),
    "uniform": (stats.uniform(-1.0, 3.0), [-0.9, 1.9]),
    "expon": (stats.expon(1.0, 2.0), [1.1, 9.0]),
    "gamma": (stats.gamma(2.5, 0.3, scale=0.7), [0.301, 0.9, 4.0]),
    "gamma by keyword": (stats.gamma(a=0.6, scale=0.7), [0.01, 0.9, 4.0]),
    "beta": (stats.beta(2.0, 0.7, 1.0, 4.0), [1.01, 3.0, 4.99]),
    "lognorm": (stats.lognorm(0.8, 0.1, 2.0), [0.11, 2.0, 30.0]),
    "t": (stats.t(3.5, 1.0, 0.5), [-4.0, 1.2, 30.0]),
    "cauchy": (stats.cauchy(1.0, 0.5), [-4.0, 1.2, 30.0]),
    "halfnorm": (stats.halfnorm(1.0, 0.5), [1.01, 2.5]),
    "halfcauchy": (stats.halfcauchy(1.0, 0.5), [1.01, 2.5, 100.0]),
    "invgamma": (stats.invgamma(2.2, 0.1, 3.0), [0.3, 1.0, 20.0]),
    "laplace": (stats.laplace(0.3, 2.0), [-3.0, 1.0]),
    "logistic": (stats.logistic(0.3, 2.0), [-30.0, 0.2, 9.0]),
    "truncnorm": (stats.truncnorm(-1.0, 2.0, 0.5, 1.5), [-0.9, 0.5, 3.4]),
    "loguniform": (stats.loguniform(0.01, 100.0), [0.02, 3.0, 99.0]),
}
BY_DIFFERENCES = {
    "weibull_min": (stats.weibull_min(1.7, scale=2.0), [0.001, 0.5, 4.0]),
    "skewnorm": (stats.skewnorm(3.0), [-0.5, 0.5, 2.0]),
}


def fourth_order(function, x, step):
    values = [function(x + k * step) for k in (-2, -1, 1, 2)]
    return (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)


@pytest.mark.parametrize("name", [*CLOSED, *BY_DIFFERENCES])
def test_univariate(name, monkeypatch):
    distribution, points = {**CLOSED, **BY_DIFFERENCES}[name]
    if name in CLOSED:
        monkeypatch.setattr(prior_gradients, "differences", None)
    low, high = (np.array([edge]) for edge in distribution.support())
    for x in points:
        steps = difference_steps(np.array([x]), np.ones(1), low, high)
        found = IndependentPrior((distribution,)).gradient(np.array([x]), steps)
        step = 1e-4 * min(1.0, x - low[0], high[0] - x)
        expected = fourth_order(distribution.logpdf, x, step)
        np.testing.assert_allclose(found, [expected], rtol=2e-7, atol=1e-8)


def test_at_the_edge_of_a_flat_density():
    for distribution in (stats.uniform(), stats.beta(1.0, 1.0), stats.gamma(1.0)):
        prior = IndependentPrior((distribution,))
        slope = -1.0 if distribution.dist.name == "gamma" else 0.0
        assert prior.gradient(np.zeros(1), np.ones(1)).tolist() == [slope]
    assert not np.isfinite(IndependentPrior((stats.gamma(2.0),)).gradient(np.zeros(1), np.ones(1)))


X = np.array([0.3, 1.7])
COVARIANCE = np.array([[2.0, 0.3], [0.3, 1.0]])


def kernel_density():
    return stats.gaussian_kde(np.random.default_rng(1).normal(size=(2, 50)))


@pytest.mark.parametrize(
    "given",
    [
        stats.multivariate_normal([1.0, 0.5], COVARIANCE),
        stats.multivariate_t([1.0, 0.5], COVARIANCE, df=3.0),
        kernel_density(),
        lambda x: -float(np.cosh(x[0]) * x[1] ** 2),
    ],
)
def test_joint(given):
    prior = parse_prior(given, ("a", "b"))
    steps = difference_steps(X, np.ones(2), np.full(2, -np.inf), np.full(2, np.inf))
    expected = [
        fourth_order(lambda t, e=e: prior.log_density(X + t * e), 0.0, 1e-3) for e in np.eye(2)
    ]
    np.testing.assert_allclose(prior.gradient(X, steps), expected, rtol=1e-7)


def test_new_style_distributions():
    if not hasattr(stats, "Normal"):
        pytest.skip("this SciPy has no new-style distributions")
    prior = IndependentPrior((stats.Normal(mu=0.4, sigma=1.7),))
    found = prior.gradient(np.array([2.0]), np.array([1e-5]))
    np.testing.assert_allclose(found, [-1.6 / 1.7**2], rtol=1e-7)


def test_differences_next_to_a_cliff_use_one_side():
    def one_sided(x):
        return 3.0 * x[0] if x[0] >= 0.0 else -np.inf

    assert differences(one_sided, [0.0], [1e-3]) == pytest.approx([3.0])
    assert differences(lambda x: -one_sided(-x), [0.0], [1e-3]) == pytest.approx([3.0])
    assert np.isnan(differences(lambda x: -np.inf, [0.0], [1e-3]))


def test_steps_stay_inside_and_are_resolved():
    x = np.array([1e-9, 5.0, 1e12])
    steps = difference_steps(x, np.ones(3), np.zeros(3), np.array([1.0, np.inf, np.inf]))
    assert 0.0 < steps[0] < 1e-9
    assert np.all(x + steps > x)
