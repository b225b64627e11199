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
from benchmarks.methods import SAMPLERS, find_method
from benchmarks.methods.base import Environment
from benchmarks.problems import load_problem
from benchmarks.problems.base import BenchmarkProblem
from benchmarks.problems.shapes import names_in
from benchmarks.records import RunFile, RunKey

Job = TypeVar("Job")
Outcome = TypeVar("Outcome")

MANY_SEEDS, FEW_SEEDS = 10, 5
SMALL_DIMENSION = 6  # many seeds up to it


@dataclass(frozen=True)
class Campaign:
    """What to run and where to put it."""

    problems: Sequence[str]
    methods: Sequence[str]
    out: Path
    seeds: int | None = None  # seeds 1..seeds; None: 10 up to D = 6, 5 above
    jobs: int = 1
    data: Path | None = None
    budget: int | None = None  # None: the paper's 50 (D + 2)
    sampler_budget: int = 300_000  # of MCMC and nested sampling
    timeout: float | None = None  # seconds a run may take
    core: int | None = None  # every run on this core alone
    pyvbmc_python: Path | None = None
    retry_failed: bool = False
    redo: Sequence[str] = ()  # methods whose recorded runs are done again


def run_campaign(campaign: Campaign, report: Callable[[str], None] = print) -> int:
    """Run what is not recorded yet; return how many runs failed."""
    keys = keys_of(campaign)
    file = RunFile(campaign.out)
    file.forget(key for key in file.read() if key in keys and key.method in campaign.redo)
    done = file.read()
    if campaign.retry_failed:
        done = {key: record for key, record in done.items() if record["status"] == "ok"}
    pending = [key for key in keys if key not in done]
    report(f"{len(pending)} runs to do, {len(keys) - len(pending)} already in {file.path}")
    failures = 0
    progress = Progress(total=sum(map(_work, pending)), jobs=campaign.jobs)
    for key, outcome in run_parallel(lambda key: _perform(key, campaign), pending, campaign.jobs):
        file.append(key, outcome)
        failures += outcome["status"] != "ok"
        progress.advance(_work(key), outcome["seconds"])
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


def keys_of(campaign: Campaign) -> list[RunKey]:
    """Every run asked for, checked before the first one starts.

    Seeds are outermost and methods innermost: every cell of the table fills evenly, and methods
    that are compared take turns.
    """
    _check(campaign)
    problems = {name: load_problem(name, campaign.data) for name in names_in(campaign.problems)}
    seeds = {
        name: campaign.seeds or (MANY_SEEDS if problem.dimension <= SMALL_DIMENSION else FEW_SEEDS)
        for name, problem in problems.items()
    }
    return [
        RunKey(name, method, seed, _budget(campaign, method, problem))
        for seed in range(1, max(seeds.values()) + 1)
        for name, problem in problems.items()
        if seed <= seeds[name]
        for method in campaign.methods
    ]


def _check(campaign: Campaign) -> None:
    for name in campaign.methods:
        if find_method(name).environment is Environment.PYVBMC and campaign.pyvbmc_python is None:
            raise BenchmarkError(
                f"{name} needs --pyvbmc-python PATH: the Python of an environment made by "
                "'python -m benchmarks pyvbmc-env DIR'"
            )
    for name in campaign.redo:
        if name not in campaign.methods:
            raise BenchmarkError(f"--redo {name}: it is not one of the methods to run")
    if campaign.core is None:
        return
    cores = child_process.usable_cores()
    if campaign.core not in cores:
        known = ", ".join(map(str, cores)) or "none: this system cannot pin a process"
        raise BenchmarkError(f"--core {campaign.core} cannot be used (usable: {known})")
    if campaign.jobs > 1:
        raise BenchmarkError("--core puts every run on one core: leave --jobs at 1")


def _budget(campaign: Campaign, method: str, problem: BenchmarkProblem) -> int:
    return campaign.sampler_budget if method in SAMPLERS else campaign.budget or problem.budget


def _work(key: RunKey) -> float:
    """In evaluations of a method that models the target; a sampler's cost a thousandth."""
    return key.budget / (1000 if key.method in SAMPLERS else 1)


def _perform(key: RunKey, campaign: Campaign) -> dict[str, Any]:
    interpreter = None
    if find_method(key.method).environment is Environment.PYVBMC:
        interpreter = campaign.pyvbmc_python
    request = {**vars(key), "data": str(campaign.data.resolve()) if campaign.data else None}
    began = time.perf_counter()
    try:
        outcome = child_process.call(
            "benchmarks.worker", request, campaign.timeout, interpreter, campaign.core
        )
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
    return "none" if value is None else f"{value:.3g}"
