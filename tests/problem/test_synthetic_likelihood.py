import pickle

import numpy as np
import pytest
from scipy import stats

import sparing
from sparing.errors import ProblemError, TargetError

MEAN = np.array([0.3, -1.0, 2.0])
COVARIANCE = np.array([[1.0, 0.6, 0.0], [0.6, 2.0, -0.3], [0.0, -0.3, 0.5]])
ROOT = np.linalg.cholesky(COVARIANCE)
OBSERVED = np.array([1.0, -1.5, 2.5])
EXACT = stats.multivariate_normal(MEAN, COVARIANCE).logpdf(OBSERVED)


def normal(x, generator):
    return MEAN + x[0] + ROOT @ generator.standard_normal(3)


def skewed(x, generator):
    return generator.exponential(size=3) - 1.0 + x[0]


def as_it_is(data):
    return data


def estimates(simulate, observed, n_simulations, n_repeats=800):
    """(values, noise sds) at one point, with other simulations each time."""
    return np.array(
        [
            sparing.synthetic_likelihood(
                simulate, as_it_is, observed, n_simulations=n_simulations, seed=seed
            )(np.zeros(1))
            for seed in range(n_repeats)
        ]
    ).T


@pytest.mark.slow
def test_the_log_of_a_normal_density_without_bias():
    values, _ = estimates(normal, OBSERVED, 12)
    assert abs(values.mean() - EXACT) < 3.5 * values.std() / np.sqrt(len(values))
    # The plain estimate is off by many of its standard errors.
    generator = np.random.default_rng(0)
    draws = generator.multivariate_normal(MEAN, COVARIANCE, (800, 12))
    plain = [
        stats.multivariate_normal(rows.mean(axis=0), np.cov(rows.T)).logpdf(OBSERVED)
        for rows in draws
    ]
    assert abs(np.mean(plain) - EXACT) > 5.0 * np.std(plain) / np.sqrt(len(plain))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("simulate", "observed"), [(normal, OBSERVED), (normal, MEAN), (skewed, np.zeros(3))]
)
def test_the_noise_is_that_of_repeated_simulation(simulate, observed):
    values, noise_sds = estimates(simulate, observed, 40)
    # The variance of 800 values is known to 5 % or, with the tails of the skewed ones, 10 %.
    assert np.sqrt(np.mean(noise_sds**2)) == pytest.approx(values.std(), rel=0.15)


def test_leaving_one_out_by_updates_is_leaving_one_out():
    rows = np.random.default_rng(2).multivariate_normal(MEAN, COVARIANCE, 15)

    def replayed(rows):
        served = iter(rows)
        return sparing.synthetic_likelihood(
            lambda x, generator: next(served), as_it_is, OBSERVED, n_simulations=len(rows)
        )(np.zeros(1))

    value, noise_sd = replayed(rows)
    others = np.array([replayed(np.delete(rows, i, axis=0))[0] for i in range(15)])
    assert noise_sd == pytest.approx(np.sqrt(14 * np.var(others)), rel=1e-9)
    # In other units the density is another by the scales, and the noise the same.
    scaled = sparing.synthetic_likelihood(
        lambda x, generator: normal(x, generator), lambda data: data * 1e6, OBSERVED, seed=1
    )(np.zeros(1))
    plain = sparing.synthetic_likelihood(normal, as_it_is, OBSERVED, seed=1)(np.zeros(1))
    assert scaled[0] == pytest.approx(plain[0] - 3 * np.log(1e6))
    assert scaled[1] == pytest.approx(plain[1])
    assert value != plain[0]


def test_noise_follows_from_seed_and_point():
    one = sparing.synthetic_likelihood(normal, as_it_is, OBSERVED, seed=1)
    copy = pickle.loads(pickle.dumps(one))
    here, there = np.array([0.1]), np.array([0.1 + 1e-9])
    assert one(here) == one(here) == copy(here)
    assert one(there) != one(here)
    other = sparing.synthetic_likelihood(normal, as_it_is, OBSERVED, seed=2)
    assert other(here) != one(here)


def test_it_is_a_log_density():
    log_likelihood = sparing.synthetic_likelihood(normal, as_it_is, OBSERVED)
    problem = sparing.Problem(log_likelihood, [-1.0], [1.0])
    assert problem.estimated_log_joint([0.2]) == log_likelihood(np.array([0.2]))


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"simulate": 3}, "simulate must be a function, not 3"),
        ({"summaries": None}, "summaries must be a function, not None"),
        ({"n_simulations": 8}, "n_simulations must be a whole number >= 9, six more"),
        ({"observed": np.array([1.0, np.nan])}, "of the observed data: summaries must return fin"),
        ({"observed": "text"}, "of the observed data: what summaries returned holds 'text'"),
        ({"seed": -1}, "seed must be a non-negative integer"),
    ],
)
def test_what_cannot_be_is_refused_before_a_simulation(more, fault):
    given = {"simulate": normal, "summaries": as_it_is, "observed": OBSERVED} | more
    with pytest.raises(sparing.SparingError, match=fault) as caught:
        sparing.synthetic_likelihood(**given)
    assert isinstance(caught.value, ProblemError | sparing.SettingsError)


@pytest.mark.parametrize(
    ("summaries", "fault"),
    [
        (lambda data: [data[0], 1.0, data[1]], "summary 2 is the same in all 100 simulations"),
        (lambda data: [data[0], data[1], data[0] + data[1]], "depend on one another linearly"),
        (lambda data: [data[0], data[1], np.inf], "must return finite numbers"),
        (lambda data: [data[0], data[1]], "a simulation has 2 summaries, the observed data 3"),
        (lambda data: None, "what summaries returned holds None"),
        (lambda data: [*data[:2], float(data[0] == FIRST)], "a single one of 100 simulations"),
    ],
)
def test_summaries_that_cannot_be_used_say_why(summaries, fault):
    own = [True]  # of the observed data
    log_likelihood = sparing.synthetic_likelihood(
        normal, lambda data: OBSERVED if own and own.pop() else summaries(data), OBSERVED, seed=4
    )
    with pytest.raises(TargetError, match=fault):
        log_likelihood(np.zeros(1))


def first_simulation():
    seen = []

    def watched(x, generator):
        seen.append(normal(x, generator))
        return seen[-1]

    sparing.synthetic_likelihood(watched, as_it_is, OBSERVED, seed=4)(np.zeros(1))
    return seen[0][0]


FIRST = first_simulation()
