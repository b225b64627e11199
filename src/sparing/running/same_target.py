"""Is the target of a stored run still the one that was evaluated?

Its code cannot be compared, but one of its values can: a good stored point is evaluated again. It
is not the best one, where a change of scale does not show, and where noise helped. A run whose
evaluations are of two targets has the answer of neither.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np

from sparing.errors import SparingWarning, TargetChangedError
from sparing.numerics.arrays import Array
from sparing.problem.evaluations import Evaluation, Outcome
from sparing.vbmc.state import IterationInfo

# Of a log density, or of 1 where that is less: far more than another machine or another BLAS
# changes of a sum, far less than an edit does.
ROUNDING = 1e-6
# The share of stored values that are lower than that of the point.
QUANTILE = 0.75
# Standard deviations of the noise between two values of one target.
LARGEST_Z = 5.0
# A target that scatters without saying how much is given so many evaluations to come near.
MOST_EVALUATIONS = 5


def require_same_target(
    evaluations: Sequence[Evaluation],
    latest: Sequence[IterationInfo],
    evaluate: Callable[[Array], Outcome | None],
) -> None:
    """`TargetChangedError` unless the target gives the value that is stored of a point.

    One evaluation, where that gives the value; one more shows whether the target is exact. What
    the surrogates of the ``latest`` iterations believe counts for a target that is not and does
    not say so. ``evaluate`` gives None when somebody has interrupted it.
    """
    usable = sorted((entry for entry in evaluations if entry.usable), key=lambda e: e.value)
    if not usable:
        return
    stored = usable[int(QUANTILE * len(usable))]
    rounding = ROUNDING * max(1.0, abs(stored.value))
    believed = max((info.noise_sd for info in latest), default=0.0)
    values: list[float] = []
    for _ in range(MOST_EVALUATIONS):
        now = evaluate(stored.x)
        if now is None:
            return
        if now.failed:
            text = f"nobody knows whether the target is that of the stored run: {now.message}"
            warnings.warn(text, SparingWarning, stacklevel=2)
            return
        values.append(now.value)
        if now.value == -np.inf:
            break
        sd = float(np.hypot(stored.noise_sd, now.noise_sd))
        if len(values) > 1:
            if np.ptp(values) <= rounding:
                break  # exact, and another
            sd = max(sd, believed, float(np.std(values, ddof=1)))
        if abs(np.mean(values) - stored.value) <= rounding + LARGEST_Z * sd:
            return
    raise TargetChangedError(stored.x.tolist(), stored.value, values)
