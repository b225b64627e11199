"""How far a surrogate's variance is believed: residuals that bear it out, and others."""

from dataclasses import replace

import numpy as np
import pytest
from tests.surrogate.support import training_set

from sparing.surrogate.gaussian_process import condition
from sparing.surrogate.layout import Layout
from sparing.surrogate.training_set import TrainingSet
from sparing.vbmc.belief import N_PRIOR, belief_in, belief_shown
from sparing.vbmc.surrogate_posterior import Density, believed

VARIANCES = np.random.default_rng(1).uniform(0.3, 2.0, 4000)


def drawn(variances, mean=0.0, share=1.0):
    """Residuals with so much of the variance, and a mean in units of it."""
    normal = np.random.default_rng(2).standard_normal(len(variances))
    return mean * variances + np.sqrt(share * variances) * normal


@pytest.mark.parametrize("c", [0.2, 0.5, 0.8])
def test_the_mean_of_the_density_is_believed_as_far_as_residuals_show_it(c):
    """Of a normal variable the log of the mean of exp(r) is mean + variance / 2."""
    shown = belief_shown(drawn(VARIANCES, share=c), VARIANCES)
    assert shown == pytest.approx(c, abs=0.07)
    shown = belief_shown(drawn(VARIANCES, mean=0.5 * (c - 1.0)), VARIANCES)
    assert shown == pytest.approx(c, abs=0.1)


def test_belief_is_between_none_and_the_whole():
    assert belief_shown(drawn(VARIANCES, mean=-1.0), VARIANCES) == 0.0
    assert belief_shown(drawn(VARIANCES, share=3.0), VARIANCES) == 1.0


def test_few_residuals_show_little():
    assert belief_shown(np.empty(0), np.empty(0)) == 1.0
    for n in (1, 5, 50):
        variances = np.ones(n)
        shown = belief_shown(np.zeros(n), variances)
        # n (exp(-c / 2) - 1) + N_PRIOR (exp((1 - c) / 2) - 1) = 0
        expected = 2.0 * np.log((n + N_PRIOR * np.exp(0.5)) / (n + N_PRIOR))
        assert shown == pytest.approx(expected)


def test_one_surprise_does_not_speak_for_all():
    residuals, variances = np.full(60, -0.5), np.ones(60)
    quiet = belief_shown(residuals, variances)
    residuals[0] = 1000.0
    assert belief_shown(residuals, variances) < quiet + 0.8


def outskirts(values, spacing=1.0, noise=0.0):
    """Points too far from each other to foresee much: V is what it is without data."""
    n = len(values)
    inputs = spacing * np.arange(n, dtype=float)[:, None]
    psi = np.zeros(Layout(1).size)
    psi[0], psi[1], psi[2] = np.log(0.1), 0.0, np.log(1e-3)  # ell, sigma_f, sigma_obs
    psi[-1] = np.log(1e6)  # the mean function is level, at 0
    training = TrainingSet(inputs, np.asarray(values, dtype=float), np.full(n, noise))
    return condition(training, psi[None])


def test_what_counts_of_a_surrogate():
    """Residuals are the values here, and V is one."""
    values = np.array([0.3, -0.4, 0.1, 0.9, -1.2] * 6)
    expected = belief_shown(values, np.ones(len(values)))
    assert 0.0 < expected < 1.0
    gp = outskirts(values)
    assert belief_in(gp) == pytest.approx(expected, abs=1e-4)
    assert Density(gp).belief == belief_in(gp)
    mean, variance = np.array([-1.0, -2.0]), np.array([1.5, 7.0])
    np.testing.assert_allclose(
        Density(gp).log_density(mean, variance), believed(mean, variance, belief=Density(gp).belief)
    )
    np.testing.assert_allclose(
        Density(gp).log_density(mean, variance),
        [-1.0 + 0.75 * Density(gp).belief, -2.0 + Density(gp).belief - 1.5],
    )


def test_what_is_foreseen_well_does_not_count():
    assert belief_in(outskirts(np.linspace(0.0, -1.0, 40), spacing=0.01)) == 1.0


def test_noisy_values_do_not_count_unless_less_noisy_than_unknown():
    values = np.full(30, -1.0)
    assert belief_in(outskirts(values)) == 0.0
    assert belief_in(outskirts(values, noise=1.5)) == 1.0
    noise = 0.3
    shown = belief_shown(values - 0.5 * noise, np.ones(30))
    assert belief_in(outskirts(values, noise=noise)) == pytest.approx(shown, abs=1e-4)


def test_what_is_foreseen_far_below_the_best_does_not_count():
    gp = outskirts(np.full(30, -1.0))
    deep = replace(gp.training, values=np.append(gp.training.values[:-1], 40.0))
    assert belief_in(condition(deep, gp.parameters)) == 1.0


def test_it_is_a_fact_of_the_surrogate():
    gp = condition(training_set(2, 12), np.zeros((3, Layout(2).size)))
    assert belief_in(gp) == belief_in(gp) == belief_in(gp.subset(np.arange(1)))
