"""Calling the target. Only this module does.

evaluate            in this process
evaluate_together   many points in this process, by one call of a vectorised target
evaluate_remotely   in a worker: what is submitted to an executor
"""

from __future__ import annotations

import math
import os
import signal
import socket
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from sparing.errors import InvalidValueError, SparingError, SparingWarning, TargetError
from sparing.numerics.arrays import Array
from sparing.problem.evaluation_codec import outcome_to_record
from sparing.problem.evaluations import FailureKind, Outcome, Status
from sparing.problem.problem import Problem
from sparing.problem.user_values import LARGEST_CREDIBLE

# Characters kept of what the target said when it failed.
LONGEST_MESSAGE = 2_000
LONGEST_TRACEBACK = 20_000

# Modules between `evaluate` and the user's code: not shown in tracebacks.
_OUR_MODULES = (
    __name__,
    "sparing.problem.log_joint",
    "sparing.problem.priors",
    "sparing.problem.region",
    "sparing.problem.vectorised",
)


def evaluate(problem: Problem, x: Array, returned: Callable[[Array], Any] | None = None) -> Outcome:
    """Call the target once, in this process; whatever goes wrong becomes a failed outcome.

    KeyboardInterrupt, SystemExit and their like are not the target's and pass through.
    ``returned`` knows what it returned at a point, where it was called before.

    >>> from sparing.executors import evaluate
    >>> outcome = evaluate(problem, np.array([1.2, -0.3]))
    >>> outcome.value, outcome.status
    (-0.5, <Status.OK: 'ok'>)
    """
    started, clock = time.time(), time.perf_counter()
    value, noise_sd, log_prior, kind, trace = math.nan, 0.0, math.nan, None, ""
    gradient: Array | None = None
    try:
        parts, gradient, no_gradient = problem.log_joint_in_parts_and_gradient(x, returned)
        value, noise_sd, log_prior = parts
        status, message = classify(value)
        message = message or no_gradient
    except InvalidValueError as error:
        status, message, kind = Status.FAILED, _text(error), FailureKind.INVALID_VALUE
    except Exception as error:
        status, kind = Status.FAILED, FailureKind.EXCEPTION
        message, trace = _error_message(error), format_traceback(error)
    if status is Status.FAILED:
        value, kind = math.nan, kind or FailureKind.INVALID_VALUE
    elif status is Status.OUT_OF_SUPPORT:
        value = -math.inf
    return Outcome(
        value=value,
        status=status,
        duration=time.perf_counter() - clock,
        message=message,
        traceback=trace,
        started=started,
        ended=time.time(),
        worker=worker_name(),
        kind=kind,
        noise_sd=noise_sd if status is Status.OK else 0.0,
        log_prior=log_prior,
        gradient=None if gradient is None or status is not Status.OK else tuple(gradient.tolist()),
    )


def evaluate_together(problem: Problem, points: Sequence[Array]) -> list[Outcome] | None:
    """Call a vectorised target once for all points; None where it raises: whose fault is not known.

    Points outside bounds, support or prior are not part of the call. TargetError where it does not
    return one value for each. The outcomes share the time of the call.

    >>> from sparing.executors.target_call import evaluate_together
    >>> many = sparing.Problem(lambda x: -0.5 * x[:, 0] ** 2, -1.0, 1.0, vectorised=True)
    >>> [outcome.value for outcome in evaluate_together(many, np.array([[1.0], [2.0]]))]
    [-0.5, -2.0]
    """
    started, clock = time.time(), time.perf_counter()
    called = [i for i, x in enumerate(points) if _may_have_mass(problem, x)]
    try:
        returned = problem.returned_at(np.array([points[i] for i in called])) if called else []
    except TargetError:
        raise
    except Exception:
        return None
    ended, seconds = time.time(), (time.perf_counter() - clock) / max(1, len(called))
    outcomes = [evaluate(problem, x) for i, x in enumerate(points) if i not in called]
    for i, answer in zip(called, returned, strict=True):
        outcome = evaluate(problem, points[i], lambda _, answer=answer: answer)
        outcome = replace(outcome, duration=seconds, started=started, ended=ended)
        outcomes.insert(i, outcome)
    return outcomes


def _may_have_mass(problem: Problem, x: Array) -> bool:
    """Whether the target is to be called; `evaluate` says what is wrong with a log prior."""
    with suppress(Exception):
        return problem.log_prior(x) > -math.inf
    return False


