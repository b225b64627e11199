"""Files that are damaged, swapped, made up, or links to somewhere else."""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import shutil
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import sparing
from benchmarks.attack.cases import Case, Ending, chosen, refused, require
from benchmarks.attack.runs import BEGUN, begun_inference, infer, same_or_refused
from benchmarks.killed_runs import results_in
from sparing.cli.main import main as command_line
from sparing.executors import Outcome, outcome_to_record
from sparing.store import write_spooled_outcome
from sparing.store.archive import NPY_MAGIC, RECORD, pack, sealed, unpack
from sparing.store.run_directory import JOURNAL, PROBLEM, SNAPSHOTS, SPOOL

Damage = Callable[[Path, np.random.Generator], None]


def _flip_a_bit(path: Path, generator: np.random.Generator) -> None:
    content = bytearray(path.read_bytes())
    content[generator.integers(len(content))] ^= 1 << int(generator.integers(8))
    path.write_bytes(bytes(content))


def _truncate(path: Path, generator: np.random.Generator) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: generator.integers(len(content))])


def _zero_a_block(path: Path, generator: np.random.Generator) -> None:
    content = bytearray(path.read_bytes())
    start = int(generator.integers(len(content)))
    content[start : start + 64] = bytes(len(content[start : start + 64]))
    path.write_bytes(bytes(content))


def _append_garbage(path: Path, generator: np.random.Generator) -> None:
    with path.open("ab") as file:
        file.write(generator.bytes(40))


def _empty(path: Path, _: np.random.Generator) -> None:
    path.write_bytes(b"")


def _remove(path: Path, _: np.random.Generator) -> None:
    path.unlink()


def _become_a_directory(path: Path, _: np.random.Generator) -> None:
    path.unlink()
    path.mkdir()


def _remove_a_line(path: Path, generator: np.random.Generator) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    del lines[generator.integers(len(lines))]
    path.write_bytes(b"".join(lines))


def _repeat_a_line(path: Path, generator: np.random.Generator) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines.insert(generator.integers(len(lines)), lines[generator.integers(len(lines))])
    path.write_bytes(b"".join(lines))


def _swap_lines(path: Path, generator: np.random.Generator) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    i, j = generator.choice(len(lines), 2, replace=False)
    lines[i], lines[j] = lines[j], lines[i]
    path.write_bytes(b"".join(lines))


def _take_that_of_another_run(path: Path, _: np.random.Generator) -> None:
    run = path.parent if path.parent.name != SNAPSHOTS else path.parent.parent
    other = run.with_name("other")
    options: dict[str, Any] = {"settings": None, "tolerance": 0.2, "max_evaluations": BEGUN}
    infer(other, lambda x: -float(x @ x), **options)
    candidates = sorted((other / path.relative_to(run)).parent.glob(f"*{path.suffix}"))
    shutil.copy(candidates[-1], path)


DAMAGES: tuple[Damage, ...] = (
    _flip_a_bit,
    _truncate,
    _zero_a_block,
    _append_garbage,
    _empty,
    _remove,
    _become_a_directory,
    _take_that_of_another_run,
)
DAMAGES_OF_LINES: tuple[Damage, ...] = (_remove_a_line, _repeat_a_line, _swap_lines)


