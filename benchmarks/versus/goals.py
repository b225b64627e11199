"""What a method has to reach to leave no reason for preferring the baseline.

The thresholds are the project's own; the report says for each what was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.run import SMALL_DIMENSION
from benchmarks.versus.figures import (
    BLUNDER,
    NEGLIGIBLE,
    Verdict,
    cpu_ratio,
    curve_point,
    honesty,
    median_sd,
    reach,
)
from benchmarks.versus.runs import Group

EVALUATION_RATIO = 0.7
CPU_RATIO = 0.1
ERROR_LIMITS = {"small": 0.1, "large": 0.2}  # LML error and gsKL at the end of a run
COVERAGE = 0.9
INFORMATIVE_SD = 0.15
MEMORY_MB = 500.0
EASY_DIMENSION = 2  # problems on which a run should end early


@dataclass(frozen=True)
class Goal:
    """A figure, what it should be, what it is."""

    figure: str
    goal: str
    measured: str
    met: bool


def goals(pairs: Sequence[tuple[Group, Group]]) -> list[Goal]:
    """Every goal for pairs of (method, baseline), one pair per problem."""
    groups = [group for group, _ in pairs]
    runs = [run for group in groups for run in group.runs]
    word = honesty(runs)
    sd = median_sd(groups, SMALL_DIMENSION)
    memory = max((run.peak_memory_mb for run in runs if not run.failed), default=np.nan)
    reached = [reach(*pair) for pair in pairs]
    easy = [pair for pair in pairs if pair[0].dimension <= EASY_DIMENSION]
    return [
        *(
            _of_problems(
                f"errors after {label} evaluations",
                f"no worse, or both < {NEGLIGIBLE:g}",
                (curve_point(*pair, share).verdict is not Verdict.WORSE for pair in pairs),
            )
            for label, share in (("N", 1.0), ("N / 2", 0.5))
        ),
        _of_problems(
            "evaluations for the baseline's final errors",
            f"<= {EVALUATION_RATIO:g} N",
            (item.ratio <= EVALUATION_RATIO for item in reached),
        ),
        _of_problems(
            f"the same, errors below {NEGLIGIBLE:g} taken as equal",
            f"<= {EVALUATION_RATIO:g} N",
            (item.ratio_negligible <= EVALUATION_RATIO for item in reached),
        ),
        _of_problems(
            f"evaluations at the end where D <= {EASY_DIMENSION}",
            f"<= {EVALUATION_RATIO:g} N",
            (g.evaluations <= EVALUATION_RATIO * b.evaluations for g, b in easy),
        ),
        _of_problems(
            "LML error and gsKL at the end",
            f"< {ERROR_LIMITS['small']:g} (D <= {SMALL_DIMENSION}), < {ERROR_LIMITS['large']:g}",
            (bool(np.all(group.errors < _limit(group))) for group in groups),
        ),
        _of_problems(
            "library CPU seconds per evaluation",
            f"<= {CPU_RATIO:g} of the baseline's",
            (cpu_ratio(*pair).ratio <= CPU_RATIO for pair in pairs),
        ),
        Goal(
            "coverage of 2 sd",
            f">= {COVERAGE:.0%}",
            f"{word.coverage:.0%} of {word.n_runs} runs",
            word.coverage >= COVERAGE,
        ),
        Goal(
            f"median reported sd, D <= {SMALL_DIMENSION}",
            f"< {INFORMATIVE_SD:g}",
            f"{sd:.3g}",
            sd < INFORMATIVE_SD,
        ),
        Goal(
            f"converged with an error above {BLUNDER:g}",
            "none",
            f"{word.n_blunders} of {word.n_converged}",
            word.n_blunders == 0,
        ),
        Goal("failed runs", "none", f"{word.n_failed} of {word.n_runs}", word.n_failed == 0),
        Goal("peak memory", f"< {MEMORY_MB:g} MB", f"{memory:.0f} MB", memory < MEMORY_MB),
    ]


def _limit(group: Group) -> float:
    return ERROR_LIMITS["small" if group.dimension <= SMALL_DIMENSION else "large"]


def _of_problems(figure: str, goal: str, met: Iterable[bool]) -> Goal:
    verdicts = list(met)
    measured = f"{sum(verdicts)} of {len(verdicts)} problems"
    return Goal(figure, goal, measured, all(verdicts))
