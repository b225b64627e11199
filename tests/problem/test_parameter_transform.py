from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from sparing.problem.bending import Bend, Whitening
from sparing.problem.parameter_transform import BoundedMap, ParameterTransform
from sparing.problem.problem import Problem

INF = np.inf
# name -> lower, upper, plausible_lower, plausible_upper
KINDS = {
    "unbounded": (-INF, INF, -3.0, 5.0),
    "bounded": (-1.0, 4.0, 0.0, 3.0),
    "bounded_touching": (0.0, 1.0, 0.0, 1.0),
    "lower_bounded": (2.0, INF, 2.5, 9.0),
    "lower_touching": (0.0, INF, 0.0, 3.0),
    "upper_bounded": (-INF, 7.0, -2.0, 6.5),
    "wide_logs": (0.0, INF, 1e-12, 1e3),
}
MAPS = list(BoundedMap)


def flat(x):
    return 0.0


def make(*kinds, bounded_map=BoundedMap.PROBIT):
    columns = np.array([KINDS[kind] for kind in kinds])
    problem = Problem(flat, columns[:, 2], columns[:, 3], columns[:, 0], columns[:, 1])
    return ParameterTransform.from_problem(problem, bounded_map)


def make_whitened(*kinds, bounded_map=BoundedMap.PROBIT, seed=0):
    generator = np.random.default_rng(seed)
    D = len(kinds)
    transform = make(*kinds, bounded_map=bounded_map)
    for _ in range(2):  # composed
        matrix = np.eye(D) + 0.4 * generator.normal(size=(D, D))
        transform = transform.whitened(generator.normal(size=D), matrix)
    return transform


def random_bend(dimension, seed):
    """A ridge and a funnel in one, with a whitening after it."""
    generator = np.random.default_rng(seed)
    e = generator.normal(size=dimension)
    e /= np.linalg.norm(e)
    across = np.eye(dimension) - np.outer(e, e)
    root = generator.normal(size=(dimension, dimension))
    rates, axes = np.linalg.eigh(0.1 * across @ (root + root.T) @ across)
    matrix = np.eye(dimension) + 0.2 * generator.normal(size=(dimension, dimension))
    volume = float(np.linalg.slogdet(matrix)[1])
    after = Whitening(matrix, np.linalg.inv(matrix), 0.1 * generator.normal(size=dimension), volume)
    shift = 0.1 * across @ generator.normal(size=dimension)
    return Bend(2.0 * e, shift, axes, rates, 5.0, after)


def make_bent(*kinds, bounded_map=BoundedMap.PROBIT, seed=0):
    transform = make_whitened(*kinds, bounded_map=bounded_map, seed=seed)
    return transform.bent([random_bend(len(kinds), seed + i) for i in (1, 2)], number=7)


def numerical_log_jacobian(transform, u, step=1e-5):
    """log |det dx/du| by central differences of fourth order."""
    D = len(u)
    columns = []
    for e in np.eye(D) * step:
        x = transform.to_user(np.array([u - 2 * e, u - e, u + e, u + 2 * e]))
        columns.append((x[0] - 8 * x[1] + 8 * x[2] - x[3]) / (12 * step))
    return np.linalg.slogdet(np.array(columns))[1]


@pytest.mark.parametrize("bounded_map", MAPS)
@pytest.mark.parametrize("kind", KINDS)
def test_jacobian_of_each_kind(kind, bounded_map):
    transform = make(kind, bounded_map=bounded_map)
    for u in (-0.6, -0.3, 0.0, 0.4, 0.6):
        exact = transform.log_jacobian([[u]])[0]
        assert exact == pytest.approx(numerical_log_jacobian(transform, np.array([u])), abs=1e-6)


@pytest.mark.parametrize("bounded_map", MAPS)
@pytest.mark.parametrize("maker", [make, make_whitened, make_bent])
def test_jacobian_of_mixed_kinds(maker, bounded_map):
    transform = maker("unbounded", "bounded", "lower_bounded", "upper_bounded",
                      bounded_map=bounded_map)  # fmt: skip
    points = np.random.default_rng(1).normal(scale=0.3, size=(5, 4))
    exact = transform.log_jacobian(points)
    numerical = [numerical_log_jacobian(transform, u) for u in points]
    np.testing.assert_allclose(exact, numerical, atol=1e-6)


