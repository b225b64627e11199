"""Driven from outside: the evaluations are jobs of a queue that knows nothing of sparing.

A pendulum swings out, and its frequency and damping are to be inferred from eight readings. The
simulation is a job: a JSON file in a directory, picked up by a worker that leaves a JSON file with
the log likelihood, or with an error. (The directory stands for Slurm, a web service, or a colleague
with a laboratory.) The loop asks for points, submits a round of jobs, waits, and tells what came
back. A job that fails is told as such: the run avoids the place and goes on.

The run has a store. A loop that dies can be started again: what was told is known, and what was
submitted but not told is in ``run.pending``.

    python examples/job_queue.py --output output
"""

import argparse
import json
import math
import multiprocessing
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from scipy import stats

import sparing
from sparing.plots import BLUE, ORANGE, new_figure

SECONDS = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5]
ANGLE = [10.1, 3.4, -6.2, -6.4, 0.7, 5.4, 3.1, -1.9]  # degrees
ANGLE_SD = 0.5  # of each reading
JOBS_PER_ROUND = 4


# ---------------------------------------------------------------- what happens in the queue


def angle(frequency, damping, seconds):
    """Angle of the pendulum, released at 10 degrees; defined as long as it swings at all."""
    swing = math.sqrt(frequency**2 - damping**2)  # overdamped: ValueError, the job fails
    return 10.0 * math.exp(-damping * seconds) * math.cos(swing * seconds)


def log_likelihood(x):
    """Log density of the readings; x = (frequency, damping), both per second."""
    residuals = [(y - angle(*x, t)) / ANGLE_SD for t, y in zip(SECONDS, ANGLE, strict=True)]
    constant = len(ANGLE) * math.log(ANGLE_SD * math.sqrt(2 * math.pi))
    return -0.5 * sum(r**2 for r in residuals) - constant


def work(directory):
    """Take jobs from the directory until the file ``stop`` appears."""
    while not (directory / "stop").exists():
        for job in sorted(directory.glob("*.job")):
            try:
                answer = {"log_likelihood": log_likelihood(json.loads(job.read_text()))}
            except ValueError as error:
                answer = {"error": f"simulation failed: {error}"}
            job.unlink()
            write_whole(job.with_suffix(".done"), answer)
        time.sleep(0.002)


def write_whole(path, content):
    """Write a file that nobody ever sees half written."""
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(json.dumps(content))
    unfinished.rename(path)


@contextmanager
def queue_with_a_worker(directory):
    """A queue in this directory, and one worker that serves it."""
    directory.mkdir()
    worker = multiprocessing.get_context("spawn").Process(target=work, args=(directory,))
    worker.start()
    try:
        yield directory
    finally:
        (directory / "stop").touch()
        worker.join()


# ---------------------------------------------------------------- what drives the run

PROBLEM = sparing.Problem(
    log_likelihood,
    plausible_lower=[0.5, 0.1],
    plausible_upper=[4.0, 3.0],
    lower=[0.0, 0.0],
    names=["frequency", "damping"],
    prior=[stats.gamma(4, scale=0.6), stats.gamma(2, scale=0.4)],
)


def submit(proposal, queue):
    """Put a job into the queue, under the proposal's number."""
    write_whole(queue / f"{proposal.identifier:04}.job", proposal.x.tolist())


def collect(proposal, queue):
    """Wait for the job's answer."""
    path = queue / f"{proposal.identifier:04}.done"
    while not path.exists():
        time.sleep(0.002)
    return json.loads(path.read_text())


def drive(run, queue):
    """Ask, submit, wait, tell, until the run has what it needs."""
    while proposals := list(run.pending) or run.ask(JOBS_PER_ROUND):
        for proposal in proposals:
            submit(proposal, queue)
        for proposal in proposals:
            answer = collect(proposal, queue)
            if "error" in answer:
                run.tell(proposal, error=answer["error"])
            else:
                # The run wants the log joint; the job knows nothing of the prior.
                run.tell(proposal, answer["log_likelihood"] + PROBLEM.log_prior(proposal.x))
    return run.result()


def draw(result):
    """The readings, and the swings that the posterior holds likely."""
    seconds = np.linspace(0, 4, 200)
    swings = [[angle(*x, t) for t in seconds] for x in result.posterior.sample(300, seed=1)]
    low, middle, high = np.quantile(swings, [0.025, 0.5, 0.975], axis=0)
    figure = new_figure(6.0, 3.8)
    ax = figure.subplots()
    ax.fill_between(seconds, low, high, color=BLUE, alpha=0.25, linewidth=0, label="95 % interval")
    ax.plot(seconds, middle, color=BLUE, label="posterior median")
    ax.errorbar(SECONDS, ANGLE, ANGLE_SD, fmt="o", color=ORANGE, label="read, with its error")
    ax.set(xlabel="seconds", ylabel="angle in degrees")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return figure


def main(output):
    """Open a queue, drive a run through it, and say what came of its jobs."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        queue_with_a_worker(Path(scratch, "queue")) as queue,
        sparing.Inference(PROBLEM, seed=1, store=Path(scratch, "run")) as run,
    ):
        result = drive(run, queue)
    print(result)
    print()
    failed = [entry for entry in result.evaluations if entry.status is sparing.Status.FAILED]
    print(f"{result.n_evaluations} jobs, {len(failed)} of them failed")
    if failed:
        print(f"for example: {failed[0].message}, at {np.round(failed[0].x, 2)}")

    output.mkdir(parents=True, exist_ok=True)
    picture = output / "job_queue.png"
    draw(result).savefig(picture, dpi=150)
    print(f"picture: {picture}")


if __name__ == "__main__":  # the worker imports this file: it must not start a run of its own
    parser = argparse.ArgumentParser(description="Drive a run through a queue of jobs.")
    parser.add_argument("--output", type=Path, default=Path("output"), help="directory to write to")
    main(parser.parse_args().output)