def classify(value: float) -> tuple[Status, str]:
    """The status of a returned value: a log density is a number of credible size or -inf.

    >>> from sparing.executors import classify
    >>> classify(-12.5)
    (<Status.OK: 'ok'>, '')
    >>> classify(float("nan"))
    (<Status.FAILED: 'failed'>, 'the log density is NaN')
    """
    if math.isnan(value):
        return Status.FAILED, "the log density is NaN"
    if value == math.inf:
        return Status.FAILED, "the log density is +inf"
    if value > LARGEST_CREDIBLE:
        return Status.FAILED, f"{value:g} is not a credible log density"
    if value == -math.inf:
        return Status.OUT_OF_SUPPORT, "the log density is -inf"
    if value < -LARGEST_CREDIBLE:
        return Status.OUT_OF_SUPPORT, f"the log density {value:g} is taken as -inf"
    return Status.OK, ""


def evaluate_remotely(
    problem: Problem,
    x: Array,
    identifier: int,
    spool_dir: str | None = None,
    time_limit: float | None = None,
) -> dict[str, Any]:
    """Call the target in a worker and return the outcome's record, spooled first when asked to.

    Nothing the target does raises here. The time limit is kept by an alarm signal where the
    call runs in the worker's main thread; code that never returns to the interpreter does not
    hear it, so the coordinator keeps its own clock.

    >>> from sparing.executors import evaluate_remotely
    >>> record = evaluate_remotely(problem, np.array([1.2, -0.3]), identifier=0, time_limit=60.0)
    >>> record["value"], record["status"]
    (-0.5, 'ok')
    """
    started = time.time()
    try:
        # Ctrl-C reaches every process of a terminal: the coordinator decides, not its workers.
        with _handled(signal.SIGINT, signal.SIG_IGN), _alarm(time_limit):
            outcome = evaluate(problem, x)
    except _TimeUp:
        outcome = timed_out(time_limit, started, worker_name())
    except SystemExit as error:
        message = f"the target called sys.exit({error.code!r})"
        outcome = unfinished(FailureKind.EXCEPTION, message, started, worker_name())
    except BaseException as error:  # a KeyboardInterrupt is the target's own: SIGINT is ignored
        outcome = unfinished(FailureKind.EXCEPTION, _error_message(error), started, worker_name())
    record = outcome_to_record(outcome)
    if spool_dir is not None:
        from sparing.store import write_spooled_outcome

        try:
            write_spooled_outcome(spool_dir, identifier, record)
        except (OSError, SparingError) as error:  # the value still goes back to the coordinator
            text = f"outcome {identifier} could not be spooled: {error}"
            warnings.warn(text, SparingWarning, stacklevel=2)
    return record


def unfinished(kind: FailureKind, message: str, started: float, worker: str = "") -> Outcome:
    """The outcome of a call that came to an end without one, just now."""
    status = Status.TIMED_OUT if kind is FailureKind.TIMED_OUT else Status.FAILED
    now = time.time()
    return Outcome(math.nan, status, now - started, message, "", started, now, worker, kind)


def timed_out(time_limit: float | None, started: float, worker: str = "") -> Outcome:
    """The outcome of a call that was ended because of its time limit."""
    message = f"it took longer than the time limit of {time_limit or math.nan:g} s and was ended"
    return unfinished(FailureKind.TIMED_OUT, message, started, worker)


def worker_name() -> str:
    """This process as ``host:pid``."""
    return f"{socket.gethostname()}:{os.getpid()}"


def format_traceback(error: BaseException) -> str:
    """The traceback as text, from the user's code on."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__") in _OUR_MODULES:
        trace = trace.tb_next
    try:
        lines = traceback.format_exception(type(error), error, trace or error.__traceback__)
        text = "".join(lines).rstrip("\n")
    except Exception:  # an exception whose own str() fails
        text = type(error).__name__
    return text if len(text) <= LONGEST_TRACEBACK else "..." + text[-LONGEST_TRACEBACK:]


def _error_message(error: BaseException) -> str:
    text = _text(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _text(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = "(its message cannot be read)"
    return text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + "..."


class _TimeUp(BaseException):
    """Raised in the target by the alarm; no Exception, so that targets do not catch it."""


@contextmanager
def _alarm(time_limit: float | None) -> Generator[None, None, None]:
    """Raise _TimeUp in the block when the limit passes, where this process lets us."""
    if (
        time_limit is None
        or not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGALRM) not in (signal.SIG_DFL, signal.SIG_IGN)
    ):
        yield
        return

    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise _TimeUp

    with _handled(signal.SIGALRM, ring):
        try:
            signal.setitimer(signal.ITIMER_REAL, time_limit)
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)


@contextmanager
def _handled(number: signal.Signals, handler: Any) -> Generator[None, None, None]:
    """Another handler of a signal in the block; only the main thread can set one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(number, handler)
    try:
        yield
    finally:
        with suppress(TypeError):  # a handler that was not set from Python
            signal.signal(number, previous)
