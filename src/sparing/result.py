"""What a run hands over."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from sparing.errors import MissingExtraError
from sparing.evaluation_log import Evaluation, Status
from sparing.evidence import Evidence
from sparing.posterior import Posterior
from sparing.problem import Problem
from sparing.serialisation.result_writer import save_result
from sparing.settings import Settings
from sparing.state import IterationInfo
from sparing.stopping import StopReason

if TYPE_CHECKING:
    import arviz


@dataclass(frozen=True, eq=False)
class Result:
    """Posterior, evidence and the record of the run.

    ``log_evidence`` is the best estimate, ``elbo`` the paper's lower bound; both with a standard
    deviation. ``evaluations`` are all evaluations in order, ``history`` one row per iteration.
    """

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
    def library_seconds(self) -> float:
        """Seconds spent in the library itself, target time excluded."""
        return float(sum(info.seconds for info in self.history))

    @property
    def target_seconds(self) -> float:
        """Seconds spent in the target."""
        return float(np.nansum([entry.duration for entry in self.evaluations]))

    def summary(self) -> str:
        """A readable account of the result."""
        n_failed = sum(entry.status is Status.FAILED for entry in self.evaluations)
        failed = f", {n_failed} failed" if n_failed else ""
        lines = [
            f"log evidence  {self.log_evidence:.3f} ± {self.log_evidence_sd:.3f}"
            f"   (lower bound {self.elbo:.3f} ± {self.elbo_sd:.3f})",
            f"evaluations   {self.n_evaluations}{failed}"
            f"   (library {self.library_seconds:.1f} s, target {self.target_seconds:.1f} s)",
            f"stopped       {self.stop_reason}" + ("" if self.converged else "; NOT converged"),
            "",
        ]
        low, high = self.posterior.quantile([0.025, 0.975])
        width = max([9, *(len(name) for name in self.posterior.names)])
        lines.append(f"{'parameter':<{width}}  {'mean':>12}  {'sd':>12}  95 % interval")
        moments = zip(
            self.posterior.names, self.posterior.mean, self.posterior.sd, low, high, strict=True
        )
        lines += [
            f"{name:<{width}}  {mean:>12.5g}  {sd:>12.5g}  [{left:.5g}, {right:.5g}]"
            for name, mean, sd, left, right in moments
        ]
        lines += [f"warning: {text}" for text in self.warnings]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return (
            f"Result(log_evidence={self.log_evidence:.4f} ± {self.log_evidence_sd:.4f}, "
            f"n_evaluations={self.n_evaluations}, converged={self.converged})"
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything but the log density to one file; ``sparing.load`` reads it back."""
        save_result(self, path)

    def to_arviz(self, n: int = 4000, seed: int = 0) -> arviz.InferenceData:
        """Posterior draws as ArviZ InferenceData, the evaluations in their own group."""
        try:
            import arviz
        except ImportError as problem:
            raise MissingExtraError("to_arviz()", "arviz") from problem
        draws = self.posterior.sample(n, seed=seed)
        posterior: dict[str, Any] = {
            name: draws[None, :, index] for index, name in enumerate(self.posterior.names)
        }
        return arviz.from_dict(
            posterior=posterior,
            sample_stats={"lp": self.posterior.log_density(draws)[None, :]},
            attrs={
                "log_evidence": self.log_evidence,
                "log_evidence_sd": self.log_evidence_sd,
                "converged": int(self.converged),
            },
        )
