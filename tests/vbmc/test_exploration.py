"""Looking elsewhere: what a look finds, what it asks for, and when it is over."""

import math
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
    learnt,
    one_hill,
    over_the_box,
    turned,
    two_hills,
)

from sparing.acquisition.rules import Frontier
from sparing.problem.bending import Bend, Whitening
from sparing.variational.normal_mixture import NormalMixture
from sparing.vbmc.evidence import Doubt
from sparing.vbmc.exploration import (
    CLIMB,
    FILL,
    PROBE,
    SECOND,
    TEST,
    LookElsewhere,
    Trusting,
    believed_part,
)
from sparing.vbmc.hidden_modes import LARGEST_STEP, hiding_places

STRATEGY = LookElsewhere()


def look(known, seed=1, strategy=STRATEGY, inflation=1.0, tested=TEST, other=None):
    generator = np.random.default_rng(seed)
    otherwise = None if other is None else lambda: other
    return strategy.look(known, inflation, generator, tested=tested, otherwise=otherwise)


@pytest.fixture(scope="module")
def both():
    """Two hills of equal height, both evaluated; the posterior knows one."""
    return learnt(two_hills, around(HOME, 25, 2), around(OTHER, 12, 3), over_the_box(15, 4))


@pytest.fixture(scope="module")
def alone():
    """One hill, and values all over the box that say so."""
    return learnt(one_hill, around(HOME, 25, 2), over_the_box(60, 5))


@pytest.mark.parametrize("seed", range(3))
def test_mass_that_the_surrogate_is_sure_of_is_found(both, seed):
    found = look(both, seed=seed)
    assert found.outside == pytest.approx(0.5, abs=0.1)
    assert found.rule == PROBE
    assert math.isnan(found.hidden)  # nobody asked
    draws = found.found.sample(1000, np.random.default_rng(seed))
    there = np.abs(draws - OTHER).max(axis=1) < 4.0 * SD
    assert there.mean() > 0.95
    np.testing.assert_allclose(draws[there].std(axis=0), SD, rtol=0.2)


def test_probes_go_to_the_mass_that_is_outside(both):
    threshold = both.posterior.log_density((HOME + 3.0 * EAST)[None, :])[0]
    for seed in range(3):
        points = look(both, seed=seed).points
        assert points.shape == (STRATEGY.n_probes, 2)
        assert np.all(both.posterior.log_density(points) < threshold)
        assert np.any(np.abs(points - OTHER).max(axis=1) < 4.0 * SD)


@pytest.mark.parametrize("offset", [(0.06, -0.04), (0.1, -0.1)])
def test_one_value_on_another_hill_is_enough_to_be_drawn_there(offset):
    known = learnt(two_hills, around(HOME, 25, 2), over_the_box(15, 4), [OTHER + np.array(offset)])
    found = look(known)
    assert found.rule == PROBE
    assert found.outside > STRATEGY.largest_outside
    assert np.any(found.points[:, 0] > 0.1)


def test_a_hill_without_mass_is_climbed():
    """One value far above the posterior's tail, yet far below its top: what comes above it?"""
    inputs = np.vstack([around(HOME, 80, 2, spread=2.0), [[0.3, 0.3]]])
    values = one_hill(inputs)
    values[-1] = -18.0
    known = certain_of_home(inputs, values, length=0.06, output_scale=7.0)
    found = look(known)
    assert (found.rule, found.found) == (CLIMB, None)
    assert found.outside < STRATEGY.largest_outside
    (point,) = found.points
    assert np.linalg.norm(point - 0.3) <= 1.3 * LARGEST_STEP * SD


def test_climbs_are_a_small_part_of_all_evaluations_unless_there_are_several_modes():
    inputs = np.vstack([around(HOME, 80, 2, spread=2.0), [[0.3, 0.3]]])
    values = one_hill(inputs)
    values[-1] = -18.0
    known = certain_of_home(inputs, values, length=0.06, output_scale=7.0)
    climbed = replace(known, rules=(*(9 * (CLIMB,)), *known.rules[9:]))
    assert look(known).rule == look(replace(known, rules=(CLIMB, *known.rules[1:]))).rule == CLIMB
    assert look(climbed).rule != CLIMB


