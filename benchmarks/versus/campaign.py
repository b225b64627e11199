"""Two or more methods in turns, one run at a time, each on the same core."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks import child_process
from benchmarks.methods import find_method
from benchmarks.methods.base import Environment
from benchmarks.methods.pyvbmc_method import create_environment, environment_python
from benchmarks.run import Campaign, run_campaign

METHOD, BASELINE = "sparing", "pyvbmc"
HEADLINE_PROBLEMS = tuple(
    f"{family}-{D}" for D in (2, 6, 10) for family in ("lumpy", "student", "cigar")
)
ENVIRONMENT = "pyvbmc-env"  # made in the directory of the results unless one is given


def default_core() -> int | None:
    """The last core, which the system uses least; None where no process can be pinned."""
    return max(child_process.usable_cores(), default=None)


def run_versus(campaign: Campaign, report: Callable[[str], None] = print) -> int:
    """Run the campaign, with PyVBMC's environment made first; return how many runs failed."""
    foreign = [find_method(name).environment is Environment.PYVBMC for name in campaign.methods]
    if any(foreign) and campaign.pyvbmc_python is None:
        python = working_environment(campaign.out / ENVIRONMENT, report)
        campaign = replace(campaign, pyvbmc_python=python)
    return run_campaign(campaign, report)


def working_environment(directory: Path, report: Callable[[str], None]) -> Path:
    """The interpreter of a PyVBMC environment there, which is made unless it is there already."""
    interpreter = environment_python(directory)
    trial = [str(interpreter), "-c", "import pyvbmc"]
    if interpreter.exists() and subprocess.run(trial, check=False).returncode == 0:
        return interpreter
    report(f"making an environment with PyVBMC in {directory}")
    return create_environment(directory)
