"""The loop of quadrature methods that choose each point by what the ones before it taught.

Notation: z are points in prior units, (D,) or (n, D), where the prior is N(z; 0, I).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from benchmarks.methods.base import Estimate, LibraryClock
from benchmarks.methods.recording import (
    Look,
    Record,
    estimate_with_surrogate,
    look_counts,
    require_normal_prior,
)
from benchmarks.problems.base import Array, BenchmarkProblem
from benchmarks.quadrature.evidence import Evidence
from benchmarks.quadrature.search import maximise, prior_sieve
from sparing.numerics.random_streams import RandomStreams

N_CANDIDATES = 400
N_ANCHORS = 10  # of the best points, about which half of the candidates lie


class LikelihoodModel(Protocol):
    """What was learnt of the likelihood."""

    @property
    def lengths(self) -> Array:
        """Distances over which the model varies, (D,)."""
        ...

    def evidence(self) -> Evidence:
        """The integral of likelihood times prior."""
        ...

    def log_acquisition(self, z: Array) -> Array:
        """How much an evaluation at each of the points (m, D) would be worth, (m,)."""
        ...


# (model without the last point or None, z (n, D), log likelihoods (n,), generator) -> model
Extend = Callable[[Any, Array, Array, np.random.Generator], LikelihoodModel]


def run_sequentially(
    problem: BenchmarkProblem,
    log_joint: Callable[[Array], float],
    x0: Array,
    seed: int,
    budget: int,
    clock: LibraryClock,
    *,
    name: str,
    extend: Extend,
    reach: float,
) -> Estimate:
    """One run from x0; points lie within so many prior SDs of the prior mean."""
    require_normal_prior(problem, name)
    streams = RandomStreams(seed)
    record = Record(problem, log_joint, budget)
    counts = set(look_counts(budget))
    edge = np.full(problem.dimension, reach)
    looks: list[Look] = []
    model = None
    with clock:
        record.evaluate(x0)
        while True:
            generator = streams.generator(name, record.n)
            z, log_likelihood = record.standardised, record.log_likelihood
            model = extend(model, z, log_likelihood, generator)
            if record.n in counts:
                looks.append(Look(record.n, model.evidence()))
            if record.n == budget:
                break
            best = np.argsort(record.log_joint, kind="stable")[-N_ANCHORS:]
            candidates = prior_sieve(z[best], model.lengths, N_CANDIDATES, generator)
            chosen = maximise(
                model.log_acquisition, candidates, model.lengths, (-edge, edge), generator
            )
            record.evaluate(problem.prior_mean + problem.prior_sd * chosen)
    return estimate_with_surrogate(record, looks, seed)
