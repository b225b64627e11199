"""Where a mode may be that nobody has seen: bounds by hand, hills that are known."""

from dataclasses import replace

import numpy as np
import pytest
from tests.vbmc.hills import (
    EAST,
    HOME,
    OTHER,
    SD,
    TRANSFORM,
    around,
    certain_of_home,
    normal_at,
    one_hill,
    over_the_box,
    two_hills,
)

from sparing.problem.bending import Bend, Whitening
from sparing.problem.parameter_transform import ParameterTransform
from sparing.problem.problem import Problem
from sparing.surrogate.gaussian_process import condition
from sparing.surrogate.known_support import KnownSupport
from sparing.surrogate.training_set import TrainingSet
from sparing.variational.normal_mixture import NormalMixture
from sparing.vbmc.hidden_modes import (
    CLIMB,
    LARGEST_STEP,
    Known,
    box_points,
    box_widths,
    covariance_within_modes,
    hiding_places,
    mode_labels,
    n_far_modes,
    next_steps,
    other_hills,
    separate_modes,
    uphill,
)

# ---------------------------------------------------------------------- the box

RATES = np.array([0.0, 0.4])
BEND = Bend(
    np.array([2.0, 0.0]), np.array([0.0, 0.3]), np.eye(2), RATES, 50.0, Whitening.nothing(2)
)  # along the first coordinate: a ridge and a funnel in one


@pytest.mark.parametrize("widening", [1.0, 1.5])
def test_the_unit_cube_fills_the_plausible_box_in_any_coordinates(widening):
    problem = Problem(lambda x: 0.0, [-4.0, 10.0], [4.0, 30.0])
    plain = ParameterTransform.from_problem(problem)
    turned = plain.whitened(np.array([0.1, 0.0]), np.array([[2.0, 1.0], [-1.0, 3.0]]))
    unit = np.array([[0.0, 0.0], [1.0, 1.0], [0.5, 0.25]])
    for transform in (plain, turned, turned.bent([BEND], number=2)):
        found = transform.to_user(box_points(transform, widening, unit))
        centre, half = np.array([0.0, 20.0]), 0.5 * widening * np.array([8.0, 20.0])
        expected = [centre - half, centre + half, [0.0, 20.0 - 0.5 * half[1]]]
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_widths_of_the_box_in_any_coordinates():
    turned = TRANSFORM.whitened(np.array([0.1, 0.0]), np.array([[2.0, 1.0], [-1.0, 3.0]]))
    for centre in (np.zeros(2), np.array([0.8, -0.3])):
        np.testing.assert_allclose(box_widths(TRANSFORM, centre), 1.0)
        np.testing.assert_allclose(box_widths(turned, centre), np.sqrt([5.0, 10.0]))
        bent = turned.bent([BEND], number=2)
        # dv/dw of v = exp(-r S) (w - c (r^2 - 1)) with r = t = 2 w_1, which v_1 is too.
        t = 2.0 * centre[0]
        slope = 2.0 * (-0.4 * centre[1] - np.exp(-0.4 * t) * 2.0 * t * 0.3)
        steps = np.array([[1.0, 0.0], [slope, np.exp(-0.4 * t)]]) @ turned.whitening.matrix
        expected = np.linalg.norm(steps, axis=1)
        np.testing.assert_allclose(box_widths(bent, centre), expected, rtol=1e-3)


# ---------------------------------------------------------------------- hiding places


def ignorant(inputs, values, length=1e-4, sd=0.02):
    """A surrogate that knows nothing beside its points; the posterior is where the highest is."""
    dimension = inputs.shape[1]
    psi = np.concatenate(
        [np.full(dimension, np.log(length)), [0.0, np.log(1e-3), -50.0], np.zeros(2 * dimension)]
    )
    corners = np.full(dimension, 0.5)
    problem = Problem(lambda x: 0.0, -corners, corners)
    return Known(
        ParameterTransform.from_problem(problem),
        condition(TrainingSet(inputs, values), psi[None]),
        normal_at(inputs[[np.argmax(values)]], sd),
        0.0,
        inputs,
        values,
        ("",) * len(inputs),
    )


