"""The record of a run, as everything that describes a run reads it.

Summaries, pictures and the report are functions of a `RunRecord`; `sparing.result.Result` is one
with the calls a user makes on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparing.evaluation_log import Evaluation, Status
from sparing.evidence import Evidence
from sparing.posterior import Posterior
from sparing.problem import Problem
from sparing.settings import Settings
from sparing.state import IterationInfo
from sparing.stopping import StopReason


@dataclass(frozen=True, eq=False)
class RunRecord:
    """What a run found and how it went; the fields are described in `sparing.Result`."""

    problem: Problem
    posterior: Posterior
    elbo: float
    elbo_sd: float
    evidence: Evidence
    converged: bool
    stop_reason: StopReason
    evaluations: tuple[Evaluation, ...]
    history: tuple[IterationInfo, ...]
    warnings: tuple[str, ...]
    settings: Settings
    seed: int

    @property
    def log_evidence(self) -> float:
        """Best estimate of the log evidence (log marginal likelihood)."""
        return self.evidence.log_evidence

    @property
    def log_evidence_sd(self) -> float:
        """Standard deviation of ``log_evidence``."""
        return self.evidence.sd

    @property
    def n_evaluations(self) -> int:
        """How often the target was evaluated, failures included."""
        return len(self.evaluations)

    @property
    def failed(self) -> tuple[Evaluation, ...]:
        """The evaluations that gave no value; a density of zero is a value."""
        values = (Status.OK, Status.OUT_OF_SUPPORT)
        return tuple(entry for entry in self.evaluations if entry.status not in values)

    @property
    def library_seconds(self) -> float:
        """Seconds spent in the library itself, target time excluded."""
        return float(sum(info.seconds for info in self.history))

    @property
    def target_seconds(self) -> float:
        """Seconds spent in the target."""
        return float(np.nansum([entry.duration for entry in self.evaluations]))
