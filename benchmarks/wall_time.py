"""What workers save: the same number of evaluations of a slow target, one and several at a time.

`python -m benchmarks wall-time --data PATH`: a target that sleeps, evaluated by one worker and by
several; wall time of both and their ratio.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.problems import load_problem
from benchmarks.problems.base import Array, BenchmarkProblem


@dataclass(frozen=True)
class SleepingTarget:
    target: BenchmarkProblem
    seconds: float

    def __call__(self, x: Array) -> float:
        time.sleep(self.seconds)
        return self.target.log_joint(x)


def campaign(name: str, workers: int, n: int, seconds: float, data: Path | None) -> None:
    import sparing
    from sparing.kernels.compilation import compile_all

    compile_all()
    target = load_problem(name, data)
    problem = sparing.Problem(
        SleepingTarget(target, seconds), target.plausible_lower, target.plausible_upper
    )
    defaults = sparing.Settings()
    settings = replace(defaults, stopping=replace(defaults.stopping, n_stable=10**6))
    wall: dict[int, float] = {}
    for count in (workers, 1):
        begin = time.perf_counter()
        result = sparing.infer(
            problem,
            seed=1,
            max_evaluations=n,
            workers=count,
            settings=settings,
            progress=False,
        )
        wall[count] = time.perf_counter() - begin
        error = abs(result.log_evidence - target.log_evidence)
        print(
            f"{count} workers: {wall[count]:.1f} s for {result.n_evaluations} evaluations of "
            f"{seconds:g} s, library {result.library_seconds:.1f} s, LML error {error:.3f}",
            flush=True,
        )
    print(f"ratio {wall[1] / wall[workers]:.2f}")
