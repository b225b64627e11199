"""The empirical Bayes prior: Table S1 by hand, the bounds, and degenerate data."""

import math
from dataclasses import replace

import numpy as np
import pytest

from sparing.surrogate.empirical_prior import (
    EmpiricalPrior,
    LengthsFromBox,
    LengthsFromPoints,
    PeakAnywhere,
    PeakNearBest,
)
from sparing.surrogate.gaussian_process import condition
from sparing.surrogate.hyperparameters import DEGREES_OF_FREEDOM
from sparing.surrogate.layout import Layout
from sparing.surrogate.training_set import TrainingSet

PAPER = EmpiricalPrior.paper()
DEFAULT = EmpiricalPrior()
PRESETS = {"paper": PAPER, "default": DEFAULT}


def training_set(n: int = 20, dimension: int = 3, seed: int = 0) -> TrainingSet:
    generator = np.random.default_rng(seed)
    inputs = generator.normal(size=(n, dimension)) * np.arange(1, dimension + 1)
    return TrainingSet(inputs, -(inputs**2).sum(axis=1))


def test_paper_preset_is_table_s1():
    training = training_set()
    prior = PAPER.of(training)
    layout = Layout(3)
    best = np.argsort(training.values)[::-1][:16]  # 0.8 of 20
    hpd, y = training.inputs[best], training.values[best]
    sd = hpd.std(axis=0, ddof=1)
    np.testing.assert_allclose(prior.location[layout.log_lengths], np.log(sd))
    diameter = hpd.max(axis=0) - hpd.min(axis=0)
    expected = np.maximum(2.0, np.log(diameter / sd))
    np.testing.assert_allclose(prior.scale[layout.log_lengths], expected)
    assert prior.location[layout.log_noise_sd] == pytest.approx(math.log(0.001))
    assert prior.scale[layout.log_noise_sd] == 0.5
    assert prior.location[layout.mean_maximum] == y.max()
    assert prior.scale[layout.mean_maximum] == pytest.approx(y.max() - y.min())
    assert np.isinf(prior.scale[layout.log_output_scale])
    assert np.isinf(prior.scale[layout.mean_location]).all()
    assert np.isinf(prior.scale[layout.log_mean_scales]).all()
    assert DEGREES_OF_FREEDOM == 3.0


def test_a_heavy_outlier_widens_the_length_scale_prior():
    inputs = np.zeros((4000, 1))
    inputs[:, 0] = np.linspace(-1e-3, 1e-3, 4000)
    inputs[0] = 100.0
    prior = PAPER.of(TrainingSet(inputs, np.zeros(4000)))
    assert prior.scale[0] > 2.0


def test_default_length_scales_come_from_the_plausible_box():
    """Which has width one in working coordinates, however the points are spread."""
    prior = DEFAULT.of(training_set())
    np.testing.assert_allclose(prior.location[:3], np.log(math.sqrt(3 / 6)))
    np.testing.assert_allclose(prior.scale[:3], 0.5 * math.log(1e3))


def test_default_bounds_noise_and_mean_maximum():
    training = training_set()
    prior = DEFAULT.of(training)
    layout = Layout(3)
    assert prior.lower[layout.log_noise_sd] == pytest.approx(0.5 * math.log(1e-5))
    # values of the hpd set differ by far more than D = 3
    assert prior.upper[layout.mean_maximum] == pytest.approx(training.values.max() + 3.0)
    paper = PAPER.of(training)
    assert paper.upper[layout.mean_maximum] > training.values.max() + 100.0
    flat = TrainingSet(training.inputs, 0.01 * training.values / np.ptp(training.values))
    prior = DEFAULT.of(flat)
    assert prior.upper[layout.mean_maximum] == pytest.approx(flat.values.max() + 1.0)


def test_before_the_mass_is_found_the_peak_may_be_as_far_up_as_the_best_points_are_apart():
    training = training_set()
    steep = TrainingSet(training.inputs, 100.0 * training.values)
    best = np.sort(steep.values)[-8:]  # 2 D + 2 of them
    rise = DEFAULT.of(steep).upper[Layout(3).mean_maximum] - steep.values.max()
    assert rise == pytest.approx(best[-1] - best[0])
    assert rise > 3.0


def constant_coordinate() -> TrainingSet:
    training = training_set()
    inputs = training.inputs.copy()
    inputs[:, 1] = 0.7
    return TrainingSet(inputs, training.values)


DEGENERATE = {
    "one point": TrainingSet(np.zeros((1, 3)), np.array([-4.0])),
    "two points": training_set(2),
    "duplicates": TrainingSet(np.ones((8, 3)), np.ones(8)),
    "constant coordinate": constant_coordinate(),
    "constant values": TrainingSet(training_set().inputs, np.full(20, 3.0)),
    "range of 1e10": TrainingSet(training_set().inputs, 1e10 * training_set().values),
    "offset of -1e5": TrainingSet(training_set().inputs, training_set().values - 1e5),
}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_data_gives_a_proper_prior(case, preset):
    prior = PRESETS[preset].of(DEGENERATE[case])
    assert np.isfinite(prior.location).all()
    assert (prior.scale > 0.0).all()
    assert (prior.lower < prior.upper).all()
    assert np.isfinite(prior.log_density(prior.location))


def test_bad_settings_are_errors():
    with pytest.raises(ValueError, match="hpd_fraction"):
        EmpiricalPrior(hpd_fraction=0.0)
    with pytest.raises(ValueError, match="hpd_fraction"):
        EmpiricalPrior(hpd_fraction=1.1)
    for name in ("noise_sd_location", "noise_sd_scale", "noise_sd_floor", "largest_mean_scale"):
        with pytest.raises(ValueError, match=f"{name} must be positive"):
            EmpiricalPrior(**{name: 0.0})


def test_presets_differ_where_they_should():
    assert (PAPER.length_scales, DEFAULT.length_scales) == (LengthsFromPoints(), LengthsFromBox())
    assert (PAPER.peak, DEFAULT.peak) == (PeakAnywhere(), PeakNearBest())
    assert DEFAULT.noise_sd_floor == pytest.approx(math.sqrt(1e-5))
    assert PAPER.noise_sd_location == 0.001


def test_with_gradients_the_highest_process_can_be_factorised():
    parabola = training_set(60, 4)
    training = replace(parabola, gradients=-2.0 * parabola.inputs)
    prior, layout = EmpiricalPrior().of(training), training.layout
    highest = np.clip(prior.location, prior.lower, prior.upper)
    upwards = [*range(4), layout.log_output_scale]  # the longest lengths, too
    highest[upwards] = prior.upper[upwards]
    for noise in (layout.log_noise_sd, layout.log_gradient_noise_sd):
        highest[noise] = prior.lower[noise]
    assert condition(training, highest[None]).jitter == 0.0
    assert math.exp(prior.upper[layout.log_output_scale]) >= np.ptp(training.values)
    of_values = EmpiricalPrior().of(training.values_alone())
    assert of_values.upper[layout.log_output_scale] > prior.upper[layout.log_output_scale]
