"""Which solution is returned, and whether it is sampled once more (Section 3.7).

q_t    variational posterior of iteration t        ELCBO   ELBO - beta_lcb sd (Eq. 8)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sparing.variational.mixture import GaussianMixture
from sparing.variational.normal_mixture import Mixture, unchanged
from sparing.vbmc.evidence import Doubt, Evidence, LowerBound, SurrogatePosterior
from sparing.vbmc.exploration import LookElsewhere, Trusting, believed_part
from sparing.vbmc.held_out import TrackRecord
from sparing.vbmc.hidden_modes import Known


@dataclass(frozen=True)
class SmallestError:
    """Without stability: the solution with the smallest error of the evidence among the last few.

    The ELCBO of a surrogate that was wrong may be the best there ever was.
    """

    n_recent: int = 5

    def choose(self, elcbo: Sequence[float], evidence_sds: Sequence[float]) -> int:
        """Index of the iteration to return."""
        recent = evidence_sds[-self.n_recent :]
        return len(elcbo) - len(recent) + int(np.argmin(recent))


@dataclass(frozen=True)
class BestBound:
    """Without stability: "a recent solution" (Section 3.7) with the best ELCBO."""

    fraction: float = 0.25  # of the iterations count as recent

    def choose(self, elcbo: Sequence[float], evidence_sds: Sequence[float]) -> int:
        """Index of the iteration to return."""
        n_recent = max(1, int(np.ceil(self.fraction * len(elcbo))))
        window = np.asarray(elcbo[-n_recent:])
        return len(elcbo) - n_recent + int(np.argmax(window))


@dataclass(frozen=True, eq=False)
class ThoroughAnswer:
    """The evidence and the posterior, and how much more of it nobody has seen."""

    evidence: Evidence
    mixture: Mixture
    doubt: Doubt


@dataclass(frozen=True)
class ThoroughSample:
    """The posterior of the last surrogate, sampled from everywhere with many more draws."""

    n_first: int = 2**14
    n_draws: int = 2**14
    n_components: int = 60
    monte_carlo_share: float = 0.25

    def answer(
        self,
        known: Known,
        mixture: GaussianMixture,
        record: TrackRecord,
        evidence: SurrogatePosterior | LowerBound,
        exploration: LookElsewhere | Trusting,
        generator: np.random.Generator,
    ) -> ThoroughAnswer | None:
        """The posterior and the evidence; mixture is q."""
        if not isinstance(evidence, SurrogatePosterior):
            return None
        inflation = evidence.calibration.calibration(record).inflation
        particles = exploration.particles(known, inflation, generator)
        elsewhere = believed_part(known, particles, generator) if len(particles) else None
        proposals = [known.posterior] + ([] if elsewhere is None else [elsewhere])
        thorough = replace(
            evidence,
            n_first=self.n_first,
            n_draws=self.n_draws,
            n_components=self.n_components,
            monte_carlo_share=self.monte_carlo_share,
        )
        found, posterior = thorough.sampled(
            mixture, known.surrogate, record, generator, proposals, known.support
        )
        final = replace(known, posterior=unchanged(posterior))
        doubt = exploration.doubt(final, particles, generator)
        return ThoroughAnswer(found, posterior, doubt)


@dataclass(frozen=True)
class LastFit:
    """The solution is returned as it is (the paper)."""

    def answer(
        self,
        known: Known,
        mixture: GaussianMixture,
        record: TrackRecord,
        evidence: SurrogatePosterior | LowerBound,
        exploration: LookElsewhere | Trusting,
        generator: np.random.Generator,
    ) -> ThoroughAnswer | None:
        """None: there is nothing more."""
        return None
