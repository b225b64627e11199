import numpy as np
import pytest
from tests.variational.support import gaussian_gp

from sparing.variational.components import (
    Growth,
    NoGrowth,
    Progress,
    Pruning,
)
from sparing.variational.elbo import evaluate_elbo
from sparing.variational.mixture import GaussianMixture

BETA_LCB = 3.0


def prune(mixture, gp, generator, strategy=Pruning(), n_draws=512):  # noqa: B008 (it is frozen)
    return strategy.prune(mixture, gp, BETA_LCB, n_draws, generator)


def progress(*, improving=True, stable=True, since_pruning=99, n_training=1000):
    return Progress(improving, stable, since_pruning, n_training)


@pytest.mark.parametrize(
    ("improving", "stable", "since_pruning", "expected"),
    [
        (False, False, 99, 5),
        (True, False, 99, 6),
        (False, True, 99, 7),
        (True, True, 99, 8),
        (True, True, 1, 5),  # pruned in the last iteration: nothing is added
        (True, True, 2, 6),  # pruned recently: no extra ones
        (True, True, 5, 8),
    ],
)
def test_adding(improving, stable, since_pruning, expected):
    now = progress(improving=improving, stable=stable, since_pruning=since_pruning)
    assert Growth().next(5, now) == expected


@pytest.mark.parametrize(
    ("n_training", "expected"), [(8, 4), (27, 9), (26, 8), (1000, 100), (999, 99)]
)
def test_cap_is_the_power_two_thirds(n_training, expected):
    found = 1
    for _ in range(100):
        found = Growth().next(found, progress(n_training=n_training))
    assert found == expected


def test_never_falls_below_the_current_number():
    assert Growth().next(9, progress(n_training=8)) == 9


def setting_for_pruning(light_mean):
    gp = gaussian_gp(np.zeros(2), np.ones(2), 40, 1)
    mixture = GaussianMixture([0.991, 0.009], [[0.0, 0.0], light_mean], [1.0, 1.0], [1.0, 1.0])
    return gp, mixture


def test_negligible_component_goes():
    gp, mixture = setting_for_pruning([0.1, 0.0])
    smaller, n_pruned = prune(mixture, gp, np.random.default_rng(0))
    assert n_pruned == 1
    np.testing.assert_array_equal(smaller.means, [[0.0, 0.0]])
    assert smaller.weights == pytest.approx([1.0])


def test_light_component_that_carries_elbo_stays():
    # A light component beside a heavy one that is far too narrow: most of the entropy is its own.
    gp, _ = setting_for_pruning([0.0, 0.0])
    mixture = GaussianMixture([0.991, 0.009], [[0.0, 0.0], [0.0, 0.0]], [0.01, 1.0], [1.0, 1.0])
    generator = np.random.default_rng(1)
    before = evaluate_elbo(mixture, gp, 2**14, generator).value
    after = evaluate_elbo(mixture.without(1), gp, 2**14, generator).value
    assert before - after > 2.0 * Pruning().tolerance
    assert prune(mixture, gp, np.random.default_rng(0))[1] == 0


def test_component_above_the_threshold_stays_even_if_useless():
    gp, mixture = setting_for_pruning([0.0, 0.0])
    heavier = GaussianMixture([0.98, 0.02], mixture.means, mixture.scales, mixture.lengths)
    assert prune(heavier, gp, np.random.default_rng(0))[1] == 0


def test_harmful_component_goes_however_large_the_gain():
    gp, mixture = setting_for_pruning([40.0, 0.0])
    smaller, n_pruned = prune(mixture, gp, np.random.default_rng(0))
    assert (n_pruned, smaller.n_components) == (1, 1)


def test_pruning_leaves_one_component():
    gp = gaussian_gp(np.zeros(2), np.ones(2), 40, 1)
    n = 110
    mixture = GaussianMixture(np.full(n, 1.0 / n), np.zeros((n, 2)), np.ones(n), np.ones(2))
    eager = Pruning(min_weight=2.0, tolerance=1e9)
    smaller, n_pruned = prune(mixture, gp, np.random.default_rng(0), eager, n_draws=4)
    assert (smaller.n_components, n_pruned) == (1, n - 1)
    kept, n_kept = prune(mixture, gp, np.random.default_rng(0), n_draws=4)
    # Of 110 equal and identical ones, pruning stops once the rest have grown to w_min.
    assert kept.weights.min() >= Pruning().min_weight
    assert kept.n_components == n - n_kept == 100


def test_same_seed_same_pruning():
    gp, _ = setting_for_pruning([0.0, 0.0])
    generator = np.random.default_rng(2)
    weights = generator.dirichlet(np.full(30, 0.3)) + 1e-6
    mixture = GaussianMixture(
        weights / weights.sum(), generator.normal(size=(30, 2)), np.full(30, 0.8), np.ones(2)
    )
    one, _ = prune(mixture, gp, np.random.default_rng(3))
    other, _ = prune(mixture, gp, np.random.default_rng(3))
    np.testing.assert_array_equal(one.means, other.means)
    assert 1 < one.n_components < 30


def test_without_growth_q_keeps_its_components():
    assert NoGrowth().next(2, progress(improving=True, stable=True)) == 2
