"""Gradients of log densities: what problems take, and what they make of it."""

import pickle

import numpy as np
import pytest
from scipy import stats

from sparing import Problem, ProblemError
from sparing.executors import evaluate
from sparing.problem.evaluations import Status
from sparing.problem.gradients import LogDensityWithGradient
from sparing.problem.priors import Prior

X = np.array([0.3, 1.7, 0.6])
NAMES = ["shift", "rate", "share"]
BOX = {"plausible_lower": [-1.0, 0.5, 0.2], "plausible_upper": [1.0, 3.0, 0.8], "names": NAMES}
PRIOR = [stats.norm(0.5, 2.0), stats.gamma(2.0, scale=0.7), stats.beta(2.0, 3.0)]


def value(x, power=2.0):
    return -float(np.sum(np.abs(x) ** power)) + float(x[0] * x[1])


def slope(x, power=2.0):
    return -power * np.abs(x) ** (power - 1.0) * np.sign(x) + np.array([x[1], x[0], 0.0])


def both(x, power=2.0):
    return value(x, power), slope(x, power)


def noisy(x):
    return value(x), slope(x), 0.25


def numerical(problem, x, step=1e-6):
    steps = step * np.eye(len(x))
    return [(problem.log_joint(x + h) - problem.log_joint(x - h)) / (2 * step) for h in steps]


def make(log_density=both, gradient=True, **options):
    return Problem(log_density, **{**BOX, **options}, gradient=gradient)


@pytest.mark.parametrize(("log_density", "gradient"), [(both, True), (value, slope)])
@pytest.mark.parametrize("prior", [None, PRIOR])
@pytest.mark.parametrize("power", [2.0, 3.0])
def test_of_the_log_joint(log_density, gradient, prior, power):
    problem = make(log_density, gradient, prior=prior, args=(power,))
    joint, found = problem.log_joint_and_gradient(X)
    assert joint == problem.log_joint(X) == value(X, power) + problem.log_prior(X)
    np.testing.assert_allclose(found, numerical(problem, X), rtol=1e-7)


def test_returned_with_noise():
    problem = make(noisy)
    assert problem.estimated_log_joint(X) == (value(X), 0.25)
    outcome = evaluate(problem, X)
    assert (outcome.value, outcome.noise_sd) == (value(X), 0.25)
    assert outcome.gradient == tuple(slope(X).tolist())
    assert evaluate(make(lambda x: (value(x), 0.25), slope), X).noise_sd == 0.25


def test_with_respect_to_what_is_inferred():
    whole = make(prior=PRIOR)
    nested = whole.fix(rate=1.7)
    expected = whole.log_joint_and_gradient(X)[1]
    np.testing.assert_array_equal(nested.log_joint_and_gradient(X[[0, 2]])[1], expected[[0, 2]])
    np.testing.assert_array_equal(nested.free().log_joint_and_gradient(X)[1], expected)
    joint = make(prior=stats.multivariate_normal(np.zeros(3), np.diag([1.0, 2.0, 3.0]) + 0.2))
    expected = joint.log_joint_and_gradient(X)[1]
    found = joint.fix(rate=1.7).log_joint_and_gradient(X[[0, 2]])[1]
    np.testing.assert_allclose(found, expected[[0, 2]], rtol=1e-12)
    # what the model says of a fixed parameter is nobody's business
    lost = make(lambda x: (value(x), slope(x) * [1.0, np.nan, 1.0]))
    assert lost.log_joint_and_gradient(X)[1] is None
    assert lost.fix(rate=1.7).log_joint_and_gradient(X[[0, 2]])[1] is not None


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (-1.5, "it is missing"),
        ((-1.5, None), "it is missing"),
        ((-1.5, [1.0, 2.0]), "its shape is (2,), not (3,)"),
        ((-1.5, np.ones((1, 3))), "its shape is (1, 3), not (3,)"),
        ((-1.5, 0.1), "its shape is (), not (3,)"),
        ((-1.5, [1.0, np.nan, 2.0]), "it is nan with respect to rate"),
        ((-1.5, [1.0, 2.0, -np.inf]), "it is -inf with respect to share"),
        ((-1.5, "steep"), "it holds 'steep', which is not a real number"),
        ((-1.5, [1.0, [2.0], 3.0]), "it is ragged: its rows have different lengths"),
    ],
)
def test_one_that_cannot_be_used_leaves_the_value(returned, reason):
    outcome = evaluate(make(lambda x: returned), X)
    assert (outcome.value, outcome.status, outcome.gradient) == (-1.5, Status.OK, None)
    assert outcome.message == f"no gradient: {reason}"
    given = returned[1] if isinstance(returned, tuple) else None
    assert evaluate(make(lambda x: -1.5, lambda x: given), X).message == outcome.message


