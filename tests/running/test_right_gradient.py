"""A gradient that is not that of the values is refused; a right one never is."""

import concurrent.futures
import pickle
import threading

import numpy as np
import pytest
from scipy import stats
from tests.light import LIGHT

import sparing
from sparing.errors import SettingsError, SparingWarning, WrongGradientError
from sparing.executors import evaluate
from sparing.running.right_gradient import require_right_gradient

WIDE = np.array([1.0, 100.0, 1e-4])  # units of three parameters


def curved(x):
    """A ridge, not quadratic, in three units, with its gradient."""
    z = x / WIDE
    value = -0.5 * z[0] ** 2 - 5.0 * (z[1] - z[0] ** 2) ** 2 - np.cosh(z[2]) - 1e3
    ridge = -10.0 * (z[1] - z[0] ** 2)
    gradient = np.array([-z[0] - 2.0 * z[0] * ridge, ridge, -np.sinh(z[2])])
    return float(value), gradient / WIDE


def problem_of(log_density=curved, **options):
    box = {"plausible_lower": -2.0 * WIDE, "plausible_upper": 2.0 * WIDE}
    return sparing.Problem(log_density, **{**box, **options}, gradient=True)


def points(n=40, seed=1, scale=1.0):
    return scale * np.random.default_rng(seed).uniform(-2.0, 2.0, (n, 3)) * WIDE


class Calls:
    """Evaluations of a problem, counted."""

    def __init__(self, problem):
        self.problem, self.n = problem, 0

    def __call__(self, x):
        self.n += 1
        return evaluate(self.problem, x)


def check(problem, x):
    """Whether the gradient at x is accepted, and how many evaluations that took."""
    calls, outcome = Calls(problem), evaluate(problem, x)
    assert outcome.gradient is not None
    try:
        return require_right_gradient(problem, x, outcome, calls), calls.n
    except WrongGradientError:
        return False, calls.n


def test_a_right_one_takes_one_evaluation():
    assert [check(problem_of(), x) for x in points()] == [(True, 1)] * 40
    prior = [stats.norm(0.0, width) for width in WIDE]
    assert [check(problem_of(prior=prior), x) for x in points()] == [(True, 1)] * 40


@pytest.mark.parametrize("scale", [1e-4, 1e-8, 5.0])
def test_a_right_one_next_to_the_mode_or_far_away(scale):
    far = points(scale=scale)
    assert all(check(problem_of(), x)[0] for x in far)


def test_a_right_one_at_the_very_mode():
    assert check(problem_of(lambda x: (-0.5 * float(x @ x), -x)), np.zeros(3))[0]


@pytest.mark.parametrize(
    "wrong",
    [
        np.negative,
        np.zeros_like,
        lambda gradient: 2.0 * gradient,
        lambda gradient: gradient[::-1],
        lambda gradient: gradient * WIDE,
        lambda gradient: gradient * np.array([1.0, -1.0, 1.0]),
        lambda gradient: 0.8 * gradient,
    ],
)
def test_a_wrong_one_is_refused(wrong):
    def log_density(x):
        value, gradient = curved(x)
        return value, wrong(gradient)

    accepted = [check(problem_of(log_density), x)[0] for x in points()]
    assert sum(accepted) <= 1  # over a step on which the values bend just so


def test_one_without_the_part_of_a_prior_is_refused():
    def log_density(x):
        value, gradient = curved(x)
        return value - 0.5 * float(np.sum((x / WIDE) ** 2)) + float(x[2] / WIDE[2]), gradient

    accepted = [check(problem_of(log_density), x)[0] for x in points()]
    assert sum(accepted) <= 4  # where that part is next to nothing


def test_one_that_has_the_part_of_a_prior_twice_is_refused():
    def log_density(x):
        value, gradient = curved(x)
        return value, gradient - x / WIDE**2

    prior = [stats.norm(0.0, width) for width in WIDE]
    accepted = [check(problem_of(log_density, prior=prior), x)[0] for x in points()]
    assert sum(accepted) <= 4  # where that part is next to nothing


