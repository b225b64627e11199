from __future__ import annotations

import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sparing import errors
from sparing.errors import InvalidValueError, ProblemError, TargetError
from sparing.problem.problem import Problem

INF = np.inf
NORMAL = stats.multivariate_normal([0.0, 0.0])


def log_density(x):
    return -0.5 * float(np.sum(x**2))


def make(**changes):
    arguments = {
        "log_density": log_density,
        "plausible_lower": [0.1, -1.0],
        "plausible_upper": [0.9, 1.0],
        "lower": [0.0, -INF],
        "upper": [1.0, INF],
        "names": ["rate", "shift"],
    }
    return Problem(**{**arguments, **changes})


def faults_of(**changes):
    with pytest.raises(ProblemError) as caught:
        make(**changes)
    return caught.value.faults


def test_what_a_problem_holds():
    problem = make()
    assert problem.dimension == 2
    assert problem.names == ("rate", "shift")
    assert problem.lower.tolist() == [0.0, -INF]
    assert problem.upper.tolist() == [1.0, INF]
    assert problem.plausible_lower.tolist() == [0.1, -1.0]
    assert problem.plausible_upper.dtype == np.float64
    assert problem.prior is None


def test_it_cannot_be_changed():
    given = np.array([0.1, -1.0])
    problem = make(plausible_lower=given)
    given[0] = 0.5  # the caller's array stays the caller's
    assert problem.plausible_lower[0] == 0.1
    with pytest.raises(ValueError, match="read-only"):
        problem.lower[0] = 3.0
    with pytest.raises(AttributeError):
        problem.names = ("a", "b")  # pyright: ignore[reportAttributeAccessIssue]


def test_pickling_keeps_it_unchangeable():
    again = pickle.loads(pickle.dumps(make(prior=[stats.uniform(), stats.norm()])))
    assert again.names == ("rate", "shift")
    assert again.log_joint([0.5, 1.0]) == make(prior=[stats.uniform(), stats.norm()]).log_joint(
        [0.5, 1.0]
    )
    assert not again.upper.flags.writeable


def test_scalars_make_a_problem_of_one_parameter():
    problem = Problem(log_density, -1, 1, lower=-2)
    assert problem.dimension == 1
    assert problem.names == ("x1",)
    assert problem.lower.tolist() == [-2.0]
    assert Problem(log_density, 0, 1, names="rate").names == ("rate",)


def test_a_scalar_holds_for_every_parameter():
    problem = Problem(log_density, [0.5, 1.0, 1.0], 2, lower=0)
    assert problem.dimension == 3
    assert problem.plausible_upper.tolist() == [2.0] * 3
    assert problem.lower.tolist() == [0.0] * 3
    assert problem.upper.tolist() == [INF] * 3


def test_none_is_no_bound():
    problem = make(lower=[0, None], upper=None)
    assert problem.lower.tolist() == [0.0, -INF]
    assert problem.upper.tolist() == [INF, INF]


def test_other_kinds_of_numbers():
    problem = make(
        plausible_lower=(Fraction(1, 4), np.float32(-1)), plausible_upper=[Decimal(1)] * 2
    )
    assert problem.plausible_lower.tolist() == [0.25, -1.0]


UNSEEN = "with characters nobody can see: write a backslash twice, or r'...', where one is meant"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"log_density": 3}, "log_density must be callable, not 3"),
        ({"plausible_lower": None},
         "plausible_lower is missing: give it, or a prior that it can be read from"),
        ({"plausible_lower": [0.1, "1"]}, "plausible_lower holds '1', which is not a real number"),
        ({"lower": [False, False]}, "lower holds False, which is not a real number"),
        ({"lower": [1j, 0]}, "lower holds 1j, which is not a real number"),
        ({"lower": [[0.0, 1.0], [0.0]]}, "lower is ragged: its rows have different lengths"),
        ({"lower": [[0, -1]]}, "lower has shape (1, 2): give one number per parameter"),
        ({"lower": []}, "lower has shape (0,): give one number per parameter"),
        ({"upper": [1.0]}, "upper has 1 values for 2 parameters"),
        ({"lower": [np.nan, -1]}, "rate: lower is nan"),
        ({"plausible_upper": [0.9, INF]}, "shift: plausible_upper is inf"),
        ({"plausible_upper": [0.9, np.nan]}, "shift: plausible_upper is nan"),
        ({"plausible_upper": [0.9, -1.0]},
         "shift: plausible_lower (-1) must be below plausible_upper (-1)"),
        ({"plausible_lower": [-0.1, -1]}, "rate: plausible_lower (-0.1) is below lower (0.0)"),
        ({"plausible_upper": [1.1, 1]}, "rate: plausible_upper (1.1) is above upper (1.0)"),
        ({"names": ["a"]}, "names holds 1 name for 2 parameters: ('a',)"),
        ({"names": "ab"}, "names holds 1 name for 2 parameters: ('ab',)"),
        ({"names": ["a", "a"]}, "names holds 'a' more than once"),
        ({"names": ["a", 2]}, "names holds 2, which is not a name"),
        ({"names": ["a", " "]}, "names holds ' ', which is not a name"),
        ({"names": ["a", "\beta"]}, rf"names holds '\x08eta', {UNSEEN}"),
        ({"names": ["a", "\nu"]}, rf"names holds '\nu', {UNSEEN}"),
        ({"names": ["a", "\udc80"]}, rf"names holds '\udc80', {UNSEEN}"),
        ({"names": 5}, "names must be a sequence of strings, not 5"),
        ({"periodic": "phase"}, "periodic names 'phase', which is not a parameter"),
        ({"periodic": ["rate", "shift"]},
         "shift: give lower and upper, one period apart, at which it wraps"),
        ({"periodic": 3}, "periodic must be names of parameters, not 3"),
        ({"prior": stats.poisson(2)},
         "prior: is discrete: sparing infers continuous parameters only"),
        ({"prior": [stats.uniform(), stats.expon(-2)], "lower": [0, -3]},
         "shift: its prior is zero outside [-2, inf), its lower bound is -3: set lower to -2.0"),
    ],
)  # fmt: skip
def test_each_fault(changes, expected):
    assert faults_of(**changes) == (expected,)


