"""From the log to the surrogate's training set."""

from dataclasses import replace

import numpy as np
import pytest
from tests.hand_made import with_outcome

from sparing.problem.bending import Bend, Whitening
from sparing.problem.evaluations import Evaluation, EvaluationLog, Outcome, Status
from sparing.problem.parameter_transform import BoundedMap, ParameterTransform
from sparing.problem.problem import Problem
from sparing.surrogate.training_data import (
    OUTSIDE_DEPTH,
    CompressedDepths,
    MeasuredValues,
    compressed,
    confirmed_outside,
    joining_gradient,
    joining_values,
    training_set,
    trimmed_indices,
    working_gradients,
    working_values,
)
from sparing.surrogate.training_set import TrainingSet

PROBLEM = Problem(lambda x: 0.0, [0.2, -1.0], [0.8, 3.0], lower=[0.0, -np.inf], upper=[1.0, np.inf])
TRANSFORM = ParameterTransform.from_problem(PROBLEM, BoundedMap.LOGIT)


def log_of(values):
    log = EvaluationLog()
    generator = np.random.default_rng(1)
    for value in values:
        x = np.array([generator.uniform(0.1, 0.9), generator.normal()])
        log.append(Evaluation(len(log), None, x, Outcome(value, Status.OK, 0.1)))
    return log


def test_values_carry_the_log_jacobian():
    log = log_of([-1.0, -2.0, -3.0])
    inputs, values = working_values(log.usable(), TRANSFORM)
    np.testing.assert_allclose(TRANSFORM.to_user(inputs), [entry.x for entry in log])
    raw = np.array([entry.value for entry in log])
    np.testing.assert_allclose(values - raw, TRANSFORM.log_jacobian(inputs))


def test_gradients_are_in_working_coordinates():
    log = log_of([-1.0, -2.0, -3.0])
    assert working_gradients(log, TRANSFORM) is None
    given = (0.5, -2.0)
    entries = [log[0], with_outcome(log[1], gradient=given), log[2]]
    found = working_gradients(entries, TRANSFORM)
    assert np.isnan(found[[0, 2]]).all()
    expected = TRANSFORM.working_gradient(TRANSFORM.to_working(log[1].x[None]), [given])
    np.testing.assert_array_equal(found[[1]], expected)
    assert working_gradients([], TRANSFORM) is None


def test_trimming_drops_what_is_more_than_ten_d_below_the_maximum():
    log = log_of([0.0, -1.0, -2.0, -3.0, -15.0, -40.0, -1000.0])
    assert trimmed_indices(log.usable(), TRANSFORM, 10.0) == {5, 6}


def test_trimming_leaves_enough_to_train_on():
    log = log_of([0.0, -1e4, -2e4, -3e4, -4e4, -5e4])
    assert trimmed_indices(log.usable(), TRANSFORM, 10.0) == {4, 5}


def test_without_a_limit_nothing_is_trimmed():
    log = log_of([0.0, -1.0, -2.0, -3.0, -1e4, -1e300])
    assert trimmed_indices(log.usable(), TRANSFORM, np.inf) == frozenset()


def test_failed_evaluations_do_not_train():
    log = log_of([-1.0, -2.0])
    point = np.array([0.5, 0.0])
    log.append(Evaluation(2, None, point, Outcome(np.nan, Status.FAILED, 0.0, "boom")))
    log.append(Evaluation(3, None, point, Outcome(-np.inf, Status.OUT_OF_SUPPORT, 0.0)))
    assert len(training_set(log.usable(), TRANSFORM, MeasuredValues()).values) == 2
    assert len(log.unusable()) == 2


def test_depth_is_compressed_beyond_the_limit_smoothly_and_in_order():
    values = -np.linspace(0.0, 3000.0, 3001)
    result = compressed(values, 0.0, 50.0)
    np.testing.assert_array_equal(result[:51], values[:51])
    assert np.all(np.diff(result) < 0.0)
    assert result[-1] == pytest.approx(-50.0 * (1.0 + np.log(60.0)))
    slope = np.diff(result)
    assert slope[50] == pytest.approx(slope[49], rel=0.02)  # no kink at the limit


