"""The comparison as markdown, with its plots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.methods import SAMPLERS
from benchmarks.run import SMALL_DIMENSION
from benchmarks.table import markdown, median_with_interval
from benchmarks.versus import plots
from benchmarks.versus.figures import (
    BLUNDER,
    NEGLIGIBLE,
    TOLERANCE,
    cpu_ratio,
    curve_point,
    honesty,
    median_sd,
    reach,
)
from benchmarks.versus.goals import CPU_RATIO, EVALUATION_RATIO, goals
from benchmarks.versus.runs import ERROR_NAMES, Group, Groups, read_groups
from benchmarks.versus.samplers import Need, sampler_need

FILE_NAME = "versus.md"
COUNT = ",.0f"  # how a number of evaluations is written
ABSENT = "–"  # not a finite number, or not estimated by the method
Pairs = Sequence[tuple[Group, Group]]


def write_report(directory: Path, method: str, baseline: str) -> str:
    """Write the report and the plots of a directory of runs; return the report."""
    groups = read_groups(directory)
    pairs = comparable(groups, method, baseline)
    ordered = {name: groups[name] for name in (method, baseline)} | dict(groups)
    problems = [group.problem for group, _ in pairs]
    files = plots.write_plots(ordered, problems, directory)
    text = report_text(ordered, pairs, method, baseline)
    images = "\n\n".join(f"![{title}]({name})" for title, name in files.items())
    (directory / FILE_NAME).write_text(f"{text}\n\n## Plots\n\n{images}\n")
    return text


def comparable(groups: Groups, method: str, baseline: str) -> list[tuple[Group, Group]]:
    """Both methods' runs on every problem where each has at least one that did not fail."""
    for name in (method, baseline):
        if name not in groups:
            raise BenchmarkError(f"no runs of {name} are recorded (there are: {', '.join(groups)})")
    ours, theirs = groups[method], groups[baseline]
    pairs = [(ours[name], theirs[name]) for name in ours if name in theirs]
    pairs = [pair for pair in pairs if all(group.finished for group in pair)]
    if not pairs:
        raise BenchmarkError(f"{method} and {baseline} have no problem in common yet")
    return sorted(pairs, key=lambda pair: (pair[0].dimension, pair[0].problem))


def report_text(groups: Groups, pairs: Pairs, method: str, baseline: str) -> str:
    samplers = [name for name in groups if name in SAMPLERS]
    sections = [
        f"# {method} against {baseline}",
        f"N is {baseline}'s median number of evaluations at its end. Figures are medians over "
        "the runs; brackets hold their 95 % interval by bootstrap. A failed run counts as an "
        f"infinite error; {ABSENT} is a number that is not finite or not estimated.",
        "## In short",
        _goals(pairs),
        "## The end of the run",
        _ends(groups, [group.problem for group, _ in pairs]),
        "## After the same number of evaluations",
        _curve(pairs),
        f"## Evaluations for {baseline}'s final errors",
        "The first number from which the median stays at or below. The last column takes errors "
        f"below {NEGLIGIBLE:g} as equal.",
        _reach(pairs),
        "## Library time",
        "CPU seconds per evaluation, the target's own excluded, over the smaller of both "
        "methods' numbers of evaluations. A run that ended by then counts with its final fit; the "
        "last column leaves out what follows the last evaluation.",
        _cpu(pairs),
        "## What a method says of itself",
        _honesty(groups),
    ]
    if samplers:
        sections += [
            f"## What sampling would need for the errors of {method}",
            f"Errors below {NEGLIGIBLE:g} need not be matched beyond {NEGLIGIBLE:g}. ~ marks an "
            "extrapolation at the Monte Carlo rate.",
            _samplers(groups, pairs, samplers),
        ]
    return "\n\n".join(sections)


def _goals(pairs: Pairs) -> str:
    rows = [
        [item.figure, item.goal, item.measured, "yes" if item.met else "NO"]
        for item in goals(pairs)
    ]
    return markdown(("figure", "goal", "measured", "met"), rows)


def _ends(groups: Groups, problems: Sequence[str]) -> str:
    header = (
        "problem",
        "method",
        "runs",
        "failed",
        "evaluations",
        "library CPU s",
        "s / evaluation",
        "LML error",
        "reported sd",
        "gsKL",
        "MMTV",
        "coverage",
        "converged",
        f"of these error > {TOLERANCE:g}",
        f"> {BLUNDER:g}",
        "peak MB",
    )
    cells = [
        _end(by_problem[problem])
        for problem in problems
        for by_problem in groups.values()
        if problem in by_problem
    ]
    return markdown(header, cells)


