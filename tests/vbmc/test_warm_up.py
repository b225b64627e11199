"""When the warm-up climbs step by step, and when it is over (Section 3.5)."""

import numpy as np
import pytest
from tests.vbmc.support import steep, surrogate

from sparing.acquisition.rules import ProspectiveSampling, TemperedSampling, UncertaintySampling
from sparing.surrogate.gaussian_process import condition
from sparing.surrogate.training_set import TrainingSet
from sparing.vbmc.warm_up import Climbing, WatchingBound, has_settled, n_points_for

FLAT, RISING = [-10.0] * 4, [-100.0, -50.0, -10.0, -5.0]
N_ACTIVE = 5


def process_of(values, *, n_gradients=0):
    """A process in two dimensions with the given values, and gradients at the first points."""
    inputs = np.random.default_rng(1).normal(size=(len(values), 2))
    gradients = np.where(np.arange(len(values))[:, None] < n_gradients, -inputs, np.nan)
    known = gradients if n_gradients else None
    training = TrainingSet(inputs, np.asarray(values, dtype=float), gradients=known)
    return condition(training, np.zeros((1, 10 if n_gradients else 9)))


def test_the_elcbo_has_settled_after_three_small_improvements():
    assert not has_settled([-100.0, -50.0, -10.0, -9.9])
    assert has_settled([-100.0, -10.0, -9.5, -9.1, -8.9])
    assert not has_settled([-10.0, -9.5, -8.0, -7.9])
    assert not has_settled([-10.0, -10.0, -10.0])
    assert has_settled([-10.0, -20.0, -30.0, -40.0])  # a fall is no improvement


def test_it_climbs_while_the_best_points_differ_by_more_than_a_posterior_s():
    """The best 2 D + 2 = 6 of them, and by more than 2 D = 4 nats."""
    deep = [-1e3, -2e3]
    assert Climbing().must_climb(process_of([0.0, -1.0, -2.0, -3.0, -3.5, -4.1, *deep]))
    assert not Climbing().must_climb(process_of([0.0, -1.0, -2.0, -3.0, -3.5, -3.9, *deep]))
    assert not WatchingBound().must_climb(steep().surrogate)


def test_on_the_way_up_points_come_one_by_one():
    uphill, there = steep().surrogate, surrogate()
    strategy = Climbing(n_climbing=1)
    assert [strategy.n_points(gp, N_ACTIVE) for gp in (uphill, there)] == [1, N_ACTIVE]
    assert [WatchingBound().n_points(gp, N_ACTIVE) for gp in (uphill, there)] == [N_ACTIVE] * 2


@pytest.mark.parametrize("strategy", [Climbing(), WatchingBound()])
def test_it_is_over_when_the_elcbo_has_settled(strategy):
    gp, values = surrogate(), np.arange(8.0)
    assert strategy.is_over(FLAT, values, gp, N_ACTIVE)
    assert not strategy.is_over(RISING, values, gp, N_ACTIVE)


def test_it_is_not_over_on_the_way_up_but_the_paper_does_not_look():
    values = np.zeros(40)
    assert not Climbing().is_over(FLAT, values, steep().surrogate, N_ACTIVE)
    assert WatchingBound().is_over(FLAT, values, steep().surrogate, N_ACTIVE)


def test_it_is_also_over_when_the_values_have_stopped_rising():
    """Over the last 3 n_active = 15 evaluations, beside D + 2 = 4 earlier ones at least."""
    gp, strategy = surrogate(), Climbing()
    recent = np.full(15, -1.0)
    assert strategy.is_over(RISING, np.append([-1.5] * 4, recent), gp, N_ACTIVE)
    assert not strategy.is_over(RISING, np.append([-1.5] * 3, recent), gp, N_ACTIVE)
    assert not strategy.is_over(RISING, np.append([-2.1] * 4, recent), gp, N_ACTIVE)
    assert not WatchingBound().is_over(RISING, np.append([-1.5] * 4, recent), gp, N_ACTIVE)


def test_a_gradient_counts_as_a_value_for_every_parameter():
    values = np.zeros(8)
    counts = [n_points_for(6, process_of(values, n_gradients=n).training) for n in (0, 4, 8)]
    assert counts == [6, 3, 2]
    assert n_points_for(7, process_of(values, n_gradients=8).training) == 3  # not fewer


def test_with_gradients_fewer_of_the_best_points_must_be_alike():
    """Three instead of six, which as many gradients would do with two of."""
    values = [0.0, -1.0, -3.9, -5.0, -6.0, -7.0, -8.0, -9.0]
    assert Climbing().must_climb(process_of(values))
    assert not Climbing().must_climb(process_of(values, n_gradients=8))
    values[2] = -4.1
    assert Climbing().must_climb(process_of(values, n_gradients=8))


def test_with_gradients_the_values_have_stopped_rising_sooner():
    """Over the last 5 evaluations instead of 15, beside 2 earlier ones instead of 4."""
    gp, strategy = process_of(np.zeros(8), n_gradients=8), Climbing()
    recent = np.full(5, -1.0)
    assert strategy.is_over(RISING, np.append([-1.5] * 2, recent), gp, N_ACTIVE)
    assert not strategy.is_over(RISING, np.append([-1.5], recent), gp, N_ACTIVE)
    assert not strategy.is_over(RISING, np.append([-2.1] * 2, recent), gp, N_ACTIVE)


def test_what_is_pending_changes_the_rules_of_the_climb_only():
    strategy = Climbing()
    assert strategy.rules == (ProspectiveSampling(),)
    assert strategy.pending_rules == (ProspectiveSampling(), TemperedSampling())
    paper = WatchingBound((UncertaintySampling(),))
    assert paper.pending_rules == paper.rules == (UncertaintySampling(),)


def test_deep_points_are_kept_for_good_but_by_the_paper():
    assert Climbing().trimmed_depth == np.inf
    assert WatchingBound().trimmed_depth == 10.0  # times D, Section 3.5