def test_the_limit_follows_the_bulk_of_the_points():
    deep = CompressedDepths(depth_per_dimension=10.0, fraction_kept=0.5)
    assert deep.applied(np.array([0.0, -1.0, -2.0, -5000.0]), 2)[2] == 20.0
    on_the_way_up = -np.array([0.0, 300.0, 500.0, 800.0, 5000.0])
    assert deep.applied(on_the_way_up, 2)[2] == 500.0


def test_only_compressed_points_are_noisy():
    depths = np.array([0.0, 5.0, 20.0, 20.0 * np.exp(5.0)])  # the last is compressed to 120
    values, noise_variance, limit = CompressedDepths(slope=0.05).applied(-depths, 2)
    assert limit == 20.0
    np.testing.assert_allclose(values, [0.0, -5.0, -20.0, -120.0])
    np.testing.assert_allclose(noise_variance, [0.0, 0.0, 0.0, 25.0])
    training = training_set(
        log_of([0.0, -1.0, -2.0, -3000.0]).usable(), TRANSFORM, CompressedDepths()
    )
    assert np.all(training.noise_variance[:3] == 0.0)
    assert training.noise_variance[3] > 0.0
    assert training.values[3] > -200.0


def test_a_new_point_joins_with_the_compression_of_the_others():
    entries = log_of([0.0, -1.0, -2.0, -3000.0]).usable()
    training = training_set(entries, TRANSFORM, CompressedDepths())
    _, values = joining_values(entries, TRANSFORM, training)
    np.testing.assert_allclose(values, training.values)
    plain = training_set(entries, TRANSFORM, MeasuredValues())
    _, values = joining_values(entries, TRANSFORM, plain)
    np.testing.assert_allclose(values, plain.values)


def test_the_log_keeps_its_own_copy_of_x():
    log = EvaluationLog()
    x = np.zeros(2)
    log.append(Evaluation(0, None, x, Outcome(0.0, Status.OK, 0.0)))
    x[0] = 5.0
    assert log[0].x[0] == 0.0
    with pytest.raises(ValueError, match="cannot follow"):
        log.append(Evaluation(5, None, x, Outcome(0.0, Status.OK, 0.0)))


def test_points_outside_the_support_are_believed_when_their_neighbours_are_outside_too():
    generator = np.random.default_rng(2)
    inside = generator.uniform(0.0, 1.0, size=(40, 2))
    outside = generator.uniform([-1.0, 0.0], [-0.2, 1.0], size=(20, 2))
    values = -np.sum(inside**2, axis=1)
    confirmed, stand_ins = confirmed_outside(outside, inside, values)
    assert confirmed.sum() > 15
    assert np.all(stand_ins <= np.max(values) - OUTSIDE_DEPTH)


def test_isolated_failures_in_the_bulk_are_rarely_believed():
    n_failed = n_believed = 0
    for seed in range(50):
        generator = np.random.default_rng(seed)
        points = generator.normal(size=(100, 2))
        failed = generator.random(100) < 0.1
        believed, _ = confirmed_outside(points[failed], points[~failed], np.zeros(np.sum(~failed)))
        n_failed += np.sum(failed)
        n_believed += np.sum(believed)
    assert n_failed > 400
    assert n_believed < 0.01 * n_failed


def test_the_stand_in_does_not_raise_a_density_that_falls_to_zero():
    inside = np.linspace(0.1, 3.0, 30)[:, None]
    values = -10.0 / inside[:, 0] ** 2  # -1000 at the edge
    outside = np.linspace(-1.0, -0.1, 10)[:, None]
    _, stand_ins = confirmed_outside(outside, inside, values)
    assert np.max(stand_ins) == np.min(values)


# ---------------------------------------------------------------------- gradients

PLANE = ParameterTransform.from_problem(Problem(lambda x: 0.0, [-2.0, -2.0], [2.0, 2.0]))  # x / 4
NEAR = 2.0 * np.random.default_rng(5).uniform(-1.0, 1.0, size=(8, 2))


