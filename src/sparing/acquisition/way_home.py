"""The way back into the plausible box, for a search that has left it.

Where the box is hundreds of times wider than the posterior, the surrogate promises peaks all over
it and beyond. A climb may then settle on a stretch outside that is nearly flat, tens of nats below
what the box holds, of which the user has said that the posterior is there (docs/decisions/0011).

    s    standardised coordinates: the box is [-1/2, 1/2]^D
    a    a_pro (Eq. 9) with q uniform in the box: V exp(f)
"""

from __future__ import annotations

import numpy as np

from sparing.acquisition.rules import FEW_SAMPLES, log_positive, some_samples
from sparing.numerics.arrays import Array
from sparing.numerics.quasi_random import scrambled_halton
from sparing.problem.parameter_transform import ParameterTransform
from sparing.surrogate.interface import Surrogate

WAY_HOME = "way back into the plausible box"  # recorded with its points

# Outside is what lies further from the middle of the box than its width, in any coordinate.
OUTSIDE = 1.0
PATIENCE = 3  # times D + 2 points within that were no better than the best of them
N_CANDIDATES = 1024  # all over the box; and as many about its best points, so far from them
N_BEST, NEAREST, FURTHEST = 8, 0.01, 0.3


def point_at_home(
    surrogate: Surrogate,
    transform: ParameterTransform,
    enough: int,
    generator: np.random.Generator,
) -> Array | None:
    """The maximum of a in the box, (D,) in working coordinates; None where nobody needs it.

    That is as long as one of the best D + 2 points is not outside, and once ``enough`` points have
    been evaluated within, or several since the best of them: the box has been searched then.
    """
    training, dimension = surrogate.training, transform.dimension
    s = transform.to_standardised(training.inputs)
    furthest = np.abs(s).max(axis=1)
    ranked = np.argsort(-training.values, kind="stable")
    if furthest[ranked[: dimension + 2]].min() <= OUTSIDE:
        return None
    within = ranked[furthest[ranked] <= 0.5]
    if len(within) >= enough:
        return None
    if len(within) and np.sum(within > within[0]) >= PATIENCE * (dimension + 2):
        return None
    candidates = (scrambled_halton(N_CANDIDATES, dimension) + generator.random(dimension)) % 1.0
    candidates -= 0.5
    if len(within):
        near = s[generator.choice(within[:N_BEST], size=N_CANDIDATES)]
        low, high = np.log(NEAREST), np.log(FURTHEST)
        steps = np.exp(generator.uniform(low, high, (N_CANDIDATES, 1)))
        near += steps * generator.standard_normal(near.shape)
        candidates = np.vstack([candidates, np.clip(near, -0.5, 0.5)])
    u = transform.from_standardised(candidates)
    mean, variance = some_samples(surrogate, FEW_SAMPLES, generator).predict(u)
    return u[int(np.argmax(mean + log_positive(variance)))]
