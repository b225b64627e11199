"""What happens when an evaluation fails, and the errors of execution.

An outcome that failed is data. The policy says, for each kind of failure, how often the point is
tried again and whether what remains is skipped or ends the run; too many failures always do.
"""

from __future__ import annotations

import enum
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from sparing.errors import SettingsError, SparingError, TargetError
from sparing.problem.evaluations import Evaluation, FailureKind, Outcome, Proposal
from sparing.problem.user_values import is_whole

# The fraction of failures means nothing before this many evaluations.
MIN_EVALUATIONS_TO_JUDGE = 10

# Failures quoted in the message of TooManyFailuresError; all are in its `entries`.
N_QUOTED = 10


class ExecutorError(SparingError, RuntimeError):
    """The executor cannot go on; the points in flight have no outcome and stay pending.

    >>> from concurrent.futures import Executor
    >>> class Unreachable(Executor):
    ...     def submit(self, fn, /, *args, **kwargs):
    ...         raise ConnectionError("no route to the cluster")
    >>> sparing.infer(problem, executor=Unreachable(), progress=False)
    Traceback (most recent call last):
    sparing.executors.failures.ExecutorError: Unreachable.submit failed: no route to the cluster
    """


class UnpicklableProblemError(ExecutorError):
    """The problem cannot be sent to another process.

    >>> from concurrent.futures import ProcessPoolExecutor
    >>> unnamed = sparing.Problem(lambda x: -0.5 * float(x @ x), -1.0, 1.0)
    >>> with ProcessPoolExecutor(1) as executor:
    ...     sparing.infer(unnamed, executor=executor, progress=False)
    Traceback (most recent call last):
    sparing.executors.failures.UnpicklableProblemError: ...
    """


class TimedOutError(SparingError, TimeoutError):
    """A call took longer than its limit and its process was ended.

    >>> import time
    >>> with sparing.LocalProcesses(1) as executor:
    ...     executor.submit_limited(0.1, time.sleep, 60.0).result()
    Traceback (most recent call last):
    sparing.executors.failures.TimedOutError: the call took longer than 0.1 s and its process was
    ended
    """


class WorkerDiedError(SparingError, RuntimeError):
    """The process that ran a call ended before it gave a result.

    certain: whether this call is what ended it; False when it shared the process with others.

    >>> import os
    >>> with sparing.LocalProcesses(1) as executor:
    ...     executor.submit(os._exit, 3).result()
    Traceback (most recent call last):
    sparing.executors.failures.WorkerDiedError: the worker process ended with exit code 3 before
    it gave a result
    """

    def __init__(self, message: str, certain: bool = True) -> None:
        super().__init__(message)
        self.certain = certain

    def __reduce__(self) -> tuple[type[WorkerDiedError], tuple[str, bool]]:
        return type(self), (str(self), self.certain)


class FailedEvaluationError(TargetError):
    """A failure of the kind the policy raises for; record ``outcome`` before stopping.

    >>> broken = sparing.Problem(lambda x: 1 / 0, -1.0, 1.0)
    >>> policy = sparing.FailurePolicy(exception=sparing.RAISE)
    >>> sparing.infer(broken, failures=policy, progress=False)
    Traceback (most recent call last):
    sparing.executors.failures.FailedEvaluationError: the evaluation at (...) failed:
    ZeroDivisionError: division by zero
    ...
    """

    def __init__(self, proposal: Proposal, outcome: Outcome) -> None:
        self.proposal = proposal
        self.outcome = outcome
        point = ", ".join(f"{coordinate:g}" for coordinate in proposal.x)
        lines = [f"the evaluation at ({point}) failed: {outcome.message}", outcome.traceback]
        super().__init__("\n".join(line for line in lines if line))

    def __reduce__(self) -> tuple[type[FailedEvaluationError], tuple[Proposal, Outcome]]:
        return type(self), (self.proposal, self.outcome)


class BrokenTargetError(FailedEvaluationError):
    """The target raised before any evaluation had given a value: most likely it always would.

    >>> broken = sparing.Problem(lambda x: 1 / 0, -1.0, 1.0)
    >>> sparing.infer(broken, progress=False)
    Traceback (most recent call last):
    sparing.executors.failures.BrokenTargetError: the evaluation at (...) failed:
    ZeroDivisionError: division by zero
    ...
    No evaluation has given a value before it. If the target fails now and then, the run goes on
    with failures=sparing.FailurePolicy(first_exception=sparing.SKIP).
    """

    def __str__(self) -> str:
        return (
            f"{super().__str__()}\n"
            "No evaluation has given a value before it. If the target fails now and then, the run "
            "goes on\nwith failures=sparing.FailurePolicy(first_exception=sparing.SKIP)."
        )


