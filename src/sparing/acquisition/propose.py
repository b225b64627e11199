"""The next point, given the surrogate and the current posterior.

q   variational posterior, working coordinates        D   dimension
u   a point in working coordinates, (D,)
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

import numpy as np

from sparing.acquisition.criteria import (
    TemperedProspective,
    UncertaintyRule,
    UncertaintySampling,
)
from sparing.acquisition.search import SearchSettings, maximise
from sparing.acquisition.variance_reduction import IntegratedVarianceReduction
from sparing.numerics.arrays import Array
from sparing.surrogate.gaussian_process import GaussianProcess
from sparing.variational.mixture import GaussianMixture


class Rule(enum.Enum):
    """How one point is chosen.

    >>> sparing.Settings.paper(sparing.Rule.UNCERTAINTY).acquisition.rules
    (<Rule.UNCERTAINTY: 'uncertainty sampling'>,)
    """

    UNCERTAINTY = "uncertainty sampling"  # a_us, Section 3.3
    PROSPECTIVE = "prospective uncertainty sampling"  # a_pro, Section 3.3
    VARIANCE_REDUCTION = "integrated variance reduction"
    POSTERIOR_DRAW = "draw from the posterior"  # every second one widened
    EXPLORATION = "tempered prospective uncertainty sampling"  # around the bulk


@dataclass(frozen=True)
class AcquisitionSettings:
    """Which rule chooses which point, and how it is searched."""

    n_active: int = 5  # points per iteration, Section 3.3
    # Points per iteration while the best points still lie far apart in value (step.must_climb): on
    # the way up one value can overturn what the others were chosen by.
    n_climbing: int = 1
    # Warm-up has to find the mass: a_pro climbs. Afterwards the rules take turns.
    warm_up_rules: tuple[Rule, ...] = (Rule.PROSPECTIVE,)
    rules: tuple[Rule, ...] = (Rule.VARIANCE_REDUCTION, Rule.POSTERIOR_DRAW)
    # While other points are pending, the warm-up cannot climb step by step: part of it explores.
    pending_warm_up_rules: tuple[Rule, ...] = (Rule.PROSPECTIVE, Rule.EXPLORATION)
    temper: float = 0.25  # of the exploration
    variance_floor: float = 1e-4  # V_reg, S2.1
    n_references: int = 128  # reference points of the integrated variance reduction
    # Hyperparameter samples that choose a point, drawn anew for each; None: all of them. Their
    # average matters for the posterior, hardly for which of many good points comes next.
    n_hyperparameter_samples: int | None = 3
    widening: float = 1.5  # of every second posterior draw, and of half the reference points
    box_margin: float = 0.5  # the search box exceeds the training inputs by this fraction
    search: SearchSettings = field(default_factory=SearchSettings)

    @classmethod
    def paper(cls, rule: Rule = Rule.PROSPECTIVE) -> AcquisitionSettings:
        """Section 3.3: a_pro (or a_us) for every point, CMA-ES."""
        return cls(
            n_climbing=5,
            warm_up_rules=(rule,),
            rules=(rule,),
            pending_warm_up_rules=(rule,),
            n_hyperparameter_samples=None,  # Eq. 10
            search=SearchSettings.paper(),
        )

    def rule(self, count: int, *, warm_up: bool, pending: bool) -> Rule:
        """The rule that chooses the point with this running number."""
        rules = self.rules
        if warm_up:
            rules = self.pending_warm_up_rules if pending else self.warm_up_rules
        return rules[count % len(rules)]


def next_point(
    rule: Rule,
    count: int,
    gp: GaussianProcess,
    mixture: GaussianMixture,
    settings: AcquisitionSettings,
    generator: np.random.Generator,
) -> Array:
    """Choose one point by the rule: (D,), working coordinates."""
    box = search_box(gp, mixture, settings.box_margin)
    if rule is Rule.POSTERIOR_DRAW:
        factor = settings.widening if (count // len(settings.rules)) % 2 else 1.0
        return np.clip(widened_draws(mixture, 1, factor, generator)[0], *box)
    n_samples = settings.n_hyperparameter_samples
    if n_samples is not None and n_samples < gp.n_samples:
        gp = gp.subset(generator.choice(gp.n_samples, size=n_samples, replace=False))
    if rule is Rule.EXPLORATION:
        criterion = TemperedProspective(gp, mixture, settings.temper)
        return maximise(criterion, mixture, box, settings.search, generator)
    if rule is Rule.VARIANCE_REDUCTION:
        half = settings.n_references // 2
        references = np.vstack(
            [
                widened_draws(mixture, settings.n_references - half, 1.0, generator),
                widened_draws(mixture, half, settings.widening, generator),
            ]
        )
        criterion = IntegratedVarianceReduction.create(gp, references)
    else:
        kind = UncertaintyRule.VANILLA if rule is Rule.UNCERTAINTY else UncertaintyRule.PROSPECTIVE
        criterion = UncertaintySampling(kind, gp, mixture, settings.variance_floor)
    return maximise(criterion, mixture, box, settings.search, generator)


def widened_draws(
    mixture: GaussianMixture, n: int, factor: float, generator: np.random.Generator
) -> Array:
    """Draws from q, stretched about its mean by the factor: (n, D)."""
    centre = mixture.mean
    return centre + factor * (mixture.sample(n, generator) - centre)


def search_box(gp: GaussianProcess, mixture: GaussianMixture, margin: float) -> tuple[Array, Array]:
    """Where candidates may lie: the training inputs and q's bulk, with a margin."""
    sd = np.sqrt(np.diag(mixture.covariance))
    lower = np.minimum(gp.training.inputs.min(axis=0), mixture.mean - 3.0 * sd)
    upper = np.maximum(gp.training.inputs.max(axis=0), mixture.mean + 3.0 * sd)
    extra = margin * (upper - lower)
    return lower - extra, upper + extra
