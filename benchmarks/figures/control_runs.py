"""The control experiment's runs, each in a process of its own (see ``child_process``).

A run of VBMC-P with its points kept, then WSABI-L's evidence and the surrogate's posterior from
those points alone. Both are recorded like a campaign's runs, in a folder of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import child_process
from benchmarks.figures.recorded_runs import Source
from benchmarks.methods import find_method
from benchmarks.methods.base import LibraryClock
from benchmarks.problems import load_problem
from benchmarks.problems.base import Array
from benchmarks.records import RunFile, RunKey
from benchmarks.run import run_parallel
from benchmarks.versus.runs import Group, Run
from benchmarks.worker import judge

FOLDER = "control"
VBMC, CONTROL = "sparing-paper", "control"


def control_groups(source: Source, problems: Sequence[str]) -> dict[str, list[Group]]:
    """For each problem the groups of VBMC-P and of the control; what is missing is run."""
    file = RunFile(source.directory / FOLDER)
    wanted = [
        RunKey(name, CONTROL, seed, source.budget(name))
        for seed in range(1, source.control_seeds + 1)
        for name in problems
    ]
    pending = [key for key in wanted if key not in file.read()]
    data = str(source.data.resolve()) if source.data else None
    if pending:
        source.report(f"control experiment: {len(pending)} of {len(wanted)} runs to do")
    for key, answer in run_parallel(lambda key: _call(key, data), pending, source.jobs):
        for method, outcome in answer.items():
            file.append(replace(key, method=method), outcome)
        status = answer[CONTROL].get("reason", "done")
        source.report(f"control on {key.problem}, seed {key.seed}: {status}")
    records = file.read()
    groups = {}
    for name in problems:
        keys = [key for key in wanted if key.problem == name]
        groups[name] = [
            Group(name, method, [Run.from_record(records[replace(k, method=method)]) for k in keys])
            for method in (VBMC, CONTROL)
        ]
    return groups


def _call(key: RunKey, data: str | None) -> dict[str, Any]:
    """Outcomes by method; the control's alone comes last, as it says that both are there."""
    try:
        answer = child_process.call(__name__, {**vars(key), "data": data}, timeout=None)
    except child_process.ChildError as error:
        failed = {"status": "failed", "reason": str(error), "traceback": error.details}
        answer = {VBMC: failed, CONTROL: failed}
    return answer


def perform(request: dict[str, Any]) -> dict[str, Any]:
    """Run VBMC-P and the control on its points; return both as records."""
    from benchmarks.methods.control import control_snapshots
    from benchmarks.methods.recording import look_counts, posterior_counts

    data, seed = request["data"], request["seed"]
    problem = load_problem(request["problem"], Path(data) if data else None)
    points: list[Array] = []
    values: list[float] = []

    def target(x: Array) -> float:
        value = problem.log_joint(x)
        points.append(np.array(x))
        values.append(value)
        return value

    clock = LibraryClock()
    start = problem.starting_point(seed)
    estimate = find_method(VBMC).run(problem, target, start, seed, request["budget"], clock)
    n = len(values)
    counts = [count for count in posterior_counts(look_counts(request["budget"])) if count < n]
    evaluated = np.array(points), np.array(values)
    snapshots = control_snapshots(problem, *evaluated, [*counts, n], seed)
    trace = judge(problem, replace(estimate, snapshots=snapshots), clock)["trace"]
    shared = {"status": "ok", "dimension": problem.dimension, "evaluations": n}
    _, lml, gskl, sd = trace[-1]
    return {
        VBMC: {**shared, **judge(problem, estimate, clock)},
        CONTROL: {**shared, "lml_error": lml, "gskl": gskl, "lml_sd": sd, "trace": trace},
    }


if __name__ == "__main__":
    child_process.answer_request(perform)