def _end(group: Group) -> list[str]:
    finished = group.finished
    word = honesty(group.runs)
    return [
        group.problem,
        group.method,
        str(word.n_runs),
        str(word.n_failed),
        _median([run.evaluations for run in finished], COUNT),
        _median([run.cpu_seconds for run in finished]),
        _median([run.cpu_seconds / run.evaluations for run in finished]),
        _median([run.errors[0] for run in group.runs]),
        _median([run.sd for run in finished]),
        _median([run.errors[1] for run in group.runs]),
        _median([run.mmtv for run in finished]),
        _number(word.coverage, ".0%"),
        f"{word.n_converged / word.n_runs:.0%}",
        str(word.n_above_tolerance),
        str(word.n_blunders),
        _number(max((run.peak_memory_mb for run in finished), default=math.nan), ".0f"),
    ]


def _curve(pairs: Pairs) -> str:
    method, baseline = pairs[0][0].method, pairs[0][1].method
    names = (method, baseline)
    header = ("problem", "at", "n", *(f"{e}, {name}" for e in ERROR_NAMES for name in names))
    rows = []
    for pair in pairs:
        for label, share in (("N", 1.0), ("N / 2", 0.5)):
            point = curve_point(*pair, share)
            errors = np.stack([point.errors, point.baseline_errors], axis=1).ravel()
            cells = [_number(value) for value in errors]
            rows.append([point.problem, label, format(point.n, "g"), *cells, point.verdict.value])
    return markdown((*header, "verdict"), rows)


def _reach(pairs: Pairs) -> str:
    header = ("problem", "N", "LML error", "gsKL", "n for the LML error", "n for gsKL")
    goal = f"goal <= {EVALUATION_RATIO:g}"
    rows = []
    for pair in pairs:
        item = reach(*pair)
        rows.append(
            [
                item.problem,
                format(item.baseline_evaluations, COUNT),
                *(_number(value) for value in item.targets),
                *(_number(value, COUNT) for value in item.needed),
                _number(item.ratio, ".2f"),
                _number(item.ratio_negligible, ".2f"),
            ]
        )
    ratios = (f"ratio to N ({goal})", f"ratio, errors >= {NEGLIGIBLE:g}")
    return markdown((*header, *ratios), rows)


def _cpu(pairs: Pairs) -> str:
    method, baseline = pairs[0][0].method, pairs[0][1].method
    header = (
        "problem",
        "n",
        method,
        baseline,
        f"ratio (goal <= {CPU_RATIO:g})",
        "ratio, loop alone",
    )
    rows = [
        [
            item.problem,
            str(item.n),
            _number(item.seconds),
            _number(item.baseline_seconds),
            _number(item.ratio),
            _number(item.loop_ratio),
        ]
        for item in (cpu_ratio(*pair) for pair in pairs)
    ]
    return markdown(header, rows)


def _honesty(groups: Groups) -> str:
    header = (
        "method",
        "version",
        "problems",
        "runs",
        "failed",
        "coverage of 2 sd",
        f"median sd, D <= {SMALL_DIMENSION}",
        "converged",
        f"of these error > {TOLERANCE:g}",
        f"> {BLUNDER:g}",
    )
    rows = []
    for method, by_problem in groups.items():
        runs = [run for group in by_problem.values() for run in group.runs]
        word = honesty(runs)
        rows.append(
            [
                method,
                ", ".join(sorted({run.version for run in runs if run.version})),
                str(len(by_problem)),
                str(word.n_runs),
                str(word.n_failed),
                _number(word.coverage, ".0%"),
                _number(median_sd(list(by_problem.values()), SMALL_DIMENSION)),
                str(word.n_converged),
                str(word.n_above_tolerance),
                str(word.n_blunders),
            ]
        )
    return markdown(header, rows)


def _samplers(groups: Groups, pairs: Pairs, samplers: Sequence[str]) -> str:
    method = pairs[0][0].method
    header = ("problem", f"evaluations, {method}", "LML error", "gsKL", "sampler")
    rows = []
    for group, _ in pairs:
        for name in samplers:
            if group.problem not in groups[name]:
                continue
            need = sampler_need(group, groups[name][group.problem])
            rows.append(
                [
                    group.problem,
                    format(group.evaluations, COUNT),
                    *(_number(value) for value in group.errors),
                    name,
                    format(need.sampler.evaluations, COUNT),
                    *(_number(value) for value in need.sampler.errors),
                    _need(need.lml),
                    _need(need.gskl),
                ]
            )
    own = ("its evaluations", "its LML error", "its gsKL", "needed, LML error", "needed, gsKL")
    return markdown((*header, *own), rows)


def _need(need: Need) -> str:
    if not math.isfinite(need.evaluations):
        return ABSENT
    digits = f"{need.evaluations:.2g}" if need.extrapolated else need.evaluations
    return ("~" if need.extrapolated else "") + format(float(digits), COUNT)


def _median(values: Sequence[float], form: str = ".3g") -> str:
    """Median and interval of the values that are there."""
    there = [value for value in values if not math.isnan(value)]
    return median_with_interval(there, form).replace("inf", ABSENT) if there else ABSENT


def _number(value: float, form: str = ".3g") -> str:
    return format(value, form) if math.isfinite(value) else ABSENT
