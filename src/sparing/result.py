"""What a run hands over."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from sparing.errors import MissingExtraError
from sparing.run_record import RunRecord
from sparing.serialisation.result_writer import save_result
from sparing.summary import html_summary, text_summary

if TYPE_CHECKING:
    import arviz


@dataclass(frozen=True, eq=False)
class Result(RunRecord):
    """Posterior, evidence and the record of the run.

    ``log_evidence`` is the best estimate, ``elbo`` the paper's lower bound; both with a standard
    deviation. ``evaluations`` are all evaluations in order, ``history`` one row per iteration.
    """

    def summary(self) -> str:
        """A readable account: estimates, how it stopped, what to worry about, what to do next."""
        return text_summary(self)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return (
            f"Result(log_evidence={self.log_evidence:.4f} ± {self.log_evidence_sd:.4f}, "
            f"n_evaluations={self.n_evaluations}, converged={self.converged})"
        )

    def _repr_html_(self) -> str:
        """The summary as notebooks show it."""
        return html_summary(self)

    def report(
        self,
        path: str | PathLike[str],
        *,
        title: str = "Inference report",
        reference: ArrayLike | None = None,
    ) -> Path:
        """Write one HTML file that needs nothing else: numbers, checks, pictures, settings.

        ``reference`` (m, D) are samples to compare with, such as those of a long MCMC run; the
        posterior's picture shows them in outline. Needs ``sparing[report]``.
        """
        from sparing.report import write_report

        return write_report(self, path, title=title, reference=reference)

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
