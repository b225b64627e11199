"""Every rule: what it maximises, where its points lie, and that they repeat."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from sparing.acquisition.cma_es import CmaEs
from sparing.acquisition.rules import (
    ALL_SAMPLES,
    EvenDraw,
    Frontier,
    PosteriorDraw,
    ProspectiveSampling,
    TemperedSampling,
    UncertaintySampling,
    VarianceReduction,
    log_positive,
    log_regularisation,
    some_samples,
    widened_draws,
)
from sparing.acquisition.search import search_box
from sparing.surrogate.gaussian_process import condition
from sparing.surrogate.training_set import TrainingSet
from sparing.variational.mixture import GaussianMixture
from sparing.variational.normal_mixture import unchanged


def surrogate(n_samples: int = 3):
    generator = np.random.default_rng(1)
    inputs = generator.normal(size=(12, 2))
    values = -0.5 * np.sum(inputs**2, axis=1) + 0.3 * np.sin(3 * inputs[:, 0])
    psi = np.array([-0.3, 0.1, 0.2, np.log(1e-3), 0.1, 0.0, 0.0, 0.2, 0.3])
    samples = psi + 0.1 * generator.normal(size=(n_samples, len(psi)))
    return condition(TrainingSet(inputs, values), samples)


MIXTURE = GaussianMixture([0.4, 0.6], [[0.0, 0.5], [-0.4, 0.1]], [0.6, 0.9], [1.0, 0.8])
POINTS = np.random.default_rng(2).normal(size=(20, 2))
RULES = [
    UncertaintySampling(),
    ProspectiveSampling(),
    TemperedSampling(),
    VarianceReduction(),
    Frontier(),
    PosteriorDraw(),
    PosteriorDraw(widening=1.5),
    EvenDraw(),
    ProspectiveSampling(search=CmaEs(evaluations_per_dimension=20), n_samples=ALL_SAMPLES),
]
SEARCHED = RULES[:5]


def stretched(factor):
    """Every component about its own mean."""
    return GaussianMixture(MIXTURE.weights, MIXTURE.means, factor * MIXTURE.scales, MIXTURE.lengths)


def each_rule(rules):
    return pytest.mark.parametrize("rule", rules, ids=lambda rule: type(rule).__name__)


def criterion(rule, gp, seed=0):
    return rule.criterion(gp, MIXTURE, np.random.default_rng(seed))


@each_rule(RULES)
def test_a_rule_chooses_one_point_inside_the_search_box(rule):
    gp = surrogate()
    lower, upper = search_box(gp, MIXTURE)
    for seed in range(4):
        point = rule.choose(gp, MIXTURE, np.random.default_rng(seed))
        assert point.shape == (2,)
        assert np.all((lower <= point) & (point <= upper))


@each_rule(RULES)
def test_same_generator_same_point(rule):
    gp = surrogate()
    one, other, different = (
        rule.choose(gp, MIXTURE, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, other)
    assert not np.array_equal(one, different)


def test_rules_are_told_apart_by_their_names():
    assert len({rule.name for rule in RULES}) == 7


def test_draws_are_held_out_and_so_is_what_the_frontier_asks():
    assert [rule.held_out for rule in RULES] == [False] * 4 + [True] * 4 + [False]
    assert [type(rule) for rule in RULES if rule.reaches_out] == [Frontier]


@each_rule(SEARCHED)
def test_the_chosen_point_is_better_than_any_of_many(rule):
    gp = surrogate(n_samples=1)
    point = rule.choose(gp, MIXTURE, np.random.default_rng(3))
    log_acquisition = criterion(rule, gp, seed=3)
    others = MIXTURE.sample(200, np.random.default_rng(4))
    assert log_acquisition(point[None, :])[0] > np.max(log_acquisition(others)) - 0.1


def test_a_us_and_a_pro_are_the_products_they_are_defined_as():
    gp = surrogate()
    mean, variance = gp.predict(POINTS)
    q = np.exp(MIXTURE.log_density(POINTS))
    a_us = criterion(UncertaintySampling(variance_floor=0.0), gp)(POINTS)
    a_pro = criterion(ProspectiveSampling(variance_floor=0.0), gp)(POINTS)
    np.testing.assert_allclose(np.exp(a_us), variance * q**2, rtol=1e-10)
    np.testing.assert_allclose(np.exp(a_pro), variance * q * np.exp(mean), rtol=1e-10)


def test_the_tempered_rule_flattens_the_density_alone():
    gp = surrogate()
    mean, variance = gp.predict(POINTS)
    expected = variance * (np.exp(MIXTURE.log_density(POINTS)) * np.exp(mean)) ** 0.25
    found = criterion(TemperedSampling(temper=0.25), gp)(POINTS)
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-10)


def test_the_frontier_is_the_variance_of_a_log_normal_variable():
    """By draws of exp(f), as far as V is not cut; places far out add more to the moments."""
    gp = surrogate()
    mean, variance = gp.predict(POINTS)
    offsets = POINTS - MIXTURE.mean
    squares = np.einsum("ni,ij,nj->n", offsets, np.linalg.inv(MIXTURE.covariance), offsets)
    found = criterion(Frontier(), gp)(POINTS) - 2.0 * np.log1p(squares / POINTS.shape[1])
    z = np.random.default_rng(3).standard_normal(400_000)
    for f, v, value in zip(mean, variance, found, strict=True):
        if v < 0.3:  # beyond, draws would not do
            expected = np.log(np.exp(f + np.sqrt(v) * z).var())
            assert value == pytest.approx(expected, abs=0.05)
    exact = 2.0 * mean + variance + np.log(np.exp(variance) - 1.0)
    np.testing.assert_allclose(found, exact, rtol=1e-8)
    assert np.max(variance) > 0.3


def test_the_frontier_does_not_go_where_nothing_is_known():
    """V counts up to a limit: a deep place is not made up for by knowing nothing of it."""
    values = [
        Frontier(largest_variance=9.0).log_acquisition(np.zeros(2), np.array([-3.0, -8.0]), v)
        for v in (np.array([9.0, 9.0]), np.array([9.0, 400.0]))
    ]
    np.testing.assert_allclose(values[0], values[1])
    assert values[0][0] - values[0][1] == pytest.approx(10.0)
    assert np.isfinite(Frontier().log_acquisition(np.zeros(1), np.zeros(1), np.zeros(1)))[0]


def test_with_gradients_the_frontier_draws_by_the_sd_of_the_density():
    """Its draws' moments against quadrature; the maximum would be one point."""
    gp = surrogate(n_samples=1)
    gradients = -gp.training.inputs
    training = replace(gp.training, gradients=gradients)
    gp = condition(training, np.append(gp.parameters[0], 0.0))
    axis = np.linspace(-6.0, 6.0, 241)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    log_density = 0.5 * criterion(Frontier(), gp)(grid)
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    mean = density @ grid
    covariance = np.cov(grid, rowvar=False, aweights=density)
    draws = np.array(
        [Frontier().choose(gp, MIXTURE, np.random.default_rng(seed)) for seed in range(800)]
    )
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((draws.mean(axis=0) - mean) / sd, 0.0, atol=0.07)
    np.testing.assert_allclose(draws.std(axis=0) / sd, 1.0, atol=0.07)
    assert np.max(sd / np.sqrt(np.diag(MIXTURE.covariance))) > 1.1  # and not q's