def normal_at(points, *, every=1):
    """Evaluations of a normal with sds 1 and 0.5, gradients at each of so many points."""
    precision = np.array([1.0, 4.0])
    entries = []
    for index, x in enumerate(np.array(points)):
        gradient = tuple(-precision * x) if index % every == 0 else None
        outcome = Outcome(-0.5 * precision @ x**2, Status.OK, 0.1, gradient=gradient)
        entries.append(Evaluation(index, None, x, outcome))
    return entries


def test_deep_values_that_a_parabola_explains_are_left_out():
    entries = normal_at([*NEAR, [10.0, 0.0], [3.0, -7.0]])
    training = training_set(entries, PLANE, CompressedDepths())
    np.testing.assert_allclose(training.inputs, NEAR / 4.0)
    np.testing.assert_allclose(
        training.gradients, [4.0 * np.array(e.gradient) for e in entries[:8]]
    )
    np.testing.assert_array_equal(training.noise_variance, 0.0)
    lacking = [with_outcome(entry, gradient=None) for entry in entries[8:]]
    assert training_set([*entries[:8], *lacking], PLANE, CompressedDepths()).n_points == 8
    paper = training_set(entries, PLANE, MeasuredValues())
    assert paper.n_points == 10
    assert paper.has_gradient.all()


def test_deep_values_on_a_parabola_of_values_are_left_out():
    around = [[0.5 * i * (-1) ** i, 0.3 * (i % 4) - 0.2 * i] for i in range(9)]
    entries = [
        with_outcome(entry, gradient=None)
        for entry in normal_at([*NEAR, *around, [30.0, 1.0], [3.0, -27.0]])
    ]
    training = training_set(entries, PLANE, CompressedDepths())
    assert training.n_points == len(entries) - 2
    np.testing.assert_array_equal(training.noise_variance, 0.0)
    # A cliff is not on it, and then nothing is.
    entries[-1] = with_outcome(entries[-1], value=-3e5)
    assert training_set(entries, PLANE, CompressedDepths()).n_points == len(entries)
    # The paper's values are as they were measured.
    assert training_set(entries, PLANE, MeasuredValues()).n_points == len(entries)


def test_deep_values_that_it_does_not_explain_stay_without_their_gradients():
    """A cliff near the maximum, where the parabola is high."""
    entries = normal_at([*NEAR, [0.3, 0.2], [10.0, 0.0]])
    entries[8] = with_outcome(entries[8], value=-3000.0)
    training = training_set(entries, PLANE, CompressedDepths())
    np.testing.assert_allclose(training.inputs[8:], [[0.075, 0.05]])
    np.testing.assert_array_equal(training.has_gradient, [True] * 8 + [False])
    assert np.isnan(training.gradients[8]).all()
    assert training.noise_variance[8] > 0.0


def test_without_a_parabola_deep_values_stay():
    entries = normal_at([*NEAR[:3], [10.0, 0.0], [0.0, 0.1]], every=2)  # 0, 2 and 4
    training = training_set(entries, PLANE, CompressedDepths())
    assert training.n_points == 5
    np.testing.assert_array_equal(training.has_gradient, [True, False, True, False, True])
    deep_alone = [entries[3], *(with_outcome(e, gradient=None) for e in entries[:3])]
    deep_alone[0] = with_outcome(deep_alone[0], gradient=(1.0, 2.0))
    assert training_set(deep_alone, PLANE, CompressedDepths()).gradients is None


def test_points_outside_the_support_have_no_gradient():
    outside = [
        Evaluation(
            8 + i, None, np.array([4.0, 0.1 * i]), Outcome(-np.inf, Status.OUT_OF_SUPPORT, 0)
        )
        for i in range(6)
    ]
    training = training_set([*normal_at(NEAR), *outside], PLANE, CompressedDepths())
    assert training.n_points > 8
    assert training.gradients.shape == training.inputs.shape
    np.testing.assert_array_equal(training.has_gradient[8:], False)


