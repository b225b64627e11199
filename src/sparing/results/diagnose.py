"""Do several independent runs of the same problem agree, and which of them are to be dropped?

    l, s    log evidence of a run and its standard deviation

A run errs in two ways: it misses part of the posterior, and then its evidence is too low, or its
surrogate is wrong. So each run is judged against the one with the highest lower confidence bound
of the evidence, l - 3 s. That is the best guess, not the truth: when most runs disagree with it,
the verdict says so.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sparing.errors import SettingsError
from sparing.results.agreement import AgreementLimits, PairAgreement, pair_agreement
from sparing.results.result import Result

CONFIDENCE_SDS = 3.0  # as in the ELCBO (paper, Section 3.2)


class Verdict(enum.Enum):
    """What the runs say together."""

    AGREE = "all runs agree"
    MOST_AGREE = "most runs agree; drop the others"
    DISAGREE = "the runs disagree: no result can be trusted yet"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class RunJudgement:
    """One run, counted from 1: kept when there is no reason to drop it."""

    run: int
    log_evidence: float
    sd: float
    n_evaluations: int
    converged: bool
    reasons_to_drop: tuple[str, ...]

    @property
    def kept(self) -> bool:
        """Whether the run agrees with the best one."""
        return not self.reasons_to_drop


@dataclass(frozen=True)
class Diagnosis:
    """The agreement of several runs; ``best`` is the number of the one to use, from 1.

    >>> import sparing
    >>> problem = sparing.Problem(lambda x: -0.5 * float(x[0]) ** 2, -2, 2)
    >>> runs = [
    ...     sparing.infer(problem, seed=seed, max_evaluations=20, progress=False)
    ...     for seed in (1, 2)
    ... ]
    >>> diagnosis = sparing.diagnose(runs)
    >>> diagnosis.verdict
    <Verdict.AGREE: 'all runs agree'>
    >>> diagnosis.kept, diagnosis.dropped
    ((1, 2), ())
    >>> diagnosis.advice[0] == f"use run {diagnosis.best}"
    True
    """

    runs: tuple[RunJudgement, ...]
    pairs: tuple[PairAgreement, ...]
    best: int
    names: tuple[str, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        """Numbers of the runs that agree with the best one, itself included."""
        return tuple(judgement.run for judgement in self.runs if judgement.kept)

    @property
    def dropped(self) -> tuple[int, ...]:
        """Numbers of the runs that do not."""
        return tuple(judgement.run for judgement in self.runs if not judgement.kept)

    @property
    def verdict(self) -> Verdict:
        """What the runs say together."""
        if not self.dropped:
            return Verdict.AGREE
        enough = len(self.kept) > 1 and len(self.kept) > len(self.dropped)
        return Verdict.MOST_AGREE if enough else Verdict.DISAGREE

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do next."""
        texts = []
        if self.verdict is Verdict.DISAGREE:
            texts.append(
                "allow more evaluations and start more runs: a run with the highest evidence that "
                "stands alone has found what the others missed, or errs"
            )
        else:
            texts.append(f"use run {self.best}")
        if not any(judgement.converged for judgement in self.runs):
            texts.append("no run converged: allow more evaluations before relying on any of them")
        return tuple(texts)

    def __str__(self) -> str:
        lines = [f"{self.verdict} (best: run {self.best})", ""]
        lines.append(f"{'run':>3}  {'log evidence':>20}  {'evaluations':>11}  verdict")
        for judgement in self.runs:
            evidence = f"{judgement.log_evidence:z.3f} ± {judgement.sd:.3f}"
            word = "keep" if judgement.kept else "drop: " + "; ".join(judgement.reasons_to_drop)
            lines.append(
                f"{judgement.run:>3}  {evidence:>20}  {judgement.n_evaluations:>11}  {word}"
            )
        lines += ["", "runs   difference of log evidences  gsKL      MMTV"]
        for pair in self.pairs:
            difference = f"{pair.difference:z.3f} ± {pair.difference_sd:.3f}"
            numbers = f"{pair.divergence:<8.3g}  {pair.mmtv:.3f}"
            lines.append(f"{pair.first:>2}, {pair.second:<2} {difference:<27}  {numbers}")
        lines += ["", *(f"next: {text}" for text in self.advice)]
        return "\n".join(lines)


