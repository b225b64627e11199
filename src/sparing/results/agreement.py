"""Do several independent runs of the same problem agree, and if not, in what do they differ?

l_i, s_i      log evidence of run i and its standard deviation
e_i           gsKL of its posterior to the truth, as the run itself expects it
gsKL          symmetrised KL divergence between normals with the runs' moments
TV_d          total variation between the marginals of parameter d, half their L1 distance
MMTV          its mean over the parameters

Two runs differ where a difference is neither negligible nor within what both report as their
errors, which add up: s_i^2 + s_j^2 and e_i + e_j. A run errs in two ways: it misses part of the
posterior, and then its evidence is too low, or its surrogate is wrong. So each run is judged
against the one with the highest lower confidence bound of the evidence, l - 3 s. That is the best
guess, not the truth: when most runs differ from it, the verdict says so. A run that did not
converge is not wrong for that: it is told beside.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sparing.errors import SettingsError
from sparing.problem.problem import Problem
from sparing.results.result import Result
from sparing.summary.numbers import estimate
from sparing.variational.divergence import gaussianised_symmetric_kl
from sparing.variational.posterior import Posterior, power_of_two

QUANTILES = 256  # per run and marginal, for the total variation
POOLED = "the pooled run"
CONFIDENCE_SDS = 3.0  # as in the ELCBO (paper, Section 3.2)


@dataclass(frozen=True)
class AgreementLimits:
    """How far two runs may differ and still agree.

    What is below the first four is negligible. They are what one run that has converged may be off
    by: 0.1 in the log evidence (paper, Section 4), and 0.02 D in gsKL, as if every mean were off by
    0.2 of its standard deviation, or every standard deviation by 15 % (docs/decisions/0014).

    >>> another = sparing.infer(problem, seed=2, progress=False)
    >>> limits = sparing.AgreementLimits(sd_ratio=1.05)
    >>> print(sparing.diagnose([result, another], limits).verdict)
    all runs agree
    """

    log_evidence: float = 0.1
    divergence: float = 0.02  # gsKL, for each parameter
    sd_ratio: float = 1.15  # of a parameter's two standard deviations, the larger to the smaller
    total_variation: float = 0.1  # of a marginal: nine tenths of the mass are common
    errors: float = 3.0  # and so many times what the two runs report as their errors is allowed


@dataclass(frozen=True)
class PairAgreement:
    """How far two runs are apart; ``first`` and ``second`` count runs from 1."""

    first: int
    second: int
    difference: float  # of the log evidences, first - second
    difference_sd: float
    divergence: float  # gsKL
    expected_divergence: float  # by what the two report as their errors
    sd_ratio: tuple[float, ...]  # one per parameter, at least 1
    total_variation: tuple[float, ...]  # TV_d, one per parameter

    @property
    def mmtv(self) -> float:
        """Mean total variation of the marginals."""
        return float(np.mean(self.total_variation))

    @property
    def sd_percent(self) -> float:
        """By how much the standard deviations of a parameter differ at most."""
        return 100.0 * (max(self.sd_ratio) - 1.0)

    def differences(self, names: Sequence[str], limits: AgreementLimits) -> tuple[str, ...]:
        """In which respects the two runs differ by more than the limits."""
        n, errors, expected = len(names), limits.errors, self.expected_divergence
        # Spread evenly over n means and n standard deviations, a gsKL of e moves each mean by
        # sqrt(e / n) of its sd and each log sd by sqrt(e / 2n); two normals whose means are delta
        # sds apart have a total variation of delta / sqrt(2 pi).
        shift = errors * math.sqrt(expected / n)
        i, j = int(np.argmax(self.sd_ratio)), int(np.argmax(self.total_variation))
        size, ratio, variation = abs(self.difference), self.sd_ratio[i], self.total_variation[j]
        close = {
            f"log evidence by {size:.3g} ± {self.difference_sd:.2g}": size
            <= max(limits.log_evidence, errors * self.difference_sd),
            f"moments by a gsKL of {self.divergence:.3g}": self.divergence
            <= max(limits.divergence * n, errors * expected),
            f"the standard deviation of {names[i]} by {100.0 * (ratio - 1.0):.3g} %": ratio
            <= max(limits.sd_ratio, math.exp(shift / math.sqrt(2.0))),
            f"the marginal of {names[j]} by a total variation of {variation:.2f}": variation
            <= max(limits.total_variation, shift / math.sqrt(2.0 * math.pi)),
        }
        return tuple(text for text, is_close in close.items() if not is_close)  # nor is NaN


class Verdict(enum.StrEnum):
    """What the runs say together."""

    AGREE = "all runs agree"
    MOST_AGREE = "most runs agree"
    DISAGREE = "the runs disagree"


@dataclass(frozen=True)
class RunJudgement:
    """One run beside the best: whether it converged, and in what it differs."""

    name: str
    log_evidence: float
    sd: float
    n_evaluations: int
    converged: bool
    differences: tuple[str, ...]

    @property
    def kept(self) -> bool:
        """Whether the run agrees with the best one."""
        return not self.differences


@dataclass(frozen=True)
class Diagnosis:
    """The agreement of several runs; ``best`` is the number of the one to use, from 1.

    ``pooled`` is the judgement of a run that was told what all of them evaluated, if there is one.

    >>> another = sparing.infer(problem, seed=2, progress=False)
    >>> diagnosis = sparing.diagnose([result, another])
    >>> diagnosis.verdict
    <Verdict.AGREE: 'all runs agree'>
    >>> diagnosis.kept, diagnosis.dropped, diagnosis.agree
    ((1, 2), (), True)
    >>> diagnosis.finding.startswith("all runs agree, log evidences to 0.00")
    True
    >>> diagnosis.advice[0] == f"use run {diagnosis.best}"
    True
    >>> diagnosis.rows[1][0]
    'run 2'
    """

    runs: tuple[RunJudgement, ...]
    pairs: tuple[PairAgreement, ...]
    best: int
    pooled: RunJudgement | None = None

    @property
    def kept(self) -> tuple[int, ...]:
        """Numbers of the runs that agree with the best one, itself included."""
        return tuple(i for i, judgement in enumerate(self.runs, start=1) if judgement.kept)

    @property
    def dropped(self) -> tuple[int, ...]:
        """Numbers of the runs that differ from it."""
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
    def finding(self) -> str:
        """The verdict with its reasons: how close runs are, which differ in what, and so on."""
        texts = [str(self.verdict)]
        if self.verdict is Verdict.AGREE:
            evidence = max(abs(pair.difference) for pair in self.pairs)
            percent = max(pair.sd_percent for pair in self.pairs)
            texts[0] += f", log evidences to {evidence:.2g} and standard deviations to "
            texts[0] += f"{percent:.2g} %"
        texts += [
            f"{run.name} differs from run {self.best}: {', '.join(run.differences)}"
            for run in self._judged
            if not run.kept
        ]
        texts += [f"{run.name} did not converge" for run in self._judged if not run.converged]
        return "; ".join(texts)

    @property
    def _judged(self) -> tuple[RunJudgement, ...]:
        return self.runs if self.pooled is None else (*self.runs, self.pooled)

    @property
    def rows(self) -> list[tuple[str, str, str, str]]:
        """Of a table of the runs, the pooled one last: name, log evidence, evaluations, verdict."""
        ends = {True: "converged, ", False: "NOT converged, "}
        return [
            (
                run.name,
                estimate(run.log_evidence, run.sd),
                str(run.n_evaluations),
                ends[run.converged] + ("agrees" if run.kept else "differs"),
            )
            for run in self._judged
        ]

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
        lines = [f"{self.finding} (best: run {self.best})", "", *table(self.rows)]
        lines += ["", "runs   difference of log evidences  sds       gsKL      MMTV"]
        for pair in self.pairs:
            difference = f"{pair.difference:z.3f} ± {pair.difference_sd:.3f}"
            numbers = f"{f'{pair.sd_percent:.2g} %':<8}  {pair.divergence:<8.3g}  {pair.mmtv:.3f}"
            lines.append(f"{pair.first:>2}, {pair.second:<2} {difference:<27}  {numbers}")
        lines += ["", *(f"next: {text}" for text in self.advice)]
        return "\n".join(lines)


def table(rows: Iterable[tuple[str, str, str, str]]) -> list[str]:
    """The lines of a table of runs."""
    head = ("", "log evidence", "evaluations", "")
    return [f"{a:<14}  {b:>20}  {c:>11}  {d}".rstrip() for a, b, c, d in (head, *rows)]


def diagnose(
    results: Sequence[Result],
    limits: AgreementLimits | None = None,
    *,
    pooled: Result | None = None,
) -> Diagnosis:
    """Judge independent runs of one problem: do they agree, and which of them differ in what?

    Give two or more results of the same problem with different seeds (better: different starting
    points or plausible boxes as well). The best of them, by which all are judged, has converged if
    any has. ``pooled`` is the result of a run that was told what all of them evaluated, as
    ``infer`` makes one with ``runs=``; it is judged against the best of them.

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

    def judgement(name: str, run: Result, pair: PairAgreement | None) -> RunJudgement:
        """Of a run that the pair compares with the best one; None for the best one itself."""
        return RunJudgement(
            name=name,
            log_evidence=run.log_evidence,
            sd=run.log_evidence_sd,
            n_evaluations=run.n_evaluations,
            converged=run.converged,
            differences=() if pair is None else pair.differences(names, limits),
        )

    judgements = tuple(
        judgement(f"run {i + 1}", run, pairs.get((min(i, best), max(i, best))))
        for i, run in enumerate(runs)
    )
    of_pooled = None
    if pooled is not None:
        of_pooled = judgement(POOLED, pooled, pair_agreement(best, len(runs), (*runs, pooled)))
    return Diagnosis(judgements, tuple(pairs.values()), best + 1, of_pooled)


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
    if one.fixed != two.fixed:
        return ["fixed parameters"]
    bounds = {"lower bounds": (one.lower, two.lower), "upper bounds": (one.upper, two.upper)}
    return [what for what, pair in bounds.items() if not np.array_equal(*pair)]


