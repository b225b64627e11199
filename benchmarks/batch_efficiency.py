"""How many evaluations and rounds a run needs when points are evaluated in batches.

`python -m benchmarks batch --data PATH --out DIR`: each round asks for a batch and tells all of
it. A problem counts as solved at the first iteration from which the LML error and the gsKL are
below the threshold at two iterations in a row (one could be luck).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.metrics import gskl
from benchmarks.problems import load_problem

THRESHOLD = 0.1
SHARE_OF_BUDGET = 0.6  # of 50 (D + 2): what is not solved by then counts as never
DEFAULT_PROBLEMS = ("lumpy-2", "lumpy-6", "student-6", "cigar-6")
DEFAULT_BATCHES = (1, 4, 8, 16)


@dataclass(frozen=True)
class BatchRun:
    problem: str
    batch: int
    seed: int
    evaluations: int | None  # to reach the threshold; None: never
    rounds: int | None
    trace: list[tuple[int, float, float]]  # evaluations, LML error, gsKL


def run_one(name: str, batch: int, seed: int, data: Path | None) -> BatchRun:
    import sparing

    target = load_problem(name, data)
    problem = sparing.Problem(target.log_joint, target.plausible_lower, target.plausible_upper)
    # The run goes on to the end of its budget, whatever it thinks of its own stability.
    defaults = sparing.Settings()
    settings = replace(defaults, stopping=replace(defaults.stopping, n_stable=10**6))
    run = sparing.Inference(
        problem,
        x0=target.starting_point(seed),
        seed=seed,
        max_evaluations=round(SHARE_OF_BUDGET * target.budget),
        settings=settings,
    )
    while proposals := run.ask(batch):
        for proposal in proposals:
            run.tell(proposal, problem.log_joint(proposal.x))
    trace = [
        (
            info.n_evaluations,
            abs(info.log_evidence - target.log_evidence),
            gskl(
                info.posterior.mean,
                info.posterior.covariance,
                target.posterior_mean,
                target.posterior_covariance,
            ),
        )
        for info in run.history
    ]
    solved = [error < THRESHOLD and divergence < THRESHOLD for _, error, divergence in trace]
    first = next((i for i in range(len(solved) - 1) if solved[i] and solved[i + 1]), None)
    evaluations = None if first is None else trace[first][0]
    rounds = None if evaluations is None else int(np.ceil(evaluations / batch))
    return BatchRun(name, batch, seed, evaluations, rounds, trace)


def campaign(
    problems: Sequence[str],
    batches: Sequence[int],
    seeds: int,
    data: Path | None,
    out: Path,
    jobs: int,
) -> None:
    out.mkdir(parents=True, exist_ok=True)
    path = out / "batch.jsonl"
    done = {(r.problem, r.batch, r.seed) for r in read(path)}
    tasks = [t for t in product(problems, batches, range(1, seeds + 1)) if t not in done]
    with ProcessPoolExecutor(jobs) as pool, path.open("a") as file:
        for run in pool.map(run_one, *zip(*tasks, strict=True), [data] * len(tasks)):
            file.write(json.dumps(asdict(run)) + "\n")
            file.flush()
            print(f"{run.problem} batch {run.batch} seed {run.seed}: {run.evaluations}")
    print(table(read(path)))
    plot(read(path), out / "batch.png")


def read(path: Path) -> list[BatchRun]:
    if not path.exists():
        return []
    return [BatchRun(**json.loads(line)) for line in path.read_text().splitlines()]


def _median(runs: Sequence[BatchRun]) -> float:
    return float(np.median([np.inf if r.evaluations is None else r.evaluations for r in runs]))


def _groups(runs: Sequence[BatchRun]) -> dict[str, dict[int, list[BatchRun]]]:
    groups: dict[str, dict[int, list[BatchRun]]] = {}
    for run in runs:
        groups.setdefault(run.problem, {}).setdefault(run.batch, []).append(run)
    return groups


def table(runs: Sequence[BatchRun]) -> str:
    lines = [
        "| problem | batch | seeds | evaluations | ratio to batch 1 | rounds |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for problem, batches in _groups(runs).items():
        base = _median(batches.get(1, []) or next(iter(batches.values())))
        for batch, group in sorted(batches.items()):
            middle = _median(group)
            rounds = np.ceil(middle / batch) if np.isfinite(middle) else np.inf
            lines.append(
                f"| {problem} | {batch} | {len(group)} | {middle:g} | {middle / base:.2f} |"
                f" {rounds:g} |"
            )
    return "\n".join(lines)


def plot(runs: Sequence[BatchRun], path: Path) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    colours = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
    for (problem, batches), colour in zip(_groups(runs).items(), colours, strict=False):
        sizes = sorted(batches)
        medians = np.array([_median(batches[size]) for size in sizes])
        left.plot(sizes, medians, "o-", color=colour, label=problem)
        right.plot(sizes, np.ceil(medians / sizes), "o-", color=colour, label=problem)
    for axis, what in ((left, "evaluations"), (right, "rounds")):
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xticks(sorted({run.batch for run in runs}))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("")
        axis.set_xlabel("points evaluated side by side")
        axis.set_ylabel(f"{what} to LML error and gsKL < {THRESHOLD:g} (median)")
        axis.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False)
    figure.savefig(path, dpi=150)
