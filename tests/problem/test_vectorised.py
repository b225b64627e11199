import numpy as np
import pytest
from scipy import stats

from sparing import Problem, ProblemError
from sparing.errors import InvalidValueError, TargetError


def make(log_density, **more):
    return Problem(log_density, [-1.0, -1.0], [1.0, 1.0], vectorised=True, **more)


def square(x):
    return -0.5 * np.sum(x**2, axis=1)


@pytest.mark.parametrize(
    ("returned", "parts"),
    [
        (lambda x: square(x), (-0.5, 0.0)),
        (lambda x: square(x).tolist(), (-0.5, 0.0)),
        (lambda x: float(square(x)[0]), (-0.5, 0.0)),  # one number will do for one point
        (lambda x: (square(x), np.full(len(x), 0.3)), (-0.5, 0.3)),
        (lambda x: (square(x), 0.3), (-0.5, 0.3)),  # the noise of all
    ],
)
def test_one_point_is_a_row(returned, parts):
    shapes = []
    problem = make(lambda x: shapes.append(x.shape) or returned(x))
    assert problem.estimated_log_joint([1.0, 0.0]) == parts
    assert shapes == [(1, 2)]


def test_many_points_are_one_call_and_one_answer_each():
    problem = make(lambda x: (square(x), [0.1, 0.2]))
    values = problem.returned_at(np.array([[1.0, 0.0], [2.0, 0.0]]))
    assert [tuple(map(float, value)) for value in values] == [(-0.5, 0.1), (-2.0, 0.2)]


def test_fixed_parameters_arguments_and_prior():
    def log_density(x, scale, *, shift):
        return scale * (x[:, 0] + 10.0 * x[:, 1]) + shift

    problem = make(
        log_density, prior=[stats.norm(), stats.norm()], args=(2.0,), kwargs={"shift": 1.0}
    ).fix(x1=3.0)
    assert problem.vectorised
    assert problem.log_joint([1.0]) == pytest.approx(27.0 + stats.norm.logpdf(1.0))
    assert problem.free("x1").vectorised


def test_the_target_is_not_called_outside():
    def never(x):
        raise AssertionError("called")

    assert make(never, lower=-2.0, upper=2.0).log_joint([3.0, 0.0]) == -np.inf
    ordered = make(never, support=lambda x: x[..., 0] < x[..., 1])
    assert ordered.log_joint([0.5, 0.0]) == -np.inf


@pytest.mark.parametrize(
    ("returned", "what"),
    [
        (-1.0, "returned -1.0 for"),
        (None, "returned None for"),
        ((), "returned None for"),
        (np.zeros(2), r"an array of shape \(2,\)"),
        (np.zeros((3, 1)), r"an array of shape \(3, 1\)"),
        ([[1.0], [2.0, 3.0]], r"returned \[\[1.0\], \[2.0, 3.0\]\] for"),
        ((np.zeros(3), np.zeros(2)), r"an array of shape \(2,\)"),
        ((-1.0, -2.0), "returned -1.0 for"),
    ],
)
def test_other_shapes_are_refused_with_words(returned, what):
    points = np.zeros((3, 2))
    with pytest.raises(TargetError, match=what) as caught:
        make(lambda x: returned).returned_at(points)
    assert "for x of shape (3, 2): it must return values of shape (3,)" in str(caught.value)
    assert not isinstance(caught.value, InvalidValueError)


@pytest.mark.parametrize("returned", [np.ma.masked_array([-1.0], [True]), [None], ["-1"], [True]])
def test_what_is_no_number_is_refused_for_its_point(returned):
    with pytest.raises(InvalidValueError, match=r"instead of one real number, at x1 = 0\.5"):
        make(lambda x: returned).log_joint([0.5, 0.0])


def test_vectorised_is_true_or_false():
    with pytest.raises(ProblemError, match="vectorised must be True or False, not 'yes'"):
        Problem(square, -1.0, 1.0, vectorised="yes")
