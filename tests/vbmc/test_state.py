"""The first state of a run, and what a trained surrogate says in the user's coordinates."""

import numpy as np
from tests.vbmc.support import LOG_JACOBIAN, TRANSFORM, log_joint, trained

from sparing.vbmc.state import INITIAL_SCALE, Phase, initial_state


def test_the_first_q_is_narrow_and_at_the_centre_of_the_box():
    first = initial_state(TRANSFORM, np.empty((0, 2)))
    np.testing.assert_array_equal(first.mixture.means, np.zeros((2, 2)))
    np.testing.assert_array_equal(first.mixture.scales, INITIAL_SCALE)
    assert first.trained is None
    assert (first.phase, first.searching, first.iteration) == (Phase.SEARCHING, True, 0)


def test_the_first_q_is_at_the_user_s_points():
    one = initial_state(TRANSFORM, np.array([[1.0, -2.0]]))
    np.testing.assert_allclose(one.mixture.means, [[0.25, -0.5]] * 2)
    many = initial_state(TRANSFORM, np.array([[1.0, -2.0], [2.0, 0.0], [0.0, 0.0]]))
    np.testing.assert_allclose(many.mixture.means, [[0.25, -0.5], [0.5, 0.0]])


def test_a_surrogate_speaks_of_the_log_joint_in_the_user_s_coordinates():
    found = trained()
    x = np.random.default_rng(2).normal(size=(6, 2))
    mean, sd = found.log_joint(x)
    np.testing.assert_allclose(mean, [log_joint(point) for point in x], atol=1e-6)
    u_mean, variance = found.surrogate.predict(x / 4.0)
    np.testing.assert_allclose(u_mean - mean, LOG_JACOBIAN)
    np.testing.assert_allclose(sd, np.sqrt(variance))
