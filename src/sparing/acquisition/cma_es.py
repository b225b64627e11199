"""CMA-ES, the search of the paper (Section 3.3); needs ``sparing[paper]``."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparing.acquisition.search import Box, Criterion, draw_candidates, finite
from sparing.errors import MissingExtraError
from sparing.numerics.arrays import Array
from sparing.variational.normal_mixture import Mixture


@dataclass(frozen=True)
class CmaEs:
    """CMA-ES from the best of some candidates, in units of q's standard deviations."""

    n_candidates: int = 1024  # they only pick the starting point
    # The paper gives no budget; the search stops earlier on its own tolerances.
    evaluations_per_dimension: int = 100

    def maximise(
        self,
        criterion: Criterion,
        mixture: Mixture,
        box: Box,
        generator: np.random.Generator,
    ) -> Array:
        """The best point found: (D,)."""
        candidates = draw_candidates(mixture, box, self.n_candidates, generator)
        values = finite(criterion(candidates))
        best, best_value = candidates[np.argmax(values)], float(np.max(values))
        lower, upper = box
        dimension = len(best)
        # The cma package refuses one dimension: search a second, idle one.
        start = best if dimension > 1 else np.repeat(best, 2)
        scale = np.sqrt(np.diag(mixture.covariance))
        sds = np.resize(np.maximum(scale, 1e-12 * (upper - lower)), len(start))
        budget = self.evaluations_per_dimension * (dimension + 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its remarks on step sizes are not for our users
            strategy = _strategy(start, sds, budget, generator)
            while not strategy.stop():
                points = strategy.ask()
                inside = np.clip(np.asarray(points)[:, :dimension], lower, upper)
                log_acquisition = finite(criterion(inside))
                winner = int(np.argmax(log_acquisition))
                if log_acquisition[winner] > best_value:
                    best, best_value = inside[winner], float(log_acquisition[winner])
                strategy.tell(points, list(-log_acquisition))
        return best


def _strategy(start: Array, sds: Array, budget: int, generator: np.random.Generator) -> Any:
    try:
        import cma  # here: it takes longer to import than the rest of the package
    except ModuleNotFoundError as error:
        raise MissingExtraError("cma", "paper") from error
    options: dict[str, Any] = {
        # Our own stream: the package would otherwise reseed NumPy's global one.
        "seed": np.nan,
        "randn": lambda *shape: generator.standard_normal(shape),
        "verbose": -9,
        "maxfevals": budget,
        "tolfun": 1e-3,  # in log acquisition: which of two equally good points wins is immaterial
        "tolx": 1e-3,
        "CMA_stds": sds,
    }
    return cma.CMAEvolutionStrategy(start, 0.3, options)
