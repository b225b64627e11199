"""The robustness campaign: sparing on random problems must answer or say what is wrong.

Every problem is valid, so each run ends in one of three ways: a result that keeps its promises,
an error of sparing's own about the input, or a crash, which is anything else (another exception,
a dead or hanging process, a result with impossible values). Python warnings other than sparing's
own are counted beside.
"""

from __future__ import annotations

import json
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import child_process
from benchmarks.random_problems import Budget, RandomProblem, random_problem
from benchmarks.run import Progress, run_parallel


class Outcome(Enum):
    """How a run ended."""

    RESULT = "result"
    INPUT_ERROR = "clear error"
    CRASH = "CRASH"


def run_robustness(
    numbers: Sequence[int],
    jobs: int,
    budget: Budget,
    timeout: float,
    out: Path | None,
    report: Callable[[str], None] = print,
) -> int:
    """Run the problems of these numbers; return how many crashed."""

    def work(number: int) -> dict[str, Any]:
        request = {"number": number, "budget": budget.value}
        try:
            return child_process.call("benchmarks.robustness", request, timeout)
        except child_process.ChildError as error:
            return {
                "number": number,
                "outcome": Outcome.CRASH.value,
                "reason": str(error),
                "traceback": error.details,
                "warnings": [],
                "seconds": timeout,
            }

    tally: Counter[str] = Counter()
    warned: Counter[str] = Counter()
    progress = Progress(total=len(numbers), jobs=jobs)
    for number, answer in run_parallel(work, numbers, jobs):
        tally[answer["outcome"]] += 1
        warned.update(answer["warnings"])
        progress.advance(1, answer["seconds"])
        if out is not None:
            with out.open("a") as file:
                file.write(json.dumps(answer) + "\n")
        report(_line(number, answer, progress.time_left()))
    report("; ".join(f"{outcome.value}: {tally[outcome.value]}" for outcome in Outcome))
    report(f"warnings other than sparing's own: {warned.total()}")
    for message, count in warned.most_common():
        report(f"  {count} x {message}")
    return tally[Outcome.CRASH.value]


def _line(number: int, answer: dict[str, Any], time_left: str) -> str:
    text = f"problem {number}: {answer['outcome']}"
    if answer["outcome"] != Outcome.RESULT.value:
        text += f", {answer['reason']} [{random_problem(number).describe()}]"
    if answer["outcome"] == Outcome.CRASH.value:
        text += f"\n{answer['traceback']}"
    return f"{text}  ({time_left} left)"


def perform(request: dict[str, Any]) -> dict[str, Any]:
    """The child's side: run one problem and say how it ended."""
    from sparing.errors import SparingError, SparingWarning

    number = request["number"]
    problem = random_problem(number)
    answer: dict[str, Any] = {"number": number, "problem": problem.describe()}
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            faults = _infer(problem, Budget(request["budget"]))
            if faults:
                raise AssertionError(f"impossible result: {'; '.join(faults)}")
            answer["outcome"] = Outcome.RESULT.value
        except SparingError as error:
            answer |= {"outcome": Outcome.INPUT_ERROR.value, "reason": str(error)}
        except Exception as error:
            answer |= {
                "outcome": Outcome.CRASH.value,
                "reason": f"{type(error).__name__}: {error}",
                "traceback": traceback.format_exc(),
            }
    answer["seconds"] = time.perf_counter() - began
    answer["warnings"] = [
        f"{item.category.__name__}: {item.message} ({Path(item.filename).name}:{item.lineno})"
        for item in caught
        if not issubclass(item.category, SparingWarning)
    ]
    return answer


def _infer(problem: RandomProblem, budget: Budget) -> list[str]:
    """Run sparing; return what is impossible about its result."""
    import sparing

    max_evaluations = budget.evaluations(problem.dimension)
    result = sparing.infer(
        sparing.Problem(
            problem.log_density,
            problem.plausible_lower,
            problem.plausible_upper,
            lower=problem.lower,
            upper=problem.upper,
        ),
        seed=problem.number,
        max_evaluations=max_evaluations,
        progress=False,
    )
    samples = result.posterior.sample(1000, seed=problem.number)
    variances = np.diag(np.atleast_2d(result.posterior.covariance))
    checks = {
        "log evidence is not finite": np.isfinite(result.log_evidence),
        "its sd is not a finite, positive number": 0 <= result.log_evidence_sd < np.inf,
        "ELBO is not finite": np.isfinite(result.elbo),
        "posterior mean is not finite": np.all(np.isfinite(result.posterior.mean)),
        "posterior variances are not positive": np.all(variances > 0),
        "samples are not finite": np.all(np.isfinite(samples)),
        "samples leave the bounds": np.all((samples >= problem.lower) & (samples <= problem.upper)),
        "more evaluations than allowed": result.n_evaluations <= max_evaluations,
    }
    return [fault for fault, passed in checks.items() if not passed]


if __name__ == "__main__":
    child_process.answer_request(perform)
