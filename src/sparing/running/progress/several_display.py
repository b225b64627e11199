"""What a person sees while several runs of one problem go on: a row, or lines, for each."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import TextIO

from rich.console import Console
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table

from sparing.problem.problem import Problem
from sparing.running.progress.display import (
    Display,
    LiveDisplay,
    PlainDisplay,
    redrawable_console,
    spell,
)
from sparing.running.progress.progress import Progress, clock, count, estimate, phase
from sparing.vbmc.state import IterationInfo


class RunsDisplay(Display):
    """A display of several runs that shows nothing, and the interface of those that do."""

    def part(
        self,
        name: str,  # nothing is shown
        max_evaluations: int,
        last: IterationInfo | None = None,
    ) -> Display:
        """The display of one of the runs; ``last`` is where an earlier process left it."""
        return Display()


def make_runs_display(
    progress: bool, problem: Problem, n_runs: int, max_evaluations: int
) -> RunsDisplay:
    """The display that suits where standard error goes; the budget is each run's."""
    if not progress or sys.stderr is None:
        return RunsDisplay()
    console = redrawable_console()
    if console is not None:
        return LiveRuns(console, problem.dimension, n_runs, max_evaluations)
    return PlainRuns(sys.stderr, problem.dimension, n_runs, max_evaluations)


class PlainRuns(PlainDisplay, RunsDisplay):
    """Lines of text, each with the name of its run."""

    def __init__(self, stream: TextIO, dimension: int, n_runs: int, max_evaluations: int) -> None:
        super().__init__(stream, dimension, max_evaluations)
        self._n_runs = n_runs

    def part(
        self,
        name: str,
        max_evaluations: int,
        last: IterationInfo | None = None,  # lines tell what is new
    ) -> Display:
        """Lines that begin with the run's name."""
        return PlainDisplay(self._stream, self._progress.dimension, max_evaluations, name)

    def start(self) -> None:
        """Say what is being inferred."""
        self._write(_title(self._progress, self._n_runs))

    def finish(self, result_summary: str) -> None:
        """The result."""
        for line in result_summary.splitlines():
            self._write(line)


class LiveRuns(LiveDisplay, RunsDisplay):
    """One panel with a row for each run."""

    def __init__(self, console: Console, dimension: int, n_runs: int, max_evaluations: int) -> None:
        super().__init__(console, dimension, max_evaluations)
        self._n_runs = n_runs
        self._rows: dict[str, Progress] = {}

    def part(self, name: str, max_evaluations: int, last: IterationInfo | None = None) -> Display:
        """A row of the panel."""
        n_evaluations = 0 if last is None else last.n_evaluations
        row = Progress(self._progress.dimension, max_evaluations, n_evaluations, last=last)
        self._rows = {**self._rows, name: row}  # the thread that redraws may be reading the old one
        return _Row(row, self._live.refresh)

    def _panel(self) -> Panel:
        table = Table.grid(padding=(0, 2))
        for name, row in self._rows.items():
            completed = min(row.n_evaluations, row.max_evaluations)
            table.add_row(
                name,
                ProgressBar(total=row.max_evaluations, completed=completed, width=16),
                row.evaluations_text(),
                spell(_standing(row), self._console.encoding),
            )
        title = f"sparing: {_title(self._progress, self._n_runs)}"
        elapsed = clock(self._progress.elapsed)
        return Panel(table, title=f"{title}, {elapsed}", title_align="left", expand=False)


class _Row(Display):
    """One run's row of the panel."""

    def __init__(self, progress: Progress, refresh: Callable[[], None]) -> None:
        self._progress = progress
        self._refresh = refresh

    def start(self) -> None:
        """Its clock begins."""
        self._progress.started = time.monotonic()

    def running(self, n_running: int) -> None:
        """Show it at the next refresh."""
        self._progress.n_running = n_running

    def evaluation(self, n_evaluations: int, n_failed: int, seconds: float = math.nan) -> None:
        """Move the bar at the next refresh."""
        self._progress.evaluation(n_evaluations, n_failed, seconds)

    def iteration(self, info: IterationInfo) -> None:
        """Show the iteration's figures at once."""
        self._progress.iteration(info)
        self._refresh()


def _title(progress: Progress, n_runs: int) -> str:
    parameters = count(progress.dimension, "parameter")
    return f"{parameters}, {n_runs} runs of at most {progress.max_evaluations} evaluations"


def _standing(row: Progress) -> str:
    """How far a run is: its log evidence once it has one."""
    if row.last is None:
        return "initial design" if row.n_evaluations or row.n_running else "waits"
    evidence = estimate(row.last.log_evidence, row.last.log_evidence_sd)
    return f"log evidence {evidence}, {phase(row.last)}"