DENSITIES = {
    "unbounded": stats.norm(1.0, 1.5),
    "bounded": stats.truncnorm(-2.0, 3.0, loc=1.0, scale=1.0),
    "bounded_touching": stats.beta(0.7, 1.4),
    "lower_bounded": stats.gamma(2.0, loc=2.0, scale=1.3),
    "lower_touching": stats.expon(),
    "upper_bounded": stats.weibull_max(1.5, loc=7.0, scale=3.0),
}


@pytest.mark.parametrize("bounded_map", MAPS)
@pytest.mark.parametrize("kind", DENSITIES)
def test_a_density_still_integrates_to_one(kind, bounded_map):
    transform = make(kind, bounded_map=bounded_map)
    density = DENSITIES[kind]

    def working_density(u):
        x = transform.to_user([[u]])
        return float(np.exp(density.logpdf(x[0, 0]) + transform.log_jacobian([[u]])[0]))

    ends = (np.array([-30.0, 30.0]) - transform.centre[0]) / transform.width[0]  # |v| <= 30
    total, _ = integrate.quad(working_density, *ends, points=(-1, 0, 1), limit=200)
    assert total == pytest.approx(1.0, abs=1e-7)


@pytest.mark.parametrize("maker", [make_whitened, make_bent])
def test_a_joint_density_still_integrates_to_one_when_whitened_or_bent(maker):
    transform = maker("bounded", "lower_bounded")
    priors = [DENSITIES["bounded"], DENSITIES["lower_bounded"]]
    # Importance sampling with a normal fitted to transformed draws.
    generator = np.random.default_rng(2)
    x = np.column_stack([p.rvs(4000, random_state=generator) for p in priors])
    u = transform.to_working(x)
    proposal = stats.multivariate_t(u.mean(axis=0), np.cov(u.T), df=5, seed=generator)
    draws = proposal.rvs(20_000)
    users = transform.to_user(draws)
    log_density = sum(p.logpdf(users[:, i]) for i, p in enumerate(priors))
    ratio = np.exp(log_density + transform.log_jacobian(draws) - proposal.logpdf(draws))
    standard_error = ratio.std() / np.sqrt(len(ratio))
    assert standard_error < 0.01
    assert abs(ratio.mean() - 1.0) < 4 * standard_error


@pytest.mark.parametrize("bounded_map", MAPS)
def test_plausible_box_is_the_unit_box(bounded_map):
    kinds = [kind for kind in KINDS if "touching" not in kind]
    transform = make(*kinds, bounded_map=bounded_map)
    columns = np.array([KINDS[kind] for kind in kinds])
    np.testing.assert_allclose(transform.to_working(columns[None, :, 2]), -0.5, atol=1e-12)
    np.testing.assert_allclose(transform.to_working(columns[None, :, 3]), 0.5, atol=1e-12)


def test_a_plausible_box_on_the_bounds_is_shrunk_for_standardising():
    transform = make("bounded_touching", "lower_touching")
    np.testing.assert_allclose(
        transform.to_user([[-0.5, -0.5], [0.5, 0.5]]), [[0.001, 0.003], [0.999, 3.0]], rtol=1e-12
    )


def test_the_papers_logit():
    transform = make("bounded", bounded_map=BoundedMap.LOGIT)
    x = np.array([-0.99, 0.5, 1.5, 3.9])

    def g(value):  # Section S2.3
        z = (value + 1.0) / 5.0
        return np.log(z / (1.0 - z))

    expected = (g(x) - (g(0.0) + g(3.0)) / 2) / (g(3.0) - g(0.0))
    np.testing.assert_allclose(
        transform.to_working(x[:, None])[:, 0], expected, rtol=1e-12, atol=1e-15
    )


def test_the_probit_makes_a_uniform_density_normal():
    transform = make("bounded_touching", bounded_map=BoundedMap.PROBIT)
    u = np.linspace(-1, 1, 7)
    sd = 1.0 / transform.width[0]
    np.testing.assert_allclose(
        transform.log_jacobian(u[:, None]), stats.norm(0, sd).logpdf(u), rtol=1e-12
    )