def test_a_climb_that_succeeds_pays_for_others():
    """From a depth of 60 to one of 18, in steps; had they led nowhere, no other would be made."""
    steps = np.linspace([0.45, 0.45], [0.3, 0.3], 6)
    inputs = np.vstack([around(HOME, 40, 2, spread=2.0), steps])
    depths = {"risen": np.linspace(60.0, 18.0, 6), "not": np.linspace(20.0, 18.0, 6)}
    for case, expected in (("risen", CLIMB), ("not", FILL)):
        values = one_hill(inputs)
        values[-6:] = -depths[case]
        known = certain_of_home(inputs, values, length=0.06, output_scale=7.0)
        known = replace(known, rules=(*known.rules[:41], *(5 * (CLIMB,))))
        assert look(known).rule == expected, case


@pytest.mark.parametrize("seed", range(3))
def test_one_mode_that_is_well_known_is_all_there_is(alone, seed):
    found = look(alone, seed=seed)
    assert found.outside < 0.02
    assert found.hidden <= STRATEGY.largest_hidden
    assert (found.points.shape, found.found) == ((0, 2), None)


@pytest.mark.parametrize("seed", range(3))
def test_before_the_end_the_tails_are_tested(alone, seed):
    """Three points outside the posterior, not far from it."""
    found = look(alone, seed=seed, tested="")
    assert (found.rule, found.found) == (TEST, None)
    assert found.points.shape == (STRATEGY.n_probes, 2)
    distance = np.linalg.norm(found.points - HOME, axis=1) / SD
    assert np.all((distance > 2.8) & (distance < 8.0))


@pytest.mark.parametrize(("sds", "over"), [(2.4, False), (3.3, True), (7.8, True), (8.8, False)])
def test_the_posterior_ends_where_values_are_neither_its_own_nor_mirages(alone, sds, over):
    """Without a surprise: the surrogate knew, but the posterior did not."""
    (value,) = one_hill((HOME + sds * EAST)[None, :])
    values = np.append(alone.values[:-1], value)
    known = replace(alone, values=values, rules=(*alone.rules[:-1], TEST))
    assert (len(look(known).points) == 0) is over
    endless = replace(known, rules=(*(30 * (TEST,)), *known.rules[30:]))
    assert len(look(endless, tested="").points) == 0  # a quarter of all evaluations
    before = replace(alone, values=values, rules=(*alone.rules[:-2], TEST, ""))
    assert len(look(before).points) == 0  # that was another test


def test_mass_that_is_not_excluded_in_other_coordinates_is_evaluated(alone, both):
    """Even where the surrogate at hand is sure that there is none."""
    found = look(alone, other=turned(both))
    assert (found.rule, found.found, len(found.points)) == (SECOND, None, STRATEGY.n_probes)
    assert np.all(np.linalg.norm(found.points - OTHER, axis=1) < 5.0 * SD)
    assert len(look(alone, other=turned(alone)).points) == 0


@pytest.mark.parametrize(("value", "over"), [(-8.0, True), (-3000.0, True), (-1.0, False)])
def test_the_second_opinion_was_wrong_where_values_do_not_belong_to_the_posterior(
    alone, both, value, over
):
    values = np.append(alone.values[:-3], [value + alone.values.max(), -100.0, -100.0])
    known = replace(alone, values=values, rules=(*alone.rules[:-3], SECOND, SECOND, SECOND))
    assert (look(known, tested=SECOND, other=both).rule == FILL) is over
    assert look(known, tested="", other=both).rule == TEST  # there was a surprise
    many = replace(known, rules=(*(30 * (SECOND,)), *known.rules[30:]))
    assert look(many, tested=SECOND, other=both).rule == FILL  # a quarter of all evaluations


def test_where_nothing_was_evaluated_points_are_asked_for():
    """And again only if those before have told something."""
    known = learnt(one_hill, around(HOME, 25, 2))
    useless = replace(known, rules=(*(6 * (FILL,)), *known.rules[6:]))  # all of them at home
    failed = replace(known, other_rules=(FILL,))
    for before, n_points in ((known, 6), (useless, 0), (failed, 0)):
        found = look(before)
        assert found.rule == FILL
        assert found.hidden > 0.5
        assert len(found.points) == n_points  # 2 D + 2
    for n_points in (3, 0):
        fewer = LookElsewhere(largest_round=n_points)
        assert len(look(known, strategy=fewer).points) == n_points
    content = LookElsewhere(largest_hidden=1.0)
    assert len(look(known, strategy=content).points) == 0


