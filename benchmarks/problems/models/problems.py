"""Models with data as problems: the answers come from ``truth.json``.

The table says to which data it belongs, by the log joint at the prior's mean: NumPy may change what
a seed draws, and then the data are others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

from benchmarks.errors import BenchmarkError
from benchmarks.problems.base import Array, BenchmarkProblem, Marginal
from benchmarks.problems.models.base import Model
from benchmarks.problems.models.epidemic import epidemic
from benchmarks.problems.models.garch import garch
from benchmarks.problems.models.kinetics import kinetics
from benchmarks.problems.models.predators import predators
from benchmarks.problems.models.psychometric import psychometric

TABLE = Path(__file__).with_name("truth.json")
# Of the quantiles in the table: steps of a standard normal, and the limits that are scored.
LEVELS = np.unique([0.0, 0.025, *ndtr(np.linspace(-3.5, 3.5, 51)), 0.975, 1.0])
TOLERANCE = 1e-6  # of the log joint that the table belongs to

MODELS: Mapping[str, Callable[[int, np.random.Generator], Model]] = {
    "epidemic": epidemic,
    "kinetics": kinetics,
    "psychometric": psychometric,
    "garch": garch,
    "predators": predators,
}

Build = Callable[[str, int, np.random.Generator], BenchmarkProblem]


def model_family(family: str) -> Build:
    """What makes the problems of a model."""

    def build(name: str, D: int, generator: np.random.Generator) -> BenchmarkProblem:
        model = MODELS[family](D, generator)
        return model_problem(name, model, _numbers(name, model))

    return build


def model_problem(name: str, model: Model, numbers: dict[str, Any]) -> BenchmarkProblem:
    """A model with the numbers of its posterior."""

    def log_likelihood(x: Array) -> float:
        return float(model.log_factors(x[None])[0])

    return BenchmarkProblem(
        name=name,
        log_likelihood=log_likelihood,
        prior_mean=model.prior_mean,
        prior_sd=model.prior_sd,
        log_evidence=numbers["log_evidence"],
        posterior_mean=np.array(numbers["mean"]),
        posterior_covariance=np.array(numbers["covariance"]),
        marginals=tuple(Marginal.of_quantiles(np.array(q), LEVELS) for q in numbers["quantiles"]),
        hard_box=model.box,
        gradient=model.gradient,
    )


@cache
def _table() -> dict[str, Any]:
    return json.loads(TABLE.read_text()) if TABLE.exists() else {}


def fingerprint(model: Model) -> float:
    """The log joint at the prior's mean."""
    return float(model.log_joints(model.prior_mean[None])[0])


def _numbers(name: str, model: Model) -> dict[str, Any]:
    """The table's entry of a problem, if it belongs to this model."""
    table = _table()
    if name not in table:
        raise BenchmarkError(
            f"{TABLE.name} holds no answers for {name}, only for {', '.join(table)}"
        )
    if abs(table[name]["fingerprint"] - fingerprint(model)) > TOLERANCE:
        raise BenchmarkError(
            f"the data of {name} are not those {TABLE.name} was made for; make it anew: "
            "python -m benchmarks.problems.models.make_truth"
        )
    return table[name]