class TooManyFailuresError(TargetError):
    """More evaluations failed than the policy allows; ``entries`` has them.

    >>> broken = sparing.Problem(lambda x: np.nan, -1.0, 1.0)
    >>> sparing.infer(broken, progress=False)
    Traceback (most recent call last):
    sparing.executors.failures.TooManyFailuresError: 10 of 10 evaluations failed, more than the
    allowed fraction 0.5 (FailurePolicy.max_failed_fraction):
      - at (...): log_density returned nan, which is not a log density, at x1 = ...
      ...
    """

    def __init__(self, n_total: int, allowed: float, entries: Sequence[Evaluation]) -> None:
        self.n_total = n_total
        self.allowed = allowed
        self.entries = tuple(entries)
        lines = [
            f"{len(self.entries)} of {n_total} evaluations failed, more than the allowed "
            f"fraction {allowed:g} (FailurePolicy.max_failed_fraction):"
        ]
        for entry in self.entries[:N_QUOTED]:
            point = ", ".join(f"{coordinate:g}" for coordinate in entry.x)
            lines.append(f"  - at ({point}): {entry.message or entry.status}")
        if len(self.entries) > N_QUOTED:
            lines.append(f"  - and {len(self.entries) - N_QUOTED} more")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[type[Self], tuple[int, float, Sequence[Evaluation]]]:
        return type(self), (self.n_total, self.allowed, self.entries)


class Remainder(enum.Enum):
    """What becomes of a failure that no retry turned into a value.

    >>> from sparing.executors import Remainder
    >>> sparing.retry(3, then=Remainder.RAISE).then is Remainder.RAISE
    True
    """

    SKIP = "skip"  # recorded; the run goes on and avoids the place
    RAISE = "raise"  # recorded; the run stops


def require_count(name: str, value: float, least: int) -> None:
    """SettingsError unless the value of a setting is an integer that is not less."""
    if not is_whole(value, least):
        known = f"{least}, {least + 1}, {least + 2}, ..."
        raise SettingsError([f"{name} must be {known}, not {value!r}"])


@dataclass(frozen=True)
class Reaction:
    """How often a failed point is tried again, and what follows when it fails each time.

    SKIP, RAISE and ``retry(n)`` make one:

    >>> sparing.retry(2)
    Reaction(retries=2, then=<Remainder.SKIP: 'skip'>)
    """

    retries: int = 0
    then: Remainder = Remainder.SKIP

    def __post_init__(self) -> None:
        require_count("retries", self.retries, least=0)


SKIP = Reaction()
RAISE = Reaction(then=Remainder.RAISE)


def retry(times: int, then: Remainder = Remainder.SKIP) -> Reaction:
    """Try a failed point up to `times` more times.

    >>> policy = sparing.FailurePolicy(worker_died=sparing.retry(2))
    >>> policy.worker_died.retries
    2
    """
    return Reaction(times, then)


@dataclass(frozen=True)
class FailurePolicy:
    """What happens on each kind of failure: SKIP, RAISE, or retry(n).

    first_exception: SKIP or RAISE, on an exception before any evaluation has given a value: a
    broken target ends the run at once. max_failed_fraction: the run stops when more than this
    fraction of at least MIN_EVALUATIONS_TO_JUDGE evaluations failed. A density of zero is no
    failure.

    >>> policy = sparing.FailurePolicy(timed_out=sparing.retry(1), exception=sparing.RAISE)
    >>> short = sparing.infer(problem, failures=policy, max_evaluations=12, progress=False)
    """

    exception: Reaction = SKIP
    invalid_value: Reaction = SKIP
    timed_out: Reaction = SKIP
    worker_died: Reaction = SKIP
    max_failed_fraction: float = 0.5
    first_exception: Reaction = RAISE

    def __post_init__(self) -> None:
        faults = [
            f"{name} must be SKIP, RAISE or retry(n), not {value!r}"
            for name in (kind.name.lower() for kind in FailureKind)
            if not isinstance(value := getattr(self, name), Reaction)
        ]
        if self.first_exception not in (SKIP, RAISE):
            faults.append(f"first_exception must be SKIP or RAISE, not {self.first_exception!r}")
        if not 0.0 <= self.max_failed_fraction <= 1.0:
            faults.append(f"max_failed_fraction must be in [0, 1], not {self.max_failed_fraction}")
        if faults:
            raise SettingsError(faults)

    def reaction(self, kind: FailureKind) -> Reaction:
        """What to do about a failure of this kind.

        >>> from sparing.executors import FailureKind
        >>> sparing.FailurePolicy().reaction(FailureKind.TIMED_OUT) == sparing.SKIP
        True
        """
        return getattr(self, kind.name.lower())

    def check(self, evaluations: Sequence[Evaluation]) -> None:
        """Raise TooManyFailuresError when too many of all the evaluations so far failed.

        BrokenTargetError where all have, one of them by an exception.

        >>> sparing.FailurePolicy(max_failed_fraction=0.2).check(result.evaluations)
        """
        n_total, failed = len(evaluations), [entry for entry in evaluations if entry.failed]
        raised = [entry for entry in failed if entry.outcome.kind is FailureKind.EXCEPTION]
        if raised and len(failed) == n_total and self.first_exception == RAISE:
            first = raised[0]
            raise BrokenTargetError(Proposal(first.identifier or 0, first.x), first.outcome)
        allowed = self.max_failed_fraction
        if n_total >= MIN_EVALUATIONS_TO_JUDGE and len(failed) > allowed * n_total:
            raise TooManyFailuresError(n_total, allowed, failed)


def describe_exit(exit_code: int | None) -> str:
    """How a process ended, for people; a negative code is the signal that ended it."""
    if exit_code is None:
        return "the worker process died"
    if exit_code >= 0:
        return f"the worker process ended with exit code {exit_code}"
    try:
        name = f", {signal.Signals(-exit_code).name}"
    except ValueError:
        name = ""
    return f"the worker process died (signal {-exit_code}{name})"
