"""One run of one method on one problem, in a process of its own (see ``child_process``).

Only this module turns a method's estimate into errors, so every method is judged alike.
"""

from __future__ import annotations

import math
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

try:
    import resource
except ImportError:  # there is none on Windows
    resource = None

import numpy as np

from benchmarks.child_process import answer_request
from benchmarks.methods import find_method
from benchmarks.methods.base import Estimate, LibraryClock, Snapshot
from benchmarks.metrics import (
    gskl,
    lml_error,
    mmtv,
    mode_masses,
    worst_limit_error,
    worst_sd_ratio,
)
from benchmarks.problems import load_problem
from benchmarks.problems.base import Array, BenchmarkProblem

# Beyond it no time per evaluation is kept: a sampler's are a hundred thousand, and alike.
MAX_TIMED_EVALUATIONS = 10_000


@dataclass(frozen=True, eq=False)
class TimedTarget:
    """The log joint, noting the library's CPU seconds before each evaluation."""

    problem: BenchmarkProblem
    clock: LibraryClock
    cpu_before: list[float] = field(default_factory=list)

    def __call__(self, x: Array) -> float:
        self.cpu_before.append(self.clock.cpu)
        return self.problem.log_joint(x)


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
    target = TimedTarget(problem, clock)
    method = find_method(request["method"])
    estimate = method.run(problem, clock.exclude(target), x0, seed, request["budget"], clock)
    memory = peak_memory_mb()  # before the errors are computed
    n = len(target.cpu_before)
    timed = target.cpu_before if n <= MAX_TIMED_EVALUATIONS else []
    return {
        "status": "ok",
        "dimension": problem.dimension,
        "evaluations": n,
        **judge(problem, estimate, clock),
        "library_cpu_before": [round(seconds, 5) for seconds in timed],
        "peak_memory_mb": memory,
    }


def peak_memory_mb() -> float | None:
    """The largest resident size of this process so far, where the system tells.

    On Linux from /proc: the other number also counts what the process that forked this one had.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (peak,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(peak.split()[1]) / 1024
    if resource is None:
        return None
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes there
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def judge(problem: BenchmarkProblem, estimate: Estimate, clock: LibraryClock) -> dict[str, Any]:
    """Errors of an estimate; ``null`` stands for a value that is not finite."""
    return {
        "lml_error": _finite(lml_error(estimate.log_evidence, problem.log_evidence)),
        "lml_error_alternatives": {
            origin: _finite(lml_error(estimate.log_evidence, value))
            for origin, value in problem.log_evidence_alternatives.items()
        },
        "lml_sd": _finite(estimate.log_evidence_sd),
        "elbo_error": _finite(lml_error(estimate.elbo, problem.log_evidence)),
        "elbo_sd": _finite(estimate.elbo_sd),
        "gskl": _finite(_gskl(problem, estimate)),
        "mmtv": _finite(_mmtv(problem, estimate)),
        "sd_ratio": _finite(worst_sd_ratio(estimate.covariance, problem.posterior_covariance)),
        "limit_error": _finite(_limit_error(problem, estimate)),
        **_mode_scores(problem, estimate),
        "converged": estimate.converged,
        "library_seconds": clock.wall,
        "library_cpu_seconds": clock.cpu,
        "phase_seconds": dict(estimate.phase_seconds),
        "version": estimate.version,
        "trace": [_trace_row(problem, snapshot) for snapshot in estimate.snapshots],
    }


def _trace_row(problem: BenchmarkProblem, snapshot: Snapshot) -> list[float | None]:
    """[evaluations, LML error, gsKL, reported sd of the LML] after one iteration."""
    error = lml_error(snapshot.log_evidence, problem.log_evidence)
    gskl_now = _finite(_gskl(problem, snapshot))
    return [snapshot.n_evaluations, _finite(error), gskl_now, _finite(snapshot.log_evidence_sd)]


def _gskl(problem: BenchmarkProblem, approximate: Estimate | Snapshot) -> float:
    if approximate.mean is None or approximate.covariance is None:
        return math.nan
    exact = problem.posterior_mean, problem.posterior_covariance
    return gskl(approximate.mean, approximate.covariance, *exact)


def _mmtv(problem: BenchmarkProblem, estimate: Estimate) -> float:
    if problem.marginals is None:
        return math.nan
    return mmtv(estimate.samples, problem.marginals)


def _limit_error(problem: BenchmarkProblem, estimate: Estimate) -> float:
    if problem.marginals is None:
        return math.nan
    sds = np.sqrt(np.diag(problem.posterior_covariance))
    return worst_limit_error(estimate.samples, problem.marginals, sds)


def _mode_scores(problem: BenchmarkProblem, estimate: Estimate) -> dict[str, Any]:
    """The mass found for each mode beside its true one; nothing where there are no modes."""
    if problem.modes is None or not np.all(np.isfinite(estimate.samples)):
        return {}
    found = mode_masses(estimate.samples, problem.modes)
    return {"mode_masses": found.tolist(), "mode_weights": problem.modes.weights.tolist()}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


if __name__ == "__main__":
    answer_request(perform)
