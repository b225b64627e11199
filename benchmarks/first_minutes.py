"""A new user's first minutes: every command and block of the first pages, on a fresh clone.

`python -m benchmarks first-minutes --out DIRECTORY`: what a reader types, in the order of the
pages, in an environment made for it. Pictures and what was printed stay in the directory.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.child_process import PROJECT_ROOT
from benchmarks.errors import BenchmarkError
from benchmarks.table import markdown

sys.path.insert(0, str(PROJECT_ROOT / "docs" / "figures"))

from page_code import code_blocks, commands

PAGES = ("README.md", "docs/quick-start.md", "docs/tutorial.md")
# What is on the pages and is not done here, and why.
LEFT_OUT = {"make test": "left out: continuous integration runs it, in eleven minutes"}
# Extras that the pages name in passing: `Settings.paper()` needs one.
NAMED_EXTRAS = ("pip install '.[plots,report,paper]'",)


@dataclass(frozen=True)
class Step:
    """Something that a reader does: a command, or a block of a page."""

    what: str
    seconds: float
    outcome: str  # "ok", or what went wrong or why it was left out

    @property
    def failed(self) -> bool:
        return self.outcome.startswith("failed")


def walk(
    out: Path,
    root: Path = PROJECT_ROOT,
    pages: Sequence[str] = PAGES,
    more: Sequence[str] = NAMED_EXTRAS,
) -> list[Step]:
    """Do it all, ``more`` after the commands of the pages; pictures and logs stay in ``out``."""
    pictures = out / "pictures"
    if pictures.exists():
        raise BenchmarkError(f"{pictures} is there already: name another directory")
    pictures.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        clone = Path(scratch) / "sparing"
        steps = [_command(f"git clone --quiet '{root}' '{clone}'", "git clone", root, {}, out)]
        environment = {"PATH": f"{clone / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        typed = [line for page in pages for line in commands((root / page).read_text("utf-8"))]
        for line in dict.fromkeys([*typed, *more]):
            steps.append(_command(line, line, clone, environment, out))
        for picture in sorted((clone / "output").glob("*.png")):
            shutil.copy(picture, pictures)
        for page in pages:
            steps += _page(page, clone, out)
    return steps


def text(steps: Sequence[Step]) -> str:
    """The steps as a table."""
    rows = [[step.what, f"{step.seconds:.1f}", step.outcome] for step in steps]
    total = sum(step.seconds for step in steps)
    return markdown(["step", "seconds", "outcome"], [*rows, ["all", f"{total:.0f}", ""]])


def _command(line: str, name: str, where: Path, changes: Mapping[str, str], out: Path) -> Step:
    if line in LEFT_OUT:
        return Step(f"`{name}`", 0.0, LEFT_OUT[line])
    begin = time.perf_counter()
    with (out / "commands.log").open("a") as log:
        log.write(f"$ {name}\n")
        log.flush()
        done = subprocess.run(
            ["sh", "-c", line], cwd=where, env={**os.environ, **changes}, stdout=log, stderr=log
        )
    return Step(f"`{name}`", time.perf_counter() - begin, _outcome(done.returncode, log.name))


def _page(page: str, clone: Path, out: Path) -> list[Step]:
    """A page's blocks, in a directory and a process of their own."""
    place = out / Path(page).stem
    place.mkdir()
    took, log = place / "steps.txt", place / "printed.log"
    own = clone / ".venv" / "bin" / "python"
    command = [str(own if own.exists() else sys.executable), clone / "benchmarks/page_reader.py"]
    with log.open("w") as file:
        done = subprocess.run(
            [*command, clone / page, out.resolve() / "pictures", took.resolve()],
            cwd=place,
            stdout=file,
            stderr=file,
        )
    rows = [line.split() for line in took.read_text().splitlines()] if took.exists() else []
    steps = [Step(f"{page}, line {line}", float(seconds), "ok") for line, seconds in rows]
    if done.returncode:
        lines = [line for line, _ in code_blocks((clone / page).read_text("utf-8"))]
        where = f"{page}, line {lines[min(len(steps), len(lines) - 1)]}"
        steps.append(Step(where, 0.0, _outcome(done.returncode, str(log))))
    return steps


def _outcome(code: int, log: str) -> str:
    return "ok" if code == 0 else f"failed with {code}: see {log}"
