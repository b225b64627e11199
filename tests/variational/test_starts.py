import numpy as np
import pytest
from tests.variational.support import random_gp, random_mixture

from sparing.variational.settings import VariationalSettings
from sparing.variational.starts import candidate_mixtures


def candidates(mixture, n_components, *, data_fraction=0.0, equal_weights=False, seed=0, n=40):
    training = random_gp(30, mixture.dimension, 1, 1).training
    return training, list(
        candidate_mixtures(
            mixture,
            training,
            VariationalSettings(data_fraction=data_fraction),
            n_components=n_components,
            n_candidates=n,
            equal_weights=equal_weights,
            generator=np.random.default_rng(seed),
        )
    )


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
    far = type(mixture)(mixture.weights, mixture.means + 50.0, mixture.scales, mixture.lengths)
    training, found = candidates(far, 3, data_fraction=1.0, n=100)
    for candidate in found[1:]:
        near = np.linalg.norm(candidate.means[-1] - training.inputs, axis=1).min()
        assert near < 10.0  # the new component always moves; its jitter is a few sds
    high = training.values > np.median(training.values)
    nearest = [np.linalg.norm(c.means[-1] - training.inputs, axis=1).argmin() for c in found[1:]]
    assert np.mean(high[nearest]) > 0.6


def test_more_components_than_training_points():
    training = random_gp(1, 2, 1, 1).training
    found = list(
        candidate_mixtures(
            random_mixture(2, 2, 6),
            training,
            VariationalSettings(data_fraction=1.0),
            n_components=5,
            n_candidates=10,
            equal_weights=False,
            generator=np.random.default_rng(0),
        )
    )
    assert len(found) == 10


def test_shrinking_is_refused():
    with pytest.raises(ValueError, match="cannot shrink"):
        candidates(random_mixture(3, 2, 2), 2)
