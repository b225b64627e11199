"""A campaign: every problem with every method and seed, resumable, each run in its own process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmarks import child_process
from benchmarks.errors import BenchmarkError
from benchmarks.methods import find_method
from benchmarks.methods.base import Environment
from benchmarks.problems import load_problem
from benchmarks.records import RunFile, RunKey

Job = TypeVar("Job")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Campaign:
    """What to run and where to put it."""

    problems: Sequence[str]
    methods: Sequence[str]
    seeds: int  # seeds 1..seeds
    jobs: int
    out: Path
    data: Path | None = None
    budget: int | None = None  # None: the paper's 50 (D + 2)
    timeout: float | None = None  # seconds a run may take
    pyvbmc_python: Path | None = None
    retry_failed: bool = False


def run_campaign(campaign: Campaign, report: Callable[[str], None] = print) -> int:
    """Run what is not recorded yet; return how many runs failed."""
    keys = _keys(campaign)
    file = RunFile(campaign.out)
    done = file.read()
    if campaign.retry_failed:
        done = {key: record for key, record in done.items() if record["status"] == "ok"}
    pending = [key for key in keys if key not in done]
    report(f"{len(pending)} runs to do, {len(keys) - len(pending)} already in {file.path}")
    failures = 0
    progress = Progress(total=sum(key.budget for key in pending), jobs=campaign.jobs)
    for key, outcome in run_parallel(lambda key: _perform(key, campaign), pending, campaign.jobs):
        file.append(key, outcome)
        failures += outcome["status"] != "ok"
        progress.advance(key.budget, outcome["seconds"])
        report(f"{_summary(key, outcome)}  ({progress.time_left()} left)")
    return failures


def run_parallel(
    work: Callable[[Job], Outcome], items: Sequence[Job], jobs: int
) -> Iterator[tuple[Job, Outcome]]:
    """Yield (item, outcome) as each finishes; an interruption starts no further ones."""
    with ThreadPoolExecutor(jobs) as pool:
        waiting: dict[Future[Outcome], Job] = {pool.submit(work, item): item for item in items}
        try:
            while waiting:
                finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield waiting.pop(future), future.result()
        finally:
            for future in waiting:
                future.cancel()


class Progress:
    """Time left, from the seconds that a unit of work has taken so far."""

    def __init__(self, total: float, jobs: int) -> None:
        self.left, self.jobs = total, jobs
        self.work = self.seconds = 0.0

    def advance(self, work: float, seconds: float) -> None:
        self.left -= work
        self.work += work
        self.seconds += seconds

    def time_left(self) -> str:
        minutes, seconds = divmod(round(self.left * self.seconds / self.work / self.jobs), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"


def _keys(campaign: Campaign) -> list[RunKey]:
    """Every run asked for, checked before the first one starts."""
    for name in campaign.methods:
        if find_method(name).environment is Environment.PYVBMC and campaign.pyvbmc_python is None:
            raise BenchmarkError(
                f"{name} needs --pyvbmc-python PATH: the Python of an environment made by "
                "'python -m benchmarks pyvbmc-env DIR'"
            )
    budgets = {
        name: campaign.budget or load_problem(name, campaign.data).budget
        for name in campaign.problems
    }
    return [
        RunKey(problem, method, seed, budgets[problem])
        for seed in range(1, campaign.seeds + 1)  # seeds outermost: every cell fills evenly
        for problem in campaign.problems
        for method in campaign.methods
    ]


def _perform(key: RunKey, campaign: Campaign) -> dict[str, Any]:
    interpreter = None
    if find_method(key.method).environment is Environment.PYVBMC:
        interpreter = campaign.pyvbmc_python
    request = {**vars(key), "data": str(campaign.data.resolve()) if campaign.data else None}
    began = time.perf_counter()
    try:
        outcome = child_process.call("benchmarks.worker", request, campaign.timeout, interpreter)
    except child_process.ChildError as error:
        outcome = {"status": "failed", "reason": str(error), "traceback": error.details}
    return {**outcome, "seconds": time.perf_counter() - began}


def _summary(key: RunKey, outcome: dict[str, Any]) -> str:
    head = f"{key.problem} {key.method} seed {key.seed}:"
    if outcome["status"] != "ok":
        return f"{head} FAILED, {outcome['reason']}"
    return (
        f"{head} {outcome['evaluations']} evaluations, LML error {_number(outcome['lml_error'])}, "
        f"gsKL {_number(outcome['gskl'])}, {outcome['seconds']:.0f} s"
    )


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.3g}"
