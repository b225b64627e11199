"""The ascent: its draws, its units, and that it climbs and says how it ended."""

import numpy as np
import pytest
from tests.variational.support import gaussian_gp, random_gp, random_mixture

from sparing.kernels.variational import (
    STOPPED_AT_LIMIT,
    STOPPED_BY_PARAMETERS,
    STOPPED_BY_VALUE,
    STOPPED_NOT_FINITE,
)
from sparing.variational.adam import (
    Adam,
    IndependentDraws,
    MirroredDraws,
    StepsInBoxWidths,
    StepsInSds,
)
from sparing.variational.mixture import GaussianMixture
from sparing.variational.objective import NoPenalties, Objective, SoftPenalties


def ascend(strategy, objective, start, seed=0, *, searching=False):
    generator = np.random.default_rng(seed)
    return strategy.ascend(objective, start, searching=searching, generator=generator)


def test_step_and_sample_limits():
    assert IndependentDraws().n_samples(50) == 100
    mirrored = MirroredDraws()
    assert [mirrored.n_samples(n) for n in (2, 50, 10_000)] == [96, 48, 8]
    assert [Adam().max_steps(n) for n in (50, 100_000)] == [1000, 10_000]
    assert Adam.paper().max_steps(50) == 10_000


def test_half_of_the_mirrored_draws_are_fresh():
    assert [MirroredDraws().n_fresh(n) for n in (96, 7)] == [48, 4]
    assert IndependentDraws().n_fresh(100) == 100


def test_units_of_the_means():
    mixture = random_mixture(3, 2, 1)
    draws = mixture.sample(200_000, np.random.default_rng(2))
    np.testing.assert_allclose(StepsInSds(3.0).unit(mixture), 3.0 * draws.std(axis=0), rtol=0.01)
    np.testing.assert_array_equal(StepsInBoxWidths().unit(mixture), np.ones(2))


@pytest.mark.parametrize("strategy", [Adam(), Adam.paper()], ids=["default", "paper"])
def test_the_ascent_finds_the_one_normal_there_is(strategy):
    mean, sd = np.array([0.4, -0.2]), np.array([0.2, 0.4])
    objective = Objective.create(gaussian_gp(mean, sd, 30, 1), NoPenalties())
    start = GaussianMixture([1.0], [[0.2, 0.1]], [0.1], [1.0, 1.0])
    found, n_steps, end = ascend(strategy, objective, start)
    np.testing.assert_allclose(found.means[0], mean, atol=0.02)
    np.testing.assert_allclose(found.scales[0] * found.lengths, sd, rtol=0.05)
    assert 0 < n_steps <= strategy.max_steps(1)
    assert end in (STOPPED_BY_VALUE, STOPPED_BY_PARAMETERS)


def test_it_says_when_the_steps_ran_out():
    gp, start = random_gp(20, 2, 2, 6), random_mixture(3, 2, 7)
    hasty = Adam(max_steps_base=25, max_steps_per_component=0)
    _, n_steps, end = ascend(hasty, Objective.create(gp, SoftPenalties()), start)
    assert (n_steps, end) == (25, STOPPED_AT_LIMIT)


def test_while_searching_the_weights_are_left_alone_and_steps_are_large():
    gp, start = random_gp(20, 2, 2, 6), random_mixture(3, 2, 7)
    even = GaussianMixture(np.full(3, 1.0 / 3.0), start.means, start.scales, start.lengths)
    objective = Objective.create(gp, SoftPenalties())
    brief = Adam(max_steps_base=2, max_steps_per_component=0)  # of which the second is not taken
    fast, *_ = ascend(brief, objective, even, searching=True)
    slow, *_ = ascend(brief, objective, even)
    np.testing.assert_allclose(fast.weights, 1.0 / 3.0, rtol=1e-12)
    assert np.max(np.abs(slow.weights - 1.0 / 3.0)) > 1e-3
    # Adam's first step is as long as the rate, whatever the gradient.
    moved = np.abs(fast.means - even.means) / np.abs(slow.means - even.means)
    np.testing.assert_allclose(moved, Adam().rate_max_warm_up / Adam().rate_max, rtol=1e-4)


def test_same_seed_same_ascent():
    gp, start = random_gp(20, 2, 2, 6), random_mixture(3, 2, 7)
    objective = Objective.create(gp, SoftPenalties())
    (one, *end), (other, *other_end), (different, *_) = (
        ascend(Adam(), objective, start, seed) for seed in (1, 1, 2)
    )
    assert end == other_end
    np.testing.assert_array_equal(one.means, other.means)
    assert not np.array_equal(one.means, different.means)


def test_a_surrogate_that_is_not_a_number_leaves_the_start():
    objective = Objective.create(random_gp(10, 2, 2, 5), SoftPenalties())
    objective.expansion.coefficients[0, 0] = np.nan
    start = random_mixture(3, 2, 6)
    found, n_steps, end = ascend(Adam(), objective, start)
    assert (n_steps, end) == (0, STOPPED_NOT_FINITE)
    np.testing.assert_allclose(found.means, start.means, rtol=1e-12)
