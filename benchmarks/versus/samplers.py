"""How many evaluations MCMC or nested sampling would need for the errors of another method.

Both are Monte Carlo: the error of the log evidence falls as N^(-1/2) with the number N of
evaluations (live points, for nested sampling), and gsKL, quadratic in the errors of the moments,
as N^(-1). Where a sampler's runs did not reach an error, the number is extrapolated so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from benchmarks.versus.figures import NEGLIGIBLE, evaluations_needed
from benchmarks.versus.runs import Group

LML_RATE, GSKL_RATE = 0.5, 1.0


@dataclass(frozen=True)
class Need:
    """Evaluations to reach an error; NaN when the sampler does not estimate the quantity."""

    evaluations: float
    extrapolated: bool


@dataclass(frozen=True)
class SamplerNeed:
    """What a sampler needs for the final median errors of a method on one problem."""

    sampler: Group
    lml: Need
    gskl: Need


def sampler_need(method: Group, sampler: Group) -> SamplerNeed:
    """For the method's errors, or NEGLIGIBLE where they are smaller."""
    targets = np.maximum(method.errors, NEGLIGIBLE)
    measured = evaluations_needed(sampler, targets)
    columns = zip(measured, targets, sampler.errors, (LML_RATE, GSKL_RATE), strict=True)
    lml, gskl = (
        Need(float(needed), extrapolated=False)
        if math.isfinite(needed)
        else Need(extrapolate(sampler.evaluations, reached, target, rate), extrapolated=True)
        for needed, target, reached, rate in columns
    )
    return SamplerNeed(sampler, lml, gskl)


def extrapolate(n: float, error: float, target: float, rate: float) -> float:
    """Evaluations for the target when the error at n falls with that power of their number."""
    return n * (error / target) ** (1.0 / rate)
