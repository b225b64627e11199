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
from sparing.numerics.arrays import Array
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


class Verdict(enum.Enum):
    """What the runs say together."""

    AGREE = "all runs agree"
    MOST_AGREE = "most runs agree; drop the others"
    DISAGREE = "the runs disagree: no result can be trusted yet"

    def __str__(self) -> str:
        return self.value


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
        return self._numbers(kept=True)

    @property
    def dropped(self) -> tuple[int, ...]:
        """Numbers of the runs that do not."""
        return self._numbers(kept=False)

    def _numbers(self, *, kept: bool) -> tuple[int, ...]:
        numbered = enumerate(self.runs, start=1)
        return tuple(number for number, judgement in numbered if judgement.kept is kept)

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
    pairs = {(i, j): pair_agreement(i, j, runs) for i, j in combinations(range(len(runs)), 2)}
    best = _best(runs)
    names = runs[0].problem.names
    judgements = []
    for i, run in enumerate(runs):
        reasons: list[str] = []
        if i != best:
            if runs[best].converged and not run.converged:
                reasons.append("did not converge")
            reasons += _against(best, pairs[min(i, best), max(i, best)], names, limits)
        judgements.append(_judgement(i + 1, run, reasons))
    pooled_judgement = None
    if pooled is not None:
        pair = pair_agreement(best, len(runs), (*runs, pooled))
        pooled_judgement = _judgement(None, pooled, _against(best, pair, names, limits))
    return Diagnosis(tuple(judgements), tuple(pairs.values()), best + 1, names, pooled_judgement)


def _against(
    best: int, pair: PairAgreement, names: Sequence[str], limits: AgreementLimits
) -> list[str]:
    return [f"against run {best + 1}: {text}" for text in pair.disagreements(names, limits)]


def _judgement(number: int | None, run: Result, reasons_to_drop: Sequence[str]) -> RunJudgement:
    return RunJudgement(
        run=number,
        log_evidence=run.log_evidence,
        sd=run.log_evidence_sd,
        n_evaluations=run.n_evaluations,
        converged=run.converged,
        reasons_to_drop=tuple(reasons_to_drop),
    )


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


def pair_agreement(i: int, j: int, runs: Sequence[Result]) -> PairAgreement:
    """Runs i and j, counted from 0, compared."""
    first, second = runs[i], runs[j]
    return PairAgreement(
        first=i + 1,
        second=j + 1,
        difference=first.log_evidence - second.log_evidence,
        difference_sd=math.hypot(first.log_evidence_sd, second.log_evidence_sd),
        divergence=gaussianised_symmetric_kl(
            first.posterior.mean,
            first.posterior.covariance,
            second.posterior.mean,
            second.posterior.covariance,
        ),
        total_variation=marginal_total_variation(first.posterior, second.posterior),
    )


def marginal_total_variation(first: Posterior, second: Posterior) -> tuple[float, ...]:
    """TV_d of two posteriors, for each parameter.

    With p and q the two marginals, it is the mean of |p - q| / (p + q) over (p + q) / 2, an even
    sample of which are the quantiles of both. The ratio is bounded and does not depend on the
    coordinate, so narrow, distant and bounded marginals need no care.
    """
    levels = (np.arange(QUANTILES) + 0.5) / QUANTILES
    points = np.concatenate([first.quantile(levels), second.quantile(levels)])
    return tuple(
        _mean_ratio(first.marginal_density(d, column), second.marginal_density(d, column))
        for d, column in enumerate(points.T)
    )


def _mean_ratio(p: Array, q: Array) -> float:
    total = p + q
    ratio = np.divide(np.abs(p - q), total, out=np.zeros_like(total), where=total > 0.0)
    return float(np.mean(ratio))