@pytest.mark.parametrize("bounded_map", MAPS)
@pytest.mark.parametrize("kind", KINDS)
def test_round_trip_relative_to_the_range(kind, bounded_map):
    transform = make(kind, bounded_map=bounded_map)
    lower, upper, low, high = KINDS[kind]
    middle = np.linspace(low, high, 101)
    near = np.geomspace(1e-18, 0.4, 60) * (high - low)
    x = [middle]
    x += [lower + near, [lower]] if np.isfinite(lower) else [low - 100.0 * near]
    x += [upper - near, [upper]] if np.isfinite(upper) else [high + 100.0 * near]
    x = np.concatenate(x)
    u = transform.to_working(x[:, None])
    assert np.all(np.isfinite(u))
    assert np.all(np.isfinite(transform.log_jacobian(u)))
    back = transform.to_user(u)[:, 0]
    span = upper - lower if np.isfinite(upper - lower) else high - low
    assert np.max(np.abs(back - x)) <= 1e-12 * span


@pytest.mark.parametrize("bounded_map", MAPS)
def test_distances_to_a_bound_keep_their_digits(bounded_map):
    # Seen from zero, x = 1e-20 is a number like any other, also below a bound of 1.
    lower_at_zero = make("bounded_touching", bounded_map=bounded_map)
    problem = Problem(flat, -1.0, 0.0, -1.0, 0.0)
    upper_at_zero = ParameterTransform.from_problem(problem, bounded_map)
    x = np.geomspace(1e-25, 0.3, 30)[:, None]
    np.testing.assert_allclose(lower_at_zero.to_user(lower_at_zero.to_working(x)), x, rtol=1e-12)
    np.testing.assert_allclose(upper_at_zero.to_user(upper_at_zero.to_working(-x)), -x, rtol=1e-12)
    # The two are mirror images.
    np.testing.assert_allclose(lower_at_zero.to_working(x), -upper_at_zero.to_working(-x))


@pytest.mark.parametrize(("lower", "upper"), [(0.0, INF), (0.0, 1e300), (-INF, 0.0)])
def test_a_box_over_many_decades_can_be_left_by_its_width(lower, upper):
    low, high = (1e-60, 1.0) if lower == 0.0 else (-1.0, -1e-60)
    transform = ParameterTransform.from_problem(Problem(flat, low, high, lower, upper))
    u = np.linspace(-2.0, 2.0, 9)[:, None]
    np.testing.assert_allclose(transform.to_working(transform.to_user(u)), u, atol=1e-10)


@pytest.mark.parametrize("maker", [make, make_whitened, make_bent])
@pytest.mark.parametrize("bounded_map", MAPS)
def test_round_trip_of_mixed_kinds(maker, bounded_map):
    transform = maker("unbounded", "bounded", "lower_bounded", "upper_bounded",
                      bounded_map=bounded_map)  # fmt: skip
    u = np.random.default_rng(3).normal(size=(50, 4))
    x = transform.to_user(u)
    np.testing.assert_allclose(transform.to_user(transform.to_working(x)), x, rtol=1e-11)


@pytest.mark.parametrize("bounded_map", MAPS)
@pytest.mark.parametrize("size", [10.0, 1e3, 1e10, 1e100, 1e200])
@pytest.mark.parametrize("made", [make, make_bent])
def test_far_away_everything_stays_finite_and_inside(made, size, bounded_map):
    transform = made(*KINDS, bounded_map=bounded_map)
    u = np.vstack([np.full(len(KINDS), size), np.full(len(KINDS), -size)])
    x = transform.to_user(u)
    assert np.all(np.isfinite(x))
    assert np.all(transform.contains(x))
    assert np.all(np.isfinite(transform.log_jacobian(u)))
    assert np.all(np.isfinite(transform.to_working(x)))


def test_the_jacobian_is_exact_far_away():
    logit = make("bounded", bounded_map=BoundedMap.LOGIT)
    probit = make("bounded", bounded_map=BoundedMap.PROBIT)
    half = make("lower_bounded")
    for u in (-300.0, 250.0):
        v = u * logit.width[0] + logit.centre[0]
        expected = np.log(5.0) + np.log(logit.width[0]) - abs(v)  # far in the tail, F' = e^-|v|
        assert logit.log_jacobian([[u]])[0] == pytest.approx(expected, rel=1e-13)
        v = u * probit.width[0] + probit.centre[0]
        expected = np.log(5.0) + np.log(probit.width[0]) + stats.norm.logpdf(v)
        assert probit.log_jacobian([[u]])[0] == pytest.approx(expected, rel=1e-13)
        v = u * half.width[0] + half.centre[0]
        assert half.log_jacobian([[u]])[0] == pytest.approx(v + np.log(half.width[0]), rel=1e-13)


