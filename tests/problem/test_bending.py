"""Bends against their formula written once more, against differences, and far away."""

import numpy as np
import pytest
from scipy.linalg import expm

from sparing.problem.bending import Bend, LevelledStretch, Stretch, Whitening, reach_of, rows_times

KINDS = ("ridge", "funnel", "both")
DIMENSIONS = (2, 3, 6)
REACH = 5.0


def random_bend(dimension, kind, seed=0, *, whitened=True):
    """c across e, S e = 0, and a whitening that is none of the bend's business."""
    generator = np.random.default_rng(seed)
    e = generator.normal(size=dimension)
    e /= np.linalg.norm(e)
    across = np.eye(dimension) - np.outer(e, e)
    shift, rates, axes = np.zeros(dimension), np.zeros(dimension), np.eye(dimension)
    if kind != "funnel":
        shift = across @ generator.normal(size=dimension)
        shift *= 0.5 / np.linalg.norm(shift)
    if kind != "ridge":
        root = generator.normal(size=(dimension, dimension))
        rates, axes = np.linalg.eigh(0.1 * across @ (root + root.T) @ across)
    whitening = Whitening.nothing(dimension)
    if whitened:
        matrix = np.eye(dimension) + 0.3 * generator.normal(size=(dimension, dimension))
        centre, volume = generator.normal(size=dimension), np.linalg.slogdet(matrix)[1]
        whitening = Whitening(matrix, np.linalg.inv(matrix), centre, float(volume))
    width = 0.25  # one sd
    return Bend(e / width, width * shift, axes, rates, REACH, whitening)


def as_defined(bend, w):
    """u of one point w (D,), as the module's first lines have it."""
    t = float(w @ bend.direction)
    r = t / (1.0 + (t / bend.reach) ** 4) ** 0.25
    S = bend.axes @ np.diag(bend.rates) @ bend.axes.T
    v = expm(-r * S) @ (w - bend.shift * (r**2 - 1.0))
    return bend.whitening.matrix @ (v - bend.whitening.centre)


def slopes(function, points, step=1e-4):
    """Derivatives at points (m, D) of rows or numbers by the coordinates, the last axis."""
    ends = [
        [function(points + k * step * e) for k in (-2, -1, 1, 2)] for e in np.eye(points.shape[1])
    ]
    return np.stack([(a - 8 * b + 8 * c - d) / (12 * step) for a, b, c, d in ends], axis=-1)


