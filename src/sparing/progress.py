"""What a person sees while a run goes on.

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
from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from sparing.kernels.announce import NOTICE

if TYPE_CHECKING:
    from sparing.problem import Problem
    from sparing.state import IterationInfo

REFRESHES_PER_SECOND = 4
# Plain lines come once per iteration; with a slow target, at least this often after an evaluation.
SECONDS_BETWEEN_PLAIN_LINES = 30.0
PHASES_SHOWN = 3


class Display:
    """A display that shows nothing, and the interface of those that do."""

    def compiling(self) -> None:
        """Kernels are about to be compiled, which takes a while."""

    def start(self) -> None:
        """The first evaluation is about to be made."""

    def evaluation(self, n_evaluations: int, n_failed: int) -> None:
        """So many evaluations have been made, and so many of them failed."""

    def iteration(self, info: IterationInfo) -> None:
        """An iteration of the algorithm has ended."""

    def finish(self, result_summary: str) -> None:
        """The run has ended with this result."""

    def close(self) -> None:
        """Give the terminal back; harmless when called again."""

    def __enter__(self) -> Display:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def make_display(progress: bool, problem: Problem, max_evaluations: int) -> Display:
    """The display that suits where standard error goes."""
    if not progress or sys.stderr is None:  # no standard error: a windowed program
        return Display()
    dimension = len(problem.names)
    console = Console(stderr=True)
    # rich draws in a notebook through ipywidgets, and only warns when they are missing.
    has_widgets = console.is_jupyter and importlib.util.find_spec("ipywidgets") is not None
    if has_widgets or console.is_interactive:
        return LiveDisplay(console, dimension, max_evaluations)
    return PlainDisplay(sys.stderr, dimension, max_evaluations)


@dataclass
class Progress:
    """How far a run has come, as a display has been told."""

    dimension: int
    max_evaluations: int
    n_evaluations: int = 0
    n_failed: int = 0
    last: IterationInfo | None = None
    seconds_by_phase: Counter[str] = field(default_factory=Counter)
    started: float = field(default_factory=time.monotonic)

    def evaluation(self, n_evaluations: int, n_failed: int) -> None:
        """Take note of an evaluation."""
        self.n_evaluations = n_evaluations
        self.n_failed = n_failed

    def iteration(self, info: IterationInfo) -> None:
        """Take note of an iteration; ``info.timings`` holds the seconds of this one alone."""
        self.n_evaluations = max(self.n_evaluations, info.n_evaluations)
        self.last = info
        # A new object: the thread that redraws may be reading the old one.
        self.seconds_by_phase = self.seconds_by_phase + Counter(info.timings)

    @property
    def elapsed(self) -> float:
        """Seconds since the first evaluation was due."""
        return time.monotonic() - self.started

    def evaluations_text(self) -> str:
        """'35/200 evaluations', with the failed ones when there are any."""
        failed = f" ({self.n_failed} failed)" if self.n_failed else ""
        return f"{self.n_evaluations}/{self.max_evaluations} evaluations{failed}"

    def library_text(self) -> str:
        """Seconds the library itself has taken, and the phases that took most."""
        phases = self.seconds_by_phase.most_common(PHASES_SHOWN)
        named = ", ".join(f"{phase} {seconds:.1f}" for phase, seconds in phases)
        return f"{self.seconds_by_phase.total():.1f} s" + (f" ({named})" if named else "")


class PlainDisplay(Display):
    """Lines of text on a stream: for files, pipes and batch systems."""

    def __init__(self, stream: TextIO, dimension: int, max_evaluations: int) -> None:
        self._stream = stream
        self._progress = Progress(dimension, max_evaluations)
        self._last_line = time.monotonic()

    def compiling(self) -> None:
        """Say that kernels are being compiled."""
        self._write(NOTICE)

    def start(self) -> None:
        """Say what is being inferred."""
        self._progress.started = time.monotonic()
        state = self._progress
        self._write(
            f"{_count(state.dimension, 'parameter')}, at most {state.max_evaluations} evaluations"
        )

    def evaluation(self, n_evaluations: int, n_failed: int) -> None:
        """Say so when nothing has been said for a while."""
        self._progress.evaluation(n_evaluations, n_failed)
        if time.monotonic() - self._last_line >= SECONDS_BETWEEN_PLAIN_LINES:
            self._write(f"{self._progress.evaluations_text()}, {_clock(self._progress.elapsed)}")

    def iteration(self, info: IterationInfo) -> None:
        """One line per iteration."""
        self._progress.iteration(info)
        self._write(
            f"iteration {info.iteration}: {self._progress.evaluations_text()}, "
            f"log evidence {_estimate(info.log_evidence, info.log_evidence_sd)}, "
            f"ELBO {_estimate(info.elbo, info.elbo_sd)}, K = {info.n_components}, "
            f"reliability {_number(info.reliability)}, {_phase(info)}, "
            f"{_clock(self._progress.elapsed)}"
        )

    def finish(self, result_summary: str) -> None:
        """The result, and the time the library took."""
        for line in result_summary.splitlines():
            self._write(line)
        self._write(f"time in the library {self._progress.library_text()}")

    def _write(self, text: str) -> None:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        line = f"sparing: {_spell(text, encoding)}\n".encode(encoding, "replace").decode(encoding)
        self._last_line = time.monotonic()
        try:
            self._stream.write(line)
            self._stream.flush()
        except (OSError, ValueError):  # a closed pipe or file: the run matters more
            return


class LiveDisplay(Display):
    """One panel, redrawn a few times a second."""

    def __init__(self, console: Console, dimension: int, max_evaluations: int) -> None:
        self._console = console
        self._progress = Progress(dimension, max_evaluations)
        self._compiling = Spinner("line", NOTICE)
        self._running = False
        self._live = Live(
            console=console,
            get_renderable=self._render,
            refresh_per_second=REFRESHES_PER_SECOND,
            # What the target prints appears above the panel; a redirected stdout stays redirected.
            redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
        )

    def compiling(self) -> None:
        """Show a turning wheel."""
        self._live.start(refresh=True)

    def start(self) -> None:
        """Show the panel."""
        self._progress.started = time.monotonic()
        self._running = True
        self._live.start()
        self._live.refresh()

    def evaluation(self, n_evaluations: int, n_failed: int) -> None:
        """Move the bar at the next refresh."""
        self._progress.evaluation(n_evaluations, n_failed)

    def iteration(self, info: IterationInfo) -> None:
        """Show the iteration's figures at once."""
        self._progress.iteration(info)
        self._live.refresh()

    def finish(self, result_summary: str) -> None:
        """Leave the last panel standing, with the result under it."""
        self._live.refresh()  # a notebook's panel is not redrawn when it stops
        self.close()
        self._console.print(Text(_spell(result_summary, self._console.encoding)))

    def close(self) -> None:
        """Stop redrawing and show the cursor again."""
        self._live.stop()

    def _render(self) -> RenderableType:
        return self._panel() if self._running else self._compiling

    def _panel(self) -> Panel:
        state = self._progress
        title = f"sparing: {_count(state.dimension, 'parameter')}"
        bar = Table.grid(padding=(0, 2))
        completed = min(state.n_evaluations, state.max_evaluations)
        bar.add_row(
            ProgressBar(total=state.max_evaluations, completed=completed, width=24),
            state.evaluations_text(),
            _clock(state.elapsed),
        )
        figures = self._first_evaluations() if state.last is None else self._figures(state.last)
        return Panel(Group(bar, figures), title=title, title_align="left", expand=False)

    def _first_evaluations(self) -> RenderableType:
        return Text("evaluating the initial design")

    def _figures(self, info: IterationInfo) -> Table:
        samples = _count(info.n_hyperparameter_samples, "hyperparameter sample")
        rows = (
            ("iteration", f"{info.iteration}, {_phase(info)}"),
            ("log evidence", _estimate(info.log_evidence, info.log_evidence_sd)),
            ("ELBO", _estimate(info.elbo, info.elbo_sd)),
            ("reliability index", f"{_number(info.reliability)} (below 1 when stable)"),
            ("mixture components", str(info.n_components)),
            ("surrogate", f"{info.n_training} points, {samples}"),
            ("time in the library", self._progress.library_text()),
        )
        table = Table.grid(padding=(0, 2))
        for name, value in rows:
            table.add_row(Text(name, style="dim"), Text(_spell(value, self._console.encoding)))
        return table


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _phase(info: IterationInfo) -> str:
    if info.warm_up:
        return "warm-up"
    return "stable" if info.stable else "not yet stable"


def _number(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) and abs(value) < 1e6 else f"{value:.4g}"


def _estimate(value: float, sd: float) -> str:
    return f"{_number(value)} ± {_number(sd)}"


def _spell(text: str, encoding: str) -> str:
    """The text with its one special sign spelt out where the encoding lacks it."""
    return text if encoding.lower().startswith("utf") else text.replace("±", "+-")


def _clock(seconds: float) -> str:
    minutes, whole_seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{whole_seconds:02d}"