@pytest.mark.parametrize("bounded_map", MAPS)
@pytest.mark.parametrize(
    ("lower", "upper", "low", "high"),
    [
        (1e-300, 1e300, 1e-200, 1e200),
        (-1e300, 1e300, -1e299, 1e299),
        (0.0, INF, 1e-300, 1e300),
        (-INF, INF, -1e300, 1e300),
        (-1e-300, 1e-300, -1e-301, 1e-301),
        (2.4e6, 2.5e6, 2.45e6, 2.45e6 + 1e-3),
    ],
)
def test_extreme_ranges_work(lower, upper, low, high, bounded_map):
    problem = Problem(flat, low, high, lower, upper)
    transform = ParameterTransform.from_problem(problem, bounded_map)
    u = np.linspace(-0.5, 0.5, 11)[:, None]
    x = transform.to_user(u)
    assert np.all(np.diff(x[:, 0]) > 0)
    np.testing.assert_allclose(transform.to_working(x), u, atol=1e-6)
    assert np.all(np.isfinite(transform.log_jacobian(u)))


@pytest.mark.parametrize("maker", [make_whitened, make_bent])
def test_rows_do_not_depend_on_their_batch(maker):
    transform = maker(*KINDS)
    u = np.random.default_rng(4).normal(size=(33, len(KINDS)))
    x = transform.to_user(u)
    working, jacobian = transform.to_working(x), transform.log_jacobian(u)
    for i in range(len(u)):
        assert np.array_equal(transform.to_user(u[i : i + 1])[0], x[i])
        assert np.array_equal(transform.to_working(x[i : i + 1])[0], working[i])
        assert transform.log_jacobian(u[i : i + 1])[0] == jacobian[i]


def test_whitening_is_taken_in_current_coordinates_and_composes():
    plain = make("unbounded", "bounded")
    generator = np.random.default_rng(5)
    A, B = generator.normal(size=(2, 2, 2))
    a, b = generator.normal(size=(2, 2))
    x = plain.to_user(generator.normal(size=(6, 2)))
    s = plain.to_working(x)
    once = plain.whitened(a, A)
    twice = once.whitened(b, B)
    np.testing.assert_allclose(once.to_working(x), (s - a) @ A.T)
    np.testing.assert_allclose(twice.to_working(x), ((s - a) @ A.T - b) @ B.T)
    expected = plain.log_jacobian(s) - np.log(abs(np.linalg.det(A) * np.linalg.det(B)))
    np.testing.assert_allclose(twice.log_jacobian(twice.to_working(x)), expected)
    M, offset = twice.standardised_map()
    np.testing.assert_allclose(twice.to_working(x) @ M.T + offset, s)
    np.testing.assert_allclose(twice.standardised(x), s)
    assert plain.whitening is None


@pytest.mark.parametrize("matrix", [np.ones((2, 2)), np.eye(3), np.full((2, 2), np.nan)])
def test_an_unusable_whitening_is_refused(matrix):
    with pytest.raises(ValueError, match="whitening"):
        make("unbounded", "bounded").whitened(np.zeros(2), matrix)


@pytest.mark.parametrize("maker", [make, make_whitened])
def test_linear_map(maker):
    transform = maker("unbounded", "unbounded")
    assert transform.is_linear
    linear, offset = transform.linear_map()
    u = np.random.default_rng(6).normal(size=(5, 2))
    np.testing.assert_allclose(u @ linear.T + offset, transform.to_user(u))
    bounded = maker("unbounded", "bounded")
    assert not bounded.is_linear
    with pytest.raises(ValueError, match="not a linear"):
        bounded.linear_map()


def test_contains_is_about_the_closed_bounds():
    transform = make("bounded", "lower_bounded")
    x = [[-1.0, 2.0], [4.0, 1e300], [4.1, 3.0], [0.0, 1.9], [np.nan, 3.0], [0.0, INF]]
    assert transform.contains(x).tolist() == [True, True, False, False, False, False]