@each_rule([UncertaintySampling(), ProspectiveSampling()])
def test_training_points_are_never_chosen_again(rule):
    gp = surrogate(n_samples=1)
    log_acquisition = criterion(rule, gp)
    at_data = log_acquisition(gp.training.inputs)
    assert np.max(at_data) < np.max(log_acquisition(POINTS)) - 50.0


def test_variance_reduction_is_that_of_references_from_q_and_from_q_widened():
    """Against the drop at a great many draws, half of them from components that are wider."""
    gp = surrogate()
    generator = np.random.default_rng(5)
    draws = MIXTURE.sample(20_000, generator)
    draws[::2] = stretched(1.5).sample(10_000, generator)
    expected = gp.variance_reduction(draws)(POINTS)
    found = np.exp(criterion(VarianceReduction(n_references=4000), gp)(POINTS))
    np.testing.assert_allclose(found, expected, rtol=0.25)
    plain = np.exp(criterion(VarianceReduction(n_references=4000, widening=1.0), gp)(POINTS))
    assert np.max(np.abs(plain / expected - 1.0)) > 0.3


def test_variance_reduction_goes_where_the_references_are_uncertain():
    """Data on one side of the posterior only: the other is where an evaluation teaches."""
    inputs = np.column_stack([np.linspace(-2.0, -0.2, 10), np.zeros(10)])
    psi = np.array([-0.7, 0.7, 0.0, np.log(1e-3), 0.0, 0.0, 0.0, 0.0, 0.0])
    gp = condition(TrainingSet(inputs, -0.5 * inputs[:, 0] ** 2), psi[None, :])
    q = GaussianMixture([1.0], [[0.0, 0.0]], [1.0], [1.0, 0.3])
    for seed in range(4):
        point = VarianceReduction().choose(gp, q, np.random.default_rng(seed))
        assert 0.2 < point[0] < 2.5


