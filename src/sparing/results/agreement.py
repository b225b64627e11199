"""How far two runs of the same problem are apart.

l_i, s_i      log evidence of run i and its standard deviation
z             |l_i - l_j| / sqrt(s_i^2 + s_j^2)
gsKL          symmetrised KL divergence between normals with the runs' moments
TV_d          total variation between the marginals of parameter d, half their L1 distance
MMTV          its mean over the parameters
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparing.numerics.arrays import Array
from sparing.results.result import Result
from sparing.variational.divergence import gaussianised_symmetric_kl
from sparing.variational.posterior import Posterior

QUANTILES = 256  # per run and marginal, for the total variation


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
