"""Parameters on a circle: whether the answer depends on where the circle is cut.

`python -m benchmarks periodic`: each problem with its mass in the middle of the bounds, and turned
so that it lies across them; errors of the log evidence, the circular mean and the sd.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, i0e, logsumexp

from benchmarks.problems.base import Array

PI = np.pi
N_GRID = 256  # angles; twice as many give the same digits
DIRECTIONS = np.linspace(-PI, PI, 24, endpoint=False)
COUNTS = np.random.default_rng(3).poisson(np.exp(2.0 + 2.0 * (np.cos(DIRECTIONS) - 1.0)) + 1.0)
LOG_SQRT_2_PI = 0.5 * np.log(2.0 * PI)


def log_von_mises(angle: Array | float, concentration: float) -> Array:
    """Log density about zero."""
    constant = np.log(2.0 * PI * i0e(concentration))
    return concentration * (np.cos(angle) - 1.0) - constant


def tuning_curve(x: Array) -> Array:
    """Spike counts of a neuron: a preferred direction and a log gain; log joint of (m, 2)."""
    rate = np.exp(x[:, 1:] + 2.0 * (np.cos(DIRECTIONS - x[:, :1]) - 1.0)) + 1.0
    log_likelihood = np.sum(COUNTS * np.log(rate) - rate - gammaln(COUNTS + 1), axis=1)
    return log_likelihood - np.log(2.0 * PI) - 0.5 * (x[:, 1] - 1.0) ** 2 - LOG_SQRT_2_PI


def two_angles(x: Array) -> Array:
    """One angle follows the other, and a number follows its sine; log density of (m, 3)."""
    own = log_von_mises(x[:, 0], 10.0) + log_von_mises(x[:, 1] - x[:, 0] - 0.3, 15.0)
    return own - 0.5 * ((x[:, 2] - np.sin(x[:, 0])) / 0.3) ** 2 - np.log(0.3) - LOG_SQRT_2_PI


def all_round(x: Array) -> Array:
    """An angle of which little is known; log density of (m, 2)."""
    return log_von_mises(x[:, 0], 0.5) - 0.5 * (x[:, 1] / 0.5) ** 2 - np.log(0.5) - LOG_SQRT_2_PI


def two_modes(x: Array) -> Array:
    """Modes on both sides of the circle; log density of (m, 2)."""
    modes = [np.log(w) + log_von_mises(x[:, 0] - at, 20.0) for w, at in ((0.7, 0.0), (0.3, PI))]
    along = (x[:, 1] - 0.3 * np.cos(x[:, 0])) / 0.5
    return np.logaddexp(*modes) - 0.5 * along**2 - np.log(0.5) - LOG_SQRT_2_PI


@dataclass(frozen=True)
class Circular:
    """A log density of which the first parameters are angles, and a box of the others."""

    log_density: Callable[[Array], Array]
    n_angles: int
    low: float
    high: float
    grid: tuple[float, float]  # wide enough to integrate over


PROBLEMS = {
    "tuning curve": Circular(tuning_curve, 1, -1.0, 3.0, (-2.0, 4.5)),
    "two angles": Circular(two_angles, 2, -1.0, 1.0, (-3.0, 3.0)),
    "all the way round": Circular(all_round, 1, -1.0, 1.0, (-3.0, 3.0)),
    "two modes": Circular(two_modes, 1, -1.0, 1.0, (-3.0, 3.0)),
}


def exact(problem: Circular) -> tuple[float, Array, Array]:
    """Log evidence, and circular means and sds of the angles, on a grid."""
    n = N_GRID if problem.n_angles == 1 else N_GRID // 2
    axes = [np.linspace(-PI, PI, n, endpoint=False)] * problem.n_angles
    axes.append(np.linspace(*problem.grid, n))
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    log_density = np.concatenate(list(map(problem.log_density, np.array_split(points, 64))))
    log_evidence = logsumexp(log_density) + sum(np.log(axis[1] - axis[0]) for axis in axes)
    weights = np.exp(log_density - logsumexp(log_density))
    angles = points[:, : problem.n_angles]
    means = np.angle(weights @ np.exp(1j * angles))
    return float(log_evidence), means, np.sqrt(weights @ on_circle(angles - means) ** 2)


def on_circle(angle: Array) -> Array:
    """The same angle between -pi and pi."""
    return np.mod(angle + PI, 2.0 * PI) - PI


def run(problem: Circular, turned_by: float, seed: int, truth: tuple[float, Array, Array]) -> Array:
    """LML error and sd, largest errors of mean (in sds) and of sd (relative), evaluations."""
    import sparing

    n = problem.n_angles
    turn = np.array([turned_by] * n + [0.0])
    target = sparing.Problem(
        lambda x: float(problem.log_density((x - turn)[None, :])[0]),
        [-PI] * n + [problem.low],
        [PI] * n + [problem.high],
        [-PI] * n + [None],
        [PI] * n + [None],
        periodic=[f"x{i + 1}" for i in range(n)],
    )
    result = sparing.infer(target, seed=seed, progress=False)
    log_evidence, means, sds = truth
    mean_errors = np.abs(on_circle(result.posterior.mean[:n] - turned_by - means)) / sds
    sd_errors = np.abs(result.posterior.sd[:n] / sds - 1.0)
    error = result.log_evidence - log_evidence
    worst = mean_errors.max(), sd_errors.max()
    return np.array([error, result.log_evidence_sd, *worst, result.n_evaluations])


def campaign(seeds: int, names: Sequence[str] = tuple(PROBLEMS)) -> None:
    """A row for each problem and place of its mass: medians, and the largest errors."""
    print("| | mass at | LML error | largest | within 2 sds | mean, sds | sd, % | evaluations |")
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        truth = exact(PROBLEMS[name])
        for place, turned_by in (("0", 0.0), ("pi", PI)):
            rows = np.array(
                [run(PROBLEMS[name], turned_by, seed, truth) for seed in range(1, seeds + 1)]
            )
            errors = np.abs(rows[:, 0])
            within = int(np.sum(errors <= 2.0 * rows[:, 1]))
            print(
                f"| {name} | {place} | {np.median(errors):.2g} | {errors.max():.2g} | "
                f"{within} of {seeds} | {rows[:, 2].max():.2g} | {100 * rows[:, 3].max():.2g} | "
                f"{np.median(rows[:, 4]):.0f} |",
                flush=True,
            )
