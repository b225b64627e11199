"""Which iteration is returned when nothing was stable, and its surrogate sampled once more."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from tests.vbmc.hills import HOME, OTHER, SD, around, learnt, over_the_box, two_hills
from tests.vbmc.quadrature import quadrature
from tests.vbmc.support import (
    EXACT,
    LOG_EVIDENCE,
    NAMES,
    TRANSFORM,
    design,
    evaluation,
    log_joint,
    row,
)

from sparing.problem.bending import Stretch
from sparing.problem.evaluations import Status
from sparing.problem.parameter_transform import ParameterTransform
from sparing.problem.problem import Problem
from sparing.variational.cut_mixture import CutMixture
from sparing.variational.mixture import GaussianMixture
from sparing.variational.normal_mixture import NormalMixture
from sparing.variational.posterior import Posterior
from sparing.vbmc import answer as answer_module
from sparing.vbmc.answer import (
    BestBound,
    LastFit,
    SmallestError,
    ThoroughSample,
    best_described,
    is_contradicted,
)
from sparing.vbmc.evidence import Doubt, Evidence, LowerBound, SurrogatePosterior
from sparing.vbmc.exploration import LookElsewhere, Trusting
from sparing.vbmc.held_out import TrackRecord
from sparing.vbmc.surrogate_posterior import WeightedSample


def history(sds=None, elbo=None, **changes):
    """Rows with these errors, or these bounds."""
    n = len(elbo if sds is None else sds)
    sds, elbo = sds or [0.1] * n, elbo or [0.0] * n
    return [
        row(t, elbo=bound, elbo_sd=0.0, log_evidence_sd=sd, **changes)
        for t, (bound, sd) in enumerate(zip(elbo, sds, strict=True), start=1)
    ]


def test_the_best_bound_among_the_last_quarter():
    rows = history(elbo=[9.0, 1.0, 2.0, 3.0, 1.0, 2.0, 4.0, 3.0])
    assert BestBound(0.25).choose(rows, []) == 6
    assert BestBound(1.0).choose(rows, []) == 0
    assert BestBound(0.25).choose(rows[:1], []) == 0
    five = history(elbo=[9.0, 1.0, 1.0, 4.0, 3.0])
    assert BestBound(0.25).choose(five, []) == 3  # of five, two count
    rows[6] = replace(rows[6], elbo_sd=1.0)
    assert BestBound(0.25).choose(rows, []) == 7  # five of its sds are taken off a bound


def test_the_smallest_error_among_the_last_five():
    rows = history([0.01, 0.5, 0.4, 0.2, 0.3, 0.6], elbo=[9.0, 0.0, 0.0, 0.0, 0.0, 9.0])
    assert SmallestError(n_recent=5).choose(rows, []) == 3
    assert SmallestError(n_recent=2).choose(rows, []) == 4
    assert SmallestError(n_recent=6).choose(rows, []) == 0
    assert SmallestError(n_recent=5).choose(rows[:2], []) == 0


EXACTLY = Posterior(EXACT, TRANSFORM, NAMES)
LOST = [0.3, 0.05, 0.1, 0.2, 7.0, 9.0, 5.0]  # the last three do not know


def test_a_run_that_has_lost_its_way_returns_what_it_knew():
    rows = history(LOST, log_evidence=LOG_EVIDENCE, posterior=EXACTLY)
    strategy = SmallestError(n_recent=3)
    assert strategy.choose(rows, design()) == 1
    # As long as one of the recent ones knows, the best of these is taken.
    assert strategy.choose(rows[:4], design()) == 1
    assert strategy.choose(rows[:5], design()) == 2
    warm_up = [replace(past, warm_up=t == 1) for t, past in enumerate(rows)]
    assert strategy.choose(warm_up, design()) == 2
    worse = history([9.0, 8.0, 8.5, 7.0, 5.0], log_evidence=LOG_EVIDENCE, posterior=EXACTLY)
    assert strategy.choose(worse, design()) == 4


def test_but_nothing_that_a_later_value_contradicts():
    rows = history(LOST, log_evidence=LOG_EVIDENCE, posterior=EXACTLY)
    elsewhere = evaluation(10, (40.0, 0.0), -1.0)  # another mode
    assert SmallestError(n_recent=3).choose(rows, [*design(), elsewhere]) == 6
    # One of the recent ones knows of it, with a larger error than the last.
    means = [[0.0, 0.0], [10.0, 0.0]]
    both = Posterior(GaussianMixture([0.5, 0.5], means, [0.25, 0.25], [1.0, 1.0]), TRANSFORM, NAMES)
    rows[5] = replace(rows[5], posterior=both, log_evidence=LOG_EVIDENCE + np.log(2.0))
    assert SmallestError(n_recent=3).choose(rows, [*design(), elsewhere]) == 5
    # So did the third.
    rows[2] = replace(rows[2], posterior=both, log_evidence=LOG_EVIDENCE + np.log(2.0))
    assert SmallestError(n_recent=3).choose(rows, [*design(), elsewhere]) == 2


def test_what_contradicts_a_solution():
    past = row(log_evidence=LOG_EVIDENCE, posterior=EXACTLY)
    assert not is_contradicted(past, [*design(), *unusable_entries()])

    def with_value(x, value):
        return is_contradicted(past, [*design(), evaluation(10, x, value)])

    far = (0.0, 7.0)  # where the exact value is -24.5
    assert not with_value(far, -24.5)
    assert not with_value(far, -8.0)  # more than was believed, but nobody would miss it
    assert with_value(far, -2.0)
    assert not with_value((0.0, 2.0), 0.9)  # 2.9 nats above what is there
    assert with_value((0.0, 2.0), 1.1)
    assert not with_value((0.0, 0.0), -50.0)  # too much is what an error is for
    higher = replace(past, log_evidence=LOG_EVIDENCE - 3.1)
    assert is_contradicted(higher, design())


class LeftHalf:
    """A support that ends at zero."""

    def contains(self, points):
        return points[:, 0] < 0.0


def test_what_lies_beyond_an_edge_contradicts_a_solution_only_where_there_is_a_value():
    normal = NormalMixture.of_covariances(
        np.ones(1), np.zeros((1, 2)), np.diag(EXACT.lengths * EXACT.scales[0])[None] ** 2
    )
    half = Posterior(CutMixture(normal, LeftHalf()), TRANSFORM, NAMES)
    past = row(log_evidence=LOG_EVIDENCE - np.log(2.0), posterior=half)
    inside = [entry for entry in design() if entry.x[0] < 0.0]
    deep = [evaluation(20 + i, (-4.0 - i, 0.0)) for i in range(5)]  # normal, and far outside
    assert not is_contradicted(past, [*inside, *deep, *unusable_entries()])
    assert not is_contradicted(past, deep)
    assert is_contradicted(past, [*inside, evaluation(30, (1.0, 0.0))])


def unusable_entries():
    return [evaluation(11, (9.0, 9.0), value=-np.inf, status=Status.OUT_OF_SUPPORT)]


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
        found = Evidence(-1.0, 0.3, True, -np.inf, 10.0, 0.0, 1.0)
        return found, proposals[0], drawn(proposals[0].sample(500, generator))


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


def drawn(points):
    """A sample of equal weights."""
    n = len(points)
    return WeightedSample(points, np.zeros(n), np.full(n, 1.0 / n), 0.0, 0.01, 0.0, -np.inf)


def positive(dimension):
    """Coordinates of positive parameters, u = (log x - c) / w."""
    ones = np.ones(dimension)
    box = 0.1 * ones, 2.0 * ones
    return ParameterTransform.from_problem(Problem(log_joint, *box, lower=0.0 * ones))


def described(x, transform, n_components=40):
    """The plain mixture of draws x, and the best one with its coordinates."""
    draws, generator = drawn(transform.to_working(x)), np.random.default_rng(2)
    plain = draws.mixture(n_components, generator)
    return plain, *best_described(plain, draws, transform, n_components, generator)


def exponential(n, dimension, seed=1):
    return np.random.default_rng(seed).exponential(size=(n, dimension))


def test_a_posterior_that_ends_sharply_is_described_in_stretched_coordinates():
    """Six exponential distributions: each of sd one, and 3.69 at 97.5 %."""
    transform = positive(6)
    plain, mixture, coordinates = described(exponential(2**13, 6), transform)
    rough = transform.to_user(plain.sample(2**17, np.random.default_rng(3)))
    found = coordinates.to_user(mixture.sample(2**17, np.random.default_rng(3)))
    assert np.all(rough.std(axis=0) > 1.1)
    np.testing.assert_allclose(found.std(axis=0), 1.0, atol=0.06)
    np.testing.assert_allclose(found.mean(axis=0), 1.0, atol=0.03)
    np.testing.assert_allclose(np.quantile(found, 0.975, axis=0), 3.69, rtol=0.05)
    # Its density is that of the draws, minus the sum of x.
    x = exponential(2000, 6, seed=4)
    error = Posterior(mixture, coordinates, ("x",) * 6).log_density(x) + x.sum(axis=1)
    assert abs(np.median(error)) < 0.1
    assert np.mean(error) > -0.15  # the divergence from it


def test_single_parameters_are_stretched_where_the_present_coordinates_mix_them():
    turned = np.linalg.qr(np.random.default_rng(5).normal(size=(6, 6)))[0]
    transform = positive(6).whitened(np.zeros(6), turned, 3)
    plain, mixture, coordinates = described(exponential(2**13, 6), transform)
    assert coordinates.whitening is None
    assert [type(bend) for bend in coordinates.bends] == [Stretch]
    rough = transform.to_user(plain.sample(2**17, np.random.default_rng(3)))
    found = coordinates.to_user(mixture.sample(2**17, np.random.default_rng(3)))
    assert rough.std(axis=0).max() > 1.2
    np.testing.assert_allclose(found.std(axis=0), 1.0, atol=0.07)


def test_a_mixture_that_has_the_moments_of_the_draws_stays_as_it_is():
    normal = np.random.default_rng(1).normal(size=(2**12, 2))
    for x, transform in ((exponential(2**12, 1), positive(1)), (normal, TRANSFORM)):
        plain, mixture, coordinates = described(x, transform)
        assert mixture is plain
        assert coordinates is transform


def test_coordinates_that_are_no_better_are_not_taken(monkeypatch):
    useless = Stretch(np.zeros(6), np.ones(6), np.zeros(6), np.ones(6))  # u = w
    for stretch in (useless, None):
        monkeypatch.setattr(answer_module, "stretch_of", lambda points, found=stretch: found)
        plain, mixture, coordinates = described(exponential(2**12, 6), transform := positive(6))
        assert mixture is plain
        assert coordinates is transform


def test_a_mixture_beyond_what_a_float_can_hold_is_no_reason_to_stop():
    wide = drawn(np.random.default_rng(1).normal(size=(2**11, 2)) * 1e3)
    transform, generator = positive(2), np.random.default_rng(2)
    plain = wide.mixture(5, generator)
    assert best_described(plain, wide, transform, 5, generator) == (plain, transform)


def test_the_paper_samples_nothing(both):
    assert answer(both, strategy=LastFit()) is None
    assert answer(both, evidence=LowerBound()) is None  # there is no posterior of the surrogate