def test_every_value_bounds_the_height_of_modes_around_it():
    """One dimension, sd 0.02: a hidden mode is at least 0.01 wide.

    The value of -200 at 0.1 excludes all modes within 0.01 sqrt(2 * 196) = 0.198 of it that are
    at most 4 nats below the top; nothing else is excluded by much.
    """
    known = ignorant(np.array([[-0.3], [0.1]]), np.array([0.0, -200.0]))
    share, points = hiding_places(known, np.inf, 3, np.random.default_rng(1))
    assert share == pytest.approx(1.0 - 2.0 * 0.198, abs=0.02)
    # The furthest from what is known first: U is 600 at 0.5 and 200 at -0.5. Then that is taken
    # for as deep as nothing, which excludes modes within 0.01 sqrt(2 * 4) of it.
    assert points[0, 0] == pytest.approx(0.5, abs=0.002)
    assert points[1, 0] < 0.5 - 0.028
    assert np.all(np.abs(points[:, 0] - 0.1) > 0.198)


def bounds_by_hand(known, references):
    """U by a loop, for modes of half the posterior's width."""
    precision = np.linalg.inv(0.25 * known.posterior.covariance)
    found = np.empty(len(references))
    for i, c in enumerate(references):
        distances = [(x - c) @ precision @ (x - c) for x in known.inputs]
        found[i] = min(y + 0.5 * d for y, d in zip(known.values, distances, strict=True))
    return found


def test_the_share_is_that_of_a_loop_over_all_values():
    inputs = over_the_box(12, 2)
    known = ignorant(inputs, -400.0 * np.random.default_rng(3).random(12) - 4.0)
    covariance = np.array([[0.0012, 0.0003], [0.0003, 0.0006]])
    posterior = NormalMixture.of_covariances(np.ones(1), np.zeros((1, 2)), covariance[None])
    known = Known(TRANSFORM, known.surrogate, posterior, 0.0, inputs, known.values, known.rules)
    share, points = hiding_places(known, np.inf, 4, np.random.default_rng(4))
    references = box_points(TRANSFORM, 1.0, np.random.default_rng(4).random((2048, 2)))
    bound = bounds_by_hand(known, references)
    lowest = known.values.max() - 4.0
    assert share == pytest.approx(np.mean(bound > lowest))
    assert 0.05 < share < 0.95
    np.testing.assert_array_equal(points[0], references[np.argmax(bound)])
    assert np.all(bounds_by_hand(known, points) > lowest)


def test_nothing_hides_where_the_posterior_is():
    """A normal of sd 0.2 about the middle is above its value at 0.3 in the circle up to there."""
    known = ignorant(np.zeros((1, 2)), np.zeros(1), sd=0.2)
    threshold = float(known.posterior.log_density(np.array([[0.3, 0.0]]))[0])
    everywhere, _ = hiding_places(known, np.inf, 4, np.random.default_rng(5))
    share, points = hiding_places(known, threshold, 4, np.random.default_rng(5))
    assert everywhere == 1.0
    assert share == pytest.approx(1.0 - np.pi * 0.3**2, abs=0.03)
    assert len(points) == 4
    assert np.all(np.linalg.norm(points, axis=1) > 0.3)


def test_points_to_look_at_are_far_from_each_other():
    known = ignorant(np.zeros((1, 2)), np.zeros(1), sd=0.2)
    _, points = hiding_places(known, np.inf, 4, np.random.default_rng(5))
    # Four corners: each excludes modes within 0.1 sqrt(2 * 4) of it.
    assert len(np.unique(np.sign(points), axis=0)) == 4


def test_where_the_surrogate_has_learnt_nothing_hides():
    """One that hardly varies over the box is believed wherever it was told anything at all."""
    known = ignorant(over_the_box(30, 6), one_hill(over_the_box(30, 6)), length=1.0)
    share, points = hiding_places(known, np.inf, 3, np.random.default_rng(7))
    assert (share, points.shape) == (0.0, (0, 2))
    known = ignorant(over_the_box(30, 6), one_hill(over_the_box(30, 6)))
    assert hiding_places(known, np.inf, 3, np.random.default_rng(7))[0] > 0.0


def test_wide_modes_hide_nowhere():
    inputs = over_the_box(20, 8)
    narrow, wide = (
        hiding_places(
            ignorant(inputs, np.linspace(0, -90, 20), sd=sd), np.inf, 3, np.random.default_rng(9)
        )
        for sd in (0.02, 0.3)
    )
    assert narrow[0] > 0.5
    assert wide[0] == 0.0


# ---------------------------------------------------------------------- modes


FOUR = NormalMixture.of_covariances(
    np.array([0.1, 0.2, 0.3, 0.4]),
    np.array([[0.0, 0.0], [1.0, 0.0], [9.0, 9.0], [10.0, 9.0]]),
    np.array([[0.3, 0.5], [0.4, 0.2], [0.6, 0.5], [0.2, 0.7]])[:, :, None] * np.eye(2),
)


