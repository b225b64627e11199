"""How many components there are, and how a fit goes on from the last."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from tests.vbmc.support import GOOD, ROUGH, STREAMS, TRANSFORM, row, state, trained

from sparing.variational.adam import Adam
from sparing.variational.components import Growth, NoGrowth, Pruning
from sparing.variational.fit import VariationalSettings
from sparing.variational.mixture import GaussianMixture
from sparing.variational.starts import RankByLowerBound
from sparing.vbmc.fitting import fit_posterior, n_components
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import Phase
from sparing.vbmc.stopping import Reliability

BAD = Reliability(3.0, 3.0, 3.0)


@dataclass(frozen=True)
class RecordedGrowth(Growth):
    """Notes what the number of components is decided by."""

    asked: list = field(default_factory=list)

    def next(self, current, progress):
        self.asked.append((current, progress))
        return 7


def progress_of(before, n_training=30):
    growth = RecordedGrowth()
    settings = replace(Settings(), variational=VariationalSettings(growth=growth))
    assert n_components(before, n_training, settings) == 7
    ((current, progress),) = growth.asked
    assert current == before.mixture.n_components
    assert progress.n_training == n_training
    return progress


def test_two_components_while_searching():
    assert n_components(state(phase=Phase.SEARCHING), 1000, Settings()) == 2


def test_a_rising_elcbo_is_an_improvement():
    rising = [row(t, elcbo=float(t)) for t in (1, 2, 3)]
    assert progress_of(state(rising)).improving
    assert not progress_of(state(rising[::-1])).improving


def test_a_small_reliability_index_is_stability():
    assert progress_of(state([row(1, features=BAD), row(2, features=GOOD)])).stable
    assert not progress_of(state([row(1, features=GOOD), row(2, features=BAD)])).stable
    assert not progress_of(state([row(1, features=None)])).stable
    assert not progress_of(state([])).stable


def test_iterations_are_counted_from_the_last_pruning_to_the_coming_one():
    pruned = [row(1, n_pruned=2), row(2, n_pruned=1), row(3), row(4)]
    assert progress_of(state(pruned)).iterations_since_pruning == 3
    assert progress_of(state([row(1, n_pruned=1)])).iterations_since_pruning == 1
    assert progress_of(state([row(1)])).iterations_since_pruning > 50  # never


def test_components_grow_unless_they_are_to_stay():
    before = state([row(t) for t in range(1, 7)])
    assert n_components(before, 1000, Settings()) == 4  # stable: two more
    fixed = replace(Settings(), variational=VariationalSettings(growth=NoGrowth()))
    assert n_components(before, 1000, fixed) == 2


QUICK = Adam(max_steps_base=20, max_steps_per_component=0)


@dataclass(frozen=True)
class RecordedRanking(RankByLowerBound):
    """Notes how many starts were compared."""

    compared: list = field(default_factory=list)

    def scores(self, candidates, objective, seed):
        self.compared.append(len(candidates))
        return super().scores(candidates, objective, seed)


def fit(before, found=None, start=ROUGH, **changes):
    """The solution, and how many starts were compared."""
    ranking = RecordedRanking()
    variational = replace(
        VariationalSettings(ascent=QUICK, growth=RecordedGrowth()), ranking=ranking, **changes
    )
    settings = replace(Settings(), variational=variational)
    found = trained() if found is None else found
    solution = fit_posterior(before, found, start, settings, STREAMS)
    assert solution.trained is found
    return solution, ranking.compared[0]


def test_the_mixture_grows_to_the_number_that_was_decided():
    assert fit(state())[0].mixture.n_components == 7
    assert fit(state(phase=Phase.SEARCHING))[0].mixture.n_components == 2


def test_a_start_that_has_grown_already_keeps_its_components():
    nine = GaussianMixture(np.full(9, 1 / 9), np.zeros((9, 2)), np.full(9, 0.2), np.ones(2))
    assert fit(state(), start=nine)[0].mixture.n_components == 9


@pytest.mark.parametrize(
    ("before", "transform", "per_component"),
    [
        (state(), TRANSFORM, 5),
        (state(phase=Phase.ADAPTING), TRANSFORM, 50),
        (state([]), TRANSFORM, 50),
        (state(), TRANSFORM.whitened(np.zeros(2), 2.0 * np.eye(2), number=3), 50),
    ],
    ids=["usual", "after the warm-up", "first iteration", "other coordinates"],
)
def test_more_starts_are_compared_where_everything_is_new(before, transform, per_component):
    _, n_compared = fit(before, trained(transform=transform))
    assert n_compared == 7 * per_component


def test_components_are_pruned_after_the_search_only():
    eager = Pruning(min_weight=1.0, tolerance=1e9)
    settled, _ = fit(state(), pruning=eager)
    assert (settled.mixture.n_components, settled.n_pruned) == (1, 6)
    searching, _ = fit(state(phase=Phase.SEARCHING), pruning=eager)
    assert (searching.mixture.n_components, searching.n_pruned) == (2, 0)


def test_weights_are_equal_while_searching_and_free_after():
    weights = fit(state(phase=Phase.SEARCHING))[0].mixture.weights
    np.testing.assert_allclose(weights, 0.5)
    assert np.ptp(fit(state())[0].mixture.weights) > 1e-3


def test_the_elbo_is_that_of_the_mixture_that_is_kept():
    """Within its own Monte Carlo error of the log evidence: the surrogate is the target."""
    solution, _ = fit(state(phase=Phase.ADAPTING), ascent=Adam())
    assert solution.elbo.value == pytest.approx(np.log(2.0 * np.pi), abs=0.02)
