"""``problem.json``: which problem a run directory belongs to, and the seed of the run.

The fingerprint is a nested mapping of whatever changes results. It is compared member by member,
so that a mismatch names what differs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sparing.errors import StoreCorruptError, StoreMismatchError
from sparing.store import files
from sparing.store.checked_json import decode, encode
from sparing.store.json_members import MalformedError, Members, to_json_types

SCHEMA = 1
ABSENT = object()


@dataclass(frozen=True, eq=False)
class ProblemFile:
    """The content of ``problem.json``; the fingerprint as plain JSON values."""

    fingerprint: Mapping[str, Any]
    seed: int


def write_problem_file(path: Path, problem: ProblemFile) -> None:
    """Write the file, complete or not at all."""
    members = {
        "schema": SCHEMA,
        "written_by": f"sparing {version('sparing')}",
        "seed": problem.seed,
        "fingerprint": to_json_types(problem.fingerprint),
    }
    files.write_durably(path, encode(members, readable=True) + b"\n")


def read_problem_file(path: Path) -> ProblemFile | None:
    """The content, or None when there is no such file."""
    content = files.read_regular_file(path)
    if content is None:
        return None
    try:
        members = Members(decode(content.rstrip(b"\n")))
        members.header(SCHEMA)
        problem = ProblemFile(members.object("fingerprint"), members.seed("seed"))
        members.finish()
    except MalformedError as error:
        raise StoreCorruptError(f"{path} cannot be used: {error}") from None
    return problem


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
    return "" if value is ABSENT else json.dumps(_with_floats(value), sort_keys=True)


def _with_floats(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_floats(item) for item in value]
    if isinstance(value, dict):
        return {name: _with_floats(item) for name, item in value.items()}
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 2**53:
        return float(value)
    return value


def _shown(value: Any) -> str:
    return "absent" if value is ABSENT else json.dumps(value)
