"""A batch on Dask: an epidemic model, four evaluations at a time on a cluster.

Influenza broke out among the 763 boys of a boarding school; every day somebody counted those in
bed. In the model an infected boy infects others and recovers after a while (SIR); the counts
scatter about the model's number more than Poisson counts would, by a factor to be inferred.

Here the cluster is four workers on this machine. On a real one only the client changes:
``Client("tcp://scheduler:8786")``, or a dask_jobqueue cluster (docs/cluster.md). As soon as one
evaluation ends the next is proposed, knowing what the others are still working on.

    pip install '.[dask,plots]'
    python examples/dask_batch.py --output output
"""

import argparse
import time
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster
from scipy import stats
from scipy.integrate import solve_ivp

import sparing
from sparing.plots import BLUE, ORANGE, new_figure

BOYS = 763
# English boarding school, 1978: Anonymous, British Medical Journal 1 (1978) 587.
IN_BED = np.array([3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4])
DAYS = np.arange(1, len(IN_BED) + 1)
SECONDS = 0.25  # what one evaluation costs, at least: stands for a slower simulator


def infected(x, days):
    """Boys in bed on each day; x = (infections by the first boy, days in bed, overdispersion)."""
    reproduction, duration, _ = x

    def rates(_, state):
        susceptible, ill = state
        infections = reproduction / duration * susceptible * ill / BOYS
        return -infections, infections - ill / duration

    start = (BOYS - 1.0, 1.0)
    solution = solve_ivp(rates, (0.0, days[-1]), start, t_eval=days, rtol=1e-6, atol=1e-6)
    return np.maximum(solution.y[1], 1e-3)


def log_likelihood(x):
    """Log probability of the counts: negative binomial with variance = overdispersion * mean."""
    time.sleep(SECONDS)
    overdispersion = x[2]
    mean = infected(x, DAYS)
    return stats.nbinom.logpmf(IN_BED, mean / (overdispersion - 1), 1 / overdispersion).sum()


PROBLEM = sparing.Problem(
    log_likelihood,
    plausible_lower=[2.0, 1.0, 2.0],
    plausible_upper=[6.0, 4.0, 30.0],
    lower=[0.0, 0.0, 1.0],
    names=["reproduction number", "days in bed", "overdispersion"],
    prior=[
        stats.gamma(4, scale=1.0),
        stats.gamma(4, scale=0.75),
        stats.expon(loc=1.0, scale=10.0),
    ],
)


def draw(result):
    """Left: the epidemic and the inferred curve. Right: who worked when."""
    figure = new_figure(10.0, 4.0)
    left, right = figure.subplots(1, 2)
    days = np.linspace(1, 14, 100)
    curves = [infected(x, days) for x in result.posterior.sample(200, seed=1)]
    low, middle, high = np.quantile(curves, [0.025, 0.5, 0.975], axis=0)
    left.fill_between(days, low, high, color=BLUE, alpha=0.25, linewidth=0, label="95 % interval")
    left.plot(days, middle, color=BLUE, label="posterior median")
    left.plot(DAYS, IN_BED, "o", color=ORANGE, label="counted")
    left.set(xlabel="day", ylabel="boys in bed", ylim=(0, None))
    left.legend(frameon=False)

    begin = min(entry.started for entry in result.evaluations)
    rows = {worker: i for i, worker in enumerate(sorted({e.worker for e in result.evaluations}))}
    for entry in result.evaluations:
        right.barh(
            rows[entry.worker],
            entry.ended - entry.started,
            left=entry.started - begin,
            color=BLUE,
            edgecolor="white",
        )
    right.set_yticks(list(rows.values()), [f"worker {i + 1}" for i in rows.values()])
    right.set(xlabel="seconds", title="evaluations")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def main(output, n_workers, max_evaluations):
    """Start a cluster, infer on it, say what working side by side has saved."""
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        result = sparing.infer(
            PROBLEM,
            executor=client,
            workers=n_workers,
            max_evaluations=max_evaluations,
            seed=1,
            progress=False,
        )
    print(result)
    print()
    begun = [entry.started for entry in result.evaluations]
    ended = [entry.ended for entry in result.evaluations]
    target_seconds = sum(entry.duration for entry in result.evaluations)
    workers = {entry.worker for entry in result.evaluations}
    print(f"{result.n_evaluations} evaluations by {len(workers)} workers")
    print(f"{target_seconds:.0f} s of evaluations took {max(ended) - min(begun):.0f} s")

    output.mkdir(parents=True, exist_ok=True)
    picture = output / "dask_batch.png"
    draw(result).savefig(picture, dpi=150)
    print(f"picture: {picture}")


if __name__ == "__main__":  # workers import this file: they must not start a cluster of their own
    parser = argparse.ArgumentParser(description="Infer on a Dask cluster.")
    parser.add_argument("--output", type=Path, default=Path("output"), help="directory to write to")
    parser.add_argument("--workers", type=int, default=4, help="Dask workers to start (4)")
    parser.add_argument("--max-evaluations", type=int, default=100, help="budget (100)")
    arguments = parser.parse_args()
    main(arguments.output, arguments.workers, arguments.max_evaluations)
