"""One run of one method on one problem, in a process of its own (see ``child_process``).

Only this module turns a method's estimate into errors, so every method is judged alike.
"""

from __future__ import annotations

import math
import traceback
from pathlib import Path
from typing import Any

from benchmarks.child_process import answer_request
from benchmarks.methods import find_method
from benchmarks.methods.base import Estimate, LibraryClock, Snapshot
from benchmarks.metrics import gskl, lml_error, mmtv
from benchmarks.problems import load_problem
from benchmarks.problems.base import Array, BenchmarkProblem


def perform(request: dict[str, Any]) -> dict[str, Any]:
    """The outcome of a run as a JSON object; an exception is an outcome too."""
    try:
        return _run(request)
    except Exception as error:  # recorded with its traceback: one failure must not end a campaign
        return {
            "status": "failed",
            "reason": f"{type(error).__name__}: {error}",
            "traceback": traceback.format_exc(),
        }


def _run(request: dict[str, Any]) -> dict[str, Any]:
    data = request["data"]
    problem = load_problem(request["problem"], Path(data) if data else None)
    seed = request["seed"]
    x0 = problem.starting_point(seed)
    clock = LibraryClock()
    n_calls = 0

    def log_joint(x: Array) -> float:
        nonlocal n_calls
        n_calls += 1
        return problem.log_joint(x)

    method = find_method(request["method"])
    estimate = method.run(problem, clock.exclude(log_joint), x0, seed, request["budget"], clock)
    return {"status": "ok", "evaluations": n_calls, **judge(problem, estimate, clock)}


def judge(problem: BenchmarkProblem, estimate: Estimate, clock: LibraryClock) -> dict[str, Any]:
    """Errors of an estimate; ``null`` stands for a value that is not finite."""
    return {
        "lml_error": _finite(lml_error(estimate.log_evidence, problem.log_evidence)),
        "lml_sd": _finite(estimate.log_evidence_sd),
        "elbo_error": _finite(lml_error(estimate.elbo, problem.log_evidence)),
        "elbo_sd": _finite(estimate.elbo_sd),
        "gskl": _finite(_gskl(problem, estimate)),
        "mmtv": _finite(mmtv(estimate.samples, problem.marginals)),
        "converged": estimate.converged,
        "library_seconds": clock.wall,
        "library_cpu_seconds": clock.cpu,
        "phase_seconds": dict(estimate.phase_seconds),
        "version": estimate.version,
        "trace": [_trace_row(problem, snapshot) for snapshot in estimate.snapshots],
    }


def _trace_row(problem: BenchmarkProblem, snapshot: Snapshot) -> list[float | None]:
    """[evaluations, LML error of the ELBO, gsKL]: what every iteration of every method has."""
    error = lml_error(snapshot.elbo, problem.log_evidence)
    return [snapshot.n_evaluations, _finite(error), _finite(_gskl(problem, snapshot))]


def _gskl(problem: BenchmarkProblem, approximate: Estimate | Snapshot) -> float:
    if approximate.mean is None or approximate.covariance is None:
        return math.nan
    exact = problem.posterior_mean, problem.posterior_covariance
    return gskl(approximate.mean, approximate.covariance, *exact)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


if __name__ == "__main__":
    answer_request(perform)
