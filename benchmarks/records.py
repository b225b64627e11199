"""The append-only file of a campaign: one JSON object a line, one line a run."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError

FILE_NAME = "runs.jsonl"
FORGOTTEN = "forgotten"  # status of a line that takes a run's earlier lines back


@dataclass(frozen=True)
class RunKey:
    """What makes a run the same run: it is not repeated when a campaign resumes."""

    problem: str
    method: str
    seed: int
    budget: int


class RunFile:
    """Runs recorded in a directory; the last line of a key counts."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE_NAME
        self._lock = threading.Lock()

    def read(self) -> dict[RunKey, dict[str, Any]]:
        """Every record; a last line cut short by an interruption is left out."""
        if not self.path.exists():
            return {}
        lines = self.path.read_text().split("\n")
        records = {}
        for number, line in enumerate(lines, start=1):
            if not line:
                continue
            try:
                record = json.loads(line)
            except ValueError:
                if number == len(lines):
                    break
                raise BenchmarkError(f"{self.path}, line {number} is not a record") from None
            key = RunKey(*(record[name] for name in ("problem", "method", "seed", "budget")))
            records[key] = record
        return {key: item for key, item in records.items() if item["status"] != FORGOTTEN}

    def forget(self, keys: Iterable[RunKey]) -> None:
        """Take runs back, so that they are done again; an interruption does not undo it."""
        for key in keys:
            self.append(key, {"status": FORGOTTEN})

    def append(self, key: RunKey, outcome: Mapping[str, Any]) -> None:
        """Add one record, on disk when this returns."""
        line = json.dumps({**vars(key), **outcome}) + "\n"
        with self._lock:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._drop_torn_line()
            with self.path.open("a") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())

    def _drop_torn_line(self) -> None:
        """Cut what an interruption left after the last line end."""
        if not self.path.exists():
            return
        content = self.path.read_bytes()
        if content and not content.endswith(b"\n"):
            with self.path.open("r+b") as file:
                file.truncate(content.rfind(b"\n") + 1)
