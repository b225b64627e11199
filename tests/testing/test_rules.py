"""The suite accepts the package's own rules and refuses one that breaks each promise."""

import random
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import sparing
from sparing.acquisition.search import search_box
from sparing.strategies import (
    EvenDraw,
    Frontier,
    PosteriorDraw,
    ProspectiveSampling,
    TemperedSampling,
    UncertaintySampling,
    VarianceReduction,
)
from sparing.testing import check_rule
from sparing.testing.rules import SITUATIONS, example_situation
from sparing.variational.mixture import GaussianMixture
from sparing.variational.normal_mixture import NormalMixture

OWN = [
    *dict.fromkeys(sparing.Settings().rules),
    *sparing.Settings().warm_up.pending_rules,
    UncertaintySampling(),
]
BY_CMA_ES = [
    *sparing.Settings.paper(ProspectiveSampling).rules,
    *sparing.Settings.paper(UncertaintySampling).rules,
]


def test_every_kind_of_rule_is_among_them():
    kinds = {type(rule) for rule in OWN}
    assert kinds == {
        VarianceReduction,
        PosteriorDraw,
        EvenDraw,
        Frontier,
        ProspectiveSampling,
        UncertaintySampling,
        TemperedSampling,
    }


@pytest.mark.parametrize("rule", OWN, ids=lambda rule: type(rule).__name__)
def test_our_own_rules_conform(rule):
    check_rule(rule)


@pytest.mark.slow
@pytest.mark.parametrize("rule", BY_CMA_ES, ids=lambda rule: type(rule).__name__)
def test_the_papers_rules_conform(rule):
    check_rule(rule)


@dataclass(frozen=True)
class Sound:
    """A rule that does as little as a rule may."""

    name: ClassVar[str] = "a draw"
    held_out: ClassVar[bool] = False
    reaches_out: ClassVar[bool] = False

    def choose(self, surrogate, mixture, generator):
        return np.clip(mixture.sample(1, generator)[0], *search_box(surrogate, mixture))


def test_a_sound_rule_conforms():
    check_rule(Sound())


@dataclass
class Mutable:
    name: ClassVar[str] = "mutable"
    held_out: ClassVar[bool] = False
    reaches_out: ClassVar[bool] = False
    choose = Sound.choose


@dataclass(frozen=True)
class OfTheFirstReleases:
    name: ClassVar[str] = "a draw"
    held_out: ClassVar[bool] = False
    choose = Sound.choose


class Nameless(Sound):
    name = " "


class Undecided(Sound):
    held_out = "sometimes"


class Unreached(Sound):
    reaches_out = 1


class Matrix(Sound):
    def choose(self, surrogate, mixture, generator):
        return mixture.sample(1, generator)


class Listed(Sound):
    def choose(self, surrogate, mixture, generator):
        return super().choose(surrogate, mixture, generator).tolist()


class Coarse(Sound):
    def choose(self, surrogate, mixture, generator):
        return super().choose(surrogate, mixture, generator).astype(np.float32)


class Undefined(Sound):
    def choose(self, surrogate, mixture, generator):
        return np.full(mixture.dimension, np.nan)


class Astray(Sound):
    def choose(self, surrogate, mixture, generator):
        return search_box(surrogate, mixture)[1] + 0.01


class OneDimensional(Sound):
    def choose(self, surrogate, mixture, generator):
        return super().choose(surrogate, mixture, generator)[:1]


class Unseeded(Sound):
    def choose(self, surrogate, mixture, generator):
        return super().choose(surrogate, mixture, np.random.default_rng())


class Remembering(Sound):
    calls: ClassVar[list[int]] = []

    def choose(self, surrogate, mixture, generator):
        self.calls.append(1)
        return super().choose(surrogate, mixture, generator) + 1e-9 * len(self.calls)


class Global(Sound):
    def choose(self, surrogate, mixture, generator):
        np.random.seed(1)  # noqa: NPY002
        return super().choose(surrogate, mixture, generator)


class GlobalOfPython(Sound):
    def choose(self, surrogate, mixture, generator):
        random.seed(1)
        return super().choose(surrogate, mixture, generator)


class Telling(Sound):
    def choose(self, surrogate, mixture, generator):
        surrogate.training.values[:] += 1e-9
        return super().choose(surrogate, mixture, generator)


class Pushing(Sound):
    def choose(self, surrogate, mixture, generator):
        mixture.means[0] *= 1.0 + 1e-12
        return np.clip(np.zeros(mixture.dimension), *search_box(surrogate, mixture))


class Peeping(Sound):
    def choose(self, surrogate, mixture, generator):
        return surrogate.cholesky[0, 0, : mixture.dimension]


class PeepingLater(Sound):
    def choose(self, surrogate, mixture, generator):
        return surrogate.append(mixture.mean, 0.0, noise_variance=1.0).alpha[0]


class PeepingAtThePosterior(Sound):
    def choose(self, surrogate, mixture, generator):
        return mixture.means[0] + mixture.scales[0] * mixture.lengths


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (Mutable, "no frozen dataclass"),
        (Nameless, "no name"),
        (Undecided, "held_out is 'sometimes'"),
        (Unreached, "reaches_out is 1"),
        (OfTheFirstReleases, "reaches_out is None"),
        (Matrix, r"the shape \(1, 1\), not \(1,\)"),
        (Listed, "a point is a list"),
        (Coarse, "of type float32"),
        (Undefined, "not finite"),
        (Astray, "outside the search box"),
        (OneDimensional, r"in 2 dimensions, a point has the shape \(1,\), not \(2,\)"),
        (Unseeded, "equal generators give different points"),
        (Remembering, "nothing is remembered"),
        (Global, "draws from a global generator"),
        (GlobalOfPython, "draws from a global generator"),
        (Telling, "changes the surrogate"),
        (Pushing, "changes the posterior"),
        (Peeping, "looks at .cholesky of the surrogate"),
        (PeepingLater, "looks at .alpha of the surrogate"),
        (PeepingAtThePosterior, "looks at .scales of the posterior"),
    ],
)
def test_the_suite_refuses_broken_rules(broken, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_rule(broken())


@dataclass(frozen=True)
class Stretched:
    """Draws from the posterior, moved and stretched in units of its sds."""

    shift: float
    factor: float
    name: ClassVar[str] = "stretched"
    held_out: ClassVar[bool] = True
    reaches_out: ClassVar[bool] = False

    def choose(self, surrogate, mixture, generator):
        sds = np.sqrt(np.diag(mixture.covariance))
        draw = mixture.sample(1, generator)[0] - mixture.mean
        point = mixture.mean + self.factor * draw + self.shift * sds
        return np.clip(point, *search_box(surrogate, mixture))


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        (Stretched(0.4, 1.0), "beside it"),
        (Stretched(0.0, 0.8), "their sds are 0.[78]"),
        (Stretched(0.0, 2.5), "their sds are 2.[3-6]"),
        (Stretched(0.0, 0.0), "their sds are 0.00"),
    ],
)
def test_held_out_points_are_draws_from_the_posterior(rule, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_rule(rule)


class ReachingOut(Stretched):
    reaches_out = True


def test_held_out_points_of_a_rule_that_reaches_out_may_be_elsewhere():
    check_rule(ReachingOut(0.4, 0.0))


def test_posteriors_of_both_kinds_are_handed_in():
    posteriors = [example_situation(*each)[1] for each in SITUATIONS]
    kinds = {type(posterior._inner) for posterior in posteriors}
    assert kinds == {GaussianMixture, NormalMixture}
