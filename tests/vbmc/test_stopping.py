"""Stability rules against hand-made histories (Sections 3.6, 3.7 and S2.4)."""

import math
from dataclasses import replace

import pytest

from sparing.vbmc.stopping import (
    Reliability,
    Stopping,
    elcbo_slope,
    is_improving,
    is_stable,
)

SETTINGS = Stopping.paper()
GOOD = Reliability(0.5, 0.5, 0.5)
BAD = Reliability(5.0, 0.1, 0.1)


def test_features_are_the_ratios_of_s2_4():
    features = Reliability.of(-0.2, 0.05, 0.03, 4, SETTINGS)
    assert features.change_of_elbo == pytest.approx(0.2 / 0.1)
    assert features.uncertainty_of_elbo == pytest.approx(0.05 / 0.1)
    assert features.change_of_posterior == pytest.approx(0.03 / (0.01 * 2.0))
    assert features.index == pytest.approx((2.0 + 0.5 + 1.5) / 3)


def test_a_looser_tolerance_is_that_of_the_elbo_alone():
    looser = replace(SETTINGS, tolerance_sd=0.4)
    tight, loose = (Reliability.of(-0.2, 0.05, 0.03, 4, each) for each in (SETTINGS, looser))
    assert tight.loosened(4.0) == loose


def test_improving_means_above_each_of_the_last_four():
    assert is_improving([0.0, 1.0, 2.0, 3.0, 4.0], SETTINGS)
    assert not is_improving([0.0, 5.0, 2.0, 3.0, 4.0], SETTINGS)
    assert is_improving([9.0, 0.0, 1.0, 2.0, 3.0, 4.0], SETTINGS)  # 9 is too long ago
    assert not is_improving([1.0], SETTINGS)


def test_eight_good_iterations_are_stable_and_seven_are_not():
    assert is_stable([GOOD] * 8, [1.0] * 8, SETTINGS)
    assert not is_stable([GOOD] * 7, [1.0] * 7, SETTINGS)


def test_one_unstable_iteration_is_forgiven_unless_it_is_the_last():
    flat = [1.0] * 8
    assert is_stable([GOOD] * 3 + [BAD] + [GOOD] * 4, flat, SETTINGS)
    assert not is_stable([GOOD] * 2 + [BAD, BAD] + [GOOD] * 4, flat, SETTINGS)
    assert not is_stable([GOOD] * 7 + [BAD], flat, SETTINGS)


def test_every_feature_of_the_current_iteration_must_be_below_one():
    one_high = Reliability(1.2, 0.1, 0.1)  # index 0.47, yet rho_1 above 1
    assert one_high.index < 1.0
    assert not is_stable([GOOD] * 7 + [one_high], [1.0] * 8, SETTINGS)
    assert is_stable([GOOD] * 6 + [one_high, GOOD], [1.0] * 8, SETTINGS)


def test_a_rising_elcbo_is_not_stable():
    rising = [0.02 * t for t in range(8)]
    assert elcbo_slope(rising) == pytest.approx(0.02)
    assert not is_stable([GOOD] * 8, rising, SETTINGS)
    assert is_stable([GOOD] * 8, [0.4 * value for value in rising], SETTINGS)


def test_missing_and_nan_features_are_not_stable():
    nan = Reliability(math.nan, 0.1, 0.1)
    assert not is_stable([GOOD] * 7 + [nan], [1.0] * 8, SETTINGS)
    assert not is_stable([None, None] + [GOOD] * 6, [1.0] * 8, SETTINGS)