def test_points_must_come_as_a_batch():
    transform = make("unbounded", "bounded")
    for method in (transform.to_working, transform.to_user, transform.log_jacobian):
        with pytest.raises(ValueError, match=r"\(m, 2\)"):
            method(np.zeros(2))
    assert transform.to_working(np.empty((0, 2))).shape == (0, 2)
    assert transform.log_jacobian(np.empty((0, 2))).shape == (0,)


def test_the_reachable_box_holds_the_plausible_one_and_keeps_values_sane():
    problem = Problem(
        lambda x: 0.0,
        [0.5, 0.2, -1.0, -3.0, 1e-3],
        [3.0, 0.8, 1.0, -1.0, 1e3],
        lower=[0.0, 0.0, -np.inf, -np.inf, 0.0],
        upper=[np.inf, 1.0, np.inf, 0.0, np.inf],
    )
    transform = ParameterTransform.from_problem(problem)
    lower, upper = transform.reachable_box()
    assert np.all(lower < -0.5)
    assert np.all(upper > 0.5)
    x = transform.to_user(np.vstack([lower, upper]))
    assert np.all(np.abs(x) < 1.1e9)
    assert 0.0 < x[0, 0] < 1e-5
    assert 0.0 < x[0, 1] < 1e-8
    assert x[1, 3] > -1e-5


@pytest.mark.parametrize("made", [make, make_whitened])
def test_points_within_reach_stay_to_the_bit_and_others_come_to_the_edge(made):
    transform = made("unbounded", "unbounded")
    near = np.random.default_rng(1).normal(size=(4, 2))
    assert transform.within_reach(near) is near
    lower, upper = transform.reachable_box()
    matrix, offset = transform.standardised_map()
    far = np.linalg.solve(matrix, 2.0 * upper - offset)[None, :]
    moved = matrix @ transform.within_reach(far)[0] + offset
    np.testing.assert_allclose(moved, upper)
    one_side = np.linalg.solve(matrix, np.array([0.3, 2.0 * lower[1]]) - offset)[None, :]
    moved = matrix @ transform.within_reach(one_side)[0] + offset
    np.testing.assert_allclose(moved, [0.3, lower[1]], rtol=1e-9)


def circle(low=-180.0, high=180.0):
    problem = Problem(flat, [low, 0.0], [high, 1.0], [-180.0, None], [180.0, None], periodic=["x1"])
    return ParameterTransform.from_problem(problem)


@pytest.mark.parametrize("turn", [0.0, 10.0, 200.0, 359.9])
def test_a_circle_cut_open_anywhere(turn):
    transform = circle().turned(np.array([turn, 0.0]), number=-3)
    assert (transform.number, transform.turning) == (-3, -3)
    x = np.column_stack([np.linspace(-179.9, 179.9, 50), np.linspace(-1.0, 2.0, 50)])
    u = transform.to_working(x)
    np.testing.assert_allclose(transform.to_user(u), x, atol=1e-9)
    once_more = x + np.array([360.0, 0.0])
    np.testing.assert_allclose(transform.to_working(once_more), u, atol=1e-6)
    assert np.all(transform.contains(once_more))
    rising = np.argsort(np.mod(x[:, 0] + 180.0 - turn, 360.0))  # from the seam on
    assert np.all(np.diff(u[rising, 0]) > 0.0)
    for row in u[5:-5:8]:
        if np.abs(row[0]) < 0.3:  # differences do not cross the seam
            exact = numerical_log_jacobian(transform, row)
            assert transform.log_jacobian(row[None, :])[0] == pytest.approx(exact, abs=1e-5)


def test_the_seam_is_opposite_to_a_plausible_box_that_is_not_the_whole_circle():
    assert circle().turns[0] == 0.0
    assert circle(100.0, 160.0).turns[0] == pytest.approx(130.0)  # at -50 degrees
    assert circle(-160.0, -100.0).turns[0] == pytest.approx(230.0)
    ends = circle(100.0, 160.0).to_working(np.array([[100.0, 0.0], [160.0, 1.0]]))
    np.testing.assert_allclose(ends, [[-0.5, -0.5], [0.5, 0.5]])


