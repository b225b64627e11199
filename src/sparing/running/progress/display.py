"""What a person sees while a run, or several of one problem, go on.

On a terminal, and in a notebook with ipywidgets, one panel that is redrawn; elsewhere plain lines
on standard error, one per iteration; nothing with ``progress=False``. Nothing here goes through
``logging``, so a program's own log settings are left alone.

A display must never end a run: what it shows is cheap, the evaluations behind it are not.
"""

from __future__ import annotations

import importlib.util
import math
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Self, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from sparing.kernels.compilation import NOTICE
from sparing.running.progress.progress import (
    Progress,
    clock,
    number,
    standing_parameters,
)
from sparing.summary.history import standing
from sparing.summary.numbers import counted, estimate

if TYPE_CHECKING:
    from sparing.problem.problem import Problem
    from sparing.vbmc.state import IterationInfo

REFRESHES_PER_SECOND = 4
# Plain lines come once per iteration; with a slow target, at least this often after an evaluation.
SECONDS_BETWEEN_PLAIN_LINES = 30.0


class Display:
    """A display that shows nothing itself, and takes note of what others show.

    ``refresh`` is called when there is something to see at once.
    """

    def __init__(self, progress: Progress, refresh: Callable[[], None] = lambda: None) -> None:
        self._progress = progress
        self._refresh = refresh

    def part(self, name: str, progress: Progress) -> Display:  # nothing is shown
        """The display of one of several runs."""
        return Display(progress)

    def compiling(self) -> None:
        """Kernels are about to be compiled, which takes a while."""

    def start(self) -> None:
        """The first evaluation is about to be made."""
        self._progress.started = time.monotonic()

    def running(self, n_running: int) -> None:
        """So many evaluations are under way."""
        self._progress.n_running = n_running

    def evaluation(self, n_evaluations: int, n_failed: int, seconds: float = math.nan) -> None:
        """So many evaluations have been made, so many failed; the last took so many seconds."""
        self._progress.evaluation(n_evaluations, n_failed, seconds)

    def iteration(self, info: IterationInfo) -> None:
        """An iteration of the algorithm has ended."""
        self._progress.iteration(info)
        self._refresh()

    def finish(self, ending: str) -> None:
        """The run has ended like this, in one line."""

    def close(self) -> None:
        """Give the terminal back; harmless when called again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def make_display(
    progress: bool, problem: Problem, max_evaluations: int, n_runs: int = 1
) -> Display:
    """The display that suits where standard error goes; the budget is each run's."""
    state = Progress(len(problem.names), max_evaluations, n_runs)
    if not progress or sys.stderr is None:  # no standard error: a windowed program
        return Display(state)
    console = Console(stderr=True)
    # rich draws in a notebook through ipywidgets, and only warns when they are missing.
    has_widgets = console.is_jupyter and importlib.util.find_spec("ipywidgets") is not None
    if not (has_widgets or console.is_interactive):
        return PlainDisplay(state, sys.stderr)
    return LiveDisplay(state, console) if n_runs == 1 else LiveRuns(state, console)


class PlainDisplay(Display):
    """Lines of text on a stream: for files, pipes and batch systems.

    ``name`` stands in front of every line, when there are other runs to tell this one from.
    """

    def __init__(self, progress: Progress, stream: TextIO, name: str = "") -> None:
        super().__init__(progress)
        self._stream = stream
        self._prefix = f"{name}: " if name else ""
        self._last_line = time.monotonic()

    def part(self, name: str, progress: Progress) -> Display:
        """Lines that begin with the run's name."""
        return PlainDisplay(progress, self._stream, name)

    def compiling(self) -> None:
        """Say that kernels are being compiled."""
        self._write(NOTICE)

    def start(self) -> None:
        """Say what is being inferred."""
        super().start()
        self._write(self._progress.task_text())

    def evaluation(self, n_evaluations: int, n_failed: int, seconds: float = math.nan) -> None:
        """Say so when nothing has been said for a while."""
        super().evaluation(n_evaluations, n_failed, seconds)
        if time.monotonic() - self._last_line >= SECONDS_BETWEEN_PLAIN_LINES:
            self._write(f"{self._progress.evaluations_text()}, {self._progress.clock_text()}")

    def iteration(self, info: IterationInfo) -> None:
        """One line per iteration."""
        super().iteration(info)
        self._write(
            f"iteration {info.iteration}: {self._progress.evaluations_text()}, "
            f"log evidence {estimate(info.log_evidence, info.log_evidence_sd)}, "
            f"ELBO {estimate(info.elbo, info.elbo_sd)}, K = {info.n_components}, "
            f"reliability {number(info.reliability)}, {standing(info)}, "
            f"{self._progress.clock_text()}"
        )

    def finish(self, ending: str) -> None:
        """How it ended, and where the time of a single run went."""
        self._write(ending)
        if self._progress.n_runs == 1:
            target, library = self._progress.target_seconds, self._progress.library_text()
            self._write(f"time in the target {target:.1f} s, in the library {library}")

    def _write(self, text: str) -> None:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        spelt = f"sparing: {self._prefix}{spell(text, encoding)}\n"
        line = spelt.encode(encoding, "replace").decode(encoding)
        self._last_line = time.monotonic()
        try:
            self._stream.write(line)
            self._stream.flush()
        except (OSError, ValueError):  # a closed pipe or file: the run matters more
            return