def test_a_new_gradient_joins_where_others_are_and_the_value_is_not_deep():
    near, deep = normal_at([NEAR[0], [10.0, 0.0]])
    training = training_set(normal_at(NEAR), PLANE, CompressedDepths())
    np.testing.assert_allclose(joining_gradient(near, PLANE, training), 4.0 * near.gradient)
    assert joining_gradient(deep, PLANE, training) is None
    paper = replace(training, depth_limit=np.inf)
    np.testing.assert_allclose(joining_gradient(deep, PLANE, paper), 4.0 * deep.gradient)
    assert joining_gradient(near, PLANE, training.values_alone()) is None
    assert joining_gradient(with_outcome(near, gradient=None), PLANE, training) is None


def two_modes_at(points):
    """Evaluations of normals 16 apart along the first axis, each with sds of one."""
    entries = []
    for index, x in enumerate(np.array(points)):
        centre = np.array([8.0 * np.sign(x[0]), 0.0])
        gradient = tuple(centre - x)
        outcome = Outcome(
            -0.5 * float((x - centre) @ (x - centre)), Status.OK, 0.1, gradient=gradient
        )
        entries.append(Evaluation(index, None, x, outcome))
    return entries


def test_slopes_far_below_the_maximum_have_noise():
    depths = np.array([0.0, 0.5, 6.9, 7.1, 12.0, 19.0, 0.1, 3.0])
    x = np.column_stack([8.0 * (-1) ** np.arange(8), np.sqrt(2.0 * depths)])
    entries = two_modes_at(x)
    training = training_set(entries, PLANE, CompressedDepths())
    assert training.has_gradient.all()
    np.testing.assert_allclose(
        training.gradient_noise_sd, 0.8 * np.maximum(depths - 5.0 - 2.0, 0.0), atol=1e-12
    )
    some = training.of_points(np.array([4, 0]))
    np.testing.assert_allclose(some.gradient_noise_sd, [4.0, 0.0])
    longer = training.with_point(np.zeros(2), 0.0, 0.0, np.ones(2))
    np.testing.assert_array_equal(longer.gradient_noise_sd[8:], 0.0)
    as_measured = training_set(entries, PLANE, MeasuredValues())
    np.testing.assert_array_equal(as_measured.gradient_noise_sd, 0.0)
    joining = [joining_gradient(entry, PLANE, training) is not None for entry in entries]
    np.testing.assert_array_equal(joining, depths <= 7.0)


def test_slopes_that_a_parabola_explains_have_no_noise():
    entries = normal_at([*NEAR, [5.0, 0.0], [0.0, 2.4]])  # 13 and 12 nats deep
    training = training_set(entries, PLANE, CompressedDepths())
    assert training.has_gradient.all()
    np.testing.assert_allclose(training.gradient_noise_sd, 0.0, atol=1e-9)
    entries[8] = with_outcome(entries[8], value=entries[8].value - 1.0)
    noise_sd = training_set(entries, PLANE, CompressedDepths()).gradient_noise_sd
    depths = np.max([entry.value for entry in entries]) - [entry.value for entry in entries[8:]]
    np.testing.assert_allclose(noise_sd[8:], 0.8 * (depths - 7.0))


# ---------------------------------------------------------------------- units of gradients


def numerical_units(transform, points):
    """Log |du/ds| of points u (n, D)."""
    step, s = 1e-5, transform.to_standardised(points)
    columns = [
        (transform.from_standardised(s + e) - transform.from_standardised(s - e)) / (2.0 * step)
        for e in step * np.eye(points.shape[1])
    ]
    return np.linalg.slogdet(np.stack(columns, axis=-1))[1]


def test_every_point_has_units_of_its_own_where_coordinates_are_bent():
    whitened = PLANE.whitened(np.array([0.1, 0.0]), np.array([[2.0, 0.5], [0.0, 1.0]]))
    nothing, rates = Whitening.nothing(2), np.array([0.0, 0.7])
    bend = Bend(np.array([4.0, 0.0]), np.array([0.0, 0.2]), np.eye(2), rates, 5.0, nothing)
    for transform in (PLANE, whitened, whitened.bent([bend], number=2)):
        for entries in (normal_at(NEAR), log_of([-1.0, -2.0, -3.0])):
            training = training_set(entries, transform, MeasuredValues())
            expected = numerical_units(transform, training.inputs)
            np.testing.assert_allclose(training.log_determinants, expected, atol=1e-8)
    assert np.ptp(training.log_determinants) > 0.1  # bent, the last


