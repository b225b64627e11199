from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.variational.support import (
    bimodal_gp,
    gaussian_gp,
    hyperparameters,
    random_gp,
    random_mixture,
)

from sparing.surrogate.gaussian_process import TrainingSet, condition
from sparing.variational.adam import Adam
from sparing.variational.divergence import gaussianised_symmetric_kl
from sparing.variational.elbo import evaluate_elbo
from sparing.variational.fit import VariationalSettings, fit
from sparing.variational.mixture import GaussianMixture
from sparing.variational.objective import Objective
from sparing.variational.starts import RankByLowerBound, Starts

DEFAULT, PAPER = VariationalSettings(), VariationalSettings.paper()


def run_fit(mixture, gp, n_components, settings=DEFAULT, seed=0, **changes):
    options = {"searching": False, "first": True} | changes
    return fit(
        mixture,
        gp,
        n_components=n_components,
        settings=settings,
        generator=np.random.default_rng(seed),
        **options,
    )


def start_near(gp, n_components=2):
    """The start of a run (Section 3.5): small components at the highest points."""
    best = np.argsort(-gp.training.values)[:n_components]
    sd = 0.1 * gp.training.inputs.std(axis=0)
    return GaussianMixture(
        np.full(n_components, 1.0 / n_components),
        gp.training.inputs[best],
        np.ones(n_components),
        sd,
    )


@pytest.mark.parametrize("settings", [DEFAULT, PAPER], ids=["default", "paper"])
@pytest.mark.parametrize("n_components", [1, 2])
def test_recovers_a_gaussian(settings, n_components):
    mean, sd = np.array([0.4, -0.2, 0.1]), np.array([0.2, 0.4, 0.3])
    gp = gaussian_gp(mean, sd, 40, 1)
    start = start_near(gp, n_components)
    found = run_fit(start, gp, n_components, settings, searching=True)
    result = run_fit(found, gp, n_components, settings)
    exact = 1.5 * np.log(2 * np.pi) + np.log(sd).sum()
    elbo = evaluate_elbo(result, gp, 2**14, np.random.default_rng(2))
    assert elbo.value == pytest.approx(exact, abs=0.01)
    distance = gaussianised_symmetric_kl(result.mean, result.covariance, mean, np.diag(sd**2))
    assert distance < 0.01


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_default_preset_works_at_any_scale(scale):
    mean, sd = scale * np.array([0.4, -0.2]), scale * np.array([0.2, 0.4])
    gp = gaussian_gp(mean, sd, 30, 3)
    result = run_fit(start_near(gp), gp, 2, searching=True)
    distance = gaussianised_symmetric_kl(result.mean, result.covariance, mean, np.diag(sd**2))
    assert distance < 0.02


@pytest.mark.parametrize("settings", [DEFAULT, PAPER], ids=["default", "paper"])
def test_recovers_two_components(settings):
    gp, target = bimodal_gp(4)
    mixture = run_fit(start_near(gp), gp, 2, settings, searching=True)
    for n_components in (3, 4):
        mixture = run_fit(mixture, gp, n_components, settings)
    elbo = evaluate_elbo(mixture, gp, 2**13, np.random.default_rng(5))
    assert elbo.value == pytest.approx(0.0, abs=0.03)  # the target is normalised
    distance = gaussianised_symmetric_kl(
        mixture.mean, mixture.covariance, target.mean, target.covariance
    )
    assert distance < 0.02