def test_bounds_the_wrong_way_round():
    faults = faults_of(lower=[1.0, INF], upper=[0.0, INF])
    assert faults[0] == "rate: lower (1) must be below upper (0)"
    assert "shift: lower (inf) must be below upper (inf)" in faults


def test_all_faults_are_listed_at_once_by_name():
    faults = faults_of(
        log_density=None,
        plausible_lower=[2.0, np.nan],
        upper=[1.0, -5.0],
        prior={"rate": stats.norm(), "shfit": stats.norm()},
    )
    assert faults == (
        "log_density must be callable, not None",
        "rate: plausible_lower (2) must be below plausible_upper (0.9)",
        "shift: plausible_lower is nan",
        "prior has no distribution for shift",
        "prior names an unknown parameter 'shfit'",
    )


def test_unusable_names_do_not_make_a_prior_by_name_look_wrong():
    (fault,) = faults_of(names=["rate", "rate"], prior={"rate": stats.norm()})
    assert fault == "names holds 'rate' more than once"


def test_the_message_lists_the_faults_one_per_line():
    with pytest.raises(ProblemError) as caught:
        make(lower=[0.5, 0.0])
    assert str(caught.value).splitlines() == [
        "the problem has 2 faults:",
        "  - rate: plausible_lower (0.1) is below lower (0.5)",
        "  - shift: plausible_lower (-1.0) is below lower (0.0)",
    ]
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("lower", "upper", "low", "high", "piece"),
    [
        (-1e308, 1e308, -1.0, 1.0, "too wide"),
        (-INF, INF, -1e308, 1e308, "too wide"),
        (-INF, INF, 1e20, 1e20 + 1e5, "too narrow"),
        (-1e300, 1e300, 1.0, 2.0, "too narrow"),
        (-1e300, INF, 1.0, 2.0, "too narrow"),
    ],
)
def test_ranges_beyond_double_precision(lower, upper, low, high, piece):
    with pytest.raises(ProblemError) as caught:
        Problem(log_density, low, high, lower, upper, names="rate")
    (fault,) = caught.value.faults
    assert fault.startswith("rate: ")
    assert piece in fault


def test_plausible_bounds_on_hard_bounds_are_moved_inside():
    problem = make(plausible_lower=[0.0, -1.0], plausible_upper=[1.0, 1.0])
    assert problem.plausible_lower.tolist() == [0.0, -1.0]  # what the user said
    low, high = problem.inner_plausible_box()
    np.testing.assert_allclose(low, [0.001, -1.0])
    np.testing.assert_allclose(high, [0.999, 1.0])
    low, high = make().inner_plausible_box()
    assert low.tolist() == [0.1, -1.0]
    assert high.tolist() == [0.9, 1.0]


def test_log_joint_adds_the_prior():
    problem = make(prior=[stats.uniform(0, 1), stats.norm(1.0, 2.0)])
    x = [0.5, 0.3]
    expected = log_density(np.array(x)) + stats.norm.logpdf(0.3, 1.0, 2.0)
    assert problem.log_joint(x) == pytest.approx(expected)
    assert problem.log_prior(x) == pytest.approx(stats.norm.logpdf(0.3, 1.0, 2.0))
    assert type(problem.log_joint(x)) is float
    assert make().log_prior(x) == 0.0
    assert make().log_joint(x) == log_density(np.array(x))


