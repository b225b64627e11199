"""The answers for the generated cell, from a table made once by ``make_synthetic_truth``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.problems.neuron.likelihood import NeuronLikelihood
from benchmarks.problems.neuron.synthetic import TRUE_PARAMETERS
from benchmarks.problems.neuron.targets import Truth

TABLE = Path(__file__).with_name("synthetic_truth.json")
LOG_LIKELIHOOD_TOLERANCE = 1e-6


def read_truth(likelihood: NeuronLikelihood, *, uniform: bool) -> Truth:
    """The table's answers, if they belong to this likelihood.

    NumPy may change what a seed draws, and then the generated cell is another one.
    """
    table = json.loads(TABLE.read_text())
    value = likelihood(TRUE_PARAMETERS)
    if abs(value - table["log_likelihood_at_true_parameters"]) > LOG_LIKELIHOOD_TOLERANCE:
        raise BenchmarkError(
            f"the generated cell is not the one {TABLE.name} was made for; make the table anew: "
            "python -m benchmarks.problems.neuron.make_synthetic_truth"
        )
    numbers = table["uniform_prior" if uniform else "normal_prior"]
    mean, covariance = np.array(numbers["mean"]), np.array(numbers["covariance"])
    return Truth(numbers["log_evidence"], mean, covariance)
