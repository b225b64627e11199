"""What several independent runs of one problem say together.

Agreement of independent runs is the evidence that none of them missed something; the pooled run,
which was told what all of them evaluated, is the result to use.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html import escape

from sparing.results.agreement import Diagnosis, diagnose
from sparing.results.result import Result
from sparing.summary.numbers import estimate
from sparing.summary.render import html_summary, html_table
from sparing.vbmc.stopping import StopReason

POOLED = "pooled"


@dataclass(frozen=True, eq=False)
class SeveralRuns:
    """Independent runs of one problem, whether they agree, and the pooled result.

    results   of the independent runs, in order; after an interruption, of those that
              had come far enough to have one
    pooled    of the run that was told all their evaluations; None when interrupted
              before it had begun
    seed      the one that the seeds of all runs were derived from

    >>> both = sparing.infer(problem, runs=2, seed=1, progress=False)
    >>> both.agree, both.converged, both.interrupted
    (True, True, False)
    >>> print(both.verdict)
    All runs agree, and the pooled one has converged: use its result.
    >>> print(f"{both.result.log_evidence:.2f}")  # exact: log(2 pi 0.3 0.2) = -0.98
    -0.98
    >>> both.n_evaluations > sum(run.n_evaluations for run in both.results)
    True
    >>> both.diagnosis.dropped, both.pooled_disagreements
    ((), ())
    """

    results: tuple[Result, ...]
    pooled: Result | None
    seed: int

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """Whether the runs agree, the pooled one included; None with fewer than two results."""
        return diagnose(self.results, pooled=self.pooled) if len(self.results) > 1 else None

    @property
    def pooled_disagreements(self) -> tuple[str, ...]:
        """In which respects the pooled run differs from the best independent one."""
        judgement = None if self.diagnosis is None else self.diagnosis.pooled
        return () if judgement is None else judgement.reasons_to_drop

    @property
    def result(self) -> Result:
        """The result to use: the pooled one; without it, that of the best independent run."""
        if self.pooled is not None:
            return self.pooled
        return self.results[0 if self.diagnosis is None else self.diagnosis.best - 1]

    @property
    def agree(self) -> bool:
        """Whether all independent runs agree, and the pooled run with them."""
        return self.diagnosis is not None and self.diagnosis.agree

    @property
    def converged(self) -> bool:
        """Whether the runs agree and the pooled one has converged."""
        return self.agree and self.pooled is not None and self.pooled.converged

    @property
    def interrupted(self) -> bool:
        """Whether somebody ended it before its end."""
        return self.pooled is None or self.pooled.stop_reason is StopReason.INTERRUPTED

    @property
    def n_evaluations(self) -> int:
        """How often the target was evaluated, over all runs."""
        if self.pooled is not None:
            return self.pooled.n_evaluations
        return sum(result.n_evaluations for result in self.results)

    @property
    def verdict(self) -> str:
        """What to make of it, in a sentence or two."""
        if self.interrupted or self.diagnosis is None:
            return "It was interrupted: what is here is provisional."
        return self.diagnosis.pooled_verdict

    def summary(self) -> str:
        """A readable account: every run, whether they agree, and the result to use.

        >>> both = sparing.infer(problem, runs=2, seed=1, progress=False)
        >>> print(both.summary().splitlines()[0])
        All runs agree, and the pooled one has converged: use its result.
        """
        lines = [self.verdict, "", f"{'run':>6}  {'log evidence':>20}  {'evaluations':>11}"]
        for name, evidence, n, (end, *differences) in self._rows():
            lines.append(f"{name:>6}  {evidence:>20}  {n:>11}  {end}")
            lines += [f"{'':>8}{difference}" for difference in differences]
        if self.diagnosis is not None:
            lines.append(_largest_differences(self.diagnosis))
        heading = "the pooled run" if self.pooled is not None else "the best run so far"
        return "\n".join([*lines, "", heading, "", self.result.summary()])

    def _rows(self) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
        """Name, log evidence, evaluations, (end, differences) of each run, the pooled one last."""
        runs = {str(i): result for i, result in enumerate(self.results, start=1)}
        judgements = [] if self.diagnosis is None else self.diagnosis.runs
        reasons = [judgement.reasons_to_drop for judgement in judgements] or [()] * len(runs)
        if self.pooled is not None:
            runs[POOLED] = self.pooled
            reasons.append(self.pooled_disagreements)
        for (name, run), differences in zip(runs.items(), reasons, strict=True):
            evidence = estimate(run.log_evidence, run.log_evidence_sd)
            end = "converged" if run.converged else "NOT converged"
            yield name, evidence, str(run.n_evaluations), (end, *differences)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return (
            f"SeveralRuns({len(self.results)} runs, "
            f"log_evidence={self.result.log_evidence:.4f} ± {self.result.log_evidence_sd:.4f}, "
            f"n_evaluations={self.n_evaluations}, converged={self.converged})"
        )

    def _repr_html_(self) -> str:
        """The summary as notebooks show it."""
        rows = [(*numbers, escape("; ".join(end))) for *numbers, end in self._rows()]
        return (
            f'<div class="sparing-runs"><p><b>{escape(self.verdict)}</b></p>'
            f"{html_table(rows, ('run', 'log evidence', 'evaluations', ''))}"
            f"{html_summary(self.result)}</div>"
        )


def _largest_differences(diagnosis: Diagnosis) -> str:
    pairs = diagnosis.pairs
    evidence = max(pairs, key=lambda pair: abs(pair.difference))
    return (
        f"between two runs at most: log evidence {abs(evidence.difference):.3f} "
        f"± {evidence.difference_sd:.3f}, gsKL {max(pair.divergence for pair in pairs):.3g}, "
        f"MMTV {max(pair.mmtv for pair in pairs):.3f}"
    )
