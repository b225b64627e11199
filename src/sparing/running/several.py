"""Several independent runs of one problem, and the run that is then told all they evaluated.

Runs that saw each other's evaluations would agree because of that, and their agreement would
prove nothing. So each has its own seed, and starting points that no other has. When they are over,
their evaluations are facts that hold for any run: one more run takes them as its initial design
and goes on until its own test stops it. It knows every mode that any of them found.

R     number of independent runs
k     starting points; n_known evaluations the pooled run starts with
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

import numpy as np

from sparing.errors import SettingsError
from sparing.kernels.compilation import compile_with_notice
from sparing.numerics.arrays import Array
from sparing.numerics.random_streams import FRESH_SEED_BITS, RandomStreams
from sparing.problem.evaluations import Evaluation
from sparing.problem.region import Points
from sparing.results.agreement import diagnose
from sparing.results.several_runs import SeveralRuns
from sparing.running.inference import Inference
from sparing.running.loop import Callback, DrivenRun, RunLoop
from sparing.running.progress.display import Display, make_display
from sparing.running.progress.progress import Progress
from sparing.store import RunDirectory, Store
from sparing.store.run_group import RunGroup, holds_run, open_group
from sparing.variational.components import NoGrowth
from sparing.vbmc.evidence import SurrogatePosterior
from sparing.vbmc.exploration import LookAtOnce, LookElsewhere
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import IterationInfo

# Iterations over which a pooled run must be stable, where those before it were for longer.
N_STABLE = 2
# It begins with nothing but values: what its first posterior misses of them joins it at once.
LARGEST_OUTSIDE = 0.01


def infer_several(
    new_run: Callable[..., Inference],
    n_runs: int,
    x0: Points | None,
    seed: int | None,
    store: str | Path | Store | None,
    loop: RunLoop,
    progress: bool,
    callback: Callback | None,
) -> SeveralRuns:
    """Drive independent runs to their end, then one that is told what all of them evaluated.

    ``new_run`` makes a run of the problem, given what differs between runs: x0, seed, store.
    """
    if store is not None and not isinstance(store, (str, Path)):
        raise SettingsError(["store must be a path when there are several runs"])
    problem = new_run(x0=x0).problem  # faults are found before a directory is made
    points = deal_points(problem.starting_points(x0), n_runs)
    group = None if store is None else open_group(Path(store), n_runs, seed)
    seed = RandomStreams(seed).seed if group is None else group.seed
    paths = [None] * n_runs if group is None else group.run_paths
    interruption = loop.interruption
    with ExitStack() as opened:
        runs = [
            opened.enter_context(new_run(x0=own, seed=run_seed(seed, number), store=path))
            for number, (own, path) in enumerate(zip(points, paths, strict=True), start=1)
        ]
        budget = runs[0].max_evaluations
        display = opened.enter_context(make_display(progress, problem, budget, n_runs))
        opened.enter_context(loop)
        compile_with_notice(display.compiling, gradients=problem.gradient is not None)
        display.start()
        pooled = None
        with interruption.watched():
            loop.require_same_target(runs)
            loop.drive([_driven(run, display, callback, i) for i, run in enumerate(runs, start=1)])
            if interruption.signal is None:
                known = known_evaluations(runs, group)
                path = group and group.pooled_path(sum(run.n_evaluations for run in runs))
                pooled = new_run(
                    seed=run_seed(seed, 0),
                    store=path,
                    settings=None if path and holds_run(path) else pooled_settings(runs, known),
                    max_evaluations=len(known) + budget,
                )
                opened.enter_context(pooled)
                tell_known(pooled, known)
                loop.drive([_driven(pooled, display, callback, None)])
        interruption.end(runs if pooled is None else [*runs, pooled], store)
        together = SeveralRuns(
            tuple(run.result() for run in runs if run.history),
            None if pooled is None else pooled.result(),
            seed,
        )
        display.finish(interruption.ending(together, store))
    return together


def _driven(
    run: Inference, display: Display, callback: Callback | None, number: int | None
) -> DrivenRun:
    """A numbered run, or the pooled one, with its part of the display."""
    name = "pooled" if number is None else f"run {number}"
    last = run.history[-1] if run.history else None
    progress = Progress(run.problem.dimension, run.max_evaluations, 1, run.n_evaluations, last=last)
    told = callback and (lambda info: callback(NumberedInfo(**vars(info), run=number)))
    return DrivenRun(run, display.part(name, progress), told)


@dataclass(frozen=True)
class NumberedInfo(IterationInfo):
    """What one iteration of one of several runs did.

    ``run`` is the number of the run, from 1; None for the pooled run.
    """

    run: int | None


def run_seed(seed: int, number: int) -> int:
    """The seed of an independent run, numbered from 1; of the pooled run for 0."""
    generator = RandomStreams(seed).generator("seed of a run", number)
    return int(generator.integers(2**FRESH_SEED_BITS))


def deal_points(points: Array, n_runs: int) -> list[Array]:
    """Starting points (k, D) dealt out in turn; a run without any samples the plausible box."""
    return [points[number::n_runs] for number in range(n_runs)]


def gather_points(dealt: Sequence[Array]) -> Array:
    """The points in the order in which they were dealt out: (k, D)."""
    rows = [point for turn in zip_longest(*dealt) for point in turn if point is not None]
    return np.reshape(rows, (len(rows), dealt[0].shape[1]))


def known_evaluations(runs: Iterable[Inference], group: RunGroup | None) -> list[Evaluation]:
    """All that the independent runs evaluated, and earlier pooled runs on their own."""
    known = [entry for run in runs for entry in run.evaluations]
    n_told = len(known)
    for n_earlier, path in group.pooled_paths.items() if group else ():
        if n_earlier < n_told:
            events = RunDirectory.open(path, read_only=True).events()
            evaluations = [event for event in events if isinstance(event, Evaluation)]
            # Their own answer a proposal; the others were told.
            known += [entry for entry in evaluations if entry.identifier is not None]
    return known


def pooled_settings(runs: Sequence[Inference], known: Sequence[Evaluation]) -> Settings:
    """The settings of the pooled run, whose first surrogate is trained on all that is known.

    It looks in that surrogate at once. Where all runs have converged its surrogate is better than
    any of theirs, and it may stop soon; where they agree as well, they have looked elsewhere for it
    (docs/decisions/0014).
    """
    settings = runs[0].settings
    design = replace(settings.initial_design, n_points=len(known))
    settings = replace(settings, initial_design=design)
    match settings.exploration, settings.evidence:
        case LookElsewhere() as look, SurrogatePosterior() as evidence:
            look = replace(LookAtOnce(**vars(look)), largest_outside=LARGEST_OUTSIDE)
        case _:
            return settings  # the paper's
    results = [run.result() for run in runs]
    if not all(result.converged for result in results):
        return replace(settings, exploration=look)
    if diagnose(results).agree:
        look = replace(look, climbing_share=0.0, largest_round=0)
    calibration = replace(evidence.calibration, n_estimates=N_STABLE, recent_share=0.0)
    return replace(
        settings,
        variational=replace(settings.variational, growth=NoGrowth()),
        evidence=replace(evidence, calibration=calibration),
        stopping=replace(settings.stopping, n_stable=N_STABLE),
        exploration=look,
    )


def tell_known(pooled: Inference, known: Sequence[Evaluation]) -> None:
    """Tell a pooled run what is known; an earlier process may have told it some."""
    for entry in known[pooled.n_evaluations :]:
        pooled.tell_outcome(entry.x, entry.outcome)
