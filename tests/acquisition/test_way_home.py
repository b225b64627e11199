"""The way back into the plausible box: when it is taken, and where it leads."""

import numpy as np
import pytest
from tests.vbmc.support import TRANSFORM, evaluation, surrogate

from sparing.acquisition.way_home import point_at_home
from sparing.vbmc.warm_up import Climbing, WatchingBound

FAR = [(9.0, 9.0), (9.5, 9.0), (9.0, 9.5), (10.0, 9.0), (9.5, 9.5)]  # two boxes away
HOME = [(1.0, 1.0), (-1.0, 0.5), (0.3, -1.5)]


def process(points, values):
    entries = [evaluation(i, x, v) for i, (x, v) in enumerate(zip(points, values, strict=True))]
    return surrogate(entries)


def at_home(found, enough=20, seed=3):
    return point_at_home(found, TRANSFORM, enough, np.random.default_rng(seed))


def lost():
    """The best points are far away, and a better one could be within."""
    return process([*HOME, *FAR], [-30.0, -40.0, -50.0, -3.0, -2.0, -4.0, -3.5, -2.5])


def test_a_search_that_has_left_the_box_is_led_back_into_it():
    for seed in range(5):
        u = at_home(lost(), seed=seed)
        assert np.all(np.abs(TRANSFORM.to_standardised(u[None])) <= 0.5)


def test_it_goes_where_the_surrogate_promises_most():
    found = lost()
    u = at_home(found)
    box = TRANSFORM.from_standardised(
        np.stack(np.meshgrid(*[np.linspace(-0.5, 0.5, 40)] * 2), axis=-1).reshape(-1, 2)
    )
    mean, variance = found.predict(np.vstack([u, box]))
    promise = mean + np.log(variance)
    assert promise[0] > promise[1:].max() - 0.05


def test_what_is_known_promises_nothing():
    """The highest mean within, once it has been evaluated."""
    points, values = [*HOME, *FAR], [-30.0, -40.0, -50.0, -3.0, -2.0, -4.0, -3.5, -2.5]
    corner = (1.99, 1.99)
    found = process([*points, corner], [*values, -20.0])
    box = TRANSFORM.from_standardised(np.random.default_rng(2).uniform(-0.5, 0.5, (4000, 2)))
    mean, variance = found.predict(box)
    u = at_home(found)
    (own_mean,), (own_variance,) = found.predict(u[None])
    assert own_mean + np.log(own_variance) > (mean + np.log(variance)).max() - 1.0
    assert own_variance > 2.0 * variance[np.argmax(mean)]


def test_nobody_needs_it_while_one_of_the_best_points_is_at_home():
    values = [-30.0, -40.0, -50.0, -3.0, -2.0, -4.0, -3.5, -2.5]
    assert at_home(process([*HOME, *FAR], values)) is not None
    values[0] = -3.2  # the fourth of D + 2
    assert at_home(process([*HOME, *FAR], values)) is None
    values[0] = -3.7  # the fifth
    assert at_home(process([*HOME, *FAR], values)) is not None
    # Half a width beyond the box is near enough.
    near = [(3.9, 0.0), *FAR[1:]]
    assert at_home(process([*HOME, *near], values)) is None
    near = [(4.1, 0.0), *FAR[1:]]
    assert at_home(process([*HOME, *near], values)) is not None


def test_a_box_that_has_been_searched_is_left_alone():
    assert at_home(lost(), enough=4) is not None
    assert at_home(lost(), enough=3) is None


def test_it_is_given_up_where_it_leads_no_further():
    """Twelve points within, in two dimensions, that were no better than the best before."""
    more = np.random.default_rng(1).uniform(-2.0, 2.0, (11, 2))
    points, far = [*HOME[:2], *more, *FAR], [-3.0, -2.0, -4.0, -3.5, -2.5]
    assert at_home(process(points, [-30.0, *[-40.0] * 12, *far]), enough=99) is None
    assert at_home(process(points, [-40.0, -30.0, *[-40.0] * 11, *far]), enough=99) is not None


def test_a_box_without_points_is_looked_into():
    u = at_home(process(FAR, [-3.0, -2.0, -4.0, -3.5, -2.5]))
    assert np.all(np.abs(TRANSFORM.to_standardised(u[None])) <= 0.5)


def test_every_so_manieth_point_goes_home():
    found, climbing = lost(), Climbing(home_every=3)
    taken = [
        climbing.way_home(found, TRANSFORM, i, np.random.default_rng(i)) is not None
        for i in range(7)
    ]
    assert taken == [False, False, True, False, False, True, False]
    content = Climbing(home_every=1, home_enough=0)
    assert content.way_home(found, TRANSFORM, 0, np.random.default_rng(1)) is None
    assert WatchingBound().way_home(found, TRANSFORM, 2, np.random.default_rng(1)) is None


@pytest.mark.parametrize("enough", [1, 2])
def test_how_many_points_are_enough_depends_on_the_dimension(enough):
    """Four times as many in two."""
    points = [*HOME, *np.random.default_rng(1).uniform(-2, 2, (3, 2)), *FAR]
    values = [-20.0, *[-40.0] * 5, -3.0, -2.0, -4.0, -3.5, -2.5]  # six within
    climbing = Climbing(home_every=1, home_enough=enough)
    point = climbing.way_home(process(points, values), TRANSFORM, 0, np.random.default_rng(1))
    assert (point is None) == (4 * enough <= 6)