def test_coordinates_without_whitening_are_those_of_the_last_turn():
    turned = circle().turned(np.array([90.0, 0.0]), number=-2)
    whitened = turned.whitened([0.1, 0.2], [[1.0, 0.3], [0.0, 1.0]], number=4)
    assert (whitened.number, whitened.turning) == (4, -2)
    again = whitened.unwhitened()
    assert (again.number, again.whitening) == (-2, None)
    np.testing.assert_array_equal(again.turns, [90.0, 0.0])


def test_means_on_the_circle_and_what_is_near_them():
    transform = circle()
    x = np.array([[170.0, 1.0], [-170.0, 2.0], [175.0, 3.0], [-175.0, 4.0]])
    mean = transform.mean(x)
    assert abs(mean[0]) == pytest.approx(180.0)
    assert mean[1] == 2.5
    near = transform.unwrapped(x, np.array([179.0, 0.0]))
    np.testing.assert_allclose(near, [[170.0, 1.0], [190.0, 2.0], [175.0, 3.0], [185.0, 4.0]])
    plain = make("bounded", "unbounded")
    np.testing.assert_array_equal(plain.unwrapped(x, mean), x)
    assert np.all(np.isinf(plain.periods))


def periodic_transform(turn, bounded_map):
    problem = Problem(flat, [1.0], [2.0], [0.0], [6.0], names=["phase"], periodic="phase")
    transform = ParameterTransform.from_problem(problem, bounded_map)
    return transform.turned(np.array([turn]), number=1)


def user_value(x):
    return -0.5 * np.sum((x - 0.7) ** 2, axis=1) + np.sin(x[:, 0] * x[:, -1])


def user_gradient(x):
    gradient = 0.7 - x
    gradient[:, 0] += x[:, -1] * np.cos(x[:, 0] * x[:, -1])
    gradient[:, -1] += x[:, 0] * np.cos(x[:, 0] * x[:, -1])
    return gradient


def check_working_gradient(transform, u):
    def y(u):
        return user_value(transform.to_user(u)) + transform.log_jacobian(u)

    step = 1e-4
    expected = np.column_stack(
        [
            (y(u - 2 * e) - 8 * y(u - e) + 8 * y(u + e) - y(u + 2 * e)) / (12 * step)
            for e in step * np.eye(transform.dimension)
        ]
    )
    found = transform.working_gradient(u, user_gradient(transform.to_user(u)))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("bounded_map", MAPS)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "wide_logs"])
def test_gradient_of_each_kind(kind, bounded_map):
    u = np.array([[-0.6], [-0.3], [0.0], [0.4], [0.6]])
    check_working_gradient(make(kind, bounded_map=bounded_map), u)


@pytest.mark.parametrize("bounded_map", MAPS)
@pytest.mark.parametrize("turn", [0.0, 2.5])
def test_gradient_of_a_periodic_parameter(turn, bounded_map):
    transform = periodic_transform(turn, bounded_map)
    check_working_gradient(transform, np.array([[-0.6], [0.1], [0.9]]))


@pytest.mark.parametrize("maker", [make_whitened, make_bent])
@pytest.mark.parametrize("bounded_map", MAPS)
def test_gradient_in_whitened_and_bent_coordinates(bounded_map, maker):
    transform = maker("unbounded", "bounded", "lower_bounded", bounded_map=bounded_map)
    x = [[-1.0, 0.5, 3.0], [0.2, 1.5, 4.0], [2.0, 2.9, 2.7], [4.0, 0.1, 6.0]]
    u = transform.to_working(np.array(x))
    check_working_gradient(transform, u)
    gradient = user_gradient(transform.to_user(u))
    together = transform.working_gradient(u, gradient)
    for row in range(4):  # bit for bit as if it stood alone
        alone = transform.working_gradient(u[[row]], gradient[[row]])
        np.testing.assert_array_equal(alone[0], together[row])


@pytest.mark.parametrize("bounded_map", MAPS)
@pytest.mark.parametrize("size", [0.0, -1.0, 1e300])
def test_gradient_is_finite_on_the_bounds(size, bounded_map):
    kinds = [kind for kind, (low, high, *_) in KINDS.items() if np.isfinite([low, high]).any()]
    edges = np.array([KINDS[kind][0 if np.isfinite(KINDS[kind][0]) else 1] for kind in kinds])
    far = np.where(np.isfinite(edges), edges + 1e-300, edges)
    for maker in (make, make_whitened, make_bent):
        transform = maker(*kinds, bounded_map=bounded_map)
        u = transform.to_working(np.array([edges, far]))
        for points in (u, 1e3 * u):
            found = transform.working_gradient(points, np.full_like(points, size))
            assert np.all(np.isfinite(found))