class LiveDisplay(Display):
    """One panel, redrawn a few times a second."""

    def __init__(self, progress: Progress, console: Console) -> None:
        super().__init__(progress)
        self._console = console
        self._compiling = Spinner("line", NOTICE)
        self._running = False
        self._live = Live(
            console=console,
            get_renderable=lambda: self._panel() if self._running else self._compiling,
            refresh_per_second=REFRESHES_PER_SECOND,
            # What the target prints appears above the panel; a redirected stdout stays redirected.
            redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
        )
        self._refresh = self._live.refresh

    def compiling(self) -> None:
        """Show a turning wheel."""
        self._live.start(refresh=True)

    def start(self) -> None:
        """Show the panel."""
        super().start()
        self._running = True
        self._live.start()
        self._refresh()

    def iteration(self, info: IterationInfo) -> None:
        """Show its figures, and the parameters as they stand."""
        self._progress.parameters = tuple(standing_parameters(info.posterior))
        super().iteration(info)

    def finish(self, ending: str) -> None:
        """Leave the last panel standing, with how it ended under it."""
        self._refresh()  # a notebook's panel is not redrawn when it stops
        self.close()
        self._console.print(self._text(ending))

    def close(self) -> None:
        """Stop redrawing and show the cursor again."""
        self._live.stop()

    def _panel(self) -> Panel:
        state = self._progress
        bar = Table.grid(padding=(0, 2))
        bar.add_row(_bar(state, width=24), state.evaluations_text(), clock(state.elapsed))
        if state.last is None:
            parts = ("evaluating the initial design", state.time_left_text())
            figures: RenderableType = Text(", ".join(filter(None, parts)))
        else:
            figures = self._figures(state.last)
        title = f"sparing: {counted(state.dimension, 'parameter')}"
        return Panel(Group(bar, figures), title=title, title_align="left", expand=False)

    def _figures(self, info: IterationInfo) -> Table:
        samples = counted(info.n_hyperparameter_samples, "hyperparameter sample")
        left = self._progress.time_left_text().removesuffix(" left") or "not known yet"
        rows = (
            ("iteration", f"{info.iteration}, {standing(info)}"),
            ("log evidence", estimate(info.log_evidence, info.log_evidence_sd)),
            ("ELBO", estimate(info.elbo, info.elbo_sd)),
            ("reliability index", f"{number(info.reliability)} (below 1 when stable)"),
            ("mixture components", str(info.n_components)),
            ("surrogate", f"{info.n_training} points, {samples}"),
            ("time in the library", self._progress.library_text()),
            ("time in the target", f"{self._progress.target_seconds:.1f} s"),
            *(() if info.stable else (("time left", left),)),
            *self._progress.parameter_rows(),
        )
        table = Table.grid(padding=(0, 2))
        for name, value in rows:
            table.add_row(Text(name, style="dim"), self._text(value))
        return table

    def _text(self, text: str) -> Text:
        return Text(spell(text, self._console.encoding))


class LiveRuns(LiveDisplay):
    """One panel with a row for each of several runs."""

    def __init__(self, progress: Progress, console: Console) -> None:
        super().__init__(progress, console)
        self._rows: dict[str, Progress] = {}

    def part(self, name: str, progress: Progress) -> Display:
        """A row of the panel."""
        # A new object: the thread that redraws may be reading the old one.
        self._rows = {**self._rows, name: progress}
        return Display(progress, self._refresh)

    def _panel(self) -> Panel:
        table = Table.grid(padding=(0, 2))
        for name, row in self._rows.items():
            bar, standing = _bar(row, width=16), self._text(row.standing_text())
            table.add_row(name, bar, row.evaluations_text(), standing)
        title = f"sparing: {self._progress.task_text()}, {clock(self._progress.elapsed)}"
        return Panel(table, title=title, title_align="left", expand=False)


def _bar(progress: Progress, width: int) -> ProgressBar:
    completed = min(progress.n_evaluations, progress.max_evaluations)
    return ProgressBar(total=progress.max_evaluations, completed=completed, width=width)


def spell(text: str, encoding: str) -> str:
    """The text with its one special sign spelt out where the encoding lacks it."""
    return text if encoding.lower().startswith("utf") else text.replace("±", "+-")
