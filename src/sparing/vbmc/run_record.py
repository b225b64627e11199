"""The record of a run, as everything that describes a run reads it.

Summaries, pictures and the report are functions of a `RunRecord`; `sparing.Result` is one
with the calls a user makes on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sparing.numerics.arrays import Array
from sparing.problem.evaluations import Evaluation
from sparing.problem.problem import Problem
from sparing.variational.posterior import Posterior
from sparing.vbmc.evidence import Evidence
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import IterationInfo, TrainedSurrogate
from sparing.vbmc.stopping import StopReason

N_DERIVED = 2048  # draws behind the numbers of a derived quantity


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
    # The last surrogate; None in a file of a release that did not keep it.
    surrogate: TrainedSurrogate | None = None
    # Of a file, which does not hold the function.
    stored_derived: Mapping[str, Array] | None = None

    @cached_property
    def derived(self) -> dict[str, Array]:
        """What the problem derives from the parameters, at up to 2048 even draws: (m,) by name.

        They are those of ``posterior.even_sample(2048)``. TargetError where the function fails.

        >>> area = sparing.Problem(
        ...     log_density, [0, -1], [2, 1], derived=lambda x: {"product": x[0] * x[1]}
        ... )
        >>> found = sparing.infer(area, seed=1, max_evaluations=20, progress=False)
        >>> round(float(found.derived["product"].mean()), 1)
        -0.6
        """
        if self.problem.derived is None:
            return dict(self.stored_derived or {})
        return self.problem.derived.values(self.posterior.even_sample(N_DERIVED))

    @property
    def log_evidence(self) -> float:
        """Best estimate of the log evidence (log marginal likelihood).

        >>> round(result.log_evidence, 1)
        -1.0
        """
        return self.evidence.log_evidence

    @property
    def log_evidence_sd(self) -> float:
        """Standard deviation of ``log_evidence``.

        >>> result.log_evidence_sd < 0.1
        True
        """
        return self.evidence.sd

    @property
    def n_evaluations(self) -> int:
        """How often the target was evaluated, failures included.

        >>> result.n_evaluations == len(result.evaluations)
        True
        """
        return len(self.evaluations)

    @property
    def failed(self) -> tuple[Evaluation, ...]:
        """The evaluations that gave no value; a density of zero is a value.

        >>> [entry.message for entry in result.failed]
        []
        """
        return tuple(entry for entry in self.evaluations if entry.failed)

    @property
    def library_seconds(self) -> float:
        """Seconds spent in the library itself, target time excluded.

        >>> result.library_seconds > result.target_seconds  # the target here takes no time
        True
        """
        return float(sum(info.seconds for info in self.history))

    @property
    def target_seconds(self) -> float:
        """Seconds spent in the target.

        >>> f"{result.target_seconds / result.n_evaluations:.1f} s per evaluation"
        '0.0 s per evaluation'
        """
        return float(np.nansum([entry.duration for entry in self.evaluations]))
