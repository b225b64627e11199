"""Processes that are killed while they run, and resumed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import durability
from benchmarks.attack.cases import Case, Ending, chosen, require
from benchmarks.attack.runs import (
    bits,
    infer,
    infer_several,
    log_density,
    reference,
    reference_of_several,
    several_bits,
)
from benchmarks.killed_runs import results_in
from benchmarks.killing import kill_at_boundary, killed_child

KILLS = 3  # of a run, at most
LONGEST_RUN = 1.5  # seconds
BOUNDARIES = 300  # calls of the system that change a file, in a run


def kills(n_cases: int, generator: np.random.Generator) -> list[Case]:
    """A run killed at random times, or around its writes; then it goes on to its end."""
    cases = []
    for number in range(n_cases):
        delays = generator.uniform(0.0, LONGEST_RUN, KILLS)
        boundaries = generator.integers(BOUNDARIES, size=KILLS)
        attack = partial(_killed, delays=delays) if number % 2 else partial(_cut, at=boundaries)
        cases.append(Case(f"kill {number}", attack))
    return cases


def _killed(directory: Path, delays: np.ndarray) -> Ending:
    return _resumed(directory, [partial(killed_child, _run(directory), d) for d in delays])


def _cut(directory: Path, at: np.ndarray) -> Ending:
    def action(acknowledge: Callable[[], None], boundary: int) -> None:
        kill_at_boundary(boundary)
        _run(directory)(acknowledge)

    return _resumed(
        directory, [partial(killed_child, partial(action, boundary=b), None) for b in at]
    )


def _run(directory: Path) -> Callable[[Callable[[], None]], None]:
    return lambda _: infer(directory / "run") and None


def _resumed(directory: Path, attempts: list[Callable[[], int]]) -> Ending:
    recorded = 0
    for attempt in attempts:
        attempt()
        found = results_in(directory / "run")
        require(found >= recorded, f"{recorded} results were recorded, {found} are there")
        recorded = found
    require(bits(infer(directory / "run")) == reference(), "it ended with another result")
    return Ending.RIGHT


def kills_of_several(n_cases: int, generator: np.random.Generator) -> list[Case]:
    """The same with several runs and their pooled run."""

    def attack(directory: Path, delays: np.ndarray) -> Ending:
        for delay in delays:
            killed_child(lambda _: infer_several(directory / "runs") and None, delay)
        found = several_bits(infer_several(directory / "runs"))
        require(found == reference_of_several(), "they ended with other results")
        return Ending.RIGHT

    delays = generator.uniform(0.0, 2.0 * LONGEST_RUN, (n_cases, KILLS))
    return [Case(f"kill of several {i}", partial(attack, delays=d)) for i, d in enumerate(delays)]


def writes(n_cases: int, generator: np.random.Generator) -> list[Case]:
    """The store alone, killed at random times and (`durability` has them all) at some writes."""

    def attack(directory: Path, delay: float | None, boundary: int) -> Ending:
        def action(acknowledge: Callable[[], None]) -> None:
            if delay is None:
                kill_at_boundary(boundary)
            durability.work(directory / "run", 12, acknowledge)

        acknowledged = killed_child(action, delay)
        faults = durability.faults_after_kill(directory / "run", 12, max(acknowledged, 0))
        if acknowledged >= 0:
            require(not faults, "; ".join(faults))
        return Ending.RIGHT

    cases = []
    for number in range(n_cases):
        delay = float(generator.uniform(0.0, 0.05)) if number % 4 == 0 else None
        boundary = int(generator.integers(250))
        cases.append(Case(f"write {number}", partial(attack, delay=delay, boundary=boundary)))
    return cases


# ------------------------------------------------------------------ signals to a run with workers

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGKILL")
PATIENCE = 20.0  # seconds until a process that was told to end, and its workers, are gone


class SlowTarget:
    """The density, slow, which leaves the number of each process that evaluates it."""

    def __init__(self, pids: Path) -> None:
        self.pids = pids

    def __call__(self, x: np.ndarray) -> float:
        (self.pids / str(os.getpid())).touch()
        time.sleep(0.1)
        return log_density(x)


def signals(n_cases: int, generator: np.random.Generator) -> list[Case]:
    """A run with workers is told to end: its workers end with it, and nothing is lost."""
    cases = [
        Case(f"{name}, {where}", partial(_signalled, name=name, where=where), limit=120.0)
        for where in ("workers", "a pool")
        for name in SIGNALS
        if (where, name) not in _NOT_OURS
    ]
    return chosen(cases, n_cases, generator)


# Workers of the user's own pool do not know our ways; Python's pool lets them wait for ever when
# its process is killed.
_NOT_OURS = {("a pool", "SIGHUP"), ("a pool", "SIGQUIT"), ("a pool", "SIGKILL")}


def _signalled(directory: Path, name: str, where: str) -> Ending:
    pids, store = directory / "pids", directory / "run"
    pids.mkdir()
    child = os.fork()
    if child == 0:
        _run_with_workers(store, SlowTarget(pids), where)
    while results_in(store) < 11:
        time.sleep(0.02)
    os.kill(child, signal.Signals[name])
    _require_gone([child], "the run")
    before = results_in(store)
    _require_gone([int(path.name) for path in pids.iterdir()], "a worker")
    result = infer(store)
    require(result.n_evaluations >= before, "an evaluation was lost")
    values = [log_density(entry.x) for entry in result.evaluations]
    require([e.value for e in result.evaluations] == values, "a value is wrong")
    return Ending.RIGHT


def _run_with_workers(store: Path, target: SlowTarget, where: str) -> None:
    for number in (signal.SIGHUP, signal.SIGQUIT):  # `nohup` or a shell may have them ignored
        signal.signal(number, signal.SIG_DFL)
    with suppress(KeyboardInterrupt):
        if where == "workers":
            infer(store, target, workers=2, max_evaluations=200)
        else:
            with ProcessPoolExecutor(2) as executor:
                infer(store, target, executor=executor, max_evaluations=200)
    os._exit(0)


def _require_gone(pids: list[int], who: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while alive := [pid for pid in pids if _is_alive(pid)]:
        require(time.monotonic() < deadline, f"{who} lives on: {alive}")
        time.sleep(0.02)


def _is_alive(pid: int) -> bool:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        os.kill(pid, 0)
        status = Path(f"/proc/{pid}/stat")  # one that nobody has waited for yet is gone, too
        return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
