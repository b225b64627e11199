"""How far the variance of a surrogate is to be believed, by its own values.

The mean of exp(f) is exp(f + V / 2) where the surrogate is right about itself. Whether it is, in
the outskirts where V counts, is told by values that it foresees without them. Bumps that come as
unforeseen as V says bear it out. On heavy tails values lie below what is foreseen, and nearer to it
than V says: all that is unknown there is how a slope levels off (docs/decisions/0018).

    r, V   value less prediction, and variance, by the surrogate without that point
    c      belief: sum_i exp(r_i - c V_i / 2) = n, between 0 and 1
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import root_scalar

from sparing.numerics.arrays import Array
from sparing.surrogate.interface import Surrogate

# Variances of points that count: below nothing is at stake, above the surrogate is doubted.
VARIANCES = (0.2, 4.0)
# How far below the best value a point may be foreseen, a + b D nats: where a normal posterior has
# all its mass but a thousandth, widened by 1.5.
DEPTH = (10.0, 3.0)
# As many more points of variance one are taken to have borne out the surrogate.
N_PRIOR = 10.0
LARGEST_RESIDUAL = 3.0  # sds, upwards: one surprise is not to speak for all


def belief_in(surrogate: Surrogate) -> float:
    """c, of its first hyperparameter sample."""
    training = surrogate.training
    residuals, variances = surrogate.left_out(0)
    noise = training.noise_variance + surrogate.noise_variance
    foreseen = training.values - residuals
    near = foreseen > training.values.max() - DEPTH[0] - DEPTH[1] * training.dimension
    counts = near & (variances > VARIANCES[0]) & (variances < VARIANCES[1]) & (noise < variances)
    return belief_shown(residuals[counts] - 0.5 * noise[counts], variances[counts])


def belief_shown(residuals: Array, variances: Array) -> float:
    """c of residuals r and variances V, (m,) each."""
    residuals = np.minimum(residuals, LARGEST_RESIDUAL * np.sqrt(variances))

    def excess(c: float) -> float:
        shown = np.expm1(residuals - 0.5 * c * variances).sum()
        return float(shown + N_PRIOR * np.expm1(0.5 * (1.0 - c)))

    if excess(0.0) <= 0.0:
        return 0.0
    return 1.0 if excess(1.0) >= 0.0 else float(root_scalar(excess, bracket=(0.0, 1.0)).root)