# ---------------------------------------------------------------------- bent coordinates

MIXED = ("unbounded", "bounded", "lower_bounded")


def test_bends_come_after_the_whitening_one_after_the_other():
    whitened, bends = make_whitened(*MIXED), [random_bend(3, seed) for seed in (1, 2)]
    bent = whitened.bent(bends, number=7)
    x = whitened.to_user(0.5 * np.random.default_rng(7).normal(size=(6, 3)))
    one, two = whitened.to_working(x), bent.to_working(x)
    np.testing.assert_array_equal(two, bends[1].forwards(bends[0].forwards(one)))
    assert np.abs(two - one).max() > 0.1
    again = whitened.bent(bends[:1]).bent(bends[1:])
    np.testing.assert_array_equal(again.to_working(x), two)
    assert (bent.number, bent.turning, whitened.bends) == (7, 0, ())
    np.testing.assert_allclose(bent.to_user(two), x, rtol=1e-11)


def test_standardised_coordinates_of_bent_ones():
    bent, plain = make_bent(*MIXED), make(*MIXED)
    u = 0.15 * np.random.default_rng(8).normal(size=(7, 3))
    s = bent.to_standardised(u)
    np.testing.assert_allclose(plain.to_user(s), bent.to_user(u), rtol=1e-12)
    np.testing.assert_allclose(bent.standardised(bent.to_user(u)), s, atol=1e-10)
    np.testing.assert_allclose(bent.from_standardised(s), u, atol=1e-11)
    # dx/du = dx/ds ds/du
    log_ratio = bent.log_jacobian(u) - plain.log_jacobian(s)
    np.testing.assert_allclose(bent.standardised_log_jacobian(u), log_ratio, atol=1e-11)
    linear = make_bent("unbounded", "unbounded", "unbounded")
    numerical = [numerical_log_jacobian(linear, row) for row in u]
    found = linear.standardised_log_jacobian(u) + np.log(linear.width).sum()
    np.testing.assert_allclose(found, numerical, atol=1e-6)
    whitened = make_whitened(*MIXED)
    volume = np.linalg.slogdet(whitened.standardised_map()[0])[1]
    np.testing.assert_allclose(whitened.standardised_log_jacobian(u), volume)
    np.testing.assert_array_equal(plain.standardised_log_jacobian(u), 0.0)


def test_bent_coordinates_are_not_linear():
    bent = make_bent("unbounded", "unbounded")
    assert not bent.is_linear
    with pytest.raises(ValueError, match="bent"):
        bent.standardised_map()
    with pytest.raises(ValueError, match="not a linear"):
        bent.linear_map()
    with pytest.raises(ValueError, match="bent"):  # bends come after whitenings
        bent.whitened(np.zeros(2), np.eye(2))


def test_without_whitening_there_are_no_bends():
    bent, plain = make_bent(*MIXED), make(*MIXED)
    first = bent.unwhitened()
    assert (first.whitening, first.bends, first.number) == (None, (), 0)
    x = plain.to_user(np.random.default_rng(9).normal(size=(5, 3)))
    np.testing.assert_array_equal(first.to_working(x), plain.to_working(x))
    turned = circle().whitened(np.zeros(2), np.eye(2)).bent([random_bend(2, 1)], number=3)
    turned = turned.turned(np.array([20.0, 0.0]), number=-5)
    assert (turned.whitening, turned.bends, turned.number) == (None, (), -5)


def test_bent_points_within_reach_stay_to_the_bit_and_others_come_to_the_edge():
    transform = make_bent("unbounded", "lower_bounded")
    near = 0.5 * np.random.default_rng(1).normal(size=(4, 2))
    assert transform.within_reach(near) is near
    lower, upper = transform.reachable_box()
    far = transform.from_standardised(np.array([2.0 * upper, [0.3, 2.0 * lower[1]]]))
    found = transform.within_reach(np.vstack([near, far]))
    np.testing.assert_allclose(found[:4], near, atol=1e-9)
    expected = [upper, [0.3, lower[1]]]
    np.testing.assert_allclose(transform.to_standardised(found[4:]), expected, rtol=1e-7)
