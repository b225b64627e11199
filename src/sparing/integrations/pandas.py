"""A run as tables of pandas."""

from __future__ import annotations

from typing import Any

from sparing.integrations.columns import evaluation_columns
from sparing.integrations.optional import optional_module
from sparing.vbmc.run_record import RunRecord

__all__ = ["draws_dataframe", "evaluations_dataframe"]


def draws_dataframe(run: RunRecord, n: int = 4000, seed: int = 0) -> Any:
    """n draws from the posterior as a DataFrame: a row per draw, a column per parameter.

    >>> draws_dataframe(result, n=500).columns.tolist()
    ['slope', 'offset']
    """
    pandas = optional_module("pandas", "pandas")
    return pandas.DataFrame(run.posterior.sample(n, seed=seed), columns=list(run.posterior.names))


def evaluations_dataframe(run: RunRecord) -> Any:
    """Every evaluation as a row of a DataFrame, in order.

    The columns are the parameters, then ``value`` (the log joint), ``status``, ``duration``
    (seconds), ``started`` (Unix time), ``worker`` and ``message``.

    >>> evaluations_dataframe(result).status.eq("ok").all().item()
    True
    """
    pandas = optional_module("pandas", "pandas")
    details = {
        name: [getattr(entry, name) for entry in run.evaluations]
        for name in ("started", "worker", "message")
    }
    table = pandas.DataFrame(evaluation_columns(run, reserved=details) | details)
    return table.rename_axis(index="evaluation")
