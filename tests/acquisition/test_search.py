"""The search finds the maximum of functions whose maximum is known."""

import sys

import numpy as np
import pytest

from sparing.acquisition.cma_es import CmaEs
from sparing.acquisition.search import ShrinkingClouds, draw_candidates, search_box
from sparing.errors import MissingExtraError
from sparing.surrogate.gaussian_process import condition
from sparing.surrogate.training_set import TrainingSet
from sparing.variational.mixture import GaussianMixture


def mixture(dimension: int) -> GaussianMixture:
    return GaussianMixture(np.ones(1), np.zeros((1, dimension)), np.ones(1), np.ones(dimension))


def box(dimension: int, half_width: float = 5.0):
    return np.full(dimension, -half_width), np.full(dimension, half_width)


@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize("search", [ShrinkingClouds(), CmaEs()])
def test_the_maximum_of_a_smooth_function_is_found(dimension, search):
    target = np.linspace(-1.0, 1.2, dimension)

    def criterion(points):
        return -np.sum((points - target) ** 2, axis=1)

    found = search.maximise(criterion, mixture(dimension), box(dimension), np.random.default_rng(1))
    # CMA-ES converges; the shrinking clouds are meant to be close, not exact.
    limit = 0.05 if isinstance(search, CmaEs) else 0.6
    assert np.max(np.abs(found - target)) < limit


@pytest.mark.parametrize("search", [ShrinkingClouds(), CmaEs()])
def test_the_search_stays_inside_the_box(search):
    found = search.maximise(
        lambda points: points[:, 0], mixture(2), box(2), np.random.default_rng(2)
    )
    assert np.all(np.abs(found) <= 5.0)
    assert found[0] > 3.0


@pytest.mark.parametrize("search", [ShrinkingClouds(), CmaEs()])
def test_values_that_are_not_numbers_never_win(search):
    def criterion(points):
        return np.where(points[:, 0] > 0.0, np.nan, points[:, 0])

    found = search.maximise(criterion, mixture(2), box(2), np.random.default_rng(3))
    assert found[0] <= 0.0


@pytest.mark.parametrize("search", [ShrinkingClouds(), CmaEs()])
def test_the_search_leaves_the_global_random_state_alone(search):
    np.random.seed(5)  # noqa: NPY002 (the global state is what is tested)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = search.maximise(
        lambda points: -(points[:, 0] ** 2), mixture(2), box(2), np.random.default_rng(4)
    )
    second = search.maximise(
        lambda points: -(points[:, 0] ** 2), mixture(2), box(2), np.random.default_rng(4)
    )
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.testing.assert_array_equal(first, second)


def test_candidates_come_from_q_and_from_the_box():
    candidates = draw_candidates(mixture(2), box(2, 50.0), 600, np.random.default_rng(6))
    assert candidates.shape == (600, 2)
    radius = np.linalg.norm(candidates, axis=1)
    assert np.mean(radius < 3.0) > 0.6
    assert np.sum(radius > 20.0) > 40


def test_the_search_box_holds_the_data_and_the_bulk_of_q_with_a_margin():
    inputs = np.array([[0.0, -1.0], [4.0, 1.0]])
    gp = condition(TrainingSet(inputs, np.zeros(2)), np.zeros((1, 9)))
    q = GaussianMixture([1.0], [[0.0, 0.0]], [1.0], [0.5, 1.0])
    lower, upper = search_box(gp, q)  # the data reach from (0, -1) to (4, 1), q's three sds beyond
    np.testing.assert_allclose(lower, [-1.5 - 0.5 * 5.5, -3.0 - 0.5 * 6.0])
    np.testing.assert_allclose(upper, [4.0 + 0.5 * 5.5, 3.0 + 0.5 * 6.0])


def test_without_the_extra_the_search_of_the_paper_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cma", None)
    with pytest.raises(MissingExtraError, match=r"sparing\[paper\]"):
        CmaEs().maximise(lambda points: points[:, 0], mixture(2), box(2), np.random.default_rng(1))
