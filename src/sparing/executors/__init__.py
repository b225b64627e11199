"""Running the target: in this process, in processes of our own, or on any executor."""

from sparing.executors.clusters import DaskExecutor, RayExecutor
from sparing.executors.failures import (
    RAISE,
    SKIP,
    BrokenTargetError,
    ExecutorError,
    FailedEvaluationError,
    FailurePolicy,
    Reaction,
    Remainder,
    TimedOutError,
    TooManyFailuresError,
    UnpicklableProblemError,
    WorkerDiedError,
    retry,
)
from sparing.executors.local_processes import LocalProcesses
from sparing.executors.pool import EvaluationPool
from sparing.executors.target_call import classify, evaluate, evaluate_remotely
from sparing.problem.evaluation_codec import (
    InvalidRecordError,
    outcome_to_record,
    record_to_outcome,
)
from sparing.problem.evaluations import FailureKind, Outcome

__all__ = [
    "RAISE",
    "SKIP",
    "BrokenTargetError",
    "DaskExecutor",
    "EvaluationPool",
    "ExecutorError",
    "FailedEvaluationError",
    "FailureKind",
    "FailurePolicy",
    "InvalidRecordError",
    "LocalProcesses",
    "Outcome",
    "RayExecutor",
    "Reaction",
    "Remainder",
    "TimedOutError",
    "TooManyFailuresError",
    "UnpicklableProblemError",
    "WorkerDiedError",
    "classify",
    "evaluate",
    "evaluate_remotely",
    "outcome_to_record",
    "record_to_outcome",
    "retry",
]