def test_components_without_a_valley_between_them_are_one_mode():
    labels = mode_labels(FOUR)
    assert labels[0] == labels[1] != labels[2] == labels[3]


def test_a_chain_of_components_is_one_mode():
    """The ends see each other only through those between them, in whatever order they come."""
    angles = np.pi * np.array([0.0, 4.0, 1.0, 3.0, 2.0]) / 4.0  # half a circle
    means = 4.0 * np.column_stack([np.cos(angles), np.sin(angles)])
    means = np.vstack([means, [[0.0, -9.0]]])
    chain = NormalMixture.of_covariances(np.ones(6), means, np.tile(np.eye(2), (6, 1, 1)))
    labels = mode_labels(chain)
    assert len(set(labels[:5])) == 1
    assert labels[5] != labels[0]
    assert len(set(mode_labels(without(chain, 2)))) == 3


def without(mixture, component):
    kept = np.arange(mixture.n_components) != component
    weights = mixture.weights[kept] / mixture.weights[kept].sum()
    return NormalMixture(weights, mixture.means[kept], mixture.factors[kept])


def test_depth_decides_what_a_valley_is():
    """Two equal normals 2 a apart: the valley is a^2 / 2 - log 2 deep."""
    for a, n_modes in ((1.5, 1), (1.6, 2)):
        means = np.array([[-a], [a]])
        pair = NormalMixture.of_covariances(np.ones(2), means, np.ones((2, 1, 1)))
        assert len(set(mode_labels(pair))) == n_modes


def test_a_component_in_a_valley_does_not_make_its_hills_one():
    """It is on the way down from both, and belongs to either."""
    means = np.array([[-4.0], [0.0], [4.0]])
    weights, sds = np.array([0.45, 0.1, 0.45]), np.array([1.0, 2.0, 1.0])
    hills = NormalMixture.of_covariances(weights, means, (sds**2)[:, None, None])
    low, between, high = mode_labels(hills)
    assert low != high
    assert between in (low, high)
    assert len(set(mode_labels(hills, valley=5.0))) == 1
    masses = [mass for mass, _ in separate_modes(hills)]
    assert sorted(masses) == pytest.approx([0.45, 0.55])


def test_the_covariance_within_modes_leaves_out_what_lies_between_them():
    """Against draws, each about the mean of its own mode."""
    found = covariance_within_modes(FOUR)
    draws = FOUR.sample(100_000, np.random.default_rng(10))
    left = draws[:, 0] < 5.0
    expected = left.mean() * np.cov(draws[left].T) + (1 - left.mean()) * np.cov(draws[~left].T)
    np.testing.assert_allclose(found, expected, atol=0.02)
    assert found[0, 0] < 0.05 * FOUR.covariance[0, 0]
    np.testing.assert_allclose(
        covariance_within_modes(normal_at([[1.0, 2.0]], 0.3)), 0.09 * np.eye(2)
    )


# ---------------------------------------------------------------------- uphill


REGION = np.full(2, 0.08)


def test_uphill_leads_to_the_top_of_each_hill():
    inputs = np.vstack([around(HOME, 30, 11), around(OTHER, 30, 12)])
    known = certain_of_home(inputs, two_hills(inputs), output_scale=40.0)
    starts = np.array([HOME, HOME, OTHER, OTHER])
    starts += [[0.1, -0.05], [0.0, 0.0], [0.08, 0.06], [-0.05, -0.09]]
    ends = uphill(known.surrogate, starts, REGION)
    assert np.all(np.abs(ends[:2] - HOME) < 0.2 * SD)
    assert np.all(np.abs(ends[2:] - OTHER) < 0.2 * SD)


def test_uphill_never_leads_down_and_takes_no_long_steps():
    inputs = over_the_box(30, 13)
    surrogate = certain_of_home(inputs, two_hills(inputs)).surrogate
    starts = over_the_box(20, 14)
    ends = uphill(surrogate, starts, REGION)
    before, after = (surrogate.expansion.values(u).mean(axis=0) for u in (starts, ends))
    assert np.all(after >= before)
    small = uphill(surrogate, starts, 1e-4 * np.ones(2))
    assert np.all(np.linalg.norm(small - starts, axis=1) <= 40 * 1e-4)
    assert np.any(np.linalg.norm(small - starts, axis=1) > 10 * 1e-4)


# ---------------------------------------------------------------------- other hills


