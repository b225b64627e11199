"""Candidates are ranked by the objective, with one entropy or the other."""

import numpy as np
from tests.variational.gradients import lower_bound
from tests.variational.support import random_gp, random_mixture

from sparing.variational.objective import Objective, SoftPenalties
from sparing.variational.starts import RankByLowerBound, RankByMonteCarlo, candidate_mixtures


def some_candidates():
    gp = random_gp(20, 2, 3, 6)
    found = candidate_mixtures(
        random_mixture(3, 2, 7),
        gp.training,
        0.25,
        n_components=4,
        n_candidates=12,
        equal_weights=False,
        generator=np.random.default_rng(1),
    )
    return Objective.create(gp, SoftPenalties()), found


def test_the_lower_bound_needs_no_draws():
    objective, found = some_candidates()
    scores = RankByLowerBound().scores(found, objective, seed=1)
    expected = [lower_bound(objective, found.mixture(index)) for index in range(12)]
    np.testing.assert_allclose(scores, expected, rtol=1e-10)
    np.testing.assert_array_equal(scores, RankByLowerBound().scores(found, objective, seed=2))


def test_monte_carlo_scores_every_candidate_with_the_same_draws():
    objective, found = some_candidates()
    few = RankByMonteCarlo(n_samples=20).scores(found, objective, seed=1)
    expected = [objective.value(found.mixture(index), 20, seed=1) for index in range(12)]
    np.testing.assert_array_equal(few, expected)
    assert not np.array_equal(few, RankByMonteCarlo(n_samples=20).scores(found, objective, seed=2))


def test_both_are_the_elbo_or_less():
    objective, found = some_candidates()
    precise = RankByMonteCarlo(n_samples=20_000).scores(found, objective, seed=3)
    bound = RankByLowerBound().scores(found, objective, seed=3)
    assert np.all(bound <= precise + 0.02)
    assert np.any(bound > precise - 1.0)  # of the same objective