def test_rounds_go_on_while_each_leaves_little_room():
    """Two deep values leave about a sixth of the room that there was."""
    easily, hardly = (
        LookElsewhere(largest_rest=rest, largest_round=2, largest_outside=1.0)
        for rest in (0.3, 0.05)
    )
    first = look(learnt(one_hill, around(HOME, 25, 2)), strategy=easily)
    known = learnt(one_hill, around(HOME, 25, 2), first.points)
    known = replace(known, rules=(*known.rules[:25], FILL, FILL))
    found = look(known, strategy=easily)
    assert 0.1 < found.hidden / first.hidden < 0.2
    assert (found.rule, len(found.points)) == (FILL, 2)
    assert len(look(known, strategy=hardly).points) == 0
    spent = replace(known, rules=(*(20 * (TEST,)), *known.rules[20:]))
    assert len(look(spent, strategy=easily).points) == 0  # half of all evaluations


def test_where_several_modes_are_known_more_are_looked_for():
    """As long as less than half of all evaluations were spent on it."""
    known = learnt(two_hills, around(HOME, 25, 2), around(OTHER, 25, 3))
    shapes = np.tile(SD**2 * np.eye(2), (2, 1, 1))
    posterior = NormalMixture.of_covariances(np.ones(2) / 2, np.array([HOME, OTHER]), shapes)
    known = replace(known, posterior=posterior)
    assert len(look(known).points) == 6
    spent = replace(known, rules=(*(25 * (FILL,)), *known.rules[25:]))
    assert len(look(spent).points) == 0


def test_doubt_is_what_may_be_outside_or_hidden():
    """A quarter of what mass outside would add, and a mode like those known in what is hidden."""
    generator = np.random.default_rng(3)
    one = learnt(one_hill, around(HOME, 25, 2))
    inside = one.posterior.sample(1000, generator)
    away = np.vstack([inside[:700], OTHER + 0.01 * generator.normal(size=(300, 2))])
    assert STRATEGY.doubt(one, inside, generator).unseen < 0.003
    outside = STRATEGY.doubt(one, away, generator)
    assert outside.unseen == pytest.approx(-0.25 * np.log(0.7), rel=0.05)
    shapes = np.tile(SD**2 * np.eye(2), (2, 1, 1))
    posterior = NormalMixture.of_covariances(np.ones(2) / 2, np.array([HOME, OTHER]), shapes)
    two = replace(learnt(two_hills, around(HOME, 25, 2), around(OTHER, 25, 3)), posterior=posterior)
    hidden, _ = hiding_places(two, -3.0, 0, np.random.default_rng(4))
    draws = posterior.sample(1000, generator)
    assert hidden > 0.3
    doubt = STRATEGY.doubt(two, draws, generator)
    assert doubt.unseen == pytest.approx(np.log1p(hidden), rel=0.1)
    assert Trusting().doubt(two, draws, generator) == Doubt()


def test_doubt_is_no_larger_than_what_has_become_of_promised_mass_of_late():
    """With n points of late where mass was promised and k hits, half of -log(1 - (k+1)/(n+1))."""
    generator = np.random.default_rng(3)
    known = learnt(one_hill, around(HOME, 25, 2), around(OTHER, 11, 3))
    away = OTHER + 0.01 * generator.normal(size=(1000, 2))
    unsure = STRATEGY.doubt(known, away, generator)
    assert unsure.unseen == pytest.approx(-0.25 * np.log(0.005))
    assert unsure.largest == pytest.approx(-0.5 * np.log(0.005))
    rules = (*known.rules[:27], *(4 * (PROBE,)), *(5 * (Frontier.name,)))
    none_was_there = STRATEGY.doubt(replace(known, rules=rules), away, generator)
    assert none_was_there.unseen == none_was_there.largest == pytest.approx(-0.5 * np.log(0.9))
    values = np.where(np.arange(36) < 31, known.values, known.values.max())
    five_were = STRATEGY.doubt(replace(known, rules=rules, values=values), away, generator)
    assert five_were.unseen == five_were.largest == pytest.approx(-0.5 * np.log(0.4))
    long_ago = (*(9 * (PROBE,)), *known.rules[9:])
    assert STRATEGY.doubt(replace(known, rules=long_ago), away, generator) == unsure


def test_points_to_fill_are_in_the_box_and_far_from_home():
    known = learnt(one_hill, around(HOME, 25, 2))
    points = look(known).points
    assert np.all(np.abs(points) <= 0.5)
    assert np.all(np.linalg.norm(points - HOME, axis=1) > 3.0 * SD)