NEARLY = OTHER - np.array([0.12, 0.1])  # 3.1 sds from the other top, 8 from home
THRESHOLD = float(normal_at(HOME).log_density((HOME + 3.3 * EAST)[None, :])[0])


def hills_of(known, n_points=3, seed=1):
    return other_hills(known, THRESHOLD, n_points, np.random.default_rng(seed))


def with_points(*others):
    return np.vstack([around(HOME, 25, 15, spread=1.0), *others])


def test_one_point_on_another_hill_is_followed():
    inputs = with_points(NEARLY)
    (point,) = hills_of(certain_of_home(inputs, two_hills(inputs)))
    assert 0.3 * SD < np.linalg.norm(point - NEARLY) <= 1.3 * LARGEST_STEP * SD


def test_a_known_slope_leads_to_another_hill():
    inputs = with_points(NEARLY)
    known = certain_of_home(inputs, two_hills(inputs))
    gradients = np.full(inputs.shape, np.nan)
    gradients[-1] = (OTHER - NEARLY) / SD**2
    (blind,), (led,) = hills_of(known), hills_of(replace(known, gradients=gradients))
    assert np.linalg.norm(led - OTHER) < 0.5 * np.linalg.norm(blind - OTHER)


def test_a_climb_does_not_leave_a_declared_support():
    inputs = with_points(NEARLY)
    known = certain_of_home(inputs, two_hills(inputs))
    (free,) = hills_of(known)
    low, high = sorted([free[1], NEARLY[1]])
    declared = Problem(
        lambda x: 0.0,
        [-0.5, -0.5],
        [0.5, 0.5],
        support=lambda x: (x[..., 1] <= 0.5 * (low + high)) == (NEARLY[1] < free[1]),
    )
    support = KnownSupport(ParameterTransform.from_problem(declared))
    (point,) = hills_of(replace(known, support=support))
    assert support.contains(point[None])[0]
    assert not support.contains(free[None])[0]


def test_points_that_the_posterior_explains_belong_to_no_other_hill():
    inputs = with_points(over_the_box(20, 16))
    assert hills_of(certain_of_home(inputs, one_hill(inputs))).shape == (0, 2)


def test_a_value_above_the_tail_from_which_the_way_leads_home_is_none_either():
    """The posterior is too narrow: its tail is higher than it says, but no hill of its own."""
    inputs = with_points(HOME + 4.5 * EAST)
    narrow = normal_at(HOME, 0.5 * SD)
    known = certain_of_home(inputs, one_hill(inputs), posterior=narrow)
    tail = known.log_evidence + narrow.log_density(inputs[-1:])
    assert known.values[-1] > tail[0] + 15.0
    assert hills_of(known).shape == (0, 2)


def test_a_value_is_explained_up_to_fifteen_nats_above_the_tail():
    """The posterior is wider than the surrogate's mean function: there the value is a hill."""
    inputs = with_points(HOME + 12.0 * EAST)
    wide = normal_at(HOME, 2.0 * SD)
    values = one_hill(inputs)
    for excess, n_found in ((14.5, 0), (15.5, 1)):
        values[-1] = np.log(2.0 * np.pi * SD**2) + wide.log_density(inputs[-1:])[0] + excess
        known = certain_of_home(inputs, values, posterior=wide)
        assert len(hills_of(known)) == n_found


def test_what_lies_very_deep_is_at_the_foot_of_nothing():
    """More than 25 D nats below the top."""
    inputs = with_points(np.array([[0.45, -0.4]]))
    values = two_hills(inputs)
    for depth, n_found in ((45.0, 1), (55.0, 0)):
        values[-1] = values.max() - depth
        known = certain_of_home(inputs, values, output_scale=40.0)
        assert len(hills_of(known)) == n_found


def test_a_hill_is_left_alone_once_the_surrogate_excludes_its_top():
    """By five sds; with large ones it excludes nothing."""
    inputs = with_points(NEARLY)
    values = one_hill(inputs)
    values[-1] = -12.0
    for output_scale, n_found in ((0.2, 0), (8.0, 1)):
        known = certain_of_home(inputs, values, output_scale=output_scale)
        assert len(hills_of(known)) == n_found


def test_a_hill_is_left_alone_when_climbs_have_led_nowhere():
    """D + 2 later ones near it, whatever may be promised."""
    for n_more, n_found in ((3, 1), (4, 0)):
        crowd = NEARLY + 0.5 * SD * np.random.default_rng(17).normal(size=(n_more, 2))
        inputs = with_points(NEARLY, crowd)
        values = one_hill(inputs)
        values[25:] = -13.0
        values[25] = -12.0
        for rule, found in ((CLIMB, n_found), ("", 1)):
            known = certain_of_home(inputs, values)
            known = replace(known, rules=(*known.rules[:26], *(n_more * (rule,))))
            assert len(hills_of(known)) == found


