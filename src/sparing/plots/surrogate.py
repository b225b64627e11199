"""The surrogate of a finished run, trained again on its evaluations.

A result keeps what was evaluated, not the surrogate; with the same data, settings and seed,
training gives one that agrees with the run's last to within what training itself can tell apart.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparing.numerics.arrays import Array
from sparing.numerics.blas_threads import one_blas_thread
from sparing.numerics.random_streams import RandomStreams
from sparing.problem.evaluations import Evaluation, EvaluationLog
from sparing.surrogate.gaussian_process import GaussianProcess, predict
from sparing.surrogate.training_data import trimmed_indices
from sparing.vbmc.algorithm import train_surrogate
from sparing.vbmc.run_record import RunRecord
from sparing.vbmc.state import initial_state


def train_again(record: RunRecord) -> GaussianProcess:
    """The surrogate in the coordinates of the record's posterior."""
    log = EvaluationLog()
    for entry in record.evaluations:
        log.append(entry)
    evaluations = log.informative()
    transform, last = record.posterior.transform, record.history[-1]
    state = replace(
        initial_state(transform, np.empty((0, transform.dimension))),
        warm_up=last.warm_up,
        sampling_stopped=last.n_hyperparameter_samples == 1,
        trimmed=_trimmed(record, evaluations),
    )
    with one_blas_thread():
        streams = RandomStreams(record.seed)
        return train_surrogate(state, transform, evaluations, record.settings, streams)


def log_joint(gp: GaussianProcess, record: RunRecord, x: Array) -> tuple[Array, Array]:
    """The surrogate's mean and sd of the log joint at points x (m, D): (m,) each."""
    transform = record.posterior.transform
    u = transform.to_working(x)
    mean, variance = predict(gp, u)
    return mean - transform.log_jacobian(u), np.sqrt(variance)


def _trimmed(record: RunRecord, evaluations: tuple[Evaluation, ...]) -> frozenset[int]:
    """What was left out for good when the warm-up ended."""
    if record.history[-1].warm_up:
        return frozenset()
    warm_up = [info.n_evaluations for info in record.history if info.warm_up]
    before = [entry for entry in evaluations if entry.index < max(warm_up, default=0)]
    if not before:
        return frozenset()
    depth = record.settings.warm_up.trim_per_dimension
    return trimmed_indices(before, record.posterior.transform, depth)