def test_the_density_is_not_called_where_the_prior_is_zero():
    calls = []
    problem = make(log_density=calls.append, prior=lambda x: -INF if x[1] > 0 else 0.0)
    assert problem.log_joint([0.5, 0.5]) == -INF
    assert problem.log_joint([1.5, -0.5]) == -INF  # outside the bounds
    assert problem.log_prior([1.5, -0.5]) == -INF
    assert calls == []
    with pytest.raises(InvalidValueError):  # append returns None
        problem.log_joint([0.5, -0.5])
    assert len(calls) == 1


def test_the_density_gets_its_own_array():
    def vandal(x):
        assert x.dtype == np.float64
        assert x.shape == (2,)
        value = log_density(x)
        x[:] = 100.0
        return value

    x = np.array([0.5, 0.5])
    problem = make(log_density=vandal)
    assert problem.log_joint(x) == log_density(np.array([0.5, 0.5]))
    assert x.tolist() == [0.5, 0.5]
    x.setflags(write=False)
    assert problem.log_joint(x) == log_density(x)
    # Nor may it change the point that a message quotes.
    failing = make(log_density=lambda x: x.fill(9.0))
    with pytest.raises(InvalidValueError, match=r"rate = 0\.5"):
        failing.log_joint(x)


@pytest.mark.parametrize(
    "value",
    [
        -1.5, np.float64(-1.5), np.float32(-1.5), np.array(-1.5), np.array([-1.5]),
        np.array([[-1.5]]), [-1.5], Fraction(-3, 2), Decimal("-1.5"),
        np.array([-1.5], dtype=object),
    ],
)  # fmt: skip
def test_values_that_are_one_number(value):
    result = make(log_density=lambda x: value).log_joint([0.5, 0.5])
    assert result == -1.5
    assert type(result) is float


def test_minus_infinity_and_integers_are_values():
    assert make(log_density=lambda x: -INF).log_joint([0.5, 0.5]) == -INF
    assert make(log_density=lambda x: -3).log_joint([0.5, 0.5]) == -3.0


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, r"returned None \(is a return statement missing\?\)"),
        (np.nan, "returned nan"),
        (np.array([np.nan]), "returned nan"),
        (INF, "returned inf"),
        (1 + 0j, r"returned \(1\+0j\)"),
        (np.complex128(1), "instead of one real number"),
        (np.array([1.0, 2.0]), r"returned array\(\[1\., 2\.\]\)"),
        (np.array([]), r"returned array\(\[\]"),
        ("-1.5", "returned '-1.5'"),
        (True, "returned True"),
        (np.ma.masked, "instead of one real number"),
        (np.array([None]), "instead of one real number"),
        (10**400, "instead of one real number"),
    ],
)
def test_values_that_are_no_log_density(value, said):
    problem = make(log_density=lambda x: value)
    with pytest.raises(InvalidValueError, match=said) as caught:
        problem.log_joint([0.5, 0.25])
    assert isinstance(caught.value, TargetError)
    assert str(caught.value).startswith("log_density returned")
    assert str(caught.value).endswith("at rate = 0.5, shift = 0.25")


def test_a_bad_prior_value_is_told_from_a_bad_density():
    with pytest.raises(InvalidValueError, match=r"the log prior returned nan.*shift = 0\.25"):
        make(prior=lambda x: np.nan).log_joint([0.5, 0.25])


def test_errors_of_the_density_pass_through():
    def broken(x):
        raise ZeroDivisionError("in the model")

    with pytest.raises(ZeroDivisionError, match="in the model"):
        make(log_density=broken).log_joint([0.5, 0.5])


def test_a_point_must_have_every_parameter():
    for x in ([0.5], [[0.5, 0.5]], [0.5, np.nan], 0.5):
        with pytest.raises(ValueError, match="a point is 2 numbers"):
            make().log_joint(x)
    assert Problem(log_density, -1, 1).log_joint(0.5) == -0.125


def test_starting_points():
    problem = make()
    assert problem.starting_points(None).shape == (0, 2)
    assert problem.starting_points([0.5, 3]).tolist() == [[0.5, 3.0]]
    assert problem.starting_points(np.array([[0.5, 3], [0.2, -9]])).tolist() == [
        [0.5, 3],
        [0.2, -9],
    ]
    assert problem.starting_points(np.empty((0, 2))).shape == (0, 2)


def test_starting_points_of_one_parameter():
    problem = Problem(log_density, -1, 1)
    assert problem.starting_points(0.5).tolist() == [[0.5]]
    assert problem.starting_points([0.5]).tolist() == [[0.5]]
    assert problem.starting_points([0.5, 0.1]).tolist() == [[0.5], [0.1]]
    assert problem.starting_points([[0.5], [0.1]]).tolist() == [[0.5], [0.1]]


