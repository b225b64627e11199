"""What several independent runs of one problem say together.

Agreement of independent runs is the evidence that none of them missed something. The pooled run
was told what all of them evaluated; it is the result to use unless one of them has a better one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape

from sparing.readable_text import readable
from sparing.results.agreement import POOLED, Diagnosis, diagnose, table
from sparing.results.result import Result
from sparing.summary.checks import Light
from sparing.summary.render import html_summary, html_table
from sparing.summary.story import sentence, tell_story
from sparing.vbmc.stopping import StopReason

NEGLIGIBLE = 0.1  # errors below this share of the tolerance are not known well enough to compare


@dataclass(frozen=True, eq=False)
class SeveralRuns:
    """Independent runs of one problem, whether they agree, and the result to use.

    results   of the independent runs, in order; after an interruption, of those that
              had come far enough to have one
    pooled    of the run that was told all their evaluations; None when interrupted
              before it had begun
    seed      the one that the seeds of all runs were derived from

    >>> both = sparing.infer(problem, runs=2, seed=1, progress=False)
    >>> both.agree, both.converged, both.interrupted
    (True, True, False)
    >>> both.verdict.endswith(f"Use the result of {both.used}.")
    True
    >>> print(f"{both.result.log_evidence:.2f}")  # exact: log(2 pi 0.3 0.2) = -0.98
    -0.98
    >>> both.n_evaluations > sum(run.n_evaluations for run in both.results)
    True
    >>> both.diagnosis.dropped, both.diagnosis.pooled.differences
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
    def result(self) -> Result:
        """The result to use: the pooled one, unless a run has a better one.

        It is better if it converged and the pooled one did not, or if it agrees with the pooled one
        and has a smaller error of the log evidence that is not negligible (docs/decisions/0014).
        """
        if self.diagnosis is None:
            return self.results[0]
        best = self.results[self.diagnosis.best - 1]
        if self.pooled is None:
            return best
        if self.diagnosis.pooled and self.diagnosis.pooled.kept:
            alike = [self.pooled, *(self.results[i - 1] for i in self.diagnosis.kept)]
            least = NEGLIGIBLE * self.pooled.settings.stopping.tolerance_sd
            return min(alike, key=lambda run: (not run.converged, max(run.log_evidence_sd, least)))
        return best if best.converged and not self.pooled.converged else self.pooled

    @property
    def used(self) -> str:
        """The name of the run whose result is to be used."""
        result = self.result
        return POOLED if result is self.pooled else f"run {self.results.index(result) + 1}"

    @property
    def agree(self) -> bool:
        """Whether all independent runs agree, and the pooled run with them."""
        return self.diagnosis is not None and self.diagnosis.agree

    @property
    def converged(self) -> bool:
        """Whether all agree, the run to use has converged, and no check of it is red."""
        trusted = self.agree and not self.interrupted and self.result.converged
        return trusted and tell_story(self.result).light is not Light.RED

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
        """What the runs say, in what they differ, and what to do; no check contradicts it."""
        if self.interrupted or self.diagnosis is None:
            return "It was interrupted: what is here is provisional."
        story = tell_story(self.result)
        worries = "; ".join(c.finding for c in story.checks if c.light is not Light.GREEN)
        if self.converged:
            then = f"use the result of {self.used}"
            then += f", but look closer: {worries}" if worries else ""
        elif self.agree:
            then = f"do not rely on {self.used} yet: {worries}. Next: {story.next_steps[0]}"
        else:
            then = (
                f"nothing confirms {self.used}, the best there is: start again with another seed, "
                "and see whether both results agree (sparing.diagnose)"
            )
        return readable(f"{sentence(self.diagnosis.finding)} {sentence(then)}")

    def summary(self) -> str:
        """A readable account: every run, whether they agree, and the result to use.

        >>> both = sparing.infer(problem, runs=2, seed=1, progress=False)
        >>> both.summary().startswith("All runs agree, log evidences to 0.00")
        True
        """
        lines = [] if self.diagnosis is None else ["", *table(self.diagnosis.rows)]
        end = ["", f"the result of {self.used}", "", self.result.summary()]
        return "\n".join([self.verdict, *lines, *end])

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
        rows = [] if self.diagnosis is None else self.diagnosis.rows
        return (
            f'<div class="sparing-runs"><p><b>{escape(self.verdict)}</b></p>'
            f"{html_table(rows, ('run', 'log evidence', 'evaluations', ''))}"
            f"{html_summary(self.result)}</div>"
        )