@pytest.mark.parametrize("widening", [1.0, 1.5])
def test_posterior_draws_come_from_the_posterior(widening):
    gp = surrogate()
    rule = PosteriorDraw(widening=widening)
    generator = np.random.default_rng(6)
    draws = np.array([rule.choose(gp, MIXTURE, generator) for _ in range(4000)])
    reference = stretched(widening).sample(40_000, np.random.default_rng(7))
    for column, other in zip(draws.T, reference.T, strict=True):
        assert stats.ks_2samp(column, other).pvalue > 0.01


def test_even_draws_have_components_by_the_roots_of_their_weights():
    """A small mode far away, and wider than it seems."""
    gp = surrogate()
    two = GaussianMixture([0.96, 0.04], [[0.0, 0.0], [2.0, 2.0]], [0.05, 0.05], [1.0, 1.0])
    generator = np.random.default_rng(6)
    draws = np.array([EvenDraw(widening=1.5).choose(gp, two, generator) for _ in range(4000)])
    far = draws[:, 0] > 1.0
    share = 0.2 / (0.2 + np.sqrt(0.96))
    assert far.mean() == pytest.approx(share, abs=4.0 * np.sqrt(share / 4000))
    for part, centre in ((draws[far], 2.0), (draws[~far], 0.0)):
        np.testing.assert_allclose(part.mean(axis=0), centre, atol=0.02)
        np.testing.assert_allclose(part.std(axis=0), 1.5 * 0.05, rtol=0.1)


def test_draws_from_a_posterior_with_a_distant_component_stay_in_the_box():
    """A draw may fall anywhere; where points are searched is bounded."""
    gp = surrogate()
    wide = GaussianMixture([0.99, 0.01], [[0.0, 0.0], [0.0, 0.0]], [0.1, 60.0], [1.0, 1.0])
    lower, upper = search_box(gp, wide)
    generator = np.random.default_rng(8)
    draws = np.array([PosteriorDraw().choose(gp, wide, generator) for _ in range(2000)])
    assert np.all((draws >= lower) & (draws <= upper))
    assert np.any((draws == lower) | (draws == upper))


def test_few_hyperparameter_samples_choose_a_point():
    gp = surrogate(n_samples=5)
    few = some_samples(gp, 3, np.random.default_rng(1))
    assert few.n_samples == 3
    rows = {tuple(row) for row in gp.parameters}
    assert len({tuple(row) for row in few.parameters} & rows) == 3  # without replacement
    assert some_samples(gp, ALL_SAMPLES, np.random.default_rng(1)) is gp
    assert some_samples(gp, 5, np.random.default_rng(1)) is gp


def test_the_rule_is_judged_with_as_many_samples_as_it_says(monkeypatch):
    gp, counts = surrogate(n_samples=5), []

    def counted(self, surrogate, mixture, generator):
        counts.append(surrogate.n_samples)
        return lambda candidates: -np.sum(candidates**2, axis=1)

    monkeypatch.setattr(TemperedSampling, "criterion", counted)
    for n_samples in (2, ALL_SAMPLES):
        TemperedSampling(n_samples=n_samples).choose(gp, MIXTURE, np.random.default_rng(1))
    assert counts == [2, 5]


def test_widened_draws_are_stretched_about_the_mean_of_their_component():
    """About that of all of them, draws of two modes would come to lie outside both."""
    two = GaussianMixture([0.3, 0.7], [[-5.0, 0.0], [5.0, 0.0]], [0.1, 0.1], [1.0, 1.0])
    plain = widened_draws(two, 50, 1.0, np.random.default_rng(9))
    wide = widened_draws(two, 50, 2.5, np.random.default_rng(9))
    centres = np.column_stack([np.sign(plain[:, 0]) * 5.0, np.zeros(50)])
    np.testing.assert_allclose(wide - centres, 2.5 * (plain - centres))
    assert 5 < np.sum(plain[:, 0] < 0.0) < 25


def test_rules_take_posteriors_of_any_shape():
    """Given the same distribution they choose the same point, up to rounding."""
    gp = surrogate()
    for rule in RULES:
        one, other = (
            rule.choose(gp, q, np.random.default_rng(1)) for q in (MIXTURE, unchanged(MIXTURE))
        )
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_regularisation_is_eq_s22():
    variance = np.array([1e-6, 5e-5, 1e-4, 1.0])
    factor = np.exp(log_regularisation(variance, 1e-4))
    np.testing.assert_allclose(factor, [np.exp(-99.0), np.exp(-1.0), 1.0, 1.0])


def test_zero_variance_gives_a_finite_or_minus_infinite_value_and_no_warning():
    value = log_regularisation(np.array([0.0]), 1e-4)
    assert value[0] < -1e100


def test_zero_has_a_logarithm_without_a_warning():
    np.testing.assert_allclose(log_positive(np.array([1.0, np.e])), [0.0, 1.0], rtol=1e-15)
    assert -1e3 < log_positive(np.array([0.0]))[0] < -700.0