def test_same_seed_same_fit():
    gp, start = random_gp(20, 2, 2, 6), random_mixture(2, 2, 7)
    one, other, different = (run_fit(start, gp, 3, seed=seed) for seed in (1, 1, 2))
    for a, b in zip(one.arrays, other.arrays, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(one.means, different.means)


def test_more_starts_are_compared_at_first():
    gp, start = random_gp(20, 2, 2, 6), random_mixture(2, 2, 7)
    compared = []

    @dataclass(frozen=True)
    class Counted(RankByLowerBound):
        def scores(self, candidates, objective, seed):
            compared.append(len(candidates))
            return super().scores(candidates, objective, seed)

    settings = replace(DEFAULT, ranking=Counted())
    for first in (False, True):
        assert run_fit(start, gp, 3, settings, first=first).n_components == 3
    assert compared == [15, 150]  # n_fast K, Section S1.3.2


def test_equal_weights_are_kept():
    gp, start = random_gp(20, 2, 2, 6), random_mixture(3, 2, 7)
    result = run_fit(start, gp, 3, searching=True)
    np.testing.assert_allclose(result.weights, 1.0 / 3.0, rtol=1e-12)


def test_never_worse_than_the_current_mixture():
    gp = gaussian_gp(np.zeros(2), np.ones(2), 30, 8)
    exact = GaussianMixture([1.0], np.zeros((1, 2)), [1.0], np.ones(2))
    # Steps of this size destroy any mixture; all that can be returned is the start.
    wild = VariationalSettings(ascent=Adam(rate_min=5.0, rate_max=5.0))
    result = run_fit(exact, gp, 1, wild)
    objective = Objective.create(gp, wild.penalties)

    def value(mixture):
        return objective.value(mixture, 10, 0)

    assert value(result) >= value(exact) - 1e-9


def test_data_candidates_find_a_mode_far_from_the_mixture():
    target = GaussianMixture([0.5, 0.5], [[-4.0], [4.0]], [0.4, 0.4], [1.0])
    inputs = np.linspace(-6.0, 6.0, 61)[:, None]
    psi = hyperparameters([0.8], 5.0, 1e-3, 0.0, [0.0], [2.0])
    gp = condition(TrainingSet(inputs, target.log_density(inputs)), psi[None])
    blind = GaussianMixture([0.5, 0.5], [[-4.1], [-3.9]], [0.4, 0.4], [1.0])
    result = run_fit(blind, gp, 3)
    assert result.weights[result.means[:, 0] > 3.0].sum() > 0.3
    without = run_fit(blind, gp, 3, VariationalSettings(starts=Starts(data_fraction=0.0)))
    assert without.means[:, 0].max() < 0.0  # what the setting is for


def test_soft_bounds_hold_components_in_the_data():
    # A surrogate that rises without end to the right: the mean function peaks at 1000.
    psi = hyperparameters([1.0], 1.0, 0.01, 0.0, [1000.0], [30.0])
    inputs = np.linspace(-1.0, 1.0, 8)[:, None]
    values = -0.5 * ((inputs[:, 0] - 1000.0) / 30.0) ** 2
    gp = condition(TrainingSet(inputs, values), psi[None])
    start = GaussianMixture([1.0], [[0.0]], [0.5], [1.0])
    bounded = run_fit(start, gp, 1, searching=True)
    assert bounded.means[0, 0] < 4.0
    assert bounded.scales[0] * bounded.lengths[0] < 4.0
    free = run_fit(start, gp, 1, PAPER, searching=True)
    assert free.means[0, 0] > 8.0


@pytest.mark.parametrize("settings", [DEFAULT, PAPER], ids=["default", "paper"])
@pytest.mark.parametrize("offset", [0.0, 1e5, -1e5])
def test_hard_inputs_give_finite_mixtures(settings, offset):
    generator = np.random.default_rng(9)
    inputs = generator.normal(size=(12, 2))
    values = offset - 10.0 ** generator.uniform(0.0, 10.0, 12)
    psi = hyperparameters([0.5, 2.0], 1e9, 1.0, offset, [0.0, 0.0], [1e-3, 1e-3])
    gp = condition(TrainingSet(inputs, values), psi[None])
    tiny = GaussianMixture([0.5, 0.5], inputs[:2], [1e-9, 1e-9], [1.0, 1.0])
    result = run_fit(tiny, gp, 3, settings, first=False)
    assert np.isfinite(evaluate_elbo(result, gp, 50, generator).value)


@pytest.mark.parametrize("n_points", [1, 2])
def test_smallest_problems(n_points):
    psi = hyperparameters([1.0], 1.0, 0.01, 0.0, [0.0], [1.0])
    gp = condition(TrainingSet(np.zeros((n_points, 1)), np.zeros(n_points)), psi[None])
    result = run_fit(GaussianMixture([1.0], [[0.3]], [0.1], [1.0]), gp, 1)
    assert result.scales[0] == pytest.approx(1.0, abs=0.25)
