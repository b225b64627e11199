"""When hyperparameters are trained, on what, and from where."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from tests.vbmc.support import STREAMS, TRANSFORM, design, row, state, surrogate

from sparing.surrogate.collapsed_training import Collapsed
from sparing.surrogate.gaussian_process import condition
from sparing.vbmc.settings import HyperparameterSchedule, Settings
from sparing.vbmc.state import Phase
from sparing.vbmc.training import (
    retraining_is_due,
    sampling_brings_little,
    train_surrogate,
)

SCHEDULE = HyperparameterSchedule(retraining_growth=0.04, max_samples=6)
WHITENED = TRANSFORM.whitened(np.zeros(2), np.array([[1.0, 0.5], [-0.5, 1.0]]), number=4)


@dataclass(frozen=True)
class Recorded(Collapsed):
    """Notes what training was asked for; the hyperparameters it finds are always the same."""

    asked: list = field(default_factory=list)

    def train(self, training, n_samples, generator, previous=None):
        self.asked.append((training.n_points, n_samples, previous))
        return condition(training, surrogate().parameters)


def train(before, evaluations=None, transform=TRANSFORM, schedule=SCHEDULE):
    """What was trained, and what the strategy was asked for."""
    strategy = Recorded()
    settings = replace(Settings(), surrogate=strategy, sampling=schedule)
    entries = design(30) if evaluations is None else evaluations
    return train_surrogate(before, transform, entries, settings, STREAMS), strategy.asked


def test_hyperparameters_are_trained_again_when_the_training_set_has_grown_enough():
    before = state([row(1, n_training=100), row(2, n_training=103, retrained=False)])
    assert not retraining_is_due(before, 103, SCHEDULE)
    assert retraining_is_due(before, 104, SCHEDULE)
    assert retraining_is_due(before, 100, HyperparameterSchedule.paper())  # in every iteration


@pytest.mark.parametrize("phase", [Phase.SEARCHING, Phase.ADAPTING])
def test_before_the_run_has_settled_they_always_are(phase):
    assert retraining_is_due(state([row(1, n_training=100)], phase=phase), 100, SCHEDULE)


def test_hyperparameters_that_are_kept_are_those_of_the_last_surrogate():
    before = state([row(1, n_training=29)])
    found, asked = train(before)
    assert asked == []
    assert not found.retrained
    assert found.surrogate.training.n_points == 30  # with the new points all the same
    np.testing.assert_array_equal(found.surrogate.parameters, before.trained.surrogate.parameters)


def test_training_starts_from_the_last_surrogate_in_the_same_coordinates_only():
    before = state([row(1, n_training=10)])
    found, ((_, _, previous),) = train(before)
    assert found.retrained
    assert previous is before.trained.surrogate
    elsewhere, ((_, _, previous),) = train(before, transform=WHITENED)
    assert previous is None
    assert elsewhere.transform is WHITENED
    _, ((_, _, previous),) = train(state([], trained=None, phase=Phase.SEARCHING))
    assert previous is None


def test_other_coordinates_are_always_trained_in():
    """Hyperparameters of the last ones mean nothing there, however little the set has grown."""
    _, asked = train(state([row(1, n_training=30)]), transform=WHITENED)
    assert len(asked) == 1


def test_trimmed_evaluations_are_left_out():
    before = state([row(1, n_training=10)], trimmed=frozenset({0, 7, 29}))
    found, ((n_points, _, _),) = train(before)
    assert n_points == found.surrogate.training.n_points == 27
    assert found.trained_on == tuple(i for i in range(30) if i not in {0, 7, 29})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 6),  # 80 / sqrt(30) = 14.6, of which six are taken
        ({"phase": Phase.SEARCHING}, 6),
        ({"sampling_stopped": True}, None),  # the best one
    ],
)
def test_how_many_samples_are_asked_for(changes, expected):
    _, ((_, n_samples, _),) = train(state([row(1, n_training=10)], **changes))
    assert n_samples == expected
    if expected is not None:
        paper = HyperparameterSchedule.paper()
        _, ((_, n_samples, _),) = train(state([row(1)], **changes), schedule=paper)
        assert n_samples == (8 if changes else 15)


def test_the_same_state_trains_the_same_surrogate():
    settings = replace(Settings(), surrogate=Collapsed(), sampling=SCHEDULE)
    before = state([row(1, n_training=10)])
    one, other = (
        train_surrogate(before, TRANSFORM, design(15), settings, STREAMS) for _ in range(2)
    )
    np.testing.assert_array_equal(one.surrogate.parameters, other.surrogate.parameters)
    later = state([row(1, n_training=10), row(2, n_training=10)])
    other = train_surrogate(later, TRANSFORM, design(15), settings, STREAMS)
    assert not np.array_equal(one.surrogate.parameters, other.surrogate.parameters)


def test_sampling_brings_little_when_the_spread_stayed_small():
    schedule = HyperparameterSchedule(variance_threshold=1e-3, n_iterations=3)
    small, large = {"hyperparameter_variance": 9e-4}, {"hyperparameter_variance": 1e-3}

    def history(*rows):
        return [row(t + 1, **changes) for t, changes in enumerate(rows)]

    assert sampling_brings_little(history(large, small, small, small), schedule)
    assert not sampling_brings_little(history(small, large, small, small), schedule)
    assert not sampling_brings_little(history(small, small), schedule)
    searching = small | {"warm_up": True}
    assert not sampling_brings_little(history(searching, small, small), schedule)
    assert not sampling_brings_little(history(small, small, small), HyperparameterSchedule())