def damaged_stores(n_cases: int, generator: np.random.Generator) -> list[Case]:
    """A run is begun, a file of it damaged, and the run goes on; or what is intact is copied."""
    cases = []
    for number in range(n_cases):
        of_journal = number % 2 == 0
        damages = (*DAMAGES, *DAMAGES_OF_LINES) if of_journal else DAMAGES
        damage = damages[number // 2 % len(damages)]
        place = JOURNAL if of_journal else (PROBLEM, f"{SNAPSHOTS}/*.npz")[number // 2 % 2]
        attack = partial(_damaged, place=place, damage=damage, seed=int(generator.integers(2**32)))
        cases.append(Case(f"{damage.__name__.strip('_')}, {place}", attack))
    return cases


def _damaged(directory: Path, place: str, damage: Damage, seed: int) -> Ending:
    store = directory / "run"
    infer(store, max_evaluations=BEGUN)
    damage(sorted(store.glob(place))[-1], np.random.default_rng(seed))
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    code, text = _command("verify", store)
    require(code in (0, 2, 6), f"verify ended with {code}: {text}")
    now = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    require(now == before, "verify has changed something")
    n_intact = _n_intact(store / JOURNAL)
    code, text = _command("verify", store, "--repair", directory / "new")
    if code == 0:
        require(results_in(directory / "new") == n_intact, "an intact result was not copied")
    else:
        require(text.startswith("sparing: "), f"--repair says {text!r}")
    return same_or_refused(store)


def _n_intact(journal: Path) -> int:
    """Different results whose checksum holds, read without the library."""
    found = set()
    for line in journal.read_bytes().split(b"\n") if journal.is_file() else ():
        if line[-18:] == b',"crc":"%08x"}' % zlib.crc32(line[:-18]):
            event = json.loads(line[:-18] + b"}")
            if event["kind"] == "result":
                found.add(event["identifier"])
    return len(found)


def _command(*arguments: object) -> tuple[int, str]:
    """Exit code and output of the command line."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        code = command_line([str(argument) for argument in arguments])
    return int(code), text.getvalue()


# ------------------------------------------------------------------------------ made-up files


class _Payload:
    """Unpickled, it leaves a mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


STRANGE: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**70,
    1e308,
    "nan",
    "\x1b[2J\ud800",
    "__import__('os').system('true')",
    [],
    [[[]]],
    {},
    {"__class__": "os.system"},
    ["a"] * 1000,
)
STRANGE_ARRAYS = (
    np.zeros(0),
    np.zeros((3, 0, 5)),
    np.full(7, np.nan),
    np.full((2, 2), 1e308),
    np.full(3, np.inf),
    np.array([-(2**63)]),
    np.zeros((1, 1, 1, 1), dtype=bool),
)


def made_up_files(n_cases: int, generator: np.random.Generator) -> list[Case]:
    """Results, snapshots and spooled outcomes whose checksum is right and whose content is not."""
    attacks = (_result, _snapshot, _spooled, _pickled)
    return [
        Case(
            f"{attacks[i % len(attacks)].__name__.strip('_')} {i}",
            partial(attacks[i % len(attacks)], seed=int(generator.integers(2**32))),
        )
        for i in range(n_cases)
    ]


def _result(directory: Path, seed: int) -> Ending:
    path = directory / "result.sparing"
    infer(None, max_evaluations=BEGUN).save(path)
    path.write_bytes(_changed_archive(path.read_bytes(), np.random.default_rng(seed)))
    found: list[sparing.Result] = []
    if refused(lambda: found.append(sparing.load(path))):
        return Ending.REFUSED
    found[0].summary().encode()
    found[0].posterior.sample(5, seed=1)
    return Ending.RIGHT


def _snapshot(directory: Path, seed: int) -> Ending:
    store = directory / "run"
    infer(store, max_evaluations=BEGUN)
    path = sorted((store / SNAPSHOTS).iterdir())[-1]
    changed = _changed_archive(path.read_bytes(), np.random.default_rng(seed))
    path.write_bytes(changed)
    require(_command("verify", store)[0] in (0, 6), "verify does not end")
    # One whose every member is possible is believed: its checksum says that sparing wrote it.
    found: list[sparing.Result] = []
    if refused(lambda: found.append(infer(store))):
        return Ending.REFUSED
    require(np.isfinite(found[0].log_evidence), "a result that is no number")
    return Ending.RIGHT


def _changed_archive(content: bytes, generator: np.random.Generator) -> bytes:
    """An archive with one of its members replaced by something strange, and a good checksum."""
    arrays, metadata = unpack(content)
    if generator.random() < 0.5:
        name = str(generator.choice(list(arrays)))
        arrays[name] = STRANGE_ARRAYS[generator.integers(len(STRANGE_ARRAYS))]
    else:
        places = list(_places(metadata))
        container, key = places[generator.integers(len(places))]
        container[key] = STRANGE[generator.integers(len(STRANGE))]
    return pack(arrays, metadata)


def _places(tree: Any) -> Any:
    """(container, key) of everything in a JSON object."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(items):
        yield tree, key
        if isinstance(value, dict | list):
            yield from _places(value)


def _pickled(directory: Path, seed: int) -> Ending:
    """An array that is a pickle, or a member that is none, in a result file."""
    path, mark = directory / "result.sparing", directory / "mark"
    infer(None, max_evaluations=BEGUN).save(path)
    evil = pickle.dumps(_Payload(mark))
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
    npy = NPY_MAGIC + (len(header) + 1).to_bytes(2, "little") + header + b"\n" + evil
    content = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(content, "w") as new:
        names = old.namelist()
        victim = names[seed % len(names)]
        for name in names:
            data = old.read(name)
            if name == victim:
                data = evil if name == RECORD else npy
            new.writestr(zipfile.ZipInfo(name), data)
        new.comment = b"0" * 64
    path.write_bytes(sealed(content.getvalue()[:-64]))
    require(refused(lambda: sparing.load(path)), "it was loaded")
    require(not mark.exists(), "code was run")
    return Ending.REFUSED


def _spooled(directory: Path, seed: int) -> Ending:
    """A worker's record of nonsense: named, and its point evaluated again."""
    generator, store = np.random.default_rng(seed), directory / "run"
    with begun_inference(store) as run:
        run.ask()
    record = outcome_to_record(Outcome(-1.0, sparing.Status.OK, 0.1))
    strange = STRANGE[generator.integers(len(STRANGE))]
    name = str(generator.choice(["value", "status", "noise_sd", "kind", "message", "another"]))
    if name != "message" or not isinstance(strange, str):
        with contextlib.suppress(TypeError, ValueError):  # what JSON cannot hold
            write_spooled_outcome(str(store / SPOOL), 0, record | {name: strange})
    return same_or_refused(store)


# ------------------------------------------------------------------------------------- links


def links(n_cases: int, generator: np.random.Generator) -> list[Case]:
    """A link in the place of a file or folder of a run: what it points to stays as it is."""
    names = ("lock", JOURNAL, PROBLEM, SNAPSHOTS, SPOOL, f"{SPOOL}/0.json", ".")
    cases = [
        Case(f"{name}, {when}", partial(_linked, name=name, begun=when == "begun"))
        for name in names
        for when in ("begun", "new")
    ]
    return chosen(cases, n_cases, generator)


def _linked(directory: Path, name: str, begun: bool) -> Ending:
    store, outside = directory / "run", directory / "outside"
    if begun:
        infer(store, max_evaluations=BEGUN)
    else:
        store.mkdir()
    place = store / name
    if name == ".":  # a run directory may itself be reached through a link
        place = store
    elif not place.exists() or not begun:
        place.parent.mkdir(exist_ok=True)
    if place.exists() and begun:
        shutil.move(place, outside)
    else:
        shutil.rmtree(place, ignore_errors=True)
        outside.mkdir() if name in (SNAPSHOTS, SPOOL, ".") else outside.write_text("dear")
    if outside.is_dir() and name != ".":
        (outside / "00000001.npz").write_text("dear")
        (outside / "0.json").write_text("dear")
    place.symlink_to(outside)
    before = _tree(outside)
    ending = same_or_refused(store)
    require(name == "." or _tree(outside) == before, "something outside was changed")
    return ending


def _tree(path: Path) -> dict[str, bytes]:
    files = [path, *path.rglob("*")] if path.is_dir() else [path]
    return {str(file): file.read_bytes() for file in files if file.is_file()}
