"""Supports learnt from points: known sets, what is known of them, and what is no edge."""

import numpy as np
import pytest
from scipy.special import ndtr
from tests.hand_made import half_space

from sparing.problem.evaluations import Evaluation, Outcome, Status
from sparing.problem.parameter_transform import ParameterTransform
from sparing.problem.problem import Problem
from sparing.surrogate.support import LearntEdges, StandIns, learnt_support

OUTCOMES = {
    True: Outcome(0.0, Status.OK, 0.1),
    False: Outcome(-np.inf, Status.OUT_OF_SUPPORT, 0.1),
    None: Outcome(np.nan, Status.FAILED, 0.1, "boom"),
}


def box(dimension, **bounds):
    problem = Problem(lambda x: 0.0, np.full(dimension, -2.0), np.full(dimension, 2.0), **bounds)
    return ParameterTransform.from_problem(problem)  # u = x / 4 without bounds


def evaluated(points, inside):
    """Evaluations of a normal density cut by a set; None: the target failed."""
    entries = []
    for i, (x, is_inside) in enumerate(zip(points, inside, strict=True)):
        outcome = OUTCOMES[is_inside if is_inside is None else bool(is_inside)]
        if outcome.usable:
            outcome = Outcome(-0.5 * float(x @ x), Status.OK, 0.1)
        entries.append(Evaluation(i, None, np.asarray(x, dtype=float), outcome))
    return entries


def learnt(contains, dimension, n, seed=1, transform=None):
    points = 1.3 * np.random.default_rng(seed).normal(size=(n, dimension))
    transform = box(dimension) if transform is None else transform
    return learnt_support(evaluated(points, contains(points)), transform), points


def draws(dimension, n=20_000, seed=2):
    return np.random.default_rng(seed).normal(size=(n, dimension))


