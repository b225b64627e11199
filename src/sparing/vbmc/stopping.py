"""When the solution is improving, stable, and finished (Sections 3.5 to 3.7, S2.4).

Notation
    rho_1, rho_2, rho_3   reliability features: change of the ELBO, its uncertainty, change of q
    rho(t)                reliability index, their mean; rho <~ 1 suggests a stable solution
    ELCBO                 ELBO - beta_lcb sd (Eq. 8)

Everything here reads the history as plain sequences of numbers, newest last.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Stopping:
    """Tolerances and window lengths of the stability rules."""

    tolerance_sd: float = 0.1  # Delta_SD, S2.4; `tolerance=` of infer
    tolerance_kl_factor: float = 0.01  # Delta_KL = 0.01 sqrt(D), S2.4
    tolerance_improvement: float = 0.01  # Delta_IMPRO, S2.4
    # Iterations (8 in the paper, Section 3.7 and S2.4). Each brings two or three held-out draws
    # that test the error, and the posterior has a test of its own, so fewer are enough:
    # docs/decisions/0006 and 0010.
    n_stable: int = 4
    n_unstable_allowed: int = 1  # "at most one non-stable iteration in-between", Section 3.7
    n_recent: int = 4  # iterations the ELCBO is compared with, Section 3.6

    @classmethod
    def paper(cls) -> Stopping:
        """Sections 3.7 and S2.4."""
        return cls(n_stable=8)


class StopReason(enum.Enum):
    """Why a run ended; the value is what the user reads.

    >>> result.stop_reason is sparing.StopReason.STABLE
    True
    >>> print(result.stop_reason)
    the solution has been stable for long enough
    """

    STABLE = "the solution has been stable for long enough"
    BUDGET = "the evaluation budget is used up"
    CALLBACK = "the callback asked to stop"
    INTERRUPTED = "it was interrupted"
    UNFINISHED = "the run has not ended yet"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Reliability:
    """The reliability features of one iteration (S2.4.1)."""

    change_of_elbo: float  # rho_1
    uncertainty_of_elbo: float  # rho_2
    change_of_posterior: float  # rho_3

    @classmethod
    def of(
        cls, gain: float, error: float, symmetric_kl: float, dimension: int, settings: Stopping
    ) -> Reliability:
        """From changes of the ELBO and of q, and the error of the evidence (the ELBO's sd)."""
        tolerance_kl = settings.tolerance_kl_factor * np.sqrt(dimension)
        sd = settings.tolerance_sd
        return cls(abs(gain) / sd, error / sd, float(symmetric_kl / tolerance_kl))

    def loosened(self, factor: float) -> Reliability:
        """The same with a tolerance of the ELBO, and of its error, that is larger by the factor."""
        return replace(
            self,
            change_of_elbo=self.change_of_elbo / factor,
            uncertainty_of_elbo=self.uncertainty_of_elbo / factor,
        )

    @property
    def index(self) -> float:
        """rho(t), the mean of the features."""
        return float(np.mean(astuple(self)))


def is_improving(elcbo: Sequence[float], settings: Stopping) -> bool:
    """Whether the last ELCBO is above those of the few iterations before (Section 3.6)."""
    recent = elcbo[-1 - settings.n_recent : -1]
    return len(recent) > 0 and elcbo[-1] > max(recent)


def is_stable(
    reliabilities: Sequence[Reliability | None],
    elcbo: Sequence[float],
    settings: Stopping,
) -> bool:
    """The three conditions of long-term stability (S2.4.2)."""
    n = settings.n_stable
    window = reliabilities[-n:]
    if len(window) < n or window[-1] is None:
        return False
    # (1) every feature of the current iteration is below 1
    if not all(feature < 1.0 for feature in astuple(window[-1])):
        return False
    # (2) the index stayed below 1, but for at most one iteration that is not the current one
    n_unstable = sum(item is None or not item.index < 1.0 for item in window)
    if n_unstable > settings.n_unstable_allowed or not window[-1].index < 1.0:
        return False
    # (3) the ELCBO is stationary
    return elcbo_slope(elcbo[-n:]) < settings.tolerance_improvement


def elcbo_slope(elcbo: Sequence[float]) -> float:
    """Least-squares slope of the ELCBO per iteration (S2.4.2, third condition)."""
    if len(elcbo) < 2:
        return float("inf")
    return float(np.polyfit(np.arange(len(elcbo)), np.asarray(elcbo), 1)[0])
