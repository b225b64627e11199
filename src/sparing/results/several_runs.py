"""What several independent runs of one problem say together.

Agreement of independent runs is the evidence that none of them missed something; the pooled run,
which was told what all of them evaluated, is the result to use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape

from sparing.results.agreement import Diagnosis, diagnose
from sparing.results.result import Result
from sparing.summary import html_summary
from sparing.summary.numbers import estimate
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

    >>> import sparing
    >>> problem = sparing.Problem(lambda x: -0.5 * float(x[0]) ** 2, -2, 2)
    >>> both = sparing.infer(problem, runs=2, seed=1, max_evaluations=40, progress=False)
    >>> both.agree, both.converged, both.interrupted
    (True, True, False)
    >>> print(both.verdict)
    All runs agree, and the pooled one has converged: use its result.
    >>> print(f"{both.result.log_evidence:.2f}")  # exact: log(2 pi) / 2 = 0.92
    0.92
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

        >>> import sparing
        >>> problem = sparing.Problem(lambda x: -0.5 * float(x[0]) ** 2, -2, 2)
        >>> both = sparing.infer(problem, runs=2, seed=1, max_evaluations=40, progress=False)
        >>> print(both.summary().splitlines()[0])
        All runs agree, and the pooled one has converged: use its result.
        """
        lines = [self.verdict, "", *self._table()]
        if self.diagnosis is not None:
            lines.append(_largest_differences(self.diagnosis))
        heading = "the pooled run" if self.pooled is not None else "the best run so far"
        return "\n".join([*lines, "", heading, "", self.result.summary()])

    def _table(self) -> list[str]:
        lines = [f"{'run':>6}  {'log evidence':>20}  {'evaluations':>11}"]
        for name, result, end, differences in self._rows():
            evidence = estimate(result.log_evidence, result.log_evidence_sd)
            lines.append(f"{name:>6}  {evidence:>20}  {result.n_evaluations:>11}  {end}")
            lines += [f"{'':>8}{difference}" for difference in differences]
        return lines

    def _rows(self) -> Iterator[tuple[str, Result, str, tuple[str, ...]]]:
        """(name, result, end, differences) of each run, the pooled one last."""
        for i, result in enumerate(self.results):
            reasons = () if self.diagnosis is None else self.diagnosis.runs[i].reasons_to_drop
            yield str(i + 1), result, _end(result), reasons
        if self.pooled is not None:
            yield POOLED, self.pooled, _end(self.pooled), self.pooled_disagreements

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
        header = ("run", "log evidence", "evaluations", "")
        rows = [
            (
                name,
                estimate(result.log_evidence, result.log_evidence_sd),
                result.n_evaluations,
                "; ".join((end, *differences)),
            )
            for name, result, end, differences in self._rows()
        ]
        table = "".join(_html_row(row, "td") for row in rows)
        return (
            f'<div class="sparing-runs"><p><b>{escape(self.verdict)}</b></p>'
            f"<table><thead>{_html_row(header, 'th')}</thead><tbody>{table}</tbody></table>"
            f"{html_summary(self.result)}</div>"
        )


def _end(result: Result) -> str:
    return "converged" if result.converged else "NOT converged"


def _html_row(cells: Sequence[object], tag: str) -> str:
    opening = f'<{tag} style="text-align:left;padding-right:1em">'
    return f"<tr>{''.join(f'{opening}{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"


def _largest_differences(diagnosis: Diagnosis) -> str:
    pairs = diagnosis.pairs
    evidence = max(pairs, key=lambda pair: abs(pair.difference))
    return (
        f"between two runs at most: log evidence {abs(evidence.difference):.3f} "
        f"± {evidence.difference_sd:.3f}, gsKL {max(pair.divergence for pair in pairs):.3g}, "
        f"MMTV {max(pair.mmtv for pair in pairs):.3f}"
    )
