"""Whole runs killed at random times: does each end exactly as the uninterrupted one?

`python -m benchmarks killed-runs --kills 200`: a child process infers a small problem with a run
directory and is sent SIGKILL after a random time, again and again until it gets to the end; then
its result must equal the undisturbed one to the last bit, and no evaluation that was recorded may
be missing. Then the next run starts, until the kills are used up.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

KILLS_PER_RUN = 8  # at most; the next attempt is left in peace

CHILD = """
import json, sys
import numpy as np
import sparing

def log_density(x):
    return -0.5 * float((x[0] - x[1] ** 2) ** 2 / 0.3 + x[1] ** 2)

problem = sparing.Problem(log_density, [-2, -2], [2, 2])
result = sparing.infer(
    problem, seed=1, max_evaluations=40, progress=False, store=sys.argv[1] or None
)
print(json.dumps([
    result.log_evidence.hex(), result.elbo.hex(), result.n_evaluations,
    [float(v).hex() for v in result.posterior.sample(50, seed=1).ravel()],
    [float(v).hex() for entry in result.evaluations for v in (*entry.x, entry.value)],
]))
"""


def _start(store: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, store],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def _finish(process: subprocess.Popen[str]) -> list[object]:
    output, errors = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"the run failed:\n{errors}")
    return json.loads(output)


def results_in(store: Path) -> int:
    """Results that are complete in the journal, read without the library."""
    journal = store / "evaluations.jsonl"
    if not journal.exists():
        return 0
    lines = journal.read_bytes().split(b"\n")[:-1]  # what follows the last line feed is torn
    return sum(json.loads(line)["kind"] == "result" for line in lines)


def campaign(n_kills: int, seed: int) -> int:
    """Kill, resume, compare; the number of runs that ended differently or lost something."""
    generator = np.random.default_rng(seed)
    begin = time.perf_counter()
    expected = _finish(_start(""))
    duration = time.perf_counter() - begin
    kills = runs = faults = 0
    while kills < n_kills:
        directory = Path(tempfile.mkdtemp(prefix="killed-runs-"))
        recorded = 0
        for attempt in range(KILLS_PER_RUN + 1):
            process = _start(str(directory / "run"))
            # Imports take the first part of a child's life: the rest is what is tested.
            patience = float(generator.uniform(0.3, 1.0)) * duration
            try:
                process.wait(timeout=patience if attempt < KILLS_PER_RUN else None)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                kills += 1
                found = results_in(directory / "run")
                faults += found < recorded
                recorded = found
                continue
            break
        runs += 1
        faults += _finish(process) != expected
        shutil.rmtree(directory)
        print(f"{kills} kills, {runs} runs ended, {faults} faults", flush=True)
    return faults
