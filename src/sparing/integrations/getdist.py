"""A run for GetDist."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import numpy as np

from sparing.errors import SettingsError
from sparing.integrations.columns import derived_columns
from sparing.integrations.shared import optional_module
from sparing.vbmc.run_record import RunRecord

__all__ = ["to_getdist"]

# What mathematical text reads as a command, in a name that is meant literally.
_LITERAL = str.maketrans({character: f"\\{character}" for character in "_ %{}$"})


def to_getdist(
    run: RunRecord, n: int = 4000, seed: int = 0, labels: Sequence[str] | None = None
) -> Any:
    """``getdist.MCSamples`` of n draws, with names, labels and the hard bounds as ranges.

    A fixed parameter has a range without width, which GetDist knows as such.
    ``labels`` are LaTeX without dollar signs, one per parameter; by default the names, upright.

    >>> samples = to_getdist(result, n=500)
    >>> samples.getParamNames().list()
    ['slope', 'offset']
    """
    getdist = optional_module("getdist", "getdist")
    names = run.posterior.names
    if labels is not None and len(labels) != len(names):
        raise SettingsError([f"labels holds {len(labels)} labels for {len(names)} parameters"])
    draws = run.posterior.sample(n, seed=seed)
    derived = derived_columns(run, draws)
    bounds = zip(run.problem.lower.tolist(), run.problem.upper.tolist(), strict=True)
    with redirect_stdout(StringIO()):  # it says on standard output that there is no burn-in
        return getdist.MCSamples(
            samples=np.column_stack([draws, *derived.values()]),
            loglikes=-run.posterior.log_density(draws),  # GetDist's are minus log posteriors
            names=[*names, *(f"{name}*" for name in derived)],  # the mark of what is derived
            labels=[*(map(_label, names) if labels is None else labels), *map(_label, derived)],
            ranges={
                name: [edge if np.isfinite(edge) else None for edge in edges]
                for name, edges in zip(names, bounds, strict=True)
            }
            | {name: [value, value] for name, value in run.problem.fixed.items()},
            label="sparing",
        )


def _label(name: str) -> str:
    """A name as mathematical text: upright, or as it is when it is one letter or LaTeX itself."""
    return name if len(name) == 1 or "\\" in name else f"\\mathrm{{{name.translate(_LITERAL)}}}"
