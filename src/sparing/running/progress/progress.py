"""How far a run has come, in numbers and in words; `sparing.running.progress.display` shows it."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from sparing.summary.history import standing
from sparing.summary.numbers import counted, estimate, rounded
from sparing.variational.normal_mixture import even_sample
from sparing.variational.posterior import Posterior
from sparing.vbmc.state import IterationInfo

PHASES_SHOWN = 3
PARAMETERS_SHOWN = 8
DRAWS_FOR_A_GLANCE = 256
# The first evaluations and the first fit are no measure of the pace.
FEWEST_FOR_A_PACE = 5


@dataclass
class Progress:
    """How far a run has come, or the time that several have taken, as a display has been told."""

    dimension: int
    max_evaluations: int  # of each run
    n_runs: int = 1
    n_evaluations: int = 0
    n_failed: int = 0
    n_running: int = 0
    n_resumed: int | None = None  # evaluations that an earlier process had made
    last: IterationInfo | None = None
    parameters: tuple[tuple[str, str], ...] = ()  # names, and means with their sds, as they stand
    seconds_by_phase: Counter[str] = field(default_factory=Counter)
    target_seconds: float = 0.0
    started: float = field(default_factory=time.monotonic)

    def evaluation(self, n_evaluations: int, n_failed: int, seconds: float) -> None:
        """Take note of an evaluation."""
        if self.n_resumed is None:
            self.n_resumed = n_evaluations - 1
        self.n_evaluations = n_evaluations
        self.n_failed = n_failed
        self.target_seconds += seconds if math.isfinite(seconds) else 0.0

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

    @property
    def seconds_left(self) -> float:
        """Seconds until the budget is used up at the pace so far; NaN before there is a pace."""
        n_made = 0 if self.n_resumed is None else self.n_evaluations - self.n_resumed
        if n_made < FEWEST_FOR_A_PACE:
            return math.nan
        return (self.max_evaluations - self.n_evaluations) * self.elapsed / n_made

    def task_text(self) -> str:
        """'2 parameters, at most 200 evaluations', or '2 parameters, 3 runs of at most ...'."""
        runs = f"{self.n_runs} runs of " if self.n_runs > 1 else ""
        parameters = counted(self.dimension, "parameter")
        return f"{parameters}, {runs}at most {self.max_evaluations} evaluations"

    def standing_text(self) -> str:
        """How far a run is in few words: its log evidence once it has one."""
        if self.last is None:
            return "initial design" if self.n_evaluations or self.n_running else "waits"
        evidence = estimate(self.last.log_evidence, self.last.log_evidence_sd)
        return f"log evidence {evidence}, {standing(self.last)}"

    def parameter_rows(self) -> list[tuple[str, str]]:
        """The first parameters as they stand."""
        more = self.dimension - PARAMETERS_SHOWN
        rest = [("", f"and {counted(more, 'other')}")] if more > 0 and self.parameters else []
        return [*self.parameters[:PARAMETERS_SHOWN], *rest]

    def evaluations_text(self) -> str:
        """'35/200 evaluations', with those that failed or are running when there are any."""
        failed = f" ({self.n_failed} failed)" if self.n_failed else ""
        running = f", {self.n_running} running" if self.n_running else ""
        return f"{self.n_evaluations}/{self.max_evaluations} evaluations{failed}{running}"

    def time_left_text(self) -> str:
        """The longest the run may still take, once it can be told."""
        left, ends = self.seconds_left, self.last is not None and self.last.stable
        return f"at most {clock(left)} left" if math.isfinite(left) and not ends else ""

    def clock_text(self) -> str:
        """Time so far, and time left."""
        return ", ".join(filter(None, (clock(self.elapsed), self.time_left_text())))

    def library_text(self) -> str:
        """Seconds the library itself has taken, and the phases that took most."""
        phases = self.seconds_by_phase.most_common(PHASES_SHOWN)
        named = ", ".join(f"{phase} {seconds:.1f}" for phase, seconds in phases)
        return f"{self.seconds_by_phase.total():.1f} s" + (f" ({named})" if named else "")


def standing_parameters(posterior: Posterior) -> Iterator[tuple[str, str]]:
    """Names, and means with their sds to about a twentieth of these: few draws, quickly made."""
    transform = posterior.transform
    draws = transform.to_user(even_sample(posterior.mixture, DRAWS_FOR_A_GLANCE))
    with np.errstate(over="ignore", invalid="ignore"):
        mean = transform.mean(draws)
        sds = transform.unwrapped(draws, mean).std(axis=0)
    for name, value, sd in zip(posterior.names, mean.tolist(), sds.tolist(), strict=True):
        yield name, f"{rounded(value, sd)} ± {rounded(sd, sd)}"


def number(value: float) -> str:
    """Three decimals, or fewer digits for a huge number."""
    if math.isnan(value):
        return "not known yet"
    return f"{value:.3f}" if abs(value) < 1e6 else f"{value:.4g}"


def clock(seconds: float) -> str:
    """Seconds as h:mm:ss."""
    minutes, whole_seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{whole_seconds:02d}"