def _same_points(first: Result, second: Result) -> bool:
    one, two = ([entry.x for entry in run.evaluations] for run in (first, second))
    return np.array_equal(one, two)


def pair_agreement(i: int, j: int, runs: Sequence[Result]) -> PairAgreement:
    """Runs i and j, counted from 0, compared."""
    first, second = runs[i], runs[j]
    p, q = first.posterior, second.posterior
    units = power_of_two(p.sd[:, None])  # a variance may be beyond what a float can hold
    near = p.unwrapped(q.mean[None, :])[0] / units  # the same way round, where it is an angle
    _, covariance = q.moments_in(units)
    return PairAgreement(
        first=i + 1,
        second=j + 1,
        difference=first.log_evidence - second.log_evidence,
        difference_sd=math.hypot(first.log_evidence_sd, second.log_evidence_sd),
        divergence=gaussianised_symmetric_kl(*p.moments_in(units), near, covariance),
        expected_divergence=_expected_divergence(first) + _expected_divergence(second),
        sd_ratio=tuple(np.exp(np.abs(np.log(p.sd / q.sd))).tolist()),
        total_variation=marginal_total_variation(p, q),
    )


def _expected_divergence(run: Result) -> float:
    """e: none where the run makes no estimate of its error."""
    error = run.settings.accuracy.recent([info.posterior_error for info in run.history])
    return 0.0 if math.isnan(error) else error


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
