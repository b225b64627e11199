"""What it takes to make the same run again: the call, the settings, the versions."""

from __future__ import annotations

import enum
import platform
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from importlib.metadata import version

from sparing.vbmc.run_record import RunRecord
from sparing.vbmc.settings import Settings
from sparing.vbmc.stopping import StopReason

PACKAGES = ("sparing", "numpy", "scipy", "numba")
TOLERANCE = "stopping.tolerance_sd"  # an argument of infer


@dataclass(frozen=True)
class Reproduction:
    """The call of ``infer`` as text, how the settings differ from the preset it names, versions."""

    call: str
    preset: str
    changed: tuple[tuple[str, str, str], ...]  # (name, value, that of the preset)
    settings: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]


def reproduction(record: RunRecord) -> Reproduction:
    """Everything but the problem itself, which only its author has."""
    presets = {"Settings()": Settings(), "Settings.paper()": Settings.paper()}
    changes = {name: _changes(record.settings, preset) for name, preset in presets.items()}
    nearest = min(changes, key=lambda name: len(changes[name]))
    return Reproduction(
        call=_call(record, nearest, bool(changes[nearest])),
        preset=nearest,
        changed=changes[nearest],
        settings=tuple((name, _text(value)) for name, value in _flat(record.settings)),
        versions=(
            ("Python", platform.python_version()),
            *((package, version(package)) for package in PACKAGES),
            ("platform", platform.platform()),
        ),
    )


def _call(record: RunRecord, preset: str, changed: bool) -> str:
    arguments = [f"seed={record.seed}", f"tolerance={record.settings.stopping.tolerance_sd:g}"]
    if record.stop_reason is StopReason.BUDGET:
        arguments.append(f"max_evaluations={record.n_evaluations}")
    if changed:
        arguments.append(f"settings=settings,  # sparing.{preset} with the changes below")
    elif preset != "Settings()":
        arguments.append(f"settings=sparing.{preset}")
    lines = [f"    {text}" if "#" in text else f"    {text}," for text in arguments]
    return "\n".join(["result = sparing.infer(", "    problem,", *lines, ")"])


def _changes(settings: Settings, preset: Settings) -> tuple[tuple[str, str, str], ...]:
    """Where the settings differ; a part that one of them does without counts as None."""
    now, usual = dict(_flat(settings)), dict(_flat(preset))
    return tuple(
        (name, _text(now.get(name)), _text(usual.get(name)))
        for name in {**usual, **now}
        if name != TOLERANCE and now.get(name) != usual.get(name)
    )


def _flat(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    """(dotted name, value) of every field of a dataclass, and of those within it."""
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            inner = f"{name}.{field.name}" if name else field.name
            yield from _flat(getattr(value, field.name), inner)
    else:
        yield name, value


def _text(value: object) -> str:
    if isinstance(value, enum.Enum):
        return str(value.name)
    return f"{value:g}" if isinstance(value, float) else repr(value)