def test_one_with_respect_to_logarithms_is_refused():
    def rates(x):
        return float(np.sum(3.0 * np.log(x) - x)), 3.0 / x - 1.0

    def by_logarithms(x):
        value, gradient = rates(x)
        return value, gradient * x

    box = {"plausible_lower": [0.2] * 3, "plausible_upper": [9.0] * 3, "lower": 0.0}
    generator = np.random.default_rng(2)
    for x in generator.uniform(0.01, 9.0, (40, 3)):
        assert check(problem_of(rates, **box), x)[0]
        assert not check(problem_of(by_logarithms, **box), x)[0]


@pytest.mark.parametrize("distance", [0.0, 1e-300, 1e-12, 1e-3])
def test_next_to_a_bound(distance):
    def inside(x):
        assert np.all(x >= 0.0)
        return float(np.sum(-x - x**2)), -1.0 - 2.0 * x

    box = {"plausible_lower": [0.0] * 3, "plausible_upper": [1.0] * 3, "lower": 0.0}
    x = np.array([distance, 0.5, distance])
    assert check(problem_of(inside, **box), x) == (True, 1)


@pytest.mark.parametrize("steepness", [1e2, 1e4])
def test_of_a_stiff_target(steepness):
    def stiff(x):
        z = steepness * x / WIDE
        value = -float(np.sum(np.log(np.cosh(np.clip(z, -300.0, 300.0))))) - float(z @ z)
        return value, -(np.tanh(z) + 2.0 * z) * steepness / WIDE

    assert all(check(problem_of(stiff), x)[0] for x in points())


def test_of_a_target_with_kinks():
    def kinked(x):
        return -float(np.sum(np.abs(x / WIDE))), -np.sign(x) / WIDE

    assert all(check(problem_of(kinked), x)[0] for x in points())


def test_in_single_precision():
    def rounded(x):
        value, gradient = curved(x)
        return float(np.float32(value)), np.float32(gradient)

    assert all(check(problem_of(rounded), x)[0] for x in points())


@pytest.mark.parametrize("size", [1e-8, 1e-6, 1e-5])
def test_of_values_that_are_rough(size):
    """As those of a solver are: the same at the same point, and never smooth."""

    def rough(x):
        value, gradient = curved(x)
        digits = np.random.default_rng(np.asarray(x).view(np.uint64))
        return value * (1.0 + size * digits.standard_normal()), gradient

    refused = [not check(problem_of(rough), x)[0] for x in points()]
    assert sum(refused) <= 3


def noisy(sd, wrong=lambda gradient: gradient, *, told=True, seed=3):
    generator = np.random.default_rng(seed)

    def log_density(x):
        value, gradient = curved(x)
        gradient = wrong(gradient) * (1.0 + 0.02 * generator.standard_normal(3))
        value += sd * generator.standard_normal()
        return (value, gradient, sd) if told else (value, gradient)

    return problem_of(log_density)


@pytest.mark.filterwarnings("ignore:nobody knows")
@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("sd", [0.01, 0.3, 3.0])
def test_noise_does_not_make_it_wrong(sd, told):
    assert all(check(noisy(sd, told=told), x)[0] for x in points())


@pytest.mark.filterwarnings("ignore:nobody knows")
def test_a_wrong_sign_is_seen_through_noise():
    assert not any(check(noisy(0.01, np.negative), x)[0] for x in points())
    refused = [not check(noisy(0.3, np.negative), x)[0] for x in points()]
    assert sum(refused) > 20


def test_where_noise_hides_it_that_is_said():
    with pytest.warns(SparingWarning, match="the noise of its values hides it"):
        assert check(noisy(1e4), points()[0]) == (True, 1)
    with pytest.warns(SparingWarning, match="gives another value when it is called again"):
        assert check(noisy(3.0, told=False), points()[0]) == (True, 2)


def test_where_there_is_no_other_value_that_is_said():
    x = points()[0]

    def alone(at):
        return curved(at) if np.array_equal(at, x) else (-np.inf, None)

    with pytest.warns(SparingWarning, match=r"there is no value \(the log density is -inf\)"):
        assert check(problem_of(alone), x) == (True, 2)


def test_the_other_way_is_taken_where_one_has_no_value():
    def half(x):
        return (float(x @ x), 2.0 * x) if x[0] <= 0.5 else (-np.inf, None)

    problem = problem_of(half, plausible_lower=[-1.0] * 3, plausible_upper=[1.0] * 3)
    x = np.array([0.5, -0.5, 0.5])
    assert check(problem, x) == (True, 2)


