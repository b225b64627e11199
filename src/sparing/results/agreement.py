"""Do several independent runs of the same problem agree, and which of them are to be dropped?

l_i, s_i      log evidence of run i and its standard deviation
z             |l_i - l_j| / sqrt(s_i^2 + s_j^2)
gsKL          symmetrised KL divergence between normals with the runs' moments
TV_d          total variation between the marginals of parameter d, half their L1 distance
MMTV          its mean over the parameters

A run errs in two ways: it misses part of the posterior, and then its evidence is too low, or its
surrogate is wrong. So each run is judged against the one with the highest lower confidence bound
of the evidence, l - 3 s. That is the best guess, not the truth: when most runs disagree with it,
the verdict says so.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sparing.errors import SettingsError
from sparing.problem.problem import Problem
from sparing.results.result import Result
from sparing.variational.divergence import gaussianised_symmetric_kl
from sparing.variational.posterior import Posterior

QUANTILES = 256  # per run and marginal, for the total variation
CONFIDENCE_SDS = 3.0  # as in the ELCBO (paper, Section 3.2)


@dataclass(frozen=True)
class AgreementLimits:
    """How far two runs may differ and still agree.

    >>> another = sparing.infer(problem, seed=2, progress=False)
    >>> limits = sparing.AgreementLimits(total_variation=0.1)
    >>> print(sparing.diagnose([result, another], limits).verdict)
    all runs agree
    """

    # Errors of the evidence up to 0.1 are negligible (paper, Section 4), however small the sds.
    negligible_difference: float = 0.1
    evidence_sds: float = 3.0  # exceeded by 3 in 1,000 pairs of sound runs
    divergence: float = 1.0  # gsKL below one is desirable (paper, Figure 2)
    total_variation: float = 0.2  # of a marginal: four fifths of the mass are common


@dataclass(frozen=True)
class PairAgreement:
    """How far two runs are apart; ``first`` and ``second`` count runs from 1."""

    first: int
    second: int
    difference: float  # of the log evidences, first - second
    difference_sd: float
    divergence: float  # gsKL
    total_variation: tuple[float, ...]  # TV_d, one per parameter

    @property
    def mmtv(self) -> float:
        """Mean total variation of the marginals."""
        return float(np.mean(self.total_variation))

    @property
    def difference_in_sds(self) -> float:
        """z, the difference of the log evidences in units of its sd."""
        if self.difference == 0.0:
            return 0.0
        return abs(self.difference) / self.difference_sd if self.difference_sd > 0.0 else math.inf

    def disagreements(self, names: Sequence[str], limits: AgreementLimits) -> tuple[str, ...]:
        """In which respects the two runs differ by more than the limits."""
        texts = []
        size, sds = abs(self.difference), self.difference_in_sds
        # Not "size > limit": a difference that is not a number is no agreement.
        if not (size <= limits.negligible_difference or sds <= limits.evidence_sds):
            texts.append(f"log evidences differ by {size:.3g}, {sds:.3g} times the error")
        if not self.divergence <= limits.divergence:
            texts.append(f"moments differ: gsKL {self.divergence:.3g}")
        worst = int(np.argmax(self.total_variation))
        if not self.total_variation[worst] <= limits.total_variation:
            texts.append(
                f"marginals of {names[worst]!r} differ: total variation "
                f"{self.total_variation[worst]:.2f}"
            )
        return tuple(texts)


class Verdict(enum.StrEnum):
    """What the runs say together."""

    AGREE = "all runs agree"
    MOST_AGREE = "most runs agree; drop the others"
    DISAGREE = "the runs disagree: no result can be trusted yet"


@dataclass(frozen=True)
class RunJudgement:
    """One run: kept when there is no reason to drop it."""

    run: int | None  # counted from 1; None for the pooled one
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

    ``pooled`` is the judgement of a run that was told what all of them evaluated, if there is one.

    >>> another = sparing.infer(problem, seed=2, progress=False)
    >>> diagnosis = sparing.diagnose([result, another])
    >>> diagnosis.verdict
    <Verdict.AGREE: 'all runs agree'>
    >>> diagnosis.kept, diagnosis.dropped
    ((1, 2), ())
    >>> diagnosis.advice[0] == f"use run {diagnosis.best}"
    True
    >>> diagnosis.agree, diagnosis.pooled_verdict
    (True, '')
    """

    runs: tuple[RunJudgement, ...]
    pairs: tuple[PairAgreement, ...]
    best: int
    names: tuple[str, ...]
    pooled: RunJudgement | None = None

    @property
    def kept(self) -> tuple[int, ...]:
        """Numbers of the runs that agree with the best one, itself included."""
        return tuple(i for i, judgement in enumerate(self.runs, start=1) if judgement.kept)

    @property
    def dropped(self) -> tuple[int, ...]:
        """Numbers of the runs that do not."""
        return tuple(i for i, judgement in enumerate(self.runs, start=1) if not judgement.kept)

    @property
    def verdict(self) -> Verdict:
        """What the runs say together."""
        if not self.dropped:
            return Verdict.AGREE
        enough = len(self.kept) > 1 and len(self.kept) > len(self.dropped)
        return Verdict.MOST_AGREE if enough else Verdict.DISAGREE

    @property
    def agree(self) -> bool:
        """Whether all runs agree, and the pooled one with them if there is one."""
        return self.verdict is Verdict.AGREE and (self.pooled is None or self.pooled.kept)

    @property
    def pooled_verdict(self) -> str:
        """What to make of the pooled run, in a sentence or two; empty without one."""
        if self.pooled is None:
            return ""
        trusted = self.pooled.kept and self.pooled.converged
        if trusted and self.verdict is Verdict.MOST_AGREE:
            return (
                f"Most runs agree, and the pooled one with them, which knows what all have found; "
                f"not so run {', '.join(map(str, self.dropped))}. To be sure, start again with "
                "another seed, and see whether both pooled results agree (sparing.diagnose)."
            )
        if not self.agree:
            faults = [] if self.verdict is Verdict.AGREE else [str(self.verdict)]
            faults += [f"pooled run {reason}" for reason in self.pooled.reasons_to_drop]
            return (
                f"Do not rely on this result yet: {'; '.join(faults)}. The pooled run "
                "knows all that any run has found, but nothing confirms it: start again with "
                "another seed, and see whether both pooled results agree (sparing.diagnose)."
            )
        if not trusted:
            return "All runs agree, but the pooled one did not converge: allow more evaluations."
        return "All runs agree, and the pooled one has converged: use its result."

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do next."""
        texts = [f"use run {self.best}"]
        if self.verdict is Verdict.DISAGREE:
            texts = [
                "allow more evaluations and start more runs: a run with the highest evidence that "
                "stands alone has found what the others missed, or errs"
            ]
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


def diagnose(
    results: Sequence[Result],
    limits: AgreementLimits | None = None,
    *,
    pooled: Result | None = None,
) -> Diagnosis:
    """Judge independent runs of one problem: do they agree, and which are to be dropped?

    Give two or more results of the same problem with different seeds (better: different starting
    points or plausible boxes as well). Runs that did not converge are dropped if any other did.
    ``pooled`` is the result of a run that was told what all of them evaluated, as ``infer`` makes
    one with ``runs=``; it is judged against the best of them.

    >>> others = [sparing.infer(problem, seed=seed, progress=False) for seed in (2, 3)]
    >>> print(sparing.diagnose([result, *others]).verdict)
    all runs agree
    """
    runs = tuple(results)
    _check(runs)
    limits = AgreementLimits() if limits is None else limits
    pairs = {(i, j): pair_agreement(i, j, runs) for i, j in combinations(range(len(runs)), 2)}
    best = _best(runs)
    names = runs[0].problem.names

    def judgement(number: int | None, run: Result, pair: PairAgreement | None) -> RunJudgement:
        """Of a run that the pair compares with the best one; None for the best one itself."""
        late = number is not None and runs[best].converged and not run.converged
        reasons = ["did not converge"] if late else []
        if pair is not None:
            texts = pair.disagreements(names, limits)
            reasons += [f"against run {best + 1}: {text}" for text in texts]
        return RunJudgement(
            run=number,
            log_evidence=run.log_evidence,
            sd=run.log_evidence_sd,
            n_evaluations=run.n_evaluations,
            converged=run.converged,
            reasons_to_drop=tuple(reasons),
        )

    judgements = tuple(
        judgement(i + 1, run, pairs.get((min(i, best), max(i, best)))) for i, run in enumerate(runs)
    )
    of_pooled = None
    if pooled is not None:
        of_pooled = judgement(None, pooled, pair_agreement(best, len(runs), (*runs, pooled)))
    return Diagnosis(judgements, tuple(pairs.values()), best + 1, names, of_pooled)


def _best(runs: Sequence[Result]) -> int:
    """The converged run, or the run if none has, with the highest l - 3 s."""

    def rank(i: int) -> tuple[bool, float]:
        bound = runs[i].log_evidence - CONFIDENCE_SDS * runs[i].log_evidence_sd
        return runs[i].converged, -math.inf if math.isnan(bound) else bound

    return max(range(len(runs)), key=rank)


def _check(runs: Sequence[Result]) -> None:
    """Refuse what is no set of independent runs of one problem; every fault at once."""
    faults = [
        f"result {i + 1} must be a sparing.Result, got {type(run).__name__}"
        for i, run in enumerate(runs)
        if not isinstance(run, Result)
    ]
    if len(runs) < 2:
        faults.append(f"give the results of two or more runs, got {len(runs)}")
    faults = faults or [
        f"result {i + 1} is of another problem: its {what} differ from those of result 1"
        for i, run in enumerate(runs)
        for what in _differences(runs[0].problem, run.problem)
    ]
    faults = faults or [
        f"results {i + 1} and {j + 1} evaluated the same points: they are one run. Give runs "
        "with different seeds"
        for i, j in combinations(range(len(runs)), 2)
        if _same_points(runs[i], runs[j])
    ]
    if faults:
        raise SettingsError(faults)


def _differences(one: Problem, two: Problem) -> list[str]:
    if one.names != two.names:
        return ["parameters"]
    bounds = {"lower bounds": (one.lower, two.lower), "upper bounds": (one.upper, two.upper)}
    return [what for what, pair in bounds.items() if not np.array_equal(*pair)]


def _same_points(first: Result, second: Result) -> bool:
    one, two = ([entry.x for entry in run.evaluations] for run in (first, second))
    return np.array_equal(one, two)


def pair_agreement(i: int, j: int, runs: Sequence[Result]) -> PairAgreement:
    """Runs i and j, counted from 0, compared."""
    first, second = runs[i], runs[j]
    p, q = first.posterior, second.posterior
    return PairAgreement(
        first=i + 1,
        second=j + 1,
        difference=first.log_evidence - second.log_evidence,
        difference_sd=math.hypot(first.log_evidence_sd, second.log_evidence_sd),
        divergence=gaussianised_symmetric_kl(p.mean, p.covariance, q.mean, q.covariance),
        total_variation=marginal_total_variation(p, q),
    )


def marginal_total_variation(first: Posterior, second: Posterior) -> tuple[float, ...]:
    """TV_d of two posteriors, for each parameter.

    With p and q the two marginals, it is the mean of |p - q| / (p + q) over (p + q) / 2, an even
    sample of which are the quantiles of both. The ratio is bounded and does not depend on the
    coordinate, so narrow, distant and bounded marginals need no care.
    """
    levels = (np.arange(QUANTILES) + 0.5) / QUANTILES
    points = np.concatenate([first.quantile(levels), second.quantile(levels)])
    distances = []
    for d, column in enumerate(points.T):
        p, q = first.marginal_density(d, column), second.marginal_density(d, column)
        ratio = np.divide(np.abs(p - q), p + q, out=np.zeros_like(p), where=p + q > 0.0)
        distances.append(float(np.mean(ratio)))
    return tuple(distances)
