"""``infer``: a problem in, a result out."""

from __future__ import annotations

from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, overload

from sparing.executors.failures import FailurePolicy
from sparing.executors.pool import EvaluationPool
from sparing.kernels.compilation import compile_with_notice
from sparing.problem.problem import Problem
from sparing.problem.region import Points
from sparing.results.result import Result
from sparing.results.several_runs import SeveralRuns
from sparing.running.arguments import check_arguments
from sparing.running.inference import Inference
from sparing.running.loop import Callback, DrivenRun, RunLoop
from sparing.running.progress.display import make_display
from sparing.running.several import infer_several
from sparing.store import Store
from sparing.store.run_group import refuse_group
from sparing.vbmc.settings import Settings


class RunOptions(TypedDict, total=False):
    """The arguments of ``infer`` that mean the same for one run and for several."""

    x0: Points | None
    seed: int | None
    max_evaluations: int | None
    batch_size: int | None
    executor: Executor | Any | None
    workers: int | None
    time_limit: float | None
    failures: FailurePolicy | None
    tolerance: float
    store: str | Path | Store | None
    tag: str
    check_target: bool
    check_gradient: bool
    settings: Settings | None
    progress: bool
    callback: Callback | None


@overload
def infer(
    problem: Problem, *, runs: Literal[1] | None = None, **options: Unpack[RunOptions]
) -> Result: ...
@overload
def infer(problem: Problem, *, runs: int, **options: Unpack[RunOptions]) -> SeveralRuns: ...
def infer(
    problem: Problem,
    *,
    x0: Points | None = None,
    seed: int | None = None,
    max_evaluations: int | None = None,
    batch_size: int | None = None,
    executor: Executor | Any | None = None,
    workers: int | None = None,
    time_limit: float | None = None,
    failures: FailurePolicy | None = None,
    tolerance: float = 0.1,
    store: str | Path | Store | None = None,
    tag: str = "",
    check_target: bool = True,
    check_gradient: bool = True,
    settings: Settings | None = None,
    progress: bool = True,
    callback: Callback | None = None,
    runs: int | None = None,
) -> Result | SeveralRuns:
    """Infer the posterior and the log evidence of a problem.

    x0               a point, or several, to start from; none: the plausible box is sampled
    seed             same seed, same result; None draws one (``result.seed`` has it)
    max_evaluations  the budget; default 50 (D + 2); a stored run keeps what it has beyond it
    batch_size       points in flight at a time; default: one for every worker
    executor         any concurrent.futures.Executor, a Dask client; None: in this process
    workers          without an executor: evaluate in that many processes on this machine
    time_limit       seconds one evaluation may take; it is then ended and recorded as timed out
    failures         what to do when evaluations fail; default: record them and go on
    tolerance        stop when the solution is stable to this error of the log evidence
    store            a path: every evaluation is durable before it is used, and the same call
                     again resumes
    tag              a note that is part of the run's identity in its store, such as a data version
    check_target     evaluate a stored point again before a run goes on or its result is
                     returned: a target that has changed is refused. False: for very slow ones
    check_gradient   evaluate a point next to the first one that gives a gradient: one that is not
                     that of the values is refused
    settings         ``Settings()``, or ``Settings.paper()`` for the 2018 algorithm; None: those of
                     the run that is resumed, or ``Settings()``
    progress         show a live display
    callback         called with each iteration's info; returning "stop" ends the run
    runs             2 or more: so many independent runs, then a pooled one that is told what all
                     of them evaluated; returns `SeveralRuns`

    Ctrl-C ends the run and returns the result so far; with a store, the same call goes on.

    With several runs the budget is each run's and that of the pooled run's own evaluations, so at
    most ``(runs + 1) * max_evaluations`` are made. Several starting points are dealt out to the
    runs, and so are the points in flight; with fewer workers than runs, the last runs wait.
    ``info.run`` tells a callback which run it hears of, and "stop" ends that run alone. ``store``
    is a directory with a run directory for each.

    >>> import sparing
    >>> def log_density(x):
    ...     return -0.5 * float(x @ x)
    >>> problem = sparing.Problem(log_density, [-2, -2], [2, 2], names=["a", "b"])
    >>> result = sparing.infer(problem, seed=1, max_evaluations=40, progress=False)
    >>> print(f"{result.log_evidence:.2f}")  # exact: log(2 pi) = 1.84
    1.84
    >>> result.posterior.sample(1000, seed=1).shape
    (1000, 2)
    """
    check_arguments(
        problem=problem,
        seed=seed,
        max_evaluations=max_evaluations,
        batch_size=batch_size,
        workers=workers,
        time_limit=time_limit,
        failures=failures,
        tolerance=tolerance,
        store=store,
        tag=tag,
        check_target=check_target,
        check_gradient=check_gradient,
        settings=settings,
        progress=progress,
        callback=callback,
        runs=runs,
    )
    new_run = partial(
        Inference,
        problem,
        max_evaluations=max_evaluations,
        tolerance=tolerance,
        tag=tag,
        settings=settings,
    )
    policy = FailurePolicy() if failures is None else failures
    open_pool = partial(
        EvaluationPool, problem, executor, workers=workers, time_limit=time_limit, policy=policy
    )
    loop = RunLoop(open_pool, policy, batch_size, check_target, check_gradient)
    if runs is not None and runs > 1:
        return infer_several(new_run, int(runs), x0, seed, store, loop, progress, callback)

    if isinstance(store, (str, Path)):
        refuse_group(Path(store))
    run = new_run(x0=x0, seed=seed, store=store)
    with run, make_display(progress, problem, run.max_evaluations) as display, loop:
        compile_with_notice(display.compiling, gradients=problem.gradient is not None)
        driven = DrivenRun(run, display, callback)
        driven.begin()
        with loop.interruption.watched():
            loop.require_same_target([run])
            loop.drive([driven])
        loop.interruption.end([run], store)
        result = run.result()
        display.finish(loop.interruption.ending(result, store))
    return result
