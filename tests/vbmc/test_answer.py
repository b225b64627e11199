"""Which iteration is returned when nothing was stable, and its surrogate sampled once more."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from tests.vbmc.hills import HOME, OTHER, SD, around, learnt, over_the_box, two_hills
from tests.vbmc.quadrature import quadrature

from sparing.variational.mixture import GaussianMixture
from sparing.variational.normal_mixture import NormalMixture
from sparing.vbmc.answer import BestBound, LastFit, SmallestError, ThoroughSample
from sparing.vbmc.evidence import Doubt, Evidence, LowerBound, SurrogatePosterior
from sparing.vbmc.exploration import LookElsewhere, Trusting
from sparing.vbmc.held_out import TrackRecord


def test_the_best_bound_among_the_last_quarter():
    elcbo = [9.0, 1.0, 2.0, 3.0, 1.0, 2.0, 4.0, 3.0]
    sds = list(np.linspace(1.0, 0.1, 8))
    assert BestBound(0.25).choose(elcbo, sds) == 6
    assert BestBound(1.0).choose(elcbo, sds) == 0
    assert BestBound(0.25).choose([1.0], [0.1]) == 0
    assert BestBound(0.25).choose([9.0, 1.0, 1.0, 4.0, 3.0], sds[:5]) == 3  # of five, two count


def test_the_smallest_error_among_the_last_five():
    sds = [0.01, 0.5, 0.4, 0.2, 0.3, 0.6]
    elcbo = [9.0, 0.0, 0.0, 0.0, 0.0, 9.0]  # nobody asks for it
    assert SmallestError(n_recent=5).choose(elcbo, sds) == 3
    assert SmallestError(n_recent=2).choose(elcbo, sds) == 4
    assert SmallestError(n_recent=6).choose(elcbo, sds) == 0
    assert SmallestError(n_recent=5).choose([1.0, 1.0], [0.2, 0.1]) == 1


# ---------------------------------------------------------------------- the last sample

AT_HOME = GaussianMixture([1.0], [HOME], [SD], [1.0, 1.0])
RECORD = TrackRecord((20,), (60.0,), (), ())  # as if the surrogate were too sure of itself


@pytest.fixture(scope="module")
def both():
    """Two hills of which q and the posterior have one."""
    return learnt(two_hills, around(HOME, 25, 2), around(OTHER, 25, 3), over_the_box(15, 4))


def answer(known, strategy=None, evidence=None, exploration=None, record=RECORD):
    strategy = ThoroughSample(2**11, 2**12, 30) if strategy is None else strategy
    evidence = SurrogatePosterior() if evidence is None else evidence
    exploration = LookElsewhere() if exploration is None else exploration
    generator = np.random.default_rng(5)
    return strategy.answer(known, AT_HOME, record, evidence, exploration, generator)


def test_the_last_surrogate_is_sampled_from_everywhere(both):
    exact = quadrature(both.surrogate, [-0.7, -0.7], [0.7, 0.7], 250)
    found = answer(both)
    evidence, posterior = found.evidence, found.mixture
    assert evidence.log_evidence == pytest.approx(exact.log_evidence, abs=0.03)
    np.testing.assert_allclose(posterior.mean, exact.mean, atol=0.3 * SD)
    share = np.mean(posterior.sample(4000, np.random.default_rng(6))[:, 0] > 0.0)
    expected = exact.probabilities[exact.points[:, 0] > 0.0].sum()
    assert share == pytest.approx(expected, abs=0.04)


def test_without_a_look_elsewhere_it_is_sampled_from_what_was_known(both):
    found = answer(both, exploration=Trusting())
    assert np.all(found.mixture.means[:, 0] < 0.0)
    assert found.doubt == Doubt()
    known = NormalMixture.of_covariances(
        np.ones(2), np.array([HOME, OTHER]), np.tile(SD**2 * np.eye(2), (2, 1, 1))
    )
    more = answer(replace(both, posterior=known), exploration=Trusting())
    expected = found.evidence.log_evidence + np.log(2.0)
    assert more.evidence.log_evidence == pytest.approx(expected, abs=0.1)


@dataclass(frozen=True)
class Recorded(SurrogatePosterior):
    """Notes with how much it was asked to sample, and from where."""

    asked: list = field(default_factory=list)

    def sampled(self, mixture, surrogate, record, generator, proposals, support):
        sizes = (self.n_first, self.n_draws, self.n_components)
        self.asked.append((sizes, mixture, record, len(proposals), proposals[0]))
        return Evidence(-1.0, 0.3, True, -np.inf, 10.0, 0.0, 1.0), proposals[0]


@dataclass(frozen=True)
class RecordedLook(LookElsewhere):
    """Notes by how much the variance was inflated, and finds nothing."""

    asked: list = field(default_factory=list)

    def particles(self, known, inflation, generator):
        self.asked.append(inflation)
        return np.empty((0, 2))

    def doubt(self, known, particles, generator):
        return Doubt(0.4)


def test_the_sample_is_as_thorough_as_it_says_and_what_was_known_is_a_proposal(both):
    evidence, exploration = Recorded(), RecordedLook()
    found = answer(both, ThoroughSample(10, 20, 3), evidence, exploration)
    assert (found.evidence.sd, found.doubt) == (0.3, Doubt(0.4))
    ((sizes, mixture, record, n_proposals, first),) = evidence.asked
    assert sizes == (10, 20, 3)
    assert (mixture, record, n_proposals) == (AT_HOME, RECORD, 1)
    assert first is both.posterior
    assert exploration.asked == [pytest.approx((60 + 4) / 24)]  # what held-out draws have shown


def test_what_a_look_finds_is_a_proposal_too(both):
    evidence = Recorded()
    answer(both, ThoroughSample(10, 20, 3), evidence)
    assert evidence.asked[0][3] == 2


def test_the_paper_samples_nothing(both):
    assert answer(both, strategy=LastFit()) is None
    assert answer(both, evidence=LowerBound()) is None  # there is no posterior of the surrogate
