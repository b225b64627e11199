"""Points that lie far from each other."""

import numpy as np

from sparing.numerics.far_apart import spread_out


def test_chosen_points_are_as_far_apart_as_can_be():
    points = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 5.0], [1.0, 0.0], [1.1, 0.1]])
    scales = np.array([1.0, 100.0])  # in which the third is near the first
    for seed in range(12):
        chosen = spread_out(points, 2, scales, np.random.default_rng(seed))
        assert abs(chosen[0, 0] - chosen[1, 0]) >= 0.9
    everything = spread_out(points, 9, np.ones(2), np.random.default_rng(1))
    assert len(np.unique(everything, axis=0)) == 5
    plain = spread_out(points, 2, np.ones(2), np.random.default_rng(1))
    assert [0.0, 5.0] in plain.tolist()
