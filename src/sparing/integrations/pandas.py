"""A run as tables of pandas."""

from __future__ import annotations

from typing import Any

from sparing.integrations.columns import draw_columns, evaluation_columns
from sparing.integrations.shared import optional_module
from sparing.vbmc.run_record import RunRecord

__all__ = ["draws_dataframe", "evaluations_dataframe"]


def draws_dataframe(run: RunRecord, n: int = 4000, seed: int = 0) -> Any:
    """n draws from the posterior as a DataFrame: a row per draw, a column per parameter.

    A fixed parameter has its column, too, and so has what is derived from them.

    >>> draws_dataframe(result, n=500).columns.tolist()
    ['slope', 'offset']
    """
    pandas = optional_module("pandas", "pandas")
    return pandas.DataFrame(draw_columns(run, run.posterior.sample(n, seed=seed)))


def evaluations_dataframe(run: RunRecord) -> Any:
    """Every evaluation as a row of a DataFrame, in order.

    The columns are the parameters, then the fields of `sparing.executors.Outcome` but the
    traceback: ``value`` (the log joint), ``status``, ``duration`` (seconds), ``message``,
    ``started`` and ``ended`` (Unix times), ``worker``, ``kind`` (of a failure), ``noise_sd`` and
    ``log_prior``; and ``rule``, which chose the point. Where evaluations have gradients, their
    entries are in ``d/d <name>`` for each parameter that is inferred.

    >>> table = evaluations_dataframe(result)
    >>> table.columns.tolist()[2:]
    ['value', 'status', 'duration', 'message', 'started', 'ended', 'worker', 'kind', 'noise_sd',
     'log_prior', 'rule']
    >>> table.status.eq("ok").all().item()
    True
    """
    pandas = optional_module("pandas", "pandas")
    return pandas.DataFrame(evaluation_columns(run)).rename_axis(index="evaluation")
