"""Callers that ask and tell what they should not, and many times."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import sparing
from benchmarks.attack.cases import Case, Ending, chosen, refused, require
from benchmarks.attack.runs import (
    BUDGET,
    SETTINGS,
    begun_inference,
    bits,
    infer,
    log_density,
    make_problem,
    reference,
)
from sparing.errors import SparingError
from sparing.executors import Outcome

Call = Callable[[sparing.Inference], object]
NAN, INF = float("nan"), float("inf")


def _proposal(run: sparing.Inference) -> sparing.Proposal:
    return run.pending[0]


def _told(*value: Any, **options: Any) -> Call:
    return lambda run: run.tell(_proposal(run), *value, **options)


def _told_at(x: Any) -> Call:
    return lambda run: run.tell(x, -1.0)


def _outcome(outcome: Any) -> Call:
    return lambda run: run.tell_outcome(_proposal(run), outcome)


def _foreign(run: sparing.Inference) -> object:
    other = sparing.Inference(make_problem(), seed=2)
    return run.tell(other.ask()[0], -1.0)


def _told_twice(run: sparing.Inference) -> object:
    proposal = sparing.Proposal(99, np.zeros(2))
    return run.tell(proposal, -1.0)


OK = sparing.Status.OK
REFUSED: dict[str, Call] = {
    "ask(0)": lambda run: run.ask(0),
    "ask(-1)": lambda run: run.ask(-1),
    "ask(1.5)": lambda run: run.ask(1.5),  # pyright: ignore[reportArgumentType]
    "ask('2')": lambda run: run.ask("2"),  # pyright: ignore[reportArgumentType]
    "ask(NaN)": lambda run: run.ask(NAN),  # pyright: ignore[reportArgumentType]
    "tell nothing": _told(),
    "tell text": _told("-1.0"),
    "tell bytes": _told(b"1"),
    "tell True": _told(True),
    "tell a list": _told([1.0, 2.0]),
    "tell a complex number": _told(1j),
    "tell negative noise": _told(-1.0, noise_sd=-1.0),
    "tell NaN noise": _told(-1.0, noise_sd=NAN),
    "tell huge noise": _told(-1.0, noise_sd=1e200),
    "tell of NaN": _told_at([NAN, 0.0]),
    "tell of infinity": _told_at([INF, 0.0]),
    "tell of text": _told_at(["a", "b"]),
    "tell of three numbers": _told_at([0.0, 0.0, 0.0]),
    "tell of a number": _told_at(1.0),
    "tell of nothing": _told_at([]),
    "tell of two points": _told_at([[0.0, 0.0], [1.0, 1.0]]),
    "tell from far away": _told_at([1e300, 0.0]),
    "tell of another run": _foreign,
    "tell what was not asked": _told_twice,
    "a proposal with NaN": lambda run: run.tell(sparing.Proposal(0, np.array([NAN, 0.0])), -1.0),
    "an outcome of 1e300": _outcome(Outcome(1e300, OK, 0.1)),
    "an outcome of NaN": _outcome(Outcome(NAN, OK, 0.1)),
    "an outcome without status": _outcome(Outcome(-1.0, "fine", 0.1)),  # pyright: ignore[reportArgumentType]
    "an outcome of text": _outcome(Outcome("-1", OK, 0.1)),  # pyright: ignore[reportArgumentType]
    "no outcome": _outcome(None),
    "a duration of text": _outcome(Outcome(-1.0, OK, "long")),  # pyright: ignore[reportArgumentType]
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "batch_size=-1": {"batch_size": -1},
    "batch_size=2.5": {"batch_size": 2.5},
    "max_evaluations=NaN": {"max_evaluations": NAN},
    "max_evaluations=inf": {"max_evaluations": INF},
    "tolerance='a'": {"tolerance": "a"},
    "tolerance=0": {"tolerance": 0},
    "store=''": {"store": ""},
    "store=3": {"store": 3},
    "workers=0": {"workers": 0},
    "time_limit=-1": {"time_limit": -1},
    "runs='3'": {"runs": "3"},
    "settings={}": {"settings": {}},
    "x0 of NaN": {"x0": [NAN, 0.0]},
    "x0 of text": {"x0": "ab"},
    "tag=3": {"tag": 3},
    "callback=3": {"callback": 3},
    "failures='skip'": {"failures": "skip"},
}


def misuse(n_cases: int, generator: np.random.Generator) -> list[Case]:
    """What is no answer to a question is refused, and the run goes on as if nothing had been."""
    cases = [Case(name, partial(_misused, call=call)) for name, call in REFUSED.items()]
    cases += [Case(name, partial(_argued, options=o)) for name, o in ARGUMENTS.items()]
    cases += [Case(f"{n} threads", partial(_threads, n_threads=n)) for n in (2, 4, 8, 16)]
    return chosen(cases, n_cases, generator)


def _misused(directory: Path, call: Call) -> Ending:
    store = directory / "run"
    with begun_inference(store) as run:
        run.ask()
        n_events = len(run.store.events())
        kinds = (SparingError, ValueError, TypeError)
        require(refused(lambda: call(run), kinds), "it was not refused")
        require(len(run.store.events()) == n_events, "something of it was recorded")
    require(bits(infer(store)) == reference(), "the run has changed")
    return Ending.REFUSED


def _argued(directory: Path, options: dict[str, Any]) -> Ending:
    before = sorted(directory.rglob("*"))
    options = {"max_evaluations": BUDGET, "progress": False} | options
    require(refused(lambda: sparing.infer(make_problem(), **options)), "it was not refused")
    require(sorted(directory.rglob("*")) == before, "something was made")
    return Ending.REFUSED


def _threads(directory: Path, n_threads: int) -> Ending:
    problems: list[BaseException] = []

    def work(run: sparing.Inference) -> None:
        try:
            while proposals := run.ask(2):
                for proposal in proposals:
                    run.tell(proposal, log_density(proposal.x))
        except BaseException as error:
            problems.append(error)

    with begun_inference(directory / "run") as run:
        threads = [threading.Thread(target=work, args=(run,)) for _ in range(n_threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    require(not problems, f"a thread ended with {problems}")
    with begun_inference(directory / "run") as run:
        identifiers = sorted(entry.identifier or 0 for entry in run.evaluations)
        require(identifiers == list(range(BUDGET)), f"points are missing: {identifiers}")
    return Ending.RIGHT


# ------------------------------------------------------------------------------------ memory

N_TELLS = 2_000
BYTES_PER_TELL = 5_000  # measured: 520 in memory, 760 with a store, without a fit


def memory(n_cases: int, generator: np.random.Generator) -> list[Case]:
    """Many evaluations are told: what is kept of each is small, also what a fit leaves behind."""
    cases = [
        Case(f"{N_TELLS} tells, {where}", partial(_many_tells, stored=where == "stored"), 300.0)
        for where in ("in memory", "stored")
    ]
    cases.append(Case("fits", _many_fits, 300.0))
    return chosen(cases, n_cases, generator)


def _many_tells(directory: Path, stored: bool) -> Ending:
    design = replace(SETTINGS.initial_design, n_points=N_TELLS + 1)  # no fit before the last one
    options: dict[str, Any] = {
        "settings": replace(SETTINGS, initial_design=design),
        "max_evaluations": 2 * N_TELLS,
        "store": directory / "run" if stored else None,
    }
    points = np.random.default_rng(1).uniform(-2.0, 2.0, (N_TELLS, 2))
    tracemalloc.start()
    with sparing.Inference(make_problem(), seed=1, **options) as run:
        for x in points:
            run.tell(x, log_density(x))
        used = tracemalloc.get_traced_memory()[0] / N_TELLS
    print(f"{used:.0f} bytes for each")
    require(used < BYTES_PER_TELL, f"{used:.0f} bytes are kept for each")
    return Ending.RIGHT


def _many_fits(directory: Path) -> Ending:
    """The second half of a run needs little more than the first (measured: 1.6 MB)."""
    options: dict[str, Any] = {"settings": SETTINGS, "tolerance": 1e-9, "store": directory / "run"}
    used = []
    tracemalloc.start()
    run = sparing.Inference(make_problem(), seed=1, max_evaluations=150, **options)
    while proposals := run.ask():
        run.tell(proposals[0], log_density(proposals[0].x))
        used.append(tracemalloc.get_traced_memory()[0])
    growth = used[-1] - used[len(used) // 2]
    print(f"{growth / 1e6:.1f} MB")
    require(growth < 20e6, f"{growth / 1e6:.0f} MB more at the end than in the middle")
    return Ending.RIGHT
