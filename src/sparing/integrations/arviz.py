"""A run for ArviZ, and through it for NetCDF.

    n       number of draws
    draws   from the posterior, in the user's coordinates     (n, D)

The container is what the installed ArviZ works with: ``InferenceData`` before version 1, a
``DataTree`` of xarray from version 1 on. Both hold the same groups:

    posterior       the draws, one chain, and what is derived from them
    sample_stats    ``lp``, the normalised log density of the posterior at each draw
    constant_data   the fixed parameters, if there are any
    evaluations     every call of the target, a variable per column of ``evaluations_dataframe``
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.integrations.columns import column_names, derived_columns, evaluation_columns
from sparing.integrations.shared import optional_module
from sparing.numerics.arrays import Array
from sparing.vbmc.run_record import RunRecord

__all__ = ["to_arviz"]

SAMPLE_DIMENSIONS = ("chain", "draw")
EVALUATION_DIMENSION = "evaluation"


def to_arviz(run: RunRecord, n: int = 4000, seed: int = 0) -> Any:
    """InferenceData or DataTree of n draws, their log density and the evaluations.

    The group ``evaluations`` has the columns of ``Result.evaluations_dataframe``. A "/" in a
    parameter's name, which separates groups in NetCDF, is written as "|".

    >>> data = to_arviz(result, n=500)
    >>> data.posterior["slope"].shape
    (1, 500)
    >>> data.evaluations["value"].size == result.n_evaluations
    True
    >>> data.evaluations["noise_sd"].values.max().item()
    0.0
    """
    draws = run.posterior.sample(n, seed=seed)
    names = column_names(map(_without_slashes, run.posterior.names), SAMPLE_DIMENSIONS)
    variables = dict(zip(names, draws.T, strict=True))
    derived = derived_columns(run, draws)
    taken = (*SAMPLE_DIMENSIONS, *variables)
    variables |= zip(
        column_names(map(_without_slashes, derived), taken), derived.values(), strict=True
    )
    return assemble(run, run.problem.full(draws), variables)


def assemble(
    run: RunRecord,
    draws: Array,
    variables: Mapping[str, NDArray[Any]],
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, Sequence[Any]] | None = None,
) -> Any:
    """The container of all groups; ``variables`` (n, ...) by name are what the draws stand for.

    ``draws`` are of all parameters, (n, N).
    ``dims`` names the dimensions of a variable after that of the draws, ``coords`` their labels.
    """
    arviz = optional_module("arviz", "arviz")
    xarray = optional_module("xarray", "arviz")
    named_dims, labels = dims or {}, coords or {}

    def sampled(name: str, values: NDArray[Any]) -> tuple[tuple[str, ...], NDArray[Any]]:
        own = [f"{name}_dim_{axis}" for axis in range(values.ndim - 1)]
        return (*SAMPLE_DIMENSIONS, *named_dims.get(name, own)), values[None]

    columns = evaluation_columns(run, reserved=[EVALUATION_DIMENSION])
    free = draws[:, run.problem.parameters.is_free]
    posterior = {name: sampled(name, values) for name, values in variables.items()}
    used = {dim for dimensions, _ in posterior.values() for dim in dimensions}
    sample_index = {"chain": [0], "draw": np.arange(len(draws))}
    posterior_index = sample_index | {k: list(v) for k, v in labels.items() if k in used}
    groups = {
        "posterior": xarray.Dataset(posterior, posterior_index),
        "sample_stats": xarray.Dataset(
            {"lp": sampled("lp", run.posterior.log_density(free))}, sample_index
        ),
        "evaluations": xarray.Dataset(
            {_without_slashes(k): (EVALUATION_DIMENSION, column) for k, column in columns.items()},
            {EVALUATION_DIMENSION: np.arange(run.n_evaluations)},
        ),
    }
    if run.problem.fixed:
        fixed = {_without_slashes(name): value for name, value in run.problem.fixed.items()}
        groups["constant_data"] = xarray.Dataset(fixed)
    if int(arviz.__version__.partition(".")[0]) < 1:
        return arviz.InferenceData(attrs=_attributes(run), **groups)
    root = xarray.Dataset(attrs=_attributes(run))
    return xarray.DataTree.from_dict({"/": root, **groups})


def _without_slashes(name: str) -> str:
    return name.replace("/", "|")


def _attributes(run: RunRecord) -> dict[str, Any]:
    """What the run says of itself, in types that NetCDF has."""
    return {
        "log_evidence": run.log_evidence,
        "log_evidence_sd": run.log_evidence_sd,
        "elbo": run.elbo,
        "elbo_sd": run.elbo_sd,
        "converged": int(run.converged),
        "stop_reason": run.stop_reason.value,
        "n_evaluations": run.n_evaluations,
        "seed": run.seed,
        "periodic": ", ".join(run.problem.periodic),
        "inference_library": "sparing",
        "inference_library_version": version("sparing"),
    }