def test_hope_is_what_held_out_draws_have_shown():
    """A surrogate that has been wrong excludes less."""
    known = learnt(one_hill, around(HOME, 8, 2), over_the_box(12, 6))
    shares = [look(known, inflation=inflation).outside for inflation in (1.0, 30.0)]
    assert shares[1] > shares[0] + 0.01


def test_looks_repeat(both):
    one, same, other = (look(both, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.points, same.points)
    assert one.outside == same.outside
    assert not np.array_equal(one.points, other.points)


def test_particles_are_everywhere_that_is_not_excluded(both):
    """Half at home and half at the other hill, with a few left where little is known."""
    particles = STRATEGY.particles(both, 1.0, np.random.default_rng(7))
    assert particles.shape == (STRATEGY.n_particles, 2)
    near = [np.mean(np.abs(particles - centre).max(axis=1) < 4.0 * SD) for centre in (HOME, OTHER)]
    np.testing.assert_allclose(near, 0.5, atol=0.12)


def test_the_paper_looks_nowhere(both):
    found = look(both, strategy=Trusting())
    assert (found.points.shape, found.found) == ((0, 2), None)
    assert Trusting().particles(both, 1.0, np.random.default_rng(1)).shape == (0, 2)


# ---------------------------------------------------------------------- parts of it


def test_only_particles_of_which_the_surrogate_is_sure_are_a_finding(both):
    unsure = np.full((200, 2), 3.0) + 0.01 * np.random.default_rng(8).normal(size=(200, 2))
    _, variance = both.surrogate.predict(unsure)
    assert np.all(variance > 4.0)
    generator = np.random.default_rng(9)
    assert believed_part(both, unsure, generator) is None
    sure = around(OTHER, 400, 10, spread=0.5)
    found = believed_part(both, np.vstack([sure, unsure]), generator)
    np.testing.assert_allclose(found.mean, sure.mean(axis=0), atol=0.01 * SD)
    assert believed_part(both, sure[:19], generator) is None  # too few to say anything
    assert believed_part(both, sure[:29], generator).n_components == 1
    assert believed_part(both, sure[:60], generator).n_components == 4


SIDE = np.linspace(-1.0, 1.0, 200, endpoint=False)
ONES = np.ones(200)
BOUNDARY = np.vstack(  # of the square with sides of two
    [
        np.column_stack([SIDE, -ONES]),
        np.column_stack([ONES, SIDE]),
        np.column_stack([-SIDE, ONES]),
        np.column_stack([-ONES, -SIDE]),
    ]
)


def test_the_start_of_the_particles_is_a_density(monkeypatch):
    """Half box, half posterior: it integrates to one, and the particles are its draws."""
    seen = {}

    def noted(log_target, log_start, start, generator):
        seen.update(log_start=log_start, start=start)
        return start

    monkeypatch.setattr("sparing.vbmc.exploration.tempered_sample", noted)
    known = certain_of_home(around(HOME, 10, 11), one_hill(around(HOME, 10, 11)))
    turned = TRANSFORM.whitened(np.array([0.1, 0.0]), np.array([[2.0, 1.0], [-1.0, 3.0]]))
    nothing, rates = Whitening.nothing(2), np.array([0.0, 0.3])
    bend = Bend(np.array([1.0, 0.0]), np.array([0.0, 0.3]), np.eye(2), rates, 5.0, nothing)
    for transform in (TRANSFORM, turned, turned.bent([bend], number=2)):
        moved = replace(known, transform=transform)
        STRATEGY.particles(moved, 1.0, np.random.default_rng(12))
        axis = np.linspace(-8.0, 8.0, 1601)
        grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        total = np.exp(seen["log_start"](grid)).sum() * (axis[1] - axis[0]) ** 2
        assert total == pytest.approx(1.0, abs=0.02)
        density = np.exp(seen["log_start"](seen["start"]))
        assert np.all(density > 0.0)
        # E[1 / p] over draws of p that are in the box is its area.
        inside = np.all(np.abs(transform.to_standardised(seen["start"])) <= 0.75, axis=1)
        corners = transform.from_standardised(0.75 * BOUNDARY)
        (x, y), (next_x, next_y) = corners.T, np.roll(corners, -1, axis=0).T
        area = 0.5 * abs(np.sum(x * next_y - next_x * y))  # of the polygon
        assert np.mean(inside / density) == pytest.approx(area, rel=0.1)
