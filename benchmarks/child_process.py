"""Run one piece of work in its own Python process, on one thread, and get its JSON answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PROJECT_ROOT = Path(__file__).resolve().parent.parent
THREAD_LIMITS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
STDERR_KEPT = 4000  # characters of a dead child's last words


class ChildError(Exception):
    """The child died, hung or answered nothing; details holds the end of its stderr."""

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(reason)
        self.details = details


def call(
    module: str,
    request: Mapping[str, Any],
    timeout: float | None,
    interpreter: Path | None = None,
    core: int | None = None,
) -> dict[str, Any]:
    """Run ``python -m module ANSWER [CORE]`` with the request on stdin; return the answer.

    The answer goes through a file since libraries print to stdout as they please. With a core the
    child runs on that one alone.
    """
    with tempfile.TemporaryDirectory() as directory:
        answer = Path(directory) / "answer.json"
        pinning = [] if core is None else [str(core)]
        try:
            done = subprocess.run(
                [str(interpreter or sys.executable), "-m", module, str(answer), *pinning],
                input=json.dumps(request),
                capture_output=True,
                text=True,
                cwd=PROJECT_ROOT,
                env={**os.environ, **dict.fromkeys(THREAD_LIMITS, "1")},
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ChildError(f"no answer within {timeout:g} s") from None
        except OSError as problem:
            raise ChildError(f"cannot start {interpreter}: {problem}") from None
        if done.returncode != 0 or not answer.exists():
            reason = f"the process ended with code {done.returncode} and no answer"
            raise ChildError(reason, done.stderr[-STDERR_KEPT:])
        return json.loads(answer.read_text())


def answer_request(work: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """The child's side: pin itself, apply work to the request on stdin, write the answer file."""
    path, *pinning = sys.argv[1:]
    if pinning:
        os.sched_setaffinity(0, {int(pinning[0])})
    Path(path).write_text(json.dumps(work(json.loads(sys.stdin.read()))))


def usable_cores() -> list[int]:
    """Cores a child can be pinned to; none where the system has no such call."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []
