"""The prior of the hyperparameters: Table S1 by hand, its density, and degenerate data."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from sparing.surrogate.hyperparameters import (
    HyperparameterInference,
    HyperparameterPrior,
    LengthScalePrior,
    SurrogateSettings,
    empirical_bayes_prior,
    high_posterior_density_set,
)
from sparing.surrogate.layout import Layout
from sparing.surrogate.training_set import TrainingSet

PAPER = SurrogateSettings.paper()
DEFAULT = SurrogateSettings()
PRESETS = {"paper": PAPER, "default": DEFAULT}


def training_set(n: int = 20, dimension: int = 3, seed: int = 0) -> TrainingSet:
    generator = np.random.default_rng(seed)
    inputs = generator.normal(size=(n, dimension)) * np.arange(1, dimension + 1)
    return TrainingSet(inputs, -(inputs**2).sum(axis=1))


def some_prior() -> HyperparameterPrior:
    return HyperparameterPrior(
        location=np.array([0.5, -1.0, 2.0, 0.0, 0.0, 1.0]),
        scale=np.array([1.0, np.inf, 0.3, 2.0, np.inf, np.inf]),
        lower=np.full(6, -5.0),
        upper=np.full(6, 5.0),
    )


def test_paper_preset_is_table_s1():
    training = training_set()
    prior = empirical_bayes_prior(training, np.ones(3), PAPER)
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
    assert prior.degrees_of_freedom == 3.0


def test_a_heavy_outlier_widens_the_length_scale_prior():
    inputs = np.zeros((4000, 1))
    inputs[:, 0] = np.linspace(-1e-3, 1e-3, 4000)
    inputs[0] = 100.0
    prior = empirical_bayes_prior(TrainingSet(inputs, np.zeros(4000)), np.ones(1), PAPER)
    assert prior.scale[0] > 2.0


def test_default_length_scales_come_from_the_plausible_box():
    widths = np.array([1.0, 2.0, 5.0])
    prior = empirical_bayes_prior(training_set(), widths, DEFAULT)
    np.testing.assert_allclose(prior.location[:3], np.log(math.sqrt(3 / 6) * widths))
    np.testing.assert_allclose(prior.scale[:3], 0.5 * math.log(1e3))


def test_default_bounds_noise_and_mean_maximum():
    training = training_set()
    prior = empirical_bayes_prior(training, np.ones(3), DEFAULT)
    layout = Layout(3)
    assert prior.lower[layout.log_noise_sd] == pytest.approx(0.5 * math.log(1e-5))
    # values of the hpd set differ by far more than D = 3
    assert prior.upper[layout.mean_maximum] == pytest.approx(training.values.max() + 3.0)
    paper = empirical_bayes_prior(training, np.ones(3), PAPER)
    assert paper.upper[layout.mean_maximum] > training.values.max() + 100.0
    flat = TrainingSet(training.inputs, 0.01 * training.values / np.ptp(training.values))
    prior = empirical_bayes_prior(flat, np.ones(3), DEFAULT)
    assert prior.upper[layout.mean_maximum] == pytest.approx(flat.values.max() + 1.0)


def test_log_density_is_student_within_the_bounds():
    prior = some_prior()
    psi = np.array([1.0, 0.3, 1.5, -2.0, 4.0, 0.0])
    expected = sum(stats.t(3, prior.location[i], prior.scale[i]).logpdf(psi[i]) for i in (0, 2, 3))
    assert prior.log_density(psi) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("index", range(6))
@pytest.mark.parametrize("value", [-5.001, 5.001, np.nan])
def test_log_density_is_minus_infinity_outside(index, value):
    psi = np.zeros(6)
    psi[index] = value
    assert some_prior().log_density(psi) == -math.inf
    assert some_prior().coordinate_log_density(index, value) == -math.inf


def test_gradient_by_finite_differences():
    prior = some_prior()
    psi = np.array([1.0, 0.3, 1.5, -2.0, 4.0, 0.0])
    numeric = [
        (prior.log_density(psi + step) - prior.log_density(psi - step)) / 2e-6
        for step in 1e-6 * np.eye(6)
    ]
    np.testing.assert_allclose(prior.gradient(psi), numeric, atol=1e-8)


@pytest.mark.parametrize("index", range(6))
def test_coordinate_log_density_differs_from_the_whole_by_a_constant(index):
    prior = some_prior()
    differences = []
    for value in (-1.0, 0.5, 3.0):
        psi = np.ones(6)
        psi[index] = value
        whole = prior.log_density(psi)
        differences.append(whole - prior.coordinate_log_density(index, value))
    np.testing.assert_allclose(differences, differences[0], rtol=1e-12)


def test_shifting_moves_only_the_mean_maximum():
    prior = some_prior()
    psi = np.array([1.0, 0.3, 1.5, -2.0, 4.0, 0.0])
    moved = psi.copy()
    moved[3] -= 7.0
    assert prior.shifted(7.0).log_density(moved) == pytest.approx(prior.log_density(psi))


def test_leading_entries_have_a_prior_of_their_own():
    prior = some_prior()
    psi = np.array([1.0, 0.3, 1.5, -2.0, 4.0, 0.0])
    expected = sum(stats.t(3, prior.location[i], prior.scale[i]).logpdf(psi[i]) for i in (0, 2))
    assert prior.leading(3).log_density(psi[:3]) == pytest.approx(expected, rel=1e-12)
    np.testing.assert_array_equal(prior.leading(3).gradient(psi[:3]), prior.gradient(psi)[:3])
    assert prior.leading(3).log_density(np.array([1.0, 5.1, 1.5])) == -math.inf


def test_high_posterior_density_set_is_best_first_and_never_tiny():
    training = TrainingSet(np.arange(10.0)[:, None], np.array([5, 1, 9, 3, 7, 2, 8, 0, 6, 4.0]))
    inputs, values = high_posterior_density_set(training, 0.5)
    np.testing.assert_array_equal(values, [9, 8, 7, 6, 5])
    np.testing.assert_array_equal(inputs[:, 0], [2, 6, 4, 8, 0])
    small = training_set(6, 4)
    assert len(high_posterior_density_set(small, 0.1)[1]) == 5
    assert len(high_posterior_density_set(training_set(1, 4), 0.8)[1]) == 1


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
    prior = empirical_bayes_prior(DEGENERATE[case], np.array([0.5, 1.0, 2.0]), PRESETS[preset])
    assert np.isfinite(prior.location).all()
    assert (prior.scale > 0.0).all()
    assert (prior.lower < prior.upper).all()
    assert np.isfinite(prior.log_density(prior.location))


def test_bad_arguments_are_errors():
    with pytest.raises(ValueError, match=r"must be \(3,\)"):
        empirical_bayes_prior(training_set(), np.ones(2), DEFAULT)
    with pytest.raises(ValueError, match="finite and positive"):
        empirical_bayes_prior(training_set(), np.array([1.0, 0.0, 1.0]), DEFAULT)
    with pytest.raises(ValueError, match="hpd_fraction"):
        SurrogateSettings(hpd_fraction=0.0)
    with pytest.raises(ValueError, match="thinning"):
        SurrogateSettings(thinning=0)
    with pytest.raises(ValueError, match="burn_in_sweeps"):
        SurrogateSettings(burn_in_sweeps=-1)
    prior = some_prior()
    with pytest.raises(ValueError, match="below upper"):
        dataclasses.replace(prior, lower=prior.upper)
    with pytest.raises(ValueError, match="alike"):
        dataclasses.replace(prior, lower=prior.lower[:3])
    with pytest.raises(ValueError, match="finite"):
        dataclasses.replace(prior, upper=np.full(6, np.inf))


def test_presets_differ_where_they_should():
    assert PAPER.inference is HyperparameterInference.SLICE
    assert DEFAULT.inference is HyperparameterInference.COLLAPSED
    assert PAPER.length_scale_prior is LengthScalePrior.EMPIRICAL
    assert DEFAULT.length_scale_prior is LengthScalePrior.PLAUSIBLE_BOX
    assert DEFAULT.noise_sd_floor == pytest.approx(math.sqrt(1e-5))
    assert PAPER.noise_sd_location == 0.001
