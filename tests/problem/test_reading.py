"""What a problem takes from its prior when it is not given; x0 by name; args and kwargs."""

import pickle

import numpy as np
import pytest
from scipy import stats

import sparing


def flat(x):
    return 0.0


def faults(*arguments, **options):
    with pytest.raises(sparing.ProblemError) as caught:
        sparing.Problem(flat, *arguments, **options)
    return caught.value.faults


# ---------------------------------------------------------------------- bounds and box


def test_bounds_and_box_come_from_the_prior():
    problem = sparing.Problem(
        flat, prior={"a": stats.norm(3.0, 2.0), "b": stats.beta(2, 5), "c": stats.gamma(2)}
    )
    assert problem.names == ("a", "b", "c")
    np.testing.assert_array_equal(problem.lower, [-np.inf, 0.0, 0.0])
    np.testing.assert_array_equal(problem.upper, [np.inf, 1.0, np.inf])
    np.testing.assert_allclose(problem.plausible_lower[0], 1.0, atol=0.001)  # mean and sd
    np.testing.assert_allclose(problem.plausible_upper[0], 5.0, atol=0.001)
    reached = stats.beta(2, 5).cdf([problem.plausible_lower[1], problem.plausible_upper[1]])
    np.testing.assert_allclose(reached, stats.norm.cdf([-1.0, 1.0]), atol=1e-4)


def test_the_box_is_that_of_the_prior_within_the_bounds():
    (low,), (high,) = (
        sparing.Problem(flat, lower=0.0, upper=1.0, prior=stats.norm()).plausible_lower,
        sparing.Problem(flat, lower=0.0, upper=1.0, prior=stats.norm()).plausible_upper,
    )
    within = stats.truncnorm(0.0, 1.0)
    np.testing.assert_allclose([low, high], within.ppf([0.1587, 0.8413]))


@pytest.mark.parametrize(
    "prior", [[stats.norm(), stats.expon()], (stats.Normal(), stats.Uniform(a=0.0, b=1.0))]
)
def test_as_many_parameters_as_distributions_or_names(prior):
    assert sparing.Problem(flat, prior=prior).names == ("x1", "x2")
    assert sparing.Problem(flat, prior=prior, names=["a", "b"]).names == ("a", "b")


def test_what_is_given_is_kept():
    problem = sparing.Problem(
        flat,
        [-1.0, None],
        {"a": None, "b": 3.0},
        lower={"b": 0.5},
        names=["a", "b"],
        prior=[stats.norm(), stats.expon()],
    )
    np.testing.assert_allclose(problem.plausible_lower, [-1.0, 0.5 - np.log(1 - 0.1587)])
    np.testing.assert_allclose(problem.plausible_upper, [stats.norm.ppf(0.8413), 3.0])
    np.testing.assert_array_equal(problem.lower, [-np.inf, 0.5])


def test_a_fixed_parameter_is_freed_with_the_box_of_its_prior():
    problem = sparing.Problem(flat, prior=[stats.norm(), stats.norm(4, 1)], fixed={"x2": 1.0})
    np.testing.assert_allclose(problem.free("x2").plausible_lower, [-1.0, 3.0], atol=0.001)


def test_a_list_that_changes_later_does_not_change_the_problem():
    prior = [stats.norm(), stats.norm(4, 1)]
    problem = sparing.Problem(flat, prior=prior)
    prior[0] = stats.norm(100, 1)
    assert problem.fix(x2=4.0).log_prior([0.0]) == pytest.approx(stats.norm.logpdf(0.0))


def test_what_no_prior_says_is_missing():
    nothing = "is missing: give it, or a prior that it can be read from"
    assert faults() == (f"plausible_lower {nothing}", f"plausible_upper {nothing}")
    assert faults(prior=lambda x: 0.0) == (
        "x1: it has no plausible box: give one, or a prior that is one of its own",
    )
    assert faults(prior=[stats.norm()], plausible_lower=[np.nan]) == ("x1: plausible_lower is nan",)
    assert faults(prior=[stats.expon()], lower=[-1.0]) == (
        "x1: its prior is zero outside [0, inf), its lower bound is -1: set lower to 0.0",
    )


