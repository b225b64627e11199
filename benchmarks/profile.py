"""Where sparing's own time goes: by phase, by number of evaluations, by function.

`python -m benchmarks profile --problem lumpy-6 --evaluations 120 --data PATH`: one run on a target
that costs next to nothing, whose time is excluded, and that ends only with its budget.

Notation
--------
n       number of evaluations
c(n)    library CPU seconds before evaluation n + 1 is asked for
p       growth exponent: c'(n), the time per evaluation, grows as n^p
"""

from __future__ import annotations

import cProfile
import io
import math
import os
import pstats
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from benchmarks.child_process import PROJECT_ROOT, THREAD_LIMITS
from benchmarks.errors import BenchmarkError
from benchmarks.methods.base import LibraryClock
from benchmarks.metrics import gskl, lml_error
from benchmarks.problems.base import Array, BenchmarkProblem
from benchmarks.table import markdown
from benchmarks.worker import TimedTarget, peak_memory_mb

# The run must reach its budget: no estimate of the log evidence is ever this certain.
NEVER_REACHED_TOLERANCE = 1e-300
GROWTH_FROM = 100  # evaluations; before them the time is start-up and warm-up
GROWTH_WINDOWS = 8  # the fit is over this many windows, equal in the logarithm of n
SHORTEST_GROWTH = 2.0  # ratio of the last n to the first, below which no exponent is fitted
COMPILE = (
    "import time; begin = time.perf_counter();"
    "from sparing.kernels.compilation import compile_with_notice;"
    "compile_with_notice(lambda: None);"
    "print(time.perf_counter() - begin)"
)


@dataclass(frozen=True, eq=False)
class Profile:
    """What one run spent."""

    problem: str
    phase_seconds: Mapping[str, float]  # wall time by phase, from the run's own history
    wall_seconds: float  # the library's
    cpu: Array  # (n + 1,): c(0), ..., c(n), the last at the end of the run
    lml_error: float
    gskl: float
    memory_before_mb: float | None  # imports and compiled kernels
    memory_mb: float | None  # peak
    functions: str  # the functions that took most time; empty when not asked for

    @property
    def evaluations(self) -> int:
        return len(self.cpu) - 1


def profile(
    problem: BenchmarkProblem,
    evaluations: int,
    seed: int,
    top: int | None,
    *,
    gradients: bool = False,
) -> Profile:
    """Run sparing once and note where the time went; ``top`` functions cost extra time."""
    import sparing
    from sparing.kernels.compilation import compile_all

    if gradients and problem.gradient is None:
        raise BenchmarkError(f"{problem.name} has no gradient")
    compile_all(gradients=gradients)
    memory_before = peak_memory_mb()
    clock = LibraryClock()
    target = TimedTarget(problem, clock)
    tracer = cProfile.Profile() if top else None
    with clock, _tracing(tracer):
        result = sparing.infer(
            sparing.Problem(
                clock.exclude(target),
                problem.plausible_lower,
                problem.plausible_upper,
                problem.lower,
                problem.upper,
                gradient=clock.exclude(problem.log_joint_gradient) if gradients else None,
            ),
            x0=problem.starting_point(seed),
            seed=seed,
            max_evaluations=evaluations,
            tolerance=NEVER_REACHED_TOLERANCE,
            check_gradient=False,  # an evaluation beside the budget
            progress=False,
        )
    phases: Counter[str] = Counter()
    for info in result.history:
        phases.update(info.timings)
    posterior = result.posterior
    exact = problem.posterior_mean, problem.posterior_covariance
    return Profile(
        problem=problem.name,
        phase_seconds=dict(phases),
        wall_seconds=clock.wall,
        cpu=np.array([*target.cpu_before, clock.cpu]),
        lml_error=lml_error(result.log_evidence, problem.log_evidence),
        gskl=gskl(posterior.mean, posterior.covariance, *exact),
        memory_before_mb=memory_before,
        memory_mb=peak_memory_mb(),
        functions=_top_functions(tracer, top) if tracer and top else "",
    )


