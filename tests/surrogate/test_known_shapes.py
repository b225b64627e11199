"""Shapes that the evaluations show by themselves: a parabola, the spread of the best points."""

import numpy as np
import pytest

from sparing.problem.coordinate_maps import BoundedMap
from sparing.problem.evaluations import Evaluation, Outcome, Status
from sparing.problem.parameter_transform import ParameterTransform
from sparing.problem.problem import Problem
from sparing.surrogate.known_shapes import best_points, known_parabola

# Working coordinates are a quarter and a third of the user's.
PLANE = ParameterTransform.from_problem(
    Problem(lambda x: 0.0, [-2.0, -1.5], [2.0, 1.5]), BoundedMap.LOGIT
)
VOLUME = np.log(12.0)  # what the density gains in them


def entries(x, values, gradients=None):
    slopes = [None] * len(x) if gradients is None else [tuple(g) for g in gradients]
    return [
        Evaluation(i, None, point, Outcome(value, Status.OK, 0.1, gradient=slope))
        for i, (point, value, slope) in enumerate(zip(x, values, slopes, strict=True))
    ]


def normal(n):
    x = np.random.default_rng(3).normal(size=(n, 2)) * [1.0, 0.5]
    return x, -0.5 * (x[:, 0] ** 2 + 4.0 * x[:, 1] ** 2), -x * [1.0, 4.0]


def test_a_parabola_is_in_working_coordinates():
    x, values, gradients = normal(9)
    for told, n in ((gradients, 4), (None, 9)):
        found = known_parabola(entries(x, values, told), PLANE)
        np.testing.assert_allclose(found.mean, 0.0, atol=1e-9)
        np.testing.assert_allclose(found.covariance, np.diag([1 / 16, 0.25 / 9]), atol=1e-9)
        assert found.height == pytest.approx(VOLUME)
        fewer = None if told is None else told[: n - 1]
        assert known_parabola(entries(x[: n - 1], values[: n - 1], fewer), PLANE) is None


def test_the_best_points_lie_along_a_ridge():
    generator = np.random.default_rng(5)
    t = generator.uniform(-6.0, 6.0, 400)
    x = np.column_stack([t, t + 3.0 * generator.normal(size=400)])
    values = -0.5 * ((x[:, 0] - x[:, 1]) / 0.1) ** 2 - 0.01 * t**2
    found = best_points(entries(x, values), PLANE)
    u = PLANE.to_working(x)
    correlation = found.covariance[0, 1] / np.sqrt(np.prod(np.diag(found.covariance)))
    assert correlation > 0.9 > 0.85 > np.corrcoef(u.T)[0, 1] + 0.05
    # By hand: the better half, the best one counting most.
    order = np.argsort(-values)[:200]
    weights = np.log(200.5 / np.arange(1, 201))
    mean = weights @ u[order] / weights.sum()
    np.testing.assert_allclose(found.mean, mean, atol=1e-12)
    offsets = u[order] - mean
    spread = (weights[:, None] * offsets).T @ offsets / weights.sum()
    np.testing.assert_allclose(found.covariance, spread, rtol=0.02)


def test_few_points_have_no_spread():
    x, values, _ = normal(4)
    assert best_points(entries(x, values), PLANE) is not None
    assert best_points(entries(x[:3], values[:3]), PLANE) is None
    assert best_points(entries(x * [1.0, 0.0], values), PLANE) is None
    failed = Evaluation(4, None, x[0], Outcome(np.nan, Status.FAILED, 0.1))
    found = best_points([*entries(x, values), failed], PLANE)
    np.testing.assert_array_equal(found.mean, best_points(entries(x, values), PLANE).mean)
