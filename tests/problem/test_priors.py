from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from scipy import stats

from sparing.errors import InvalidValueError, ProblemError
from sparing.problem.priors import (
    CallablePrior,
    IndependentPrior,
    MultivariatePrior,
    Prior,
    parse_prior,
    support_faults,
)
from sparing.problem.problem import Problem

INF = np.inf
X = np.array([0.3, 1.7])
NAMES = ("shift", "rate")
COVARIANCE = np.array([[2.0, 0.3], [0.3, 1.0]])
needs_new_style = pytest.mark.skipif(
    not hasattr(stats, "Normal"), reason="this SciPy has no new-style distributions"
)


def parse(prior, names=NAMES):
    parsed = parse_prior(prior, names)
    assert parsed is not None
    json.dumps(parsed.description())
    return parsed


def faults_of(prior, names=NAMES):
    with pytest.raises(ProblemError) as caught:
        parse_prior(prior, names)
    return caught.value.faults


def test_no_prior():
    assert parse_prior(None, NAMES) is None


@pytest.mark.parametrize("container", [list, tuple, lambda d: dict(zip(NAMES, d, strict=True))])
def test_one_distribution_per_parameter(container):
    distributions = [stats.norm(1.0, 2.0), stats.gamma(2.0, scale=0.5)]
    prior = parse(container(distributions))
    assert isinstance(prior, IndependentPrior)
    expected = stats.norm.logpdf(0.3, 1.0, 2.0) + stats.gamma.logpdf(1.7, 2.0, scale=0.5)
    assert prior.log_density(X) == pytest.approx(expected)
    assert prior.log_density(np.array([0.3, -1.0])) == -INF
    assert prior.log_density(np.array([1e200, 1.7])) == -INF  # overflows without a warning
    low, high = prior.support()
    assert low.tolist() == [-INF, 0.0]
    assert high.tolist() == [INF, INF]
    assert prior.description() == {
        "kind": "independent",
        "distributions": [
            {"family": "norm", "arguments": [1.0, 2.0], "keywords": {}},
            {"family": "gamma", "arguments": [2.0], "keywords": {"scale": 0.5}},
        ],
    }


def test_a_mapping_is_matched_by_name_not_by_order():
    prior = parse({"rate": stats.expon(), "shift": stats.norm(5.0, 1.0)})
    assert prior.log_density(X) == pytest.approx(stats.norm.logpdf(0.3, 5.0, 1.0) - 1.7)


def test_one_univariate_distribution_for_one_parameter():
    prior = parse(stats.uniform(0.0, 4.0), ("only",))
    assert prior.log_density(np.array([1.0])) == pytest.approx(-np.log(4.0))
    assert prior.support()[1].tolist() == [4.0]


@needs_new_style
def test_new_style_distributions():
    distributions = [stats.Normal(mu=1.0, sigma=2.0), stats.Uniform(a=1.0, b=3.0)]
    prior = parse(distributions)
    expected = stats.norm.logpdf(0.3, 1.0, 2.0) - np.log(2.0)
    assert prior.log_density(X) == pytest.approx(expected)
    assert prior.support()[0].tolist() == [-INF, 1.0]
    assert prior.description()["distributions"][0]["family"] == "Normal"
    single = parse(stats.truncate(stats.Normal(), lb=0.0), ("only",))
    assert single.support()[0].tolist() == [0.0]
    assert single.log_density(np.array([-1.0])) == -INF


@pytest.mark.parametrize(
    "distribution",
    [
        stats.multivariate_normal([1.0, 2.0], COVARIANCE),
        stats.multivariate_t([1.0, 2.0], COVARIANCE, df=4),
    ],
)
def test_multivariate_distributions(distribution):
    prior = parse(distribution)
    assert isinstance(prior, MultivariatePrior)
    assert prior.log_density(X) == pytest.approx(float(distribution.logpdf(X)))
    assert prior.support()[0].tolist() == [-INF, -INF]
    assert prior.log_density(np.array([1e200, 0.0])) < -900  # overflows without a warning
    description = prior.description()
    assert description["family"] in ("multivariate_normal", "multivariate_t")
    assert COVARIANCE.tolist() in description.values()


def test_a_kernel_density_estimate_is_a_density_not_a_function():
    # It is callable, and calling it gives the density instead of its logarithm.
    sample = np.random.default_rng(0).normal(size=(2, 200))
    estimate = stats.gaussian_kde(sample)
    prior = parse(estimate)
    assert prior.log_density(X) == pytest.approx(float(np.log(estimate(X)[0])))
    assert parse(stats.gaussian_kde(sample[0]), ("only",)).log_density(X[:1]) < 0


def test_a_multivariate_distribution_of_one_variable():
    prior = parse(stats.multivariate_normal(0.0, 4.0), ("only",))
    assert prior.log_density(np.array([1.0])) == pytest.approx(stats.norm.logpdf(1.0, 0.0, 2.0))


def log_prior_function(x):
    result = -float(np.sum(x**2))
    x[:] = np.nan  # must be a copy
    return result


def test_a_callable():
    prior = parse(log_prior_function)
    assert isinstance(prior, CallablePrior)
    x = X.copy()
    assert prior.log_density(x) == pytest.approx(-np.sum(X**2))
    assert np.array_equal(x, X)
    assert np.all(np.isinf(prior.support()))
    assert prior.description()["function"].endswith("log_prior_function")
    assert callable(parse(stats.multivariate_normal([0, 0]).logpdf).log_density)


