"""The paper's real-data problem (Section 4.2): a neuronal model with seven free parameters.

``neuron-v1``, ``neuron-v2``     cells recorded in V1 (m620r35) and V2 (m620r12); need data
``neuron-synthetic``             a cell generated from the same model; needs none
``...-uniform``                  the same cell under a uniform prior in a hard box
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.problems.base import BenchmarkProblem
from benchmarks.problems.neuron import recorded, synthetic_truth
from benchmarks.problems.neuron.likelihood import NeuronLikelihood
from benchmarks.problems.neuron.synthetic import generate_cell
from benchmarks.problems.neuron.targets import normal_prior_problem, uniform_prior_problem
from benchmarks.problems.published import neuron_folder

RECORDED_CELLS = {"neuron-v1": "m620r35", "neuron-v2": "m620r12"}
SYNTHETIC = "neuron-synthetic"
UNIFORM = "-uniform"
NEURON_PROBLEMS = tuple(
    name + suffix for name in (*RECORDED_CELLS, SYNTHETIC) for suffix in ("", UNIFORM)
)


def neuron_problem(name: str, data: Path | None) -> BenchmarkProblem:
    """The problem of that name, one of ``NEURON_PROBLEMS``."""
    cell_name, uniform = name.removesuffix(UNIFORM), name.endswith(UNIFORM)
    if cell_name == SYNTHETIC:
        likelihood = NeuronLikelihood.of(generate_cell())
        truth = synthetic_truth.read_truth(likelihood, uniform=uniform)
    elif data is None:
        raise BenchmarkError(
            f"{name} is a recorded cell: say with --data PATH which directory holds "
            f"neuron/truth.json and neuron/neuron_{RECORDED_CELLS[cell_name]}.npz, or use "
            f"{name.replace(cell_name, SYNTHETIC)}, a cell generated from the same model"
        )
    else:
        folder, cell = neuron_folder(data), RECORDED_CELLS[cell_name]
        truth = recorded.read_truth(folder, cell, uniform=uniform)
        likelihood = NeuronLikelihood.of(recorded.read_cell(folder, cell))
    build = uniform_prior_problem if uniform else normal_prior_problem
    return build(name, likelihood, truth)
