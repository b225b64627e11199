"""Which solution is returned, and whether it is fitted once more (Section 3.7).

q_t    variational posterior of iteration t        ELCBO   ELBO - beta_lcb sd (Eq. 8)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


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


@dataclass(frozen=True)
class RicherFit:
    """A last variational fit with more components, kept when it does not hurt.

    Fifty in the strongest peer; since the posterior is corrected by importance weights, twenty give
    the same errors in less time (docs/decisions/0010).
    """

    n_components: int = 20

    def n_final(self, n_components: int) -> int | None:
        """Components of the last fit, given those of the solution."""
        return max(self.n_components, n_components)


@dataclass(frozen=True)
class LastFit:
    """The solution is returned as it is (the paper)."""

    def n_final(self, n_components: int) -> int | None:
        """None: there is no further fit."""
        return None
