"""The support that a problem declares: which functions are understood, and what is refused."""

import numpy as np
import pytest

import sparing
from sparing.acquisition.initial_design import LatinHypercube, initial_design
from sparing.problem.parameter_transform import ParameterTransform


def problem(support, **options):
    given = {"plausible_lower": [0.0, 0.0, 0.0], "plausible_upper": [1.0, 1.0, 1.0]} | options
    return sparing.Problem(lambda x: 0.0, support=support, **given)


def inside(support, **options):
    points = np.random.default_rng(1).random((200, 3))
    return points, problem(support, **options).support.contains(points)


def in_order(x):
    return bool(x[0] < x[1]) and bool(x[1] < x[2])


@pytest.mark.parametrize(
    ("support", "vectorised"),
    [
        (in_order, False),
        (lambda x: x[0] < x[1] < x[2], False),  # ambiguous for arrays: it raises
        (lambda x: np.all(np.diff(x) > 0), False),  # of all points together: one answer
        (lambda x: (x[0] < x[1]) & (x[1] < x[2]), False),  # of rows instead of columns
        (lambda x: np.array([in_order(x)]), False),
        (lambda x: np.all(np.diff(x, axis=-1) > 0, axis=-1), True),
        (lambda x: np.all(np.diff(x, axis=1) > 0, axis=1), True),  # many points only
    ],
)
def test_functions_of_one_point_or_of_many(support, vectorised):
    points, found = inside(support)
    np.testing.assert_array_equal(found, [in_order(x) for x in points])
    assert problem(support).support.vectorised == vectorised


def test_as_many_points_as_parameters_are_no_trap():
    """Three points of three parameters: rows and columns look alike."""
    declared = problem(lambda x: (x[0] < x[1]) & (x[1] < x[2])).support
    points = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.2, 0.3, 0.4]])
    assert declared.contains(points).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("support", "fault"),
    [
        (3.0, "support must be a function of x, not 3.0"),
        (lambda x: None, "support returned None (is a return statement missing?)"),
        (lambda x: 0.5, "support returned 0.5 instead of True or False"),
        (lambda x: x[7] > 0, "support raised IndexError"),
    ],
)
def test_anything_else_is_a_fault(support, fault):
    with pytest.raises(sparing.ProblemError) as caught:
        problem(support)
    (found,) = caught.value.faults
    assert found.startswith(fault)


def test_it_is_asked_about_all_parameters():
    fixed = problem(lambda x: x[..., 1] > x[..., 0], fixed={"x2": 0.5})
    assert fixed.support.contains(np.array([[0.4, 0.0], [0.6, 0.0]])).tolist() == [True, False]
    freed = fixed.free("x2")
    assert freed.support.contains(np.array([[0.4, 0.3, 0.0]])).tolist() == [False]


def test_the_target_is_not_called_outside():
    def target(x):
        assert x[0] < 0.5
        return 1.0

    cut = sparing.Problem(target, [0, 0], [1, 1], support=lambda x: x[0] < 0.5)
    assert cut.log_joint([0.2, 0.2]) == 1.0
    assert cut.log_joint([0.7, 0.2]) == cut.log_prior([0.7, 0.2]) == -np.inf
    assert repr(cut).splitlines()[-1].startswith("  support: tests.problem.test_declared_support.")


def test_points_outside_are_refused():
    cut = problem(lambda x: x[0] < 0.5)
    with pytest.raises(sparing.ProblemError, match=r"x0: x1 = 0\.7.* is outside the support"):
        cut.starting_points([0.7, 0.2, 0.2])
    run = sparing.Inference(cut, seed=1)
    with pytest.raises(sparing.ProblemError, match="outside the support"):
        run.tell([0.7, 0.2, 0.2], -1.0)


def test_a_function_that_fails_later_is_named():
    def support(x):
        if x[0] > 2.0:
            raise RuntimeError("no such place")
        return True

    with pytest.raises(sparing.TargetError, match=r"support .* raised RuntimeError: no such place"):
        problem(support).log_joint([3.0, 0.0, 0.0])


def design(support, x0=None, n=10, **options):
    cut = problem(support, **options)
    transform = ParameterTransform.from_problem(cut)
    starting_points = cut.starting_points(x0)
    generator = np.random.default_rng(3)
    return initial_design(transform, starting_points, n, LatinHypercube(), generator)


def test_the_first_points_are_inside_and_spread():
    points = design(in_order)
    assert points.shape == (10, 3)
    assert all(in_order(x) for x in points)
    assert len(np.unique(points, axis=0)) == 10
    assert np.ptp(points, axis=0).min() > 0.3


def test_points_of_the_design_that_are_inside_stay():
    everywhere, half = design(lambda x: True), design(lambda x: x[0] < 0.5)
    kept = everywhere[everywhere[:, 0] < 0.5]
    np.testing.assert_array_equal(half[: len(kept)], kept)


def test_a_thin_support_is_entered_from_x0():
    def thin(x):
        return np.abs(x[..., 0] - x[..., 1]) < 1e-7

    with pytest.raises(sparing.ProblemError, match="support is False at all of 65536 points"):
        design(thin)
    points = design(thin, x0=[0.5, 0.5, 0.5])
    assert thin(points).all()
    assert len(np.unique(points, axis=0)) == 10


def test_a_support_without_volume_is_refused():
    with pytest.raises(sparing.ProblemError, match="no other point near"):
        design(lambda x: x[0] == x[1], x0=[0.5, 0.5, 0.5])


def test_answers_that_depend_on_the_other_points_are_asked_for_one_by_one():
    def near_the_average(x):  # of the point's own coordinates; of many points, of all of theirs
        return np.abs(np.atleast_2d(x)[:, 0] - x.mean()) < 0.2

    points, found = inside(near_the_average)
    np.testing.assert_array_equal(found, np.abs(points[:, 0] - points.mean(axis=1)) < 0.2)
