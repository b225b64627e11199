"""The parts of the variational fit; every constant names its origin beside its reader."""

from __future__ import annotations

from dataclasses import dataclass

from sparing.variational.adam import Adam
from sparing.variational.components import Growth, Pruning, RestoringGrowth
from sparing.variational.objective import NoPenalties, SoftPenalties
from sparing.variational.starts import RankByLowerBound, RankByMonteCarlo, Starts


@dataclass(frozen=True)
class VariationalSettings:
    """Where the fit starts, how it climbs, how many components it has, and what it reports."""

    starts: Starts = Starts()
    ranking: RankByLowerBound | RankByMonteCarlo = RankByLowerBound()
    penalties: SoftPenalties | NoPenalties = SoftPenalties()
    ascent: Adam = Adam()
    growth: RestoringGrowth | Growth = RestoringGrowth()
    pruning: Pruning = Pruning()
    # Draws per component for the ELBO at the end of an iteration (Section S1.1: 2^15), and for
    # comparing two mixtures with common random numbers.
    n_final_entropy_samples: int = 2**12
    n_comparison_samples: int = 512
    beta_lcb: float = 3.0  # risk sensitivity of the ELCBO, Eq. 8

    @classmethod
    def paper(cls) -> VariationalSettings:
        """The 2018 algorithm to the letter."""
        return cls(
            starts=Starts(data_fraction=0.0),
            ranking=RankByMonteCarlo(),
            penalties=NoPenalties(),
            ascent=Adam.paper(),
            growth=Growth(),
            n_final_entropy_samples=2**15,
        )
