"""The log evidence with its error, and the posterior that goes with it.

The ELBO is below the surrogate's own log evidence by KL(q || posterior of the surrogate), and q is
not that posterior. Sampling the surrogate removes both gaps at no evaluation of the target
(`surrogate_posterior`, docs/decisions/0013). Under the paper's settings it is the bound, and q.

    f, V    mean and variance of the surrogate               q    variational posterior
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sparing.surrogate.interface import Surrogate
from sparing.surrogate.known_support import AnySupport
from sparing.variational.cut_mixture import cut
from sparing.variational.elbo import Elbo, sampled_elbo
from sparing.variational.mixture import GaussianMixture
from sparing.variational.normal_mixture import Mixture, NormalMixture, unchanged
from sparing.vbmc.held_out import Calibration, HeldOutCalibration, TrackRecord
from sparing.vbmc.importance import LARGEST_PARETO_K
from sparing.vbmc.surrogate_posterior import (
    DOUBTED_SHARE,
    Density,
    HeavyTailed,
    WeightedSample,
    average_sd,
    weighted_sample,
)

SUFFICIENT_SHARE = 0.3  # of the draws, as effective ones
N_AVERAGED = 256  # posterior draws over which the surrogate's error is averaged


@dataclass(frozen=True)
class Doubt:
    """What nobody has seen, as standard deviations of the log evidence.

    ``largest`` is what mass that the surrogate does not exclude may come to by what has become of
    such promises so far: a surrogate gone wrong promises thousands of nats.
    """

    unseen: float = 0.0
    largest: float = math.inf


@dataclass(frozen=True)
class Evidence:
    """A log evidence with its standard deviation and how it was obtained.

    ``curvature`` is what mass that the surrogate does not exclude adds to a cautious reading,
    ``inflation`` the factor by which held-out draws multiply the surrogate's variance; they are 0
    and 1, and ``pareto_k`` and ``effective_samples`` NaN, where the bound is returned.
    """

    log_evidence: float
    sd: float
    corrected: bool
    pareto_k: float
    effective_samples: float
    curvature: float
    inflation: float

    def doubted(self, doubt: Doubt) -> Evidence:
        """With what nobody has seen in its error."""
        promised = DOUBTED_SHARE * self.curvature
        rest = math.sqrt(max(0.0, self.sd**2 - promised**2))
        return replace(self, sd=math.hypot(rest, min(promised, doubt.largest), doubt.unseen))


@dataclass(frozen=True)
class SurrogatePosterior:
    """The evidence and the posterior of the surrogate, by sampling that adapts to it."""

    n_first: int = 2**12  # draws from q and the posterior before
    n_draws: int = 2**12  # draws from what was fitted to them, where that is worth it
    n_components: int = 30
    max_rounds: int = 3  # until the weights have no heavy tail...
    monte_carlo_share: float = math.inf  # ...and their error is this small, to the surrogate's
    n_draws_in_warm_up: int = 2**8  # nothing but the display looks at the evidence then
    calibration: HeldOutCalibration = HeldOutCalibration()

    def suffices(
        self, sample: WeightedSample, surrogate: Surrogate, generator: np.random.Generator
    ) -> bool:
        """Whether the proposal was good enough."""
        if sample.pareto_k > LARGEST_PARETO_K:
            return False
        if sample.effective_size <= SUFFICIENT_SHARE * self.n_draws:
            return False
        if math.isinf(self.monte_carlo_share):
            return True
        own = average_sd(surrogate, sample.equally_weighted(N_AVERAGED, generator))
        return sample.monte_carlo_sd <= self.monte_carlo_share * own

    def estimate(
        self,
        mixture: GaussianMixture,
        surrogate: Surrogate,
        elbo: Elbo,
        record: TrackRecord,
        generator: np.random.Generator,
        *,
        searching: bool = False,
        proposals: Sequence[NormalMixture] = (),
        support: AnySupport | None = None,
    ) -> tuple[Evidence, Mixture]:
        """The log evidence, and the posterior as a mixture of normals of any shape.

        During the warm-up q as it is, and a few draws; but not beyond a known edge.
        """
        if not searching or support is not None:
            found = self.sampled(mixture, surrogate, record, generator, proposals, support)
            return found[:2]
        calibration = self.calibration.calibration(record)
        proposal, density = HeavyTailed(unchanged(mixture)), Density(surrogate)
        sample = weighted_sample(density, proposal, self.n_draws_in_warm_up, generator)
        return evidence_of(sample, surrogate, calibration, generator), mixture

    def sampled(
        self,
        mixture: GaussianMixture,
        surrogate: Surrogate,
        record: TrackRecord,
        generator: np.random.Generator,
        proposals: Sequence[NormalMixture],
        support: AnySupport | None,
    ) -> tuple[Evidence, Mixture, WeightedSample]:
        """The same, and the draws that the mixture was fitted to.

        q and the other proposals together are where the first ones come from.
        """
        calibration = self.calibration.calibration(record)
        density = Density(surrogate, calibration.error_inflation, support)
        proposal = HeavyTailed(NormalMixture.union([unchanged(mixture), *proposals]))
        sample = weighted_sample(density, proposal, self.n_first, generator)
        for _ in range(self.max_rounds):
            if self.suffices(sample, surrogate, generator):
                break
            proposal = HeavyTailed(sample.mixture(self.n_components, generator))
            sample = weighted_sample(density, proposal, self.n_draws, generator)
        fitted = sample.mixture(self.n_components, generator)
        found = cut(fitted, support, surrogate.training.inputs)
        return evidence_of(sample, surrogate, calibration, generator), found, sample


@dataclass(frozen=True)
class LowerBound:
    """The bound itself and q as it is (Algorithm 1, line 24)."""

    def estimate(
        self,
        mixture: GaussianMixture,
        surrogate: Surrogate,
        elbo: Elbo,
        record: TrackRecord,
        generator: np.random.Generator,
        *,
        searching: bool = False,
        proposals: Sequence[NormalMixture] = (),
        support: AnySupport | None = None,
    ) -> tuple[Evidence, Mixture]:
        """The ELBO with its standard deviation; of q within the support, where that is known."""
        if support is not None:
            within = cut(mixture, support, surrogate.training.inputs)
            elbo = sampled_elbo(within, surrogate)
            return Evidence(elbo.value, elbo.sd, False, np.nan, np.nan, 0.0, 1.0), within
        evidence = Evidence(elbo.value, elbo.sd, False, np.nan, np.nan, 0.0, 1.0)
        return evidence, mixture


def evidence_of(
    sample: WeightedSample,
    surrogate: Surrogate,
    calibration: Calibration,
    generator: np.random.Generator,
) -> Evidence:
    """The evidence of a sample.

    Its error has five parts: the surrogate's own, inflated by what held-out draws show, what the
    surrogate does not exclude, where the edge of the support is, how far the estimate has moved of
    late, and the Monte Carlo error.
    """
    surrogate_sd = average_sd(surrogate, sample.equally_weighted(N_AVERAGED, generator))
    moved = np.subtract(calibration.recent, sample.log_evidence)
    parts = (
        surrogate_sd * math.sqrt(calibration.error_inflation),
        DOUBTED_SHARE * sample.curvature,
        sample.edge_sd,
        math.sqrt(float(moved @ moved) / max(1, len(moved))),
        sample.monte_carlo_sd,
    )
    return Evidence(
        log_evidence=sample.log_evidence,
        sd=math.hypot(*parts),
        corrected=True,
        pareto_k=sample.pareto_k,
        effective_samples=sample.effective_size,
        curvature=sample.curvature,
        inflation=calibration.inflation,
    )