def test_a_function_that_raises_leaves_the_value():
    def broken(x):
        raise FloatingPointError("the adjoint diverged")

    outcome = evaluate(make(value, broken), X)
    assert (outcome.value, outcome.gradient) == (value(X), None)
    expected = "no gradient: its function raised FloatingPointError: 'the adjoint diverged'"
    assert outcome.message == expected


def test_that_of_a_prior_which_has_none():
    class Cliff(Prior):
        def log_density(self, x):
            return 0.0 if np.array_equal(x, X) else -np.inf

        def support(self):
            return np.full(3, -np.inf), np.full(3, np.inf)

        def description(self):
            return {"kind": "cliff"}

    message = evaluate(make(prior=Cliff()), X).message
    assert message == "no gradient: that of the log prior is nan with respect to shift"


def test_there_is_none_where_there_is_no_density():
    problem = make(lambda x: (-np.inf, np.zeros(3)))
    outcome = evaluate(problem, X)
    assert (outcome.status, outcome.gradient) == (Status.OUT_OF_SUPPORT, None)
    assert outcome.message == "the log density is -inf"
    called = []
    outside = make(lambda x: 0.0, called.append, prior=PRIOR)
    assert outside.log_joint_and_gradient([0.0, -1.0, 0.5]) == (-np.inf, None)
    assert evaluate(make(lambda x: (np.nan, np.zeros(3))), X).gradient is None
    assert called == []


def test_the_value_alone_does_not_call_the_function():
    called = []
    problem = make(value, lambda x: called.append(x))
    assert problem.log_joint(X) == value(X)
    assert called == []


def test_the_target_may_keep_nothing_from_the_function():
    def spoiling(x):
        x[:] = np.nan
        return -1.5

    assert make(spoiling, slope).log_joint_and_gradient(X)[1] is not None


def test_one_parameter_has_a_number():
    problem = Problem(lambda x: (-1.5, 3.0), -1.0, 1.0, gradient=True)
    assert problem.log_joint_and_gradient(0.2)[1].tolist() == [3.0]


def test_without_gradients():
    assert Problem(value, **BOX).log_joint_and_gradient(X) == (value(X), None)
    assert Problem(value, **BOX, gradient=False).gradient is None
    assert evaluate(Problem(value, **BOX), X).message == ""


def test_the_argument_is_checked_with_the_others():
    with pytest.raises(ProblemError) as caught:
        Problem(value, **BOX, gradient=3.0, kwargs=1)
    assert [fault.partition(" ")[0] for fault in caught.value.faults] == ["kwargs", "gradient"]
    assert "must be True, for a log_density that returns (value, gradient)" in str(caught.value)


def test_it_is_shown_and_pickled():
    assert repr(make()).endswith("\n  gradient: returned with the value")
    assert repr(make(value, slope)).endswith(f"\n  gradient: {__name__}.slope")
    for problem in (make(prior=PRIOR), make(value, slope)):
        again = pickle.loads(pickle.dumps(problem))
        expected = problem.log_joint_and_gradient(X)[1]
        np.testing.assert_array_equal(again.log_joint_and_gradient(X)[1], expected)


class Own(LogDensityWithGradient):
    """A log density that knows its gradient."""

    def __init__(self):
        self.calls = []

    def __call__(self, x):
        self.calls.append("value")
        return value(x)

    def value_and_gradient(self, x):
        self.calls.append("both")
        return both(x)


def test_a_log_density_that_knows_its_gradient():
    density = Own()
    for given in (None, True):
        problem = make(density, given)
        np.testing.assert_array_equal(problem.log_joint_and_gradient(X)[1], slope(X))
        assert problem.log_joint(X) == value(X)
    assert density.calls == ["both", "value"] * 2
    assert repr(problem).endswith("\n  gradient: by differentiation")
    assert make(density, False).gradient is None
    assert make(density, False).fix(rate=1.7).gradient is None
    assert make(density).fix(rate=1.7).log_joint_and_gradient(X[[0, 2]])[1].shape == (2,)
    assert str(make(density, slope).gradient).endswith("slope")
