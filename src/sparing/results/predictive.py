"""What the inferred model says about data: draws from the posterior predictive distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.errors import SettingsError
from sparing.numerics.arrays import Array
from sparing.numerics.random_streams import RandomStreams
from sparing.vbmc.run_record import RunRecord

Simulator = Callable[[Array, np.random.Generator], Any]


def posterior_predictive(
    result: RunRecord, simulate: Simulator, n: int = 100, seed: int = 0
) -> NDArray[Any]:
    """Data simulated at n draws from the posterior: (n, ...), whatever ``simulate`` returns.

    ``simulate(x, generator)`` returns one data set for the parameters x, the fixed ones included,
    as a number or an array of the same shape each time; its randomness comes from the generator.
    Where the observed data would be unusual among these, the model does not describe them.

    >>> def simulate(x, generator):
    ...     return generator.normal(x[0], 1.0, 5)
    >>> sparing.posterior_predictive(result, simulate).shape
    (100, 5)
    """
    if n < 1:
        raise SettingsError([f"n must be at least 1, got {n}"])
    streams = RandomStreams(seed)
    parameters = result.posterior.sample(n, seed=streams.generator("posterior draws"))
    data = [
        np.asarray(simulate(x.copy(), streams.generator("simulation", i)))
        for i, x in enumerate(result.problem.full(parameters))
    ]
    shapes = sorted({array.shape for array in data})
    if len(shapes) > 1:
        fault = f"simulate must return data of one shape, but returned {shapes[0]} and {shapes[1]}"
        raise SettingsError([fault])
    return np.stack(data)