class HalfPlane(Prior):
    def log_density(self, x):
        return -float(x[1])

    def support(self):
        return np.array([-INF, 0.0]), np.array([INF, INF])

    def description(self):
        return {"kind": "half plane"}


def test_a_prior_of_ones_own():
    own = HalfPlane()
    assert parse_prior(own, NAMES) is own
    assert faults_of(own, ("only",)) == ("prior is for 2 parameters, dimension=1",)
    assert "set lower to 0.0" in support_faults(
        own, NAMES, np.full(2, -INF), np.full(2, INF), (np.ones(2), np.ones(2) * 2)
    )[0]  # fmt: skip


@pytest.mark.parametrize(
    ("prior", "pieces"),
    [
        ([stats.norm(0, 1)], ["1 distributions for 2 parameters"]),
        (stats.norm(0, 1), ["one univariate distribution for 2 parameters"]),
        ({"shift": stats.norm(0, 1), "rat": stats.norm(0, 1)}, ["no distribution for rate", "rat"]),
        ([stats.norm, stats.norm(0, 1)], ["shift: its prior is not frozen"]),
        ([stats.poisson(3), stats.binom(3, 0.5)], ["shift: its prior is disc", "rate: its prior"]),
        (stats.poisson(3), ["prior: is discrete"]),
        (stats.norm, ["not frozen"]),
        (stats.multivariate_normal, ["not frozen"]),
        (stats.multivariate_normal([0, 0, 0]), ["3 variables, dimension=2"]),
        (
            stats.multivariate_normal([0, 0], np.ones((2, 2)), allow_singular=True),
            ["singular covariance"],
        ),
        (
            stats.multivariate_t([0, 0], np.ones((2, 2)), allow_singular=True),
            ["singular covariance"],
        ),
        (stats.dirichlet([1.0, 2.0]), ["not a known distribution"]),
        ([stats.norm([0, 1], 1), stats.norm(0, 1)], ["shift: its prior has arrays"]),
        ([stats.norm(0, -1), stats.norm(0, 1)], ["shift: its prior has invalid parameters"]),
        ([log_prior_function, 3], ["shift: its prior must be one", "rate: its prior must be one"]),
        ("normal", ["prior must be a callable or scipy.stats distributions, not 'normal'"]),
        (HalfPlane, ["is the class HalfPlane: give an instance"]),
    ],
)
def test_faults(prior, pieces):
    faults = faults_of(prior)
    assert len(faults) == len(pieces)
    for fault, piece in zip(faults, pieces, strict=True):
        assert piece in fault


@pytest.mark.skipif(not hasattr(stats, "Binomial"), reason="this SciPy has no such distribution")
def test_new_style_faults():
    assert "discrete" in faults_of([stats.Binomial(n=10, p=0.3), stats.Normal()])[0]
    assert "give an instance" in faults_of(stats.Normal)[0]


def bounds_faults(distribution, lower, upper, low, high):
    prior = parse(distribution, ("rate",))
    boxes = [np.array([float(v)]) for v in (lower, upper, low, high)]
    return support_faults(prior, ("rate",), boxes[0], boxes[1], (boxes[2], boxes[3]))


def test_bounds_beyond_the_support_say_what_to_set():
    (fault,) = bounds_faults(stats.expon(), -INF, INF, 1, 2)
    expected = "rate: its prior is zero outside [0, inf), its lower bound is -inf: set lower to 0.0"
    assert fault == expected
    faults = bounds_faults(stats.uniform(1.0, 2.0), 0.0, INF, 0.5, 2)
    assert [piece in fault for piece, fault in zip(
        ["set lower to 1.0", "set upper to 3.0", "plausible box [0.5, 2] reaches outside"],
        faults, strict=True)] == [True] * 3  # fmt: skip
    assert bounds_faults(stats.expon(), 0.0, INF, 0, 2) == []
    assert bounds_faults(stats.norm(), -INF, 3, 0, 2) == []


def test_rounding_in_a_support_is_no_fault():
    distribution = stats.uniform(0.7, 0.1)
    assert distribution.support()[1] < 0.8  # 0.7 + 0.1 in doubles
    assert bounds_faults(distribution, 0.7, 0.8, 0.7, 0.8) == []


def test_values_that_are_no_log_density():
    prior = parse(lambda x: np.nan)
    with pytest.raises(InvalidValueError, match="returned nan"):
        prior.log_density(X)
    # gamma(0.5) is infinite at zero
    with pytest.raises(InvalidValueError, match="returned inf"):
        parse(stats.gamma(0.5), ("only",)).log_density(np.array([0.0]))


@pytest.mark.parametrize(
    "prior",
    [
        log_prior_function,
        [stats.norm(0, 1), stats.expon()],
        stats.multivariate_normal([1.0, 2.0], COVARIANCE),
    ],
)
def test_priors_pickle(prior):
    problem = Problem(lambda_free, [0, 0.1], [1, 2], [-INF, 0], names=NAMES, prior=prior)
    again = pickle.loads(pickle.dumps(problem))
    assert again.log_joint(X) == problem.log_joint(X)


def lambda_free(x):
    return float(x.sum())
