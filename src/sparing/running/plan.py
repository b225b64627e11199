"""Runs as they were asked for, driven to the end: one, or several and what they make together."""

from __future__ import annotations

import signal
import sys
from collections.abc import Generator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from sparing.errors import SettingsError
from sparing.executors.failures import FailurePolicy
from sparing.executors.pool import EvaluationPool
from sparing.kernels.announce import compile_with_notice
from sparing.numerics.random_streams import RandomStreams
from sparing.problem.problem import Problem
from sparing.results.result import Result
from sparing.results.several_runs import SeveralRuns, put_together
from sparing.running.independent_runs import (
    deal_points,
    known_evaluations,
    numbered,
    pooled_settings,
    run_seed,
    tell_known,
)
from sparing.running.inference import Inference
from sparing.running.loop import Callback, DrivenRun, Interruption, RunLoop
from sparing.running.progress.display import make_display
from sparing.running.progress.several_display import RunsDisplay, make_runs_display
from sparing.store import Store
from sparing.store.run_group import RunGroup, open_group, refuse_group
from sparing.vbmc.settings import Settings
from sparing.vbmc.stopping import StopReason


@dataclass(frozen=True, eq=False, kw_only=True)
class RunPlan:
    """What is to be inferred, on what it is evaluated, and who wants to hear of it."""

    problem: Problem
    seed: int | None
    max_evaluations: int | None
    tolerance: float
    tag: str
    settings: Settings | None
    executor: Executor | Any | None
    workers: int | None
    batch_size: int | None
    time_limit: float | None
    policy: FailurePolicy
    callback: Callback | None
    progress: bool

    def inference(
        self, x0: ArrayLike | None, seed: int | None, store: str | Path | Store | None
    ) -> Inference:
        """One run of the problem."""
        return Inference(
            self.problem,
            x0=x0,
            seed=seed,
            max_evaluations=self.max_evaluations,
            tolerance=self.tolerance,
            store=store,
            tag=self.tag,
            settings=self.settings,
        )

    @contextmanager
    def loop(self, interruption: Interruption) -> Generator[RunLoop]:
        """A loop on workers of its own, which end with the block."""
        with EvaluationPool(
            self.problem,
            self.executor,
            workers=self.workers,
            time_limit=self.time_limit,
            policy=self.policy,
        ) as pool:
            yield RunLoop(pool, self.policy, self.batch_size, interruption)


def infer_once(plan: RunPlan, x0: ArrayLike | None, store: str | Path | Store | None) -> Result:
    """Drive one run to its end."""
    if isinstance(store, (str, Path)):
        refuse_group(Path(store))
    run, interruption = plan.inference(x0, plan.seed, store), Interruption()
    with (
        run,
        make_display(plan.progress, plan.problem, run.max_evaluations) as display,
        plan.loop(interruption) as loop,
    ):
        compile_with_notice(display.compiling)
        driven = DrivenRun(run, display, plan.callback)
        driven.begin()
        with interruption.watched():
            loop.drive([driven])
        if interruption.signal is not None:
            _end_interrupted([run], interruption.signal, store)
        result = run.result()
        if plan.progress:  # a summary takes as long as an iteration
            display.finish(result.summary())
    return result


def infer_several(
    plan: RunPlan, n_runs: int, x0: ArrayLike | None, store: str | Path | Store | None
) -> SeveralRuns:
    """Drive independent runs to their end, then one that is told what all of them evaluated."""
    if store is not None and not isinstance(store, (str, Path)):
        raise SettingsError(["store must be a path when there are several runs"])
    plan.inference(x0, None, None)  # faults are found before a directory is made
    points = deal_points(plan.problem.starting_points(x0), n_runs)
    group = None if store is None else open_group(Path(store), n_runs, plan.seed)
    seed = RandomStreams(plan.seed).seed if group is None else group.seed
    paths = [None] * n_runs if group is None else group.run_paths
    interruption = Interruption()
    with ExitStack() as opened:
        runs = [
            opened.enter_context(plan.inference(own_points, run_seed(seed, number), path))
            for number, (own_points, path) in enumerate(zip(points, paths, strict=True), start=1)
        ]
        budget = runs[0].max_evaluations
        display = opened.enter_context(
            make_runs_display(plan.progress, plan.problem, n_runs, budget)
        )
        loop = opened.enter_context(plan.loop(interruption))
        compile_with_notice(display.compiling)
        display.start()
        pooled = None
        with interruption.watched():
            loop.drive([_driven(plan, run, display, i) for i, run in enumerate(runs, start=1)])
            if interruption.signal is None:
                known = known_evaluations(runs, group)
                pooled = opened.enter_context(_pooled_run(plan, runs, len(known), group, seed))
                tell_known(pooled, known)
                loop.drive([_driven(plan, pooled, display, None)])
        if interruption.signal is not None:
            started = runs if pooled is None else [*runs, pooled]
            _end_interrupted(started, interruption.signal, store)
        together = put_together(
            [run.result() for run in runs if run.history],
            None if pooled is None else pooled.result(),
            seed,
        )
        if plan.progress:
            display.finish(together.summary())
    return together


def _driven(plan: RunPlan, run: Inference, display: RunsDisplay, number: int | None) -> DrivenRun:
    """A numbered run, or the pooled one, with its part of the display."""
    name = "pooled" if number is None else f"run {number}"
    part = display.part(name, run.max_evaluations, run.history[-1] if run.history else None)
    return DrivenRun(run, part, numbered(plan.callback, number))


def _pooled_run(
    plan: RunPlan, runs: Sequence[Inference], n_known: int, group: RunGroup | None, seed: int
) -> Inference:
    """The run that is to be told what all others evaluated, with a budget of its own."""
    n_told = sum(run.n_evaluations for run in runs)
    return replace(
        plan,
        settings=pooled_settings(plan.settings or Settings(), n_known),
        max_evaluations=n_known + runs[0].max_evaluations,
    ).inference(None, run_seed(seed, 0), None if group is None else group.pooled_path(n_told))


def _end_interrupted(runs: Sequence[Inference], number: int, store: object) -> None:
    """Stop the runs; leave the process where there is nothing to return or SIGTERM asked for it."""
    where = ""
    if isinstance(store, (str, Path)):
        where = f"; the same call with store={str(store)!r} goes on"
    # The pooled run, the last one, was told the evaluations of the others.
    proposed = [e for run in runs for e in run.evaluations if e.identifier is not None]
    message = f"interrupted after {len(proposed)} evaluations{where}"
    if number == signal.SIGTERM:
        sys.stderr.write(f"sparing: {message}\n")
        raise SystemExit(128 + signal.SIGTERM)
    for run in runs:
        run.stop(StopReason.INTERRUPTED)
    if not any(run.history for run in runs):
        raise KeyboardInterrupt(message)
