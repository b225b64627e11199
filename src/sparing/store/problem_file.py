"""``problem.json``: which problem a run directory belongs to, and the seed of the run.

The fingerprint is a nested mapping of whatever changes results. It is compared member by member,
so that a mismatch names what differs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparing.errors import StoreMismatchError
from sparing.store.checked_json import read_headed, write_headed
from sparing.store.json_members import to_json_types

SCHEMA = 1
ABSENT = object()


@dataclass(frozen=True, eq=False)
class ProblemFile:
    """The content of ``problem.json``; the fingerprint as plain JSON values."""

    fingerprint: Mapping[str, Any]
    seed: int


def write_problem_file(path: Path, problem: ProblemFile) -> None:
    """Write the file, complete or not at all."""
    write_headed(path, SCHEMA, {"seed": problem.seed, "fingerprint": problem.fingerprint})


def read_problem_file(path: Path) -> ProblemFile | None:
    """The content, or None when there is no such file."""
    return read_headed(
        path, SCHEMA, lambda found: ProblemFile(found.object("fingerprint"), found.seed("seed"))
    )


def require_same_problem(
    path: Path, stored: Mapping[str, Any], fingerprint: Mapping[str, Any]
) -> None:
    """Refuse to resume a run with another problem than that of the stored fingerprint."""
    differences = list(_differences("", stored, to_json_types(fingerprint)))
    if differences:
        raise StoreMismatchError(str(path), differences)


def _differences(key: str, stored: Any, now: Any) -> Iterator[tuple[str, str, str]]:
    """(dotted key, stored, now) wherever two JSON values differ; lists are compared whole."""
    if isinstance(stored, dict) and isinstance(now, dict):
        for name in [*stored, *(name for name in now if name not in stored)]:
            inner = f"{key}.{name}" if key else name
            yield from _differences(inner, stored.get(name, ABSENT), now.get(name, ABSENT))
    elif _canonical(stored) != _canonical(now):
        yield key, _shown(stored), _shown(now)


def _canonical(value: Any) -> str:
    """Text that is equal for equal values only: 1 and 1.0 are, 1 and true are not."""
    if value is ABSENT:
        return ""
    return json.dumps(json.loads(json.dumps(value), parse_int=_float_if_exact), sort_keys=True)


def _float_if_exact(digits: str) -> float:
    return float(digits) if abs(int(digits)) <= 2**53 else int(digits)


def _shown(value: Any) -> str:
    return "absent" if value is ABSENT else json.dumps(value)
