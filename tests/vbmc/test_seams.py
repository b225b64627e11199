"""Seams of periodic parameters: away from the mass, and only where that is worth a move."""

import numpy as np
import pytest

from sparing.problem.evaluations import Evaluation, Outcome, Status
from sparing.problem.parameter_transform import ParameterTransform
from sparing.problem.problem import Problem
from sparing.variational.mixture import GaussianMixture
from sparing.variational.normal_mixture import NormalMixture
from sparing.variational.other_coordinates import carry_over, in_coordinates, moments_in
from sparing.vbmc.seams import best_seam, best_turns, tempered_weights, with_best_seams
from sparing.vbmc.state import initial_state

PROBLEM = Problem(
    lambda x: 0.0, [-180.0, -1.0], [180.0, 1.0], [-180.0, None], [180.0, None], periodic="x1"
)
FIRST = ParameterTransform.from_problem(PROBLEM)


def evaluated(angles, values):
    return [
        Evaluation(i, None, np.array([angle, 0.1]), Outcome(float(value), Status.OK, 0.1))
        for i, (angle, value) in enumerate(zip(angles, values, strict=True))
    ]


def even(angles):
    return np.full(len(angles), 1.0 / len(angles))


@pytest.mark.parametrize("centre", [0.0, 0.4, 3.0, 6.2])
def test_a_seam_in_the_mass_goes_to_the_other_side(centre):
    angles = centre + np.linspace(-0.3, 0.3, 9)
    seam = best_seam(angles, even(angles), seam=centre + 0.1)
    assert np.cos(seam - centre) < -0.99


def test_a_seam_that_does_well_stays():
    far = np.linspace(-0.3, 0.3, 9) + 1.0
    assert best_seam(far, even(far), seam=1.0 + 0.6 * np.pi) == 1.0 + 0.6 * np.pi
    all_round = np.linspace(0.0, 2.0 * np.pi, 30)
    assert best_seam(all_round, even(all_round), seam=2.0) == 2.0


def test_of_two_modes_none_is_cut():
    angles = np.concatenate([np.linspace(-0.2, 0.2, 9), np.pi + np.linspace(-0.2, 0.2, 9)])
    assert abs(np.sin(best_seam(angles, even(angles), seam=np.pi))) > 0.99


def test_the_best_points_count_and_at_least_a_few_of_them():
    weights = tempered_weights(np.array([0.0, -1.0, -2.0, -3.0, -4.0, -50.0]), dimension=2)
    assert weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(weights[1:5] / weights[0], np.exp(-np.arange(1, 5) / 4.0))
    assert weights[5] < 1e-4
    assert tempered_weights(np.array([-3.0]), dimension=2) == 1.0


def test_only_periodic_parameters_have_a_seam_that_moves():
    angles = np.array([170.0, 175.0, -178.0, -170.0, 179.0])
    turns = best_turns(evaluated(angles, -np.arange(5.0)), FIRST)
    assert turns[0] == pytest.approx(180.0, abs=15.0)  # above the lower bound: at zero degrees
    assert turns[1] == 0.0


def test_the_state_goes_to_the_new_coordinates_with_its_mixture():
    near_the_end = np.array([[178.0, 0.2]])
    state = initial_state(FIRST, near_the_end)
    evaluations = evaluated([170.0, 175.0, -178.0, -170.0, 179.0], np.zeros(5))
    turned = with_best_seams(state, evaluations)
    assert turned.transform.number == turned.transform.turning == -1
    np.testing.assert_allclose(turned.transform.to_user(turned.mixture.means)[0], near_the_end[0])
    assert with_best_seams(turned, evaluations) is turned
    flat = Problem(lambda x: 0.0, [-180.0, -1.0], [180.0, 1.0], [-180.0, None], [180.0, None])
    without = initial_state(ParameterTransform.from_problem(flat), near_the_end)
    assert with_best_seams(without, evaluations) is without
    assert with_best_seams(state, []) is state


def test_a_mixture_keeps_its_place_and_width_on_the_circle():
    """Ten degrees wide at 150, in coordinates whose seam is at 180, and at zero degrees."""
    centre = FIRST.to_working(np.array([[150.0, 0.3]]))
    width = (FIRST.to_working(np.array([[151.0, 0.3]])) - centre)[0, 0] * 10.0
    q = GaussianMixture([1.0], centre, [1.0], [width, 0.05])
    other = FIRST.turned(np.array([180.0, 0.0]), -7)
    moved = carry_over(q, FIRST, other)
    np.testing.assert_allclose(other.to_user(moved.means)[0], [150.0, 0.3])
    ends = other.to_user(np.vstack([moved.means + moved.lengths, moved.means - moved.lengths]))
    assert 0.5 * (ends[0, 0] - ends[1, 0]) == pytest.approx(10.0, rel=0.2)
    assert moved.lengths[1] == 0.05
    whitened = FIRST.whitened([0.1, 0.0], [[0.8, 0.3], [-0.2, 1.1]])
    np.testing.assert_allclose(
        carry_over(carry_over(q, FIRST, whitened), whitened, other).means, moved.means
    )


def test_a_posterior_in_coordinates_with_other_seams():
    generator = np.random.default_rng(1)
    other = FIRST.turned(np.array([180.0, 0.0]), -7)
    p = NormalMixture.of_covariances(
        np.array([0.6, 0.4]),
        FIRST.to_working(np.array([[100.0, 0.2], [60.0, -0.2]])),
        np.tile(np.diag([0.01, 0.02]) ** 2, (2, 1, 1)),
    )
    found = in_coordinates(p, FIRST, other)
    exact = other.to_working(FIRST.to_user(p.sample(50_000, generator)))
    for mean, covariance in ((found.mean, found.covariance), moments_in(p, FIRST, other)):
        np.testing.assert_allclose(mean, exact.mean(axis=0), atol=0.002)
        np.testing.assert_allclose(covariance, np.cov(exact, rowvar=False), rtol=0.1, atol=1e-5)
