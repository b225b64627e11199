import pickle

import numpy as np
import pytest
from scipy import stats
from tests.hand_made import make_result

import sparing
from sparing.integrations.bilby import problem_from_likelihood, to_bilby

bilby = pytest.importorskip("bilby")
prior = pytest.importorskip("bilby.core.prior")

DATA = np.array([0.3, 1.1, -0.2, 0.9])


class Level(bilby.Likelihood):
    """Normal data about a level, with a known offset and spread."""

    def log_likelihood(self, parameters):
        mean = parameters["level"] + parameters.get("offset", 0.0)
        return stats.norm(mean, 0.5).logpdf(DATA).sum()

    def noise_log_likelihood(self):
        return stats.norm(0.0, 0.5).logpdf(DATA).sum()


def exact_evidence(offset=0.0):
    covariance = 0.5**2 * np.eye(4) + 2.0**2
    return stats.multivariate_normal(np.full(4, 0.5 + offset), covariance).logpdf(DATA)


PRIORS = {"offset": 0.25, "level": prior.Gaussian(0.5, 2.0)}


def test_evidence_and_posterior_go_back_to_bilby():
    problem = problem_from_likelihood(Level(), PRIORS)
    assert (problem.names, problem.fixed) == (("level",), {"offset": 0.25})
    result = sparing.infer(problem, seed=1, max_evaluations=40, progress=False)
    found = to_bilby(Level(), PRIORS, result, n=2000)
    assert found.log_evidence == pytest.approx(exact_evidence(0.25), abs=0.01)
    noise = Level().noise_log_likelihood()
    assert found.log_bayes_factor == pytest.approx(exact_evidence(0.25) - noise, abs=0.01)
    assert list(found.posterior) == ["offset", "level", "log_likelihood", "log_prior"]
    assert (found.search_parameter_keys, found.fixed_parameter_keys) == (["level"], ["offset"])
    precision = 1 / 2.0**2 + 4 / 0.5**2
    mean = (0.5 / 2.0**2 + (DATA - 0.25).sum() / 0.5**2) / precision
    assert found.posterior["level"].mean() == pytest.approx(mean, abs=0.03)
    for _, row in found.posterior.head(20).iterrows():
        exact = Level().log_likelihood({"level": row["level"], "offset": 0.25})
        assert row["log_likelihood"] == pytest.approx(exact, abs=0.5)
        assert row["log_prior"] == pytest.approx(stats.norm(0.5, 2.0).logpdf(row["level"]))


def test_the_result_survives_bilby_s_file(tmp_path):
    problem = problem_from_likelihood(Level(), PRIORS)
    found = to_bilby(Level(), PRIORS, make_result(problem, mean=1.0, sd=0.2), n=10)
    found.save_to_file(outdir=tmp_path, extension="json")
    again = bilby.core.result.read_in_result(tmp_path / "sparing_result.json")
    np.testing.assert_array_equal(again.posterior["level"], found.posterior["level"])
    assert again.log_evidence == found.log_evidence


def sum_of_both(sample):
    return {**sample, "sum": sample["a"] + sample["b"]}


def test_bounds_periods_and_constraints_come_from_the_priors():
    priors = prior.PriorDict(
        {
            "a": prior.Uniform(0.0, 2.0),
            "b": prior.Uniform(-1.0, 1.0),
            "phase": prior.Uniform(0.0, 2 * np.pi, boundary="periodic"),
            "sum": prior.Constraint(0.0, 1.0),
        },
        conversion_function=sum_of_both,
    )

    class Flat(bilby.Likelihood):
        def log_likelihood(self, parameters):
            return 0.5

    problem = problem_from_likelihood(Flat(), priors, plausible={"a": (0.25, 0.75)})
    assert problem.names == ("a", "b", "phase")
    assert (problem.lower.tolist(), problem.upper.tolist()) == ([0, -1, 0], [2, 1, 2 * np.pi])
    assert problem.periodic == ("phase",)
    assert (problem.plausible_lower[0], problem.plausible_upper[0]) == (0.25, 0.75)
    assert problem.log_joint([1.5, 1.0, 3.0]) == -np.inf
    # 0 <= a + b <= 1 leaves 3/8 of the square; bilby estimates that share itself, from draws.
    density = -np.log(4 * 2 * np.pi * 3 / 8)
    assert problem.log_joint([0.5, 0.25, 3.0]) == pytest.approx(0.5 + density, abs=0.02)


class OldLevel:
    """As likelihoods were written before bilby 2.7; one that is a subclass is warned by bilby."""

    def __init__(self):
        self.parameters = {}

    def log_likelihood(self):
        return -self.parameters["level"]


def test_a_likelihood_that_keeps_its_parameters_is_called_as_it_was():
    density = problem_from_likelihood(OldLevel(), PRIORS).log_density
    assert density(np.array([0.25, 3.0])) == -3.0


def test_the_problem_travels():
    problem = problem_from_likelihood(Level(), PRIORS)
    assert pickle.loads(pickle.dumps(problem)).log_joint([0.4]) == problem.log_joint([0.4])


def test_what_cannot_be_inferred_is_named():
    priors = {
        "kind": prior.Categorical(3),
        "part": prior.ConditionalUniform(lambda reference, level: {}, minimum=0.0, maximum=1.0),
        "level": prior.Gaussian(0.0, 1.0),
    }
    with pytest.raises(sparing.ProblemError) as caught:
        problem_from_likelihood(Level(), priors)
    first, second = caught.value.faults
    assert first.startswith("kind has a discrete prior (Categorical)")
    assert second.startswith("part has a prior that depends on others (ConditionalUniform)")
    with pytest.raises(sparing.ProblemError, match="nothing to infer"):
        problem_from_likelihood(Level(), {"level": 1.0})
    with pytest.raises(sparing.ProblemError, match="plausible names 'lvl'"):
        problem_from_likelihood(Level(), PRIORS, plausible={"lvl": (0, 1)})
