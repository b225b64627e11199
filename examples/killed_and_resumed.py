"""A run that is killed and goes on: nothing is lost, and one point is evaluated twice.

The run happens in a process of its own, with a store. In the middle of an evaluation it is killed
without warning, as by a power cut. The same call with the same store then resumes it, once a
stored point has shown that the target is the same. A third run, never interrupted, shows that the
kill left no trace: evaluations, evidence and posterior agree to the last bit.

    python examples/killed_and_resumed.py --output output
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import sparing
from sparing.plots import BLUE, ORANGE, new_figure

BUDGET = 35
KILLED_AT = 18  # the evaluation during which the process is killed
DOSE = np.array([0.0, 1.0, 2.0, 4.0, 8.0])
RESPONSE = np.array([1.9, 3.1, 3.8, 5.2, 5.9])  # measured with a standard deviation of 0.3


def make_problem(call_log):
    """Saturating response to a dose; every call leaves a line in the file ``call_log``."""

    def log_joint(x):
        with call_log.open("a", encoding="utf-8") as file:
            print(*(value.hex() for value in x.tolist()), file=file)
        time.sleep(0.05)  # stands for a simulation that takes minutes
        offset, rise, half_dose = x
        expected = offset + rise * DOSE / (half_dose + DOSE)
        log_prior = -0.5 * np.sum(((x - [2.0, 5.0, 3.0]) / [1.0, 2.0, 1.5]) ** 2)
        return log_prior - 0.5 * np.sum(((RESPONSE - expected) / 0.3) ** 2)

    return sparing.Problem(
        log_joint,
        plausible_lower=[1.0, 3.0, 1.0],
        plausible_upper=[3.0, 7.0, 6.0],
        lower=[None, None, 0.0],
        names=["offset", "rise", "half dose"],
    )


def run(store, call_log):
    """The call that both starts and resumes; without a store it can do neither again."""
    problem = make_problem(call_log)
    return sparing.infer(problem, seed=1, max_evaluations=BUDGET, store=store, progress=False)


def calls(call_log):
    """The points at which the target was called, as lines of text."""
    return call_log.read_text(encoding="utf-8").splitlines() if call_log.exists() else []


def start_and_kill(store, call_log):
    """Run in another process, and kill it (SIGKILL) as soon as evaluation KILLED_AT has begun."""
    command = [sys.executable, __file__, "--run", str(store), str(call_log)]
    with subprocess.Popen(command) as process:
        while len(calls(call_log)) < KILLED_AT:
            if process.poll() is not None:
                raise RuntimeError(f"the run ended by itself, with code {process.returncode}")
            time.sleep(0.005)
        process.kill()
    return process.returncode


def identical(first, second):
    """Whether two results agree in every bit of their evaluations, evidence and posterior."""
    return (
        [entry.value for entry in first.evaluations] == [e.value for e in second.evaluations]
        and (first.log_evidence, first.log_evidence_sd)
        == (second.log_evidence, second.log_evidence_sd)
        and np.array_equal(
            first.posterior.sample(1000, seed=1), second.posterior.sample(1000, seed=1)
        )
    )


def draw(result, n_stored):
    """The evaluations in order: those before the kill, and those after it."""
    values = np.array([entry.value for entry in result.evaluations])
    number = np.arange(1, len(values) + 1)
    figure = new_figure(6.0, 3.6)
    ax = figure.subplots()
    before = number <= n_stored
    ax.plot(number[before], values[before], "o", color=BLUE, label="evaluated before the kill")
    ax.plot(number[~before], values[~before], "s", color=ORANGE, label="evaluated after it")
    ax.axvline(n_stored + 0.5, color="0.4", linestyle="--", linewidth=1)
    ax.set(xlabel="evaluation", ylabel="log joint density")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="lower right")
    return figure


def main(output):
    """Kill a run, resume it, and compare with one that was left alone."""
    with tempfile.TemporaryDirectory() as scratch:
        store, call_log = Path(scratch, "run"), Path(scratch, "calls.txt")
        code = start_and_kill(store, call_log)
        stored = sparing.load_run(store).evaluations  # the result so far can be read at any time
        print(f"killed (exit code {code}) with {len(stored)} evaluations in the store")

        resumed = run(store, call_log)
        every_call = calls(call_log)
        kept = {" ".join(value.hex() for value in entry.x.tolist()) for entry in stored}
        n_again = sum(every_call.count(line) - 1 for line in kept)
        n_in_flight = len(every_call) - n_again - resumed.n_evaluations
        print(f"resumed, and ended with {resumed.n_evaluations} evaluations")
        print(f"stored evaluations that were made again: {n_again}, to see that nothing changed")
        print(f"evaluations cut off by the kill, made again: {n_in_flight}")

        uninterrupted = run(None, Path(scratch, "other-calls.txt"))
        same = identical(resumed, uninterrupted)
        print(f"same bits as the run that was never interrupted: {'yes' if same else 'no'}")

    output.mkdir(parents=True, exist_ok=True)
    picture = output / "killed_and_resumed.png"
    draw(resumed, len(stored)).savefig(picture, dpi=150)
    print(f"picture: {picture}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Kill a run and resume it.")
    parser.add_argument("--output", type=Path, default=Path("output"), help="directory to write to")
    parser.add_argument("--run", nargs=2, type=Path, help=argparse.SUPPRESS)  # in the other process
    arguments = parser.parse_args()
    if arguments.run:
        run(*arguments.run)
    else:
        main(arguments.output)