def test_units_of_points_go_with_their_points():
    inputs, units = np.arange(8.0).reshape(4, 2), np.array([0.5, -1.0, 2.0, 0.25])
    training = TrainingSet(inputs, np.zeros(4), gradients=-inputs, log_determinants=units)
    chosen = training.of_points(np.array([2, 0]))
    np.testing.assert_array_equal(chosen.log_determinants, [2.0, 0.5])
    np.testing.assert_array_equal(chosen.inputs, inputs[[2, 0]])
    more = training.with_point(np.ones(2), -1.0, gradient=np.ones(2))
    np.testing.assert_array_equal(more.log_determinants, [*units, np.nan])  # not known
    fewer = more.of_points(np.array([4, 1]))
    np.testing.assert_array_equal(fewer.log_determinants, [np.nan, -1.0])
    for same in (training.values_alone(), training.with_best_gradients(6)):
        np.testing.assert_array_equal(same.log_determinants, units)
    plain = TrainingSet(inputs, np.zeros(4))
    np.testing.assert_array_equal(plain.log_determinants, np.zeros(4))
    np.testing.assert_array_equal(plain.with_point(np.ones(2), 0.0).log_determinants[:4], 0.0)


# ---------------------------------------------------------------------- the same points elsewhere


def test_points_are_known_by_their_evaluations_in_all_coordinates():
    """Whichever were left out, and those outside the support."""
    outside = [
        Evaluation(
            20 + i, None, np.array([4.0, 0.1 * i]), Outcome(-np.inf, Status.OUT_OF_SUPPORT, 0)
        )
        for i in range(6)
    ]
    entries = [*normal_at([*NEAR, [10.0, 0.0]]), *outside]
    entries[1] = with_outcome(entries[1], value=np.nan, status=Status.FAILED)
    for depths in (CompressedDepths(), MeasuredValues()):
        training = training_set(entries, PLANE, depths)
        assert (8 in training.identities) == (depths == MeasuredValues())
        assert 1 not in training.identities
        assert np.any(training.identities >= 20)
        by_identity = {entry.index: entry for entry in entries}
        x = np.array([by_identity[i].x for i in training.identities])
        np.testing.assert_allclose(PLANE.to_user(training.inputs), x, atol=1e-9)


def test_what_two_sets_share():
    inputs = np.arange(10.0).reshape(5, 2)
    gradients = np.where(np.array([1, 1, 0, 1, 0])[:, None], inputs, np.nan)
    one = TrainingSet(inputs, np.arange(5.0), gradients=gradients, identities=np.arange(5))
    other = TrainingSet(-inputs[:4], np.ones(4), identities=np.array([3, 0, 2, 7]))
    found = one.shared_with(other)
    np.testing.assert_array_equal(found.identities, [0, 2, 3])
    np.testing.assert_array_equal(found.values, [0.0, 2.0, 3.0])
    assert not found.has_gradient.any()
    some = replace(other, gradients=np.array([[1.0, 1.0], [np.nan] * 2, [1.0, 1.0], [1.0, 1.0]]))
    np.testing.assert_array_equal(one.shared_with(some).has_gradient, [False, False, True])
    assert one.shared_with(one) is one
    more = replace(one, identities=np.arange(5)[::-1], gradients=inputs)
    assert one.shared_with(more) is one  # whatever else it has
    assert other.shared_with(one).gradients is None


def test_identities_go_with_their_points():
    training = TrainingSet(np.arange(8.0).reshape(4, 2), np.zeros(4), identities=np.arange(4) + 7)
    np.testing.assert_array_equal(training.of_points(np.array([2, 0])).identities, [9, 7])
    np.testing.assert_array_equal(
        training.with_point(np.ones(2), 0.0).identities, [7, 8, 9, 10, -1]
    )
    plain = TrainingSet(training.inputs, training.values)
    np.testing.assert_array_equal(plain.identities, np.arange(4))
