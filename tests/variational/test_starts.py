import numpy as np
import pytest
from tests.variational.gradients import lower_bound
from tests.variational.support import random_gp, random_mixture

from sparing.variational.mixture import GaussianMixture
from sparing.variational.objective import NoPenalties, Objective, SoftPenalties
from sparing.variational.parameterisation import from_parameters
from sparing.variational.starts import Candidates, Starts, candidate_mixtures


def candidates(mixture, n_components, *, data_fraction=0.0, equal_weights=False, seed=0, n=40):
    """The training set, and the candidates one by one."""
    training = random_gp(30, mixture.dimension, 1, 1).training
    found = candidate_mixtures(
        mixture,
        training,
        data_fraction,
        n_components=n_components,
        n_candidates=n,
        equal_weights=equal_weights,
        generator=np.random.default_rng(seed),
    )
    return training, [found.mixture(index) for index in range(len(found))]


@pytest.mark.parametrize("n_components", [3, 7])
def test_first_candidate_has_the_current_density(n_components):
    mixture = random_mixture(3, 2, 2)
    _, found = candidates(mixture, n_components)
    points = np.random.default_rng(3).normal(size=(20, 2))
    np.testing.assert_allclose(
        found[0].log_density(points), mixture.log_density(points), rtol=1e-12
    )
    assert len(found) == 40
    assert {candidate.n_components for candidate in found} == {n_components}
    assert not np.allclose(found[1].log_density(points), mixture.log_density(points), rtol=1e-3)


def test_equal_weights():
    _, found = candidates(random_mixture(3, 2, 2), 4, equal_weights=True)
    assert all(np.allclose(candidate.weights, 0.25) for candidate in found)


def test_new_components_are_spread_over_all_parents():
    mixture = random_mixture(3, 2, 4)
    _, found = candidates(mixture, 4, n=200)
    distances = [
        np.linalg.norm((c.means[-1] - mixture.means) / mixture.lengths, axis=1) for c in found
    ]
    parents = {int(np.argmin(distance)) for distance in distances}
    assert parents == {0, 1, 2}


def test_components_move_to_high_training_points():
    mixture = random_mixture(2, 2, 5)
    far = GaussianMixture(mixture.weights, mixture.means + 50.0, mixture.scales, mixture.lengths)
    training, found = candidates(far, 3, data_fraction=1.0, n=100)
    for candidate in found[1:]:
        near = np.linalg.norm(candidate.means[-1] - training.inputs, axis=1).min()
        assert near < 10.0  # the new component always moves; its jitter is a few sds
    high = training.values > np.median(training.values)
    nearest = [np.linalg.norm(c.means[-1] - training.inputs, axis=1).argmin() for c in found[1:]]
    assert np.mean(high[nearest]) > 0.6


def test_the_current_density_stays_first_where_others_move_to_data():
    mixture = random_mixture(3, 2, 2)
    _, found = candidates(mixture, 4, data_fraction=1.0)
    points = np.random.default_rng(3).normal(size=(20, 2))
    np.testing.assert_allclose(
        found[0].log_density(points), mixture.log_density(points), rtol=1e-12
    )


def test_more_components_than_training_points():
    training = random_gp(1, 2, 1, 1).training
    found = candidate_mixtures(
        random_mixture(2, 2, 6),
        training,
        1.0,
        n_components=5,
        n_candidates=10,
        equal_weights=False,
        generator=np.random.default_rng(0),
    )
    assert len(found) == 10
    assert {found.mixture(index).n_components for index in range(10)} == {5}


def some_candidates(data_fraction=0.25):
    """Of a mixture partly outside the data, so that penalties are paid, and the process."""
    gp, mixture = random_gp(20, 2, 3, 6), random_mixture(3, 2, 7)
    far = GaussianMixture(mixture.weights, 3.0 * mixture.means, mixture.scales, mixture.lengths)
    found = candidate_mixtures(
        far,
        gp.training,
        data_fraction,
        n_components=5,
        n_candidates=25,
        equal_weights=False,
        generator=np.random.default_rng(1),
    )
    return gp, found


def test_parameters_are_those_of_the_mixtures():
    _, found = some_candidates()
    for index, phi in enumerate(found.parameters()):
        rebuilt, mixture = from_parameters(phi, 5, 2), found.mixture(index)
        for one, other in zip(rebuilt.arrays, mixture.arrays, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize(
    ("penalties", "data_fraction"),
    [(SoftPenalties(), 0.25), (NoPenalties(), 0.0)],
    ids=["default", "paper"],
)
def test_candidates_are_scored_together_as_one_by_one(penalties, data_fraction):
    gp, found = some_candidates(data_fraction)
    objective = Objective.create(gp, penalties)
    scores = objective.lower_bounds(found.parameters(), 5)
    mixtures = [found.mixture(index) for index in range(25)]
    expected = [lower_bound(objective, mixture) for mixture in mixtures]
    np.testing.assert_allclose(scores, expected, rtol=1e-10)
    paid = [objective.penalty(mixture) > 0.01 for mixture in mixtures]
    assert any(paid) == (penalties == SoftPenalties())


def test_a_score_that_is_not_a_number_never_wins():
    gp, found = some_candidates()
    means = found.means.copy()
    means[3, 0, 0] = np.inf
    broken = Candidates(found.weights, means, found.scales, found.lengths)
    objective = Objective.create(gp, SoftPenalties())
    scores = objective.lower_bounds(broken.parameters(), 5)
    assert scores[3] == -np.inf
    np.testing.assert_array_equal(np.isfinite(scores), np.arange(25) != 3)


def test_shrinking_is_refused():
    with pytest.raises(ValueError, match="cannot shrink"):
        candidates(random_mixture(3, 2, 2), 2)


def test_how_many_are_compared():
    starts = Starts(n_per_component=5, n_per_component_at_first=50)  # n_fast, Section S1.3.2
    assert starts.n_candidates(3, first=False) == 15
    assert starts.n_candidates(3, first=True) == 150
