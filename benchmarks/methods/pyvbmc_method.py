"""PyVBMC, the strongest peer, in an environment of its own (sparing never imports it)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.methods.base import Environment, Estimate, LibraryClock, Method, Snapshot
from benchmarks.problems.base import Array, BenchmarkProblem

REQUIREMENT = "pyvbmc==1.5.0"
N_SAMPLES = 20_000
# PyVBMC's moments in the user's coordinates are Monte Carlo; these sizes put the error of gsKL
# at D = 10 near 1e-4 for the result and 1e-3 for the trace.
N_MOMENT_SAMPLES = 1_000_000
N_TRACE_SAMPLES = 100_000


def create_environment(directory: Path) -> Path:
    """Make a virtual environment with PyVBMC; return its interpreter."""
    interpreter = environment_python(directory)
    steps = (
        [sys.executable, "-m", "venv", str(directory)],
        [str(interpreter), "-m", "pip", "install", "--quiet", REQUIREMENT],
        [str(interpreter), "-c", "import pyvbmc"],
    )
    for step in steps:
        if subprocess.run(step, check=False).returncode != 0:
            raise BenchmarkError(f"could not create the PyVBMC environment: {' '.join(step)}")
    return interpreter


def environment_python(directory: Path) -> Path:
    folder, name = ("Scripts", "python.exe") if sys.platform == "win32" else ("bin", "python")
    return directory / folder / name


def run_pyvbmc(
    problem: BenchmarkProblem,
    log_joint: Callable[[Array], float],
    x0: Array,
    seed: int,
    budget: int,
    clock: LibraryClock,
    *,
    told_noise: bool = False,
) -> Estimate:
    """One run of PyVBMC with its default options, or told how noisy the values are."""
    from pyvbmc import VBMC  # pyright: ignore[reportMissingImports]

    with clock:
        vbmc = VBMC(
            problem.telling_noise(log_joint) if told_noise else log_joint,
            x0[None],
            lower_bounds=problem.lower[None],
            upper_bounds=problem.upper[None],
            plausible_lower_bounds=problem.plausible_lower[None],
            plausible_upper_bounds=problem.plausible_upper[None],
            options={
                "max_fun_evals": budget,
                "display": "off",
                "specify_target_noise": told_noise,
            },
            seed=seed,
        )
        posterior, results = vbmc.optimize()
    mean, covariance = _moments(posterior, N_MOMENT_SAMPLES)
    samples, _ = posterior.sample(N_SAMPLES)
    history = vbmc.iteration_history
    columns = (history[name] for name in ("func_count", "elbo", "elbo_sd", "vp"))
    rows = zip(*columns, strict=True)
    return Estimate(
        log_evidence=float(results["elbo"]),  # its only estimate is the bound
        log_evidence_sd=float(results["elbo_sd"]),
        elbo=float(results["elbo"]),
        elbo_sd=float(results["elbo_sd"]),
        mean=mean,
        covariance=covariance,
        samples=np.asarray(samples),
        converged=bool(results["success_flag"]),
        snapshots=tuple(
            Snapshot(int(n), float(elbo), *_moments(vp, N_TRACE_SAMPLES), float(sd))
            for n, elbo, sd, vp in rows
        ),
        version=version("pyvbmc"),
    )


def _moments(posterior, n_samples: int) -> tuple[Array, Array]:
    mean, covariance = posterior.moments(n_samples, orig_flag=True, cov_flag=True)
    return np.asarray(mean).ravel(), np.atleast_2d(covariance)


PYVBMC_METHODS = (
    Method("pyvbmc", Environment.PYVBMC, run_pyvbmc),
    Method("pyvbmc-told-noise", Environment.PYVBMC, partial(run_pyvbmc, told_noise=True)),
)