def test_starting_points_on_a_bound_are_moved_inside():
    problem = make(lower=[0.0, -4.0], upper=[1.0, INF], plausible_lower=[1e-9, -1.0])
    moved = problem.starting_points([[0.0, -4.0], [1.0, 2.0]])
    # By 1/1000 of the plausible width, or to the plausible bound when that is nearer.
    np.testing.assert_allclose(moved, [[1e-9, -4.0 + 0.002], [1.0 - 0.0009, 2.0]], rtol=1e-9)
    assert np.all(moved > problem.lower)
    inside = [[1e-300, -4.0 + 1e-12]]
    assert problem.starting_points(inside).tolist() == inside


@pytest.mark.parametrize(
    ("x0", "expected"),
    [
        ([0.5], ["x0 has shape (1,), expected (2,) or (k, 2)"]),
        ([[[0.5, 1.0]]], ["x0 has shape (1, 1, 2), expected (2,) or (k, 2)"]),
        (0.5, ["x0 has shape (), expected (2,) or (k, 2)"]),
        (["a", 1.0], ["x0 holds 'a', which is not a real number"]),
        ([None, 1.0], ["x0 holds None, which is not a real number"]),
        ([1.5, np.nan], ["x0: rate = 1.5 is outside its bounds [0, 1]",
                         "x0: shift = nan is not finite"]),
        ([[0.5, 1.0], [-1.0, INF]], ["x0[1]: rate = -1 is outside its bounds [0, 1]",
                                     "x0[1]: shift = inf is not finite"]),
    ],
)  # fmt: skip
def test_faults_of_starting_points(x0, expected):
    with pytest.raises(ProblemError) as caught:
        make().starting_points(x0)
    assert list(caught.value.faults) == expected


def test_it_says_what_it_is():
    text = repr(make(prior=[stats.uniform(), stats.norm()]))
    assert "2 parameters" in text
    assert "log_density" in text
    assert "rate   in [0, 1], plausibly [0.1, 0.9]" in text
    assert "shift  in (-inf, inf), plausibly [-1, 1]" in text
    assert "prior: uniform, norm" in text
    assert "prior: multivariate_normal" in repr(make(lower=None, upper=None, prior=NORMAL))
    assert "log_density" in repr(make(prior=log_density)).splitlines()[-1]


@pytest.mark.parametrize(
    "error",
    [
        errors.ProblemError(["a", "b"]),
        errors.SettingsError(["a"]),
        errors.MissingExtraError("matplotlib", "plots"),
        errors.InvalidValueError("returned nan"),
    ],
)
def test_errors_survive_a_process_boundary(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
    assert isinstance(again, errors.SparingError)


def test_a_missing_extra_says_how_to_install_it():
    error = errors.MissingExtraError("matplotlib", "plots")
    assert str(error) == "matplotlib is not installed: pip install 'sparing[plots]'"
    assert isinstance(error, ImportError)


def test_bounds_by_name_are_put_in_order():
    problem = Problem(
        log_density,
        {"rate": 0.5, "shift": -3.0},
        {"shift": 3.0, "rate": 2.0},
        lower={"rate": 0.0},
        upper={"shift": None},
    )
    assert problem.names == ("rate", "shift")
    np.testing.assert_array_equal(problem.plausible_lower, [0.5, -3.0])
    np.testing.assert_array_equal(problem.plausible_upper, [2.0, 3.0])
    np.testing.assert_array_equal(problem.lower, [0.0, -np.inf])
    np.testing.assert_array_equal(problem.upper, [np.inf, np.inf])


def test_names_set_the_order_of_bounds_by_name():
    problem = Problem(log_density, {"b": -2.0, "a": -1.0}, 4.0, names=["a", "b"])
    np.testing.assert_array_equal(problem.plausible_lower, [-1.0, -2.0])
    np.testing.assert_array_equal(problem.plausible_upper, [4.0, 4.0])


def test_a_prior_by_name_gives_the_names():
    prior = {"rate": stats.norm(), "shift": stats.norm(0.0, 2.0)}
    assert Problem(log_density, [-1.0, -2.0], [1.0, 2.0], prior=prior).names == ("rate", "shift")


def test_bounds_by_name_that_do_not_match_are_refused_by_name():
    with pytest.raises(ProblemError) as caught:
        Problem(log_density, {"a": -1.0, "b": -1.0}, {"a": 1.0, "c": 1.0}, lower={"d": 0.0})
    text = str(caught.value)
    assert "plausible_upper has no value for 'b'" in text
    assert "plausible_upper names 'c', which is not a parameter" in text
    assert "lower names 'd', which is not a parameter" in text