def windows(cpu: Array, width: int) -> Iterator[tuple[int, int, float]]:
    """(first, last evaluation, CPU seconds after each of them) of successive windows of c.

    What follows the last evaluation of all is left out: it holds the final fit, which comes once.
    """
    last = len(cpu) - 2
    for begin in range(0, last, width):
        end = min(begin + width, last)
        yield begin + 1, end, float(cpu[end] - cpu[begin]) / (end - begin)


def growth_exponent(cpu: Array) -> float:
    """p by least squares in logarithms from n = 100 on, without the final fit; NaN if short."""
    last = len(cpu) - 2
    if last < SHORTEST_GROWTH * GROWTH_FROM:
        return math.nan
    edges = np.geomspace(GROWTH_FROM, last, GROWTH_WINDOWS + 1).round().astype(int)
    per_evaluation = np.diff(cpu[edges]) / np.diff(edges)
    middles = np.sqrt(edges[1:] * edges[:-1])
    return float(np.polyfit(np.log(middles), np.log(per_evaluation), 1)[0])


def profile_text(profile: Profile, window: int) -> str:
    """The profile for a reader."""
    n = profile.evaluations
    spent = {**profile.phase_seconds}
    spent["outside the phases"] = profile.wall_seconds - sum(spent.values())
    rows = [
        [
            name,
            f"{seconds:.2f}",
            f"{1000 * seconds / n:.1f}",
            f"{seconds / profile.wall_seconds:.0%}",
        ]
        for name, seconds in sorted(spent.items(), key=lambda item: -item[1])
    ]
    rows.append(
        ["all", f"{profile.wall_seconds:.2f}", f"{1000 * profile.wall_seconds / n:.1f}", "100%"]
    )
    times = [
        [f"{first} to {last}", f"{1000 * seconds:.1f}"]
        for first, last, seconds in windows(profile.cpu, window)
    ]
    start, end = profile.cpu[0], profile.cpu[-1] - profile.cpu[-2]
    exponent = growth_exponent(profile.cpu)
    growth = "too few evaluations for it" if math.isnan(exponent) else f"n^{exponent:.2f}"
    parts = [
        f"{profile.problem}: {n} evaluations, library CPU {profile.cpu[-1]:.2f} s, "
        f"LML error {profile.lml_error:.3g}, gsKL {profile.gskl:.3g}",
        markdown(("phase", "wall s", "ms / evaluation", "share"), rows),
        markdown(("evaluations", "CPU ms / evaluation"), times),
        f"CPU {start:.2f} s before the first evaluation, {end:.2f} s after the last",
        f"growth of the time per evaluation from n = {GROWTH_FROM}: {growth}",
        f"peak memory {_megabytes(profile.memory_mb)}, of which before the run "
        f"{_megabytes(profile.memory_before_mb)}",
    ]
    if profile.functions:
        parts += [
            "With tracing, which slows Python code down more than compiled:",
            profile.functions,
        ]
    return "\n\n".join(parts)


def compile_seconds() -> tuple[float, float]:
    """Seconds to import sparing and have every kernel: with an empty cache, and again."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, **dict.fromkeys(THREAD_LIMITS, "1"), "NUMBA_CACHE_DIR": cache}
        command = [sys.executable, "-c", COMPILE]
        times = []
        for _ in range(2):
            done = subprocess.run(
                command,
                env=environment,
                cwd=PROJECT_ROOT,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                raise BenchmarkError(f"the kernels did not compile: {done.stderr.strip()}")
            times.append(float(done.stdout))
    return times[0], times[1]


def compile_text() -> str:
    cold, warm = compile_seconds()
    return f"\nimport and kernels: {cold:.1f} s with an empty cache, {warm:.1f} s afterwards"


@contextmanager
def _tracing(tracer: cProfile.Profile | None) -> Iterator[None]:
    if tracer is None:
        yield
        return
    with tracer:
        yield


def _top_functions(tracer: cProfile.Profile, top: int) -> str:
    """The functions with most time of their own, as pstats prints them."""
    text = io.StringIO()
    pstats.Stats(tracer, stream=text).strip_dirs().sort_stats("tottime").print_stats(top)
    return text.getvalue().strip()


def _megabytes(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f} MB"