def test_one_point_for_each_hill_the_highest_first():
    places = np.array([[0.3, 0.3], [0.3, 0.32], [0.3, -0.4], [-0.2, 0.45]])
    inputs = with_points(places)
    values = one_hill(inputs)
    values[-4:] = [-9.0, -8.0, -6.0, -10.0]
    known = certain_of_home(inputs, values)
    found = hills_of(known, n_points=3)
    assert len(found) == 3
    for point, place in zip(found, places[[2, 1, 3]], strict=True):
        assert np.linalg.norm(point - place) <= 1.3 * LARGEST_STEP * SD
    assert len(hills_of(known, n_points=2)) == 2


# ---------------------------------------------------------------------- climbing


def climb(hill, start, generator, slope=None, n_largest=60):
    """How many evaluations it takes to the top of a hill, whose height is 0, from one point."""
    inputs, values = start[None, :], hill(start[None, :])
    while values.max() < -0.5 * len(start) and len(values) < n_largest:
        best = int(np.argmax(values))
        far = np.full((1, len(start)), 50.0)  # home
        steps = np.vstack([inputs, far]) - inputs[best]
        gains = np.append(values, -100.0) - values[best]
        slopes = None if slope is None else np.vstack([slope(inputs), np.full_like(far, np.nan)])
        candidates, promise = next_steps(steps, gains, -values[best], generator, slopes)
        point = inputs[best] + candidates[int(np.argmax(promise))]
        inputs, values = np.vstack([inputs, point]), np.append(values, hill(point[None, :]))
    return len(values)


@pytest.mark.parametrize("dimension", [1, 2, 3, 5])
def test_a_hill_of_another_shape_is_climbed_in_a_few_steps(dimension):
    """Half to one and a half times as wide, rotated, and starting some 5 sqrt(D) widths away.

    Slopes show the way at once.
    """
    numbers, with_slopes = [], []
    for seed in range(8):
        generator = np.random.default_rng(seed)
        axes, _ = np.linalg.qr(generator.normal(size=(dimension, dimension)))
        root = axes / generator.uniform(0.5, 1.5, size=dimension)
        top = 5.0 * generator.normal(size=dimension)

        def hill(u, root=root, top=top):
            return -0.5 * (((u - top) @ root) ** 2).sum(axis=1)

        def slope(u, root=root, top=top):
            return -(u - top) @ root @ root.T

        numbers.append(climb(hill, np.zeros(dimension), generator))
        with_slopes.append(climb(hill, np.zeros(dimension), generator, slope))
    assert np.median(numbers) <= 3 * dimension + 5
    assert max(numbers) < 60
    assert sum(with_slopes) <= 0.55 * sum(numbers)
    assert max(with_slopes) < 20


def test_nothing_is_promised_where_the_hill_is_known_to_be_low():
    """Its quadratic is known from many points, and its top is twenty nats below the highest."""
    generator = np.random.default_rng(5)
    steps = np.vstack([np.zeros(2), generator.normal(size=(12, 2))])
    gains = -0.5 * (steps**2).sum(axis=1)
    _, promise = next_steps(steps, gains, 20.0, generator)
    assert np.all(np.isneginf(promise))
    candidates, promise = next_steps(steps, gains, 2.0, generator)
    assert np.all(np.isfinite(promise))
    assert np.max(np.linalg.norm(candidates, axis=1)) < 1.5 * LARGEST_STEP


def test_the_typical_covariance_is_that_of_the_components():
    posterior = NormalMixture.of_covariances(
        np.array([0.25, 0.75]),
        np.array([[0.0, 0.0], [9.0, 9.0]]),
        np.array([np.eye(2), np.diag([3.0, 5.0])]),
    )
    np.testing.assert_allclose(posterior.typical_covariance(), np.diag([2.5, 4.0]))


def test_far_modes_have_a_valley_that_nobody_overlooks():
    for distance, n_modes in ((0.0, 1), (4.0, 1), (8.0, 2)):
        posterior = NormalMixture.of_covariances(
            np.full(2, 0.5), np.array([[0.0], [distance]]), np.ones((2, 1, 1))
        )
        assert n_far_modes(posterior) == n_modes