def diagnose(results: Sequence[Result], limits: AgreementLimits | None = None) -> Diagnosis:
    """Judge independent runs of one problem: do they agree, and which are to be dropped?

    Give two or more results of the same problem with different seeds (better: different starting
    points or plausible boxes as well). Runs that did not converge are dropped if any other did.

    >>> import sparing
    >>> problem = sparing.Problem(lambda x: -0.5 * float(x[0]) ** 2, -2, 2)
    >>> runs = [
    ...     sparing.infer(problem, seed=seed, max_evaluations=20, progress=False)
    ...     for seed in (1, 2, 3)
    ... ]
    >>> print(sparing.diagnose(runs).verdict)
    all runs agree
    """
    runs = tuple(results)
    _check(runs)
    limits = AgreementLimits() if limits is None else limits
    numbers = range(len(runs))
    pairs = {(i, j): pair_agreement(i, j, runs) for i, j in combinations(numbers, 2)}
    best = _best(runs)
    names = runs[0].problem.names
    judgements = []
    for i, run in enumerate(runs):
        reasons: list[str] = []
        if i != best:
            if runs[best].converged and not run.converged:
                reasons.append("did not converge")
            pair = pairs[min(i, best), max(i, best)]
            reasons += [
                f"against run {best + 1}: {text}" for text in pair.disagreements(names, limits)
            ]
        judgements.append(
            RunJudgement(
                run=i + 1,
                log_evidence=run.log_evidence,
                sd=run.log_evidence_sd,
                n_evaluations=run.n_evaluations,
                converged=run.converged,
                reasons_to_drop=tuple(reasons),
            )
        )
    return Diagnosis(tuple(judgements), tuple(pairs.values()), best + 1, names)


def _best(runs: Sequence[Result]) -> int:
    """The converged run, or the run if none has, with the highest l - 3 s."""
    bounds = [run.log_evidence - CONFIDENCE_SDS * run.log_evidence_sd for run in runs]
    ranks = [
        (run.converged, -np.inf if np.isnan(b) else b) for run, b in zip(runs, bounds, strict=True)
    ]
    return max(range(len(runs)), key=ranks.__getitem__)


def _check(runs: Sequence[Result]) -> None:
    """Refuse what is no set of independent runs of one problem; every fault at once."""
    faults = [
        f"result {i + 1} must be a sparing.Result, got {type(run).__name__}"
        for i, run in enumerate(runs)
        if not isinstance(run, Result)
    ]
    if len(runs) < 2:
        faults.append(f"give the results of two or more runs, got {len(runs)}")
    if not faults:
        faults = [
            f"result {i + 1} is of another problem: its {what} differ from those of result 1"
            for i, run in enumerate(runs)
            for what in _differences(runs[0], run)
        ]
    if not faults:
        faults = [
            f"results {i + 1} and {j + 1} evaluated the same points: they are one run. Give runs "
            "with different seeds"
            for i, j in combinations(range(len(runs)), 2)
            if _same_points(runs[i], runs[j])
        ]
    if faults:
        raise SettingsError(faults)


def _differences(first: Result, other: Result) -> list[str]:
    one, two = first.problem, other.problem
    if one.names != two.names:
        return ["parameters"]
    return [
        f"{side} bounds"
        for side in ("lower", "upper")
        if not np.array_equal(getattr(one, side), getattr(two, side))
    ]


def _same_points(first: Result, second: Result) -> bool:
    points = zip(first.evaluations, second.evaluations, strict=False)
    same_number = first.n_evaluations == second.n_evaluations
    return same_number and all(np.array_equal(a.x, b.x) for a, b in points)