def points_at(dimension, sds, n=20, seed=1):
    return 0.25 * sds * np.random.default_rng(seed).normal(size=(n, dimension))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_a_bend_is_what_its_definition_says(dimension, kind):
    bend = random_bend(dimension, kind)
    for sds in (1.0, 10.0):
        points = points_at(dimension, sds)
        expected = [as_defined(bend, w) for w in points]
        np.testing.assert_allclose(bend.forwards(points), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("sds", [0.0, 1.0, 5.0, 30.0, 1e3, 1e6])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_forwards_and_backwards_are_inverse(dimension, kind, sds):
    bend, points = random_bend(dimension, kind), points_at(dimension, sds)
    size = 1e-11 * max(1.0, sds)
    np.testing.assert_allclose(bend.backwards(bend.forwards(points)), points, atol=size)
    np.testing.assert_allclose(bend.forwards(bend.backwards(points)), points, atol=size)


def test_a_bend_does_something():
    for kind in KINDS:
        bend, points = random_bend(3, kind, whitened=False), points_at(3, 1.0)
        assert np.abs(bend.forwards(points) - points).max() > 0.05
        along = points @ bend.direction  # which it leaves alone
        np.testing.assert_allclose(bend.forwards(points) @ bend.direction, along, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_log_jacobian_is_that_of_the_way_back(dimension, kind):
    bend = random_bend(dimension, kind)
    for sds in (1.0, 10.0):
        u = bend.forwards(points_at(dimension, sds, n=8))
        expected = np.linalg.slogdet(slopes(bend.backwards, u))[1]
        np.testing.assert_allclose(bend.log_jacobian(u), expected, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_gradient_that_is_pulled_back_is_that_of_the_values_there(dimension, kind):
    bend = random_bend(dimension, kind)

    def value(w):
        return -0.5 * np.sum((w - 0.1) ** 2, axis=1) + np.sin(3.0 * w[:, 0] * w[:, -1])

    def gradient(w):
        found = 0.1 - w
        found[:, 0] += 3.0 * w[:, -1] * np.cos(3.0 * w[:, 0] * w[:, -1])
        found[:, -1] += 3.0 * w[:, 0] * np.cos(3.0 * w[:, 0] * w[:, -1])
        return found

    w = points_at(dimension, 1.5, n=10)
    u = bend.forwards(w)
    expected = slopes(lambda u: value(bend.backwards(u)) + bend.log_jacobian(u), u)
    np.testing.assert_allclose(bend.pulled_back(u, gradient(w)), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("size", [1e3, 1e10, 1e50, 1e100, 1e150])
@pytest.mark.parametrize("kind", KINDS)
def test_far_away_everything_stays_finite(kind, size):
    bend = random_bend(3, kind)
    directions = np.vstack([np.eye(3), -np.eye(3), bend.direction, -bend.direction, np.ones(3)])
    for points in (size * directions, size * directions + 0.1):
        u, w = bend.forwards(points), bend.backwards(points)
        found = (u, w, bend.log_jacobian(points), bend.pulled_back(points, np.ones_like(points)))
        assert all(np.isfinite(part).all() for part in found)
        np.testing.assert_allclose(bend.backwards(u), points, atol=1e-9 * size)


def test_the_reach_is_t_where_a_posterior_is_and_bounded_elsewhere():
    t = np.array([0.0, 0.1, 0.2, 0.4, -0.4]) * REACH
    np.testing.assert_allclose(reach_of(t, REACH)[0], t, rtol=1e-2)
    far = np.array([30.0, 1e3, 1e6, 1e20, 1e70, 1e100, 1e200, 1e300])
    for sign in (1.0, -1.0):
        r, slope = reach_of(sign * far, REACH)
        np.testing.assert_allclose(r, sign * REACH, rtol=2e-3)
        assert np.all((slope >= 0.0) & (slope < 0.01))
    t = np.linspace(-40.0, 40.0, 401)
    r, slope = reach_of(t, REACH)
    assert np.all(np.abs(r) < REACH)
    assert np.all(np.diff(r) > 0.0)
    step = 1e-3
    numerical = (
        reach_of(t - 2 * step, REACH)[0]
        - 8 * reach_of(t - step, REACH)[0]
        + 8 * reach_of(t + step, REACH)[0]
        - reach_of(t + 2 * step, REACH)[0]
    ) / (12 * step)
    np.testing.assert_allclose(slope, numerical, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_do_not_depend_on_their_batch(kind):
    bend, points = random_bend(6, kind), points_at(6, 2.0, n=33)
    gradients = points_at(6, 3.0, n=33, seed=2)
    together = [
        bend.forwards(points),
        bend.backwards(points),
        bend.log_jacobian(points),
        bend.pulled_back(points, gradients),
    ]
    for i in range(len(points)):
        row = points[i : i + 1]
        alone = [
            bend.forwards(row),
            bend.backwards(row),
            bend.log_jacobian(row),
            bend.pulled_back(row, gradients[i : i + 1]),
        ]
        for one, many in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one[0], many[i])


def test_rows_times_is_a_product_of_matrices():
    generator = np.random.default_rng(3)
    matrix, rows = generator.normal(size=(4, 4)), generator.normal(size=(9, 4))
    np.testing.assert_allclose(rows_times(matrix, rows), rows @ matrix.T, atol=1e-14)


def test_whitening_by_nothing():
    nothing, points = Whitening.nothing(4), points_at(4, 1.0)
    np.testing.assert_array_equal(nothing.forwards(points), points)
    np.testing.assert_array_equal(nothing.backwards(points), points)
    assert nothing.log_determinant == 0.0
    bend = Bend(np.ones(4), np.zeros(4), np.eye(4), np.zeros(4), REACH, nothing)
    np.testing.assert_array_equal(bend.forwards(points), points)
    np.testing.assert_array_equal(bend.log_jacobian(points), np.zeros(len(points)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_points_have_the_width_that_is_asked_for(dimension, kind):
    plain = random_bend(dimension, kind, whitened=False)
    mixing = np.random.default_rng(4).normal(size=(dimension, dimension))
    points = 0.3 + points_at(dimension, 1.0, n=500) @ mixing
    bend = plain.whitened(points, 0.25)
    u = bend.forwards(points)
    np.testing.assert_allclose(u.mean(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(np.cov(u.T), 0.0625 * np.eye(dimension), atol=1e-10)
    np.testing.assert_allclose(bend.backwards(u), points, atol=1e-9)
    # The same bend: straight coordinates differ by a linear map.
    straight = np.column_stack([plain.forwards(points), np.ones(len(points))])
    assert np.linalg.lstsq(straight, u)[1].max() < 1e-15
    expected = np.linalg.slogdet(slopes(bend.backwards, u[:5]))[1]
    np.testing.assert_allclose(bend.log_jacobian(u[:5]), expected, atol=1e-6)


# ---------------------------------------------------------------------- stretches


def random_stretch(dimension, seed=0):
    generator = np.random.default_rng(seed)
    scale, tail = np.exp(generator.normal(size=(2, dimension)))
    return Stretch(generator.normal(size=dimension), scale, generator.normal(size=dimension), tail)


@pytest.mark.parametrize("dimension", [1, 3])
def test_a_stretch_is_what_its_definition_says(dimension):
    stretch, points = random_stretch(dimension), points_at(dimension, 8.0)
    for w, u in zip(points, stretch.forwards(points), strict=True):
        for i in range(dimension):
            z = (w[i] - stretch.location[i]) / stretch.scale[i]
            expected = np.sinh(stretch.tail[i] * np.arcsinh(z) - stretch.skewness[i])
            assert u[i] == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(stretch.backwards(stretch.forwards(points)), points, atol=1e-11)


def test_a_stretch_of_nothing_is_linear():
    stretch = Stretch(np.array([1.0, -2.0]), np.array([2.0, 0.5]), np.zeros(2), np.ones(2))
    points = points_at(2, 30.0)
    expected = (points - [1.0, -2.0]) / [2.0, 0.5]
    np.testing.assert_allclose(stretch.forwards(points), expected, rtol=1e-12)
    np.testing.assert_allclose(stretch.log_jacobian(expected), 0.0, atol=1e-12)  # 2 times 1/2


def levelled_stretch(dimension, seed=0):
    """One of a posterior near which it is skewed, and a whitening after it."""
    stretch = random_stretch(dimension, seed)
    draws = stretch.backwards(0.5 * np.random.default_rng(seed).normal(size=(500, dimension)) + 0.3)
    return LevelledStretch.of_points(stretch, draws, 2.0, 0.25)


@pytest.mark.parametrize("sds", [1.0, 8.0, 1000.0])
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_a_levelled_stretch_is_what_its_definition_says(dimension, sds):
    levelled, u = levelled_stretch(dimension), 0.25 * points_at(dimension, sds)
    h, step = levelled.stretch, 1e-6
    expected = np.empty_like(u)
    for row, t in zip(expected, levelled.whitening.backwards(u), strict=True):
        for i in range(dimension):

            def w(sd, i=i):
                g = levelled.middle[i] + levelled.spread[i] * sd
                z = np.sinh((np.arcsinh(g) + h.skewness[i]) / h.tail[i])
                return h.location[i] + h.scale[i] * z

            r = t[i] / (1.0 + (t[i] / 2.0) ** 4) ** 0.25
            end = 2.0 * np.sign(t[i])
            slope = (w(end + step) - w(end - step)) / (2.0 * step)
            row[i] = w(r) + slope * (t[i] - r)
    found = levelled.backwards(u)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(levelled.forwards(found), u, rtol=1e-9, atol=1e-9)
    # Each point is found by itself.
    np.testing.assert_array_equal(levelled.forwards(found[3:4]), levelled.forwards(found)[3:4])


def test_a_levelled_stretch_is_the_stretch_in_the_middle_and_straight_far_away():
    levelled = levelled_stretch(3)
    t = 0.2 * points_at(3, 1.0).clip(-3.0, 3.0)
    near = levelled.backwards(levelled.whitening.forwards(t))
    plain = levelled.stretch.backwards(levelled.middle + levelled.spread * t)
    np.testing.assert_allclose(near, plain, rtol=1e-2, atol=1e-3)
    line = levelled.whitening.forwards(np.arange(50.0, 54.0)[:, None] * np.ones(3))
    steps = np.diff(levelled.backwards(line), axis=0)
    np.testing.assert_allclose(steps, np.tile(steps[0], (3, 1)), rtol=1e-4)


def test_draws_of_a_levelled_stretch_have_the_width_that_is_asked_for():
    draws = random_stretch(2).backwards(points_at(2, 1.0))
    levelled = LevelledStretch.of_points(random_stretch(2), draws, 4.0, 0.25)
    u = levelled.forwards(draws)
    np.testing.assert_allclose(np.cov(u.T), 0.0625 * np.eye(2), atol=1e-9)
    np.testing.assert_allclose(u.mean(axis=0), 0.0, atol=1e-9)


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("kind", [random_stretch, levelled_stretch])
def test_derivatives_of_a_stretch_against_differences(kind, dimension):
    stretch, u = kind(dimension), points_at(dimension, 6.0)
    matrices = slopes(stretch.backwards, u)
    expected = np.linalg.slogdet(matrices)[1]
    np.testing.assert_allclose(stretch.log_jacobian(u), expected, rtol=1e-6, atol=1e-6)

    def value(u):
        """A parabola of w, and the Jacobian."""
        return -0.5 * np.square(stretch.backwards(u) - 0.3).sum(axis=1) + stretch.log_jacobian(u)

    by_w = -(stretch.backwards(u) - 0.3)
    np.testing.assert_allclose(stretch.pulled_back(u, by_w), slopes(value, u), rtol=1e-6, atol=1e-6)


def test_a_stretch_is_finite_far_away():
    stretch = Stretch(np.zeros(2), np.ones(2), np.array([3.0, -3.0]), np.array([0.2, 5.0]))
    far = np.array([[1e300, -1e300], [-1e100, 1e100], [0.0, 0.0]])
    for points in (stretch.forwards(far), stretch.backwards(far)):
        assert np.isfinite(points).all()
    assert np.isfinite(stretch.log_jacobian(stretch.forwards(far))).all()
    assert stretch.n_parameters == 6
    plain = Stretch(np.zeros(2), np.ones(2), np.array([0.0, 1.0]), np.ones(2))
    assert plain.n_parameters == 2  # of the coordinate that is stretched
    levelled = levelled_stretch(2)
    for points in (levelled.forwards(far), levelled.backwards(far)):
        assert np.isfinite(points).all()
    assert np.isfinite(levelled.log_jacobian(levelled.forwards(far))).all()