# ---------------------------------------------------------------------- x0 by name


def test_starting_points_by_name():
    problem = sparing.Problem(flat, [0, 0, 0], [1, 1, 1], names=["a", "b", "c"], fixed={"b": 0.5})
    read = problem.starting_points
    np.testing.assert_array_equal(read({"c": 0.3, "a": 0.1}), [[0.1, 0.3]])
    several = {"c": [0.3, 0.4], "a": 0.1, "b": 0.5}
    np.testing.assert_array_equal(read(several), [[0.1, 0.3], [0.1, 0.4]])
    for x0, fault in [
        ({"a": 0.1}, "x0 has no value for 'c'"),
        ({"a": 0.1, "c": 0.2, "d": 0.3}, "x0 names 'd', which is not a parameter"),
        ({"a": 0.1, "c": 0.2, "b": 0.6}, "x0: b = 0.6, but it is fixed at 0.5"),
        ({"a": [0.1, 0.2], "c": [0.1] * 3}, "x0 has a different number of values for different"),
        ({"a": "low", "c": 0.1}, "x0 holds 'low', which is not a real number"),
    ]:
        with pytest.raises(sparing.ProblemError) as caught:
            read(x0)
        assert len(caught.value.faults) == 1
        assert caught.value.faults[0].startswith(fault)


def test_a_run_starts_from_names():
    problem = sparing.Problem(flat, [0, 0], [1, 1], names=["a", "b"])
    (proposal,) = sparing.Inference(problem, x0={"b": 0.25, "a": 0.75}, seed=1).ask()
    np.testing.assert_array_equal(proposal.x, [0.75, 0.25])


# ---------------------------------------------------------------------- args and kwargs


def scaled(x, data, scale=1.0):
    return scale * float(data @ x)


def test_what_the_log_density_takes_besides_x():
    problem = sparing.Problem(
        scaled, [0, 0], [1, 1], args=(np.array([1.0, 10.0]),), kwargs={"scale": 2.0}
    )
    alone = sparing.Problem(scaled, [0, 0], [1, 1], args=np.array([1.0, 10.0]))
    assert alone.log_joint([0.1, 0.2]) == pytest.approx(2.1)
    assert faults(0, 1, kwargs=[2.0]) == ("kwargs must map names to values, not [2.0]",)
    assert problem.log_joint([0.1, 0.2]) == pytest.approx(4.2)
    assert problem.fix(x1=0.1).log_joint([0.2]) == pytest.approx(4.2)
    assert pickle.loads(pickle.dumps(problem)).log_joint([0.1, 0.2]) == pytest.approx(4.2)


# ---------------------------------------------------------------------- log prior and likelihood


def test_an_evaluation_keeps_its_parts(tmp_path):
    prior = [stats.norm(), stats.norm(1.0, 2.0)]
    problem = sparing.Problem(lambda x: -float(x @ x), prior=prior)
    with sparing.Inference(problem, seed=1, store=tmp_path / "run") as run:
        first, second, third = run.ask(3)
        told = [
            run.tell_outcome(first, sparing.executors.evaluate(problem, first.x)),
            run.tell(second, problem.log_joint(second.x)),
            run.tell(third, error="none"),
        ]
    for entry in told[:2]:
        assert entry.log_prior == problem.log_prior(entry.x)
        assert entry.log_likelihood == pytest.approx(-float(entry.x @ entry.x))
    assert np.isnan(told[2].log_likelihood)
    with sparing.Inference(problem, store=tmp_path / "run") as run:
        assert [e.log_prior for e in run.evaluations[:2]] == [e.log_prior for e in told[:2]]
    line = (tmp_path / "run" / "evaluations.jsonl").read_text().splitlines()[-1]
    assert "log_prior" not in line  # where there is none, lines are as they were


def test_without_a_prior_there_are_no_parts():
    problem = sparing.Problem(flat, 0, 1)
    outcome = sparing.executors.evaluate(problem, np.array([0.5]))
    assert np.isnan(outcome.log_prior)
    run = sparing.Inference(problem, seed=1)
    (proposal,) = run.ask()
    assert np.isnan(run.tell(proposal, 0.0).log_likelihood)
