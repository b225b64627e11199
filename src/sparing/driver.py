"""Drive a run to its end: ask, evaluate, tell, show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from sparing.evaluation_log import Status
from sparing.executors import evaluate
from sparing.inference import Inference
from sparing.kernels import compilation
from sparing.problem import Problem
from sparing.progress import make_display
from sparing.result import Result
from sparing.settings import Settings
from sparing.step import IterationInfo

Callback = Callable[[IterationInfo], Any]

# What a callback returns to end the run.
STOP = "stop"


def infer(
    problem: Problem,
    *,
    x0: ArrayLike | None = None,
    seed: int | None = None,
    max_evaluations: int | None = None,
    tolerance: float = 0.1,
    settings: Settings | None = None,
    progress: bool = True,
    callback: Callback | None = None,
) -> Result:
    """Infer the posterior and the log evidence of a problem.

    x0               a point, or several, to start from; none: the plausible box is sampled
    seed             same seed, same result; None draws one (``result.seed`` has it)
    max_evaluations  the budget; default 50 (D + 2)
    tolerance        stop when the solution is stable to this error of the log evidence
    settings         ``Settings()``, or ``Settings.paper()`` for the 2018 algorithm
    progress         show a live display
    callback         called with each iteration's info; returning "stop" ends the run
    """
    run = Inference(
        problem,
        x0=x0,
        seed=seed,
        max_evaluations=max_evaluations,
        tolerance=tolerance,
        settings=settings,
    )
    with make_display(progress, problem, run.max_evaluations) as display:
        if not compilation.all_cached():
            display.compiling()
        compilation.compile_all()
        display.start()
        n_shown = 0
        while not run.finished:
            for proposal in run.ask(1):
                outcome = evaluate(problem, proposal.x)
                error = outcome.message if outcome.status is Status.FAILED else None
                run.tell(proposal, outcome.value, error=error, duration=outcome.duration)
            display.evaluation(run.n_evaluations, run.n_failed)
            for info in run.history[n_shown:]:
                display.iteration(info)
                if callback is not None and callback(info) == STOP:
                    run.stop()
            n_shown = len(run.history)
        result = run.result()
        display.finish(result.summary())
    return result