def test_one_that_is_missing_next_door():
    x = points()[0]

    def once(at):
        value, gradient = curved(at)
        return value, gradient if np.array_equal(at, x) else None

    def flipped(at):
        value, gradient = once(at)
        return value, None if gradient is None else -gradient

    assert check(problem_of(once), x) == (True, 1)
    assert not check(problem_of(flipped), x)[0]


# ------------------------------------------------------------------ in a run


class Target:
    """A normal in two dimensions that keeps the points it was called with."""

    def __init__(self, sign=1.0):
        self.sign, self.points, self.lock = sign, [], threading.Lock()

    def __call__(self, x):
        with self.lock:
            self.points.append(x.copy())
        return -0.5 * float(x @ x), -self.sign * x


def infer(target, store=None, **options):
    problem = sparing.Problem(target, [-2.0, -2.0], [2.0, 2.0], gradient=True)
    options = {"seed": 1, "settings": LIGHT, "progress": False, "max_evaluations": 12, **options}
    return sparing.infer(problem, store=store, **options)


def test_a_run_makes_one_evaluation_more():
    checked, unchecked = Target(), Target()
    results = infer(checked), infer(unchecked, check_gradient=False)
    assert (len(checked.points), len(unchecked.points)) == (13, 12)
    points = [[entry.x.tolist() for entry in result.evaluations] for result in results]
    assert points[0] == points[1]
    assert results[0].log_evidence == results[1].log_evidence


def test_a_run_with_a_wrong_one_ends_before_its_first_iteration(tmp_path):
    wrong = Target(-1.0)
    with pytest.raises(WrongGradientError) as caught:
        infer(wrong, tmp_path / "run")
    assert len(wrong.points) == 6  # the point, the step, the point again, three more steps
    error = pickle.loads(pickle.dumps(caught.value))
    assert error.claimed == pytest.approx(-error.measured, rel=0.01)
    length = np.linalg.norm(error.step)
    shown = [f"{error.measured / length:.6g} by its values", f"{error.claimed / length:.6g} by its"]
    assert all(part in str(error) for part in (*shown, "check_gradient=False", "gradient=None"))
    infer(Target(-1.0), check_gradient=False)
    with pytest.raises(SettingsError, match="check_gradient must be True or False"):
        infer(Target(), check_gradient="no")


def test_its_value_is_kept_and_the_run_goes_on_with_a_right_one(tmp_path):
    with pytest.raises(WrongGradientError):
        infer(Target(-1.0), tmp_path / "run")
    right = Target()
    result = infer(right, tmp_path / "run")
    assert result.evaluations[0].gradient is None
    assert result.evaluations[0].message == "no gradient: it is not checked"
    assert all(entry.gradient is not None for entry in result.evaluations[1:])
    assert len(right.points) == 11 + 2  # the target's own test, and that of its gradient
    again = Target(-1.0)
    infer(again, tmp_path / "run", max_evaluations=14, check_target=False)
    assert len(again.points) == 2  # what is stored was checked


def test_with_workers_the_others_wait_for_it():
    target = Target()
    with concurrent.futures.ThreadPoolExecutor(4) as executor:
        result = infer(target, executor=executor, workers=4)
        assert len(target.points) == 13
        assert all(entry.gradient is not None for entry in result.evaluations)
        wrong = Target(-1.0)
        with pytest.raises(WrongGradientError):
            infer(wrong, executor=executor, workers=4)


def test_several_runs_check_it_once():
    target = Target()
    results = infer(target, runs=2)
    n_proposed = sum(result.n_evaluations for result in results.results)
    own = [entry for entry in results.pooled.evaluations if entry.identifier is not None]
    assert len(target.points) == n_proposed + len(own) + 1


def test_on_request_in_a_run_of_ones_own():
    for sign in (1.0, -1.0):
        target = Target(sign)
        problem = sparing.Problem(target, [-2.0, -2.0], [2.0, 2.0], gradient=True)
        run = sparing.Inference(problem, seed=1)
        run.check_gradient()
        value, gradient = problem.log_joint_and_gradient([0.5, 0.3])
        run.tell([0.5, 0.3], value, gradient=gradient)
        assert len(target.points) == 1
        if sign > 0.0:
            run.check_gradient()
        else:
            with pytest.raises(WrongGradientError):
                run.check_gradient()