SHAPES = {
    "half space": (lambda x: x[:, 0] + 0.5 * x[:, 1] < 0.4, 1, False),
    "wedge": (lambda x: (x[:, 0] < 0.5) & (x[:, 1] - x[:, 0] < 0.3), 2, False),
    "corner": (lambda x: (x < 1.0).all(axis=1) & (x.sum(axis=1) > -0.9), 3, False),
    "disc": (lambda x: (x**2).sum(axis=1) < 1.5, 1, True),
    "hole": (lambda x: ((x - 0.2) ** 2).sum(axis=1) > 0.8, 1, True),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_known_sets_are_found(shape):
    contains, n_surfaces, quadratic = SHAPES[shape]
    support, points = learnt(contains, 2, 150)
    assert (len(support.weights), support.quadratic, len(support.bumps)) == (
        n_surfaces,
        quadratic,
        0,
    )
    # One that lies between points inside, with none outside beside it, is taken for a failure.
    n_wrong = np.sum(support.contains(points / 4.0) != contains(points))
    assert n_wrong <= (1 if shape == "hole" else 0)
    x = draws(2)
    wrong = support.contains(x / 4.0) != contains(x)
    assert wrong.mean() < (0.04 if shape == "hole" else 0.02)
    known = np.abs(support.margin(x / 4.0)) >= 1.0
    assert known.mean() > 0.85
    assert wrong[known].mean() < 0.003


def test_other_sets_are_found_with_more_points():
    def contains(x):
        return np.sin(2.5 * x[:, 0]) + x[:, 1] < 0.5

    support, points = learnt(contains, 2, 400)
    assert len(support.bumps)
    x = draws(2)
    assert np.mean(support.contains(x / 4.0) != contains(x)) < 0.06
    assert np.mean(support.contains(points / 4.0) != contains(points)) < 0.01


@pytest.mark.parametrize("dimension", [1, 3, 6])
def test_what_is_expected_beyond_the_edge_is_there(dimension):
    """Over several sets of points: as many draws are on the wrong side as its own odds say."""
    expected, wrong = [], []
    for seed in range(12):
        normal = np.random.default_rng(seed + 50).normal(size=dimension)

        def contains(x, normal=normal):
            return x @ normal < 0.3 * np.linalg.norm(normal)

        support, _ = learnt(contains, dimension, 40 + 20 * dimension, seed=seed)
        x = draws(dimension)
        probability = support.probability(x / 4.0)
        np.testing.assert_allclose(probability, ndtr(2.0 * support.margin(x / 4.0)))
        expected.append(np.mean(np.minimum(probability, 1.0 - probability)))
        wrong.append(np.mean((probability > 0.5) != contains(x)))
    assert np.mean(wrong) == pytest.approx(np.mean(expected), rel=0.4)
    assert np.mean(wrong) > 1e-4


def test_an_edge_is_unknown_far_from_the_points_that_tell_it():
    """Two points close together on both sides of it: how the edge goes on nobody knows."""
    near = np.array([[0.0, 0.02], [0.0, -0.02], [0.0, -1.0], [0.2, -1.2], [-0.2, -0.9], [0, -2]])
    inside = [False, True, True, True, True, True]
    support = learnt_support(evaluated(near, inside), box(2))
    at = np.array([[0.0, 0.3], [0.0, -0.3], [3.0, 0.3], [-3.0, -0.3]])
    margin = support.margin(at / 4.0)
    assert margin[0] < -1.0 and margin[1] > 1.0
    assert np.all(np.abs(margin[2:]) < 0.5)


@pytest.mark.parametrize("whitened", [False, True])
def test_a_plane_of_the_users_coordinates_is_one_plane(whitened):
    """Parameters between 0 and 1 whose sum is at most one: bent in working coordinates."""
    problem = Problem(lambda x: 0.0, [0.1, 0.1], [0.6, 0.6], lower=[0, 0], upper=[1, 1])
    transform = ParameterTransform.from_problem(problem)
    if whitened:
        transform = transform.whitened(np.array([0.1, 0.2]), np.array([[2.0, 0.5], [-0.5, 1.0]]))
    points = np.random.default_rng(1).uniform(0.02, 0.9, size=(150, 2))
    support = learnt_support(evaluated(points, points.sum(axis=1) < 1.0), transform)
    assert support.in_user_coordinates and len(support.weights) == 1 and not support.quadratic
    x = np.random.default_rng(2).uniform(0.01, 0.95, size=(5000, 2))
    wrong = support.contains(transform.to_working(x)) != (x.sum(axis=1) < 1.0)
    assert wrong.mean() < 0.02


def test_a_plane_of_working_coordinates_is_one_plane():
    """A product below one: a plane in the logarithms, which are the working coordinates."""
    problem = Problem(lambda x: 0.0, [0.1, 0.1], [10.0, 10.0], lower=[0, 0], upper=[np.inf] * 2)
    transform = ParameterTransform.from_problem(problem)
    points = np.exp(1.5 * np.random.default_rng(1).normal(size=(150, 2)))
    support = learnt_support(evaluated(points, points.prod(axis=1) < 1.0), transform)
    assert not support.in_user_coordinates and len(support.weights) == 1 and not support.quadratic


def test_the_support_does_not_depend_on_the_coordinates_of_the_moment():
    contains = SHAPES["half space"][0]
    plain, _ = learnt(contains, 2, 60)
    other = box(2).whitened(np.array([0.1, -0.1]), np.array([[3.0, 1.0], [-1.0, 2.0]]))
    turned, _ = learnt(contains, 2, 60, transform=other)
    x = draws(2, 500)
    margin = plain.margin(x / 4.0)
    np.testing.assert_allclose(turned.margin(other.to_working(x)), margin, rtol=1e-6, atol=1e-8)


def test_without_a_point_outside_there_is_no_edge():
    points = draws(2, 20)
    assert learnt_support(evaluated(points, [True] * 20), box(2)) is None
    assert learnt_support(evaluated(points, [True] * 19 + [None]), box(2)) is None
    assert learnt_support(evaluated(points[:3], [True, True, False]), box(2)) is None  # too few


@pytest.mark.parametrize("dimension", [2, 4])
def test_a_target_that_fails_now_and_then_has_no_edge(dimension):
    """Minus infinity at one in thirty points, anywhere: in the middle nothing is cut off."""
    points = draws(dimension, 240, seed=3)
    inside = np.random.default_rng(8).random(240) > 1 / 30
    assert (~inside).sum() > 4
    support = learnt_support(evaluated(points, inside), box(dimension))
    x = draws(dimension)
    if support is not None:
        assert np.mean(~support.contains(x / 4.0)) < 0.01


def test_such_failures_do_not_move_an_edge():
    points = draws(3, 150, seed=5)
    truth = points[:, 0] < 0.5
    failing = np.random.default_rng(7).random(150) < 0.03
    assert (truth & failing).sum() > 2
    support = learnt_support(evaluated(points, truth & ~failing), box(3))
    x = draws(3)
    assert np.mean(support.contains(x / 4.0) != (x[:, 0] < 0.5)) < 0.02


def test_points_that_failed_are_on_no_side():
    contains = SHAPES["half space"][0]
    points = draws(2, 60)
    some = learnt_support(evaluated(points, contains(points)), box(2))
    beside = draws(2, 20, seed=9)
    entries = evaluated(np.vstack([points, beside]), [*contains(points), *[None] * 20])
    again = learnt_support(entries, box(2))
    np.testing.assert_array_equal(some.weights, again.weights)


def test_alternatives_are_as_often_inside_as_the_probability_says():
    contains = SHAPES["wedge"][0]
    support, _ = learnt(contains, 2, 60)
    x = draws(2, 300) / 4.0
    inside = support.alternatives(x, 4000, np.random.default_rng(1))
    assert inside.shape == (300, 4000)
    # With two surfaces the probability is that of the one that is nearer.
    np.testing.assert_allclose(inside.mean(axis=1), support.probability(x), atol=0.12)
    one = half_space(box(2), [1.0, 0.0], 0.1, sd=0.05)
    inside = one.alternatives(x, 4000, np.random.default_rng(1))
    np.testing.assert_allclose(inside.mean(axis=1), one.probability(x), atol=0.04)


def test_the_margin_of_a_plane_by_hand():
    support = half_space(box(2), [1.0, 0.0], 0.1, sd=0.05)
    u = np.array([[0.0, 0.0], [-0.3, 0.4], [-0.1, 7.0]])
    length = np.sqrt(1.0 + (u**2).sum(axis=1))  # of the features 1, u
    np.testing.assert_allclose(support.margin(u), (0.1 + u[:, 0]) / (2.0 * 0.05 * length))
    np.testing.assert_array_equal(support.contains(u), [True, False, False])
    assert support.margin(u[:0]).shape == support.contains(u[:0]).shape == (0,)


def test_strategies_learn_it_or_leave_it():
    points = draws(2, 60)
    entries = evaluated(points, SHAPES["half space"][0](points))
    assert StandIns().support(entries, box(2)) is None
    found = LearntEdges().support(entries, box(2))
    np.testing.assert_array_equal(found.weights, learnt_support(entries, box(2)).weights)
