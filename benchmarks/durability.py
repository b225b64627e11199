"""Campaigns against the run directory: kills, stale locks, a full disk, and the cost of an append.

    python -m benchmarks durability                     everything
    python -m benchmarks durability kills --random 200

Each prints one line with its counts and returns the number of faults. A kill is judged against
the acknowledgements the child sent through a pipe: one byte after each append that returned.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np

from benchmarks.killing import kill_at_boundary, killed_child
from sparing.errors import StoreError, StoreFullError, StoreLockedError
from sparing.problem.evaluations import Evaluation, Event, Outcome, Proposal, Status
from sparing.store import RunDirectory, write_spooled_outcome
from sparing.store.journal import encode_line
from sparing.testing.store import assert_same_events

FINGERPRINT = {"problem": "durability", "lower": [-np.inf, 0.0]}
JOURNAL = "evaluations.jsonl"
APPEND_LIMIT = 5e-3  # seconds


def events(count: int) -> list[Event]:
    """The first events of a made-up run, the same each time."""
    generator = np.random.default_rng(0)
    made: list[Event] = []
    for number in range((count + 1) // 2):
        x = generator.standard_normal(6)
        made.append(Proposal(number, x))
        value = float(generator.standard_normal())
        times = {"duration": 1.5, "started": 1e9 + number, "ended": 1e9 + number + 1.5}
        outcome = Outcome(value, Status.OK, worker="host:1", **times)
        made.append(Evaluation(number, number, x, outcome))
    return made[:count]


def reference_journal(count: int) -> bytes:
    """The journal of the run that was never interrupted."""
    return b"".join(encode_line(number, event) for number, event in enumerate(events(count)))


def work(path: Path, count: int, acknowledge: Callable[[], None]) -> None:
    """Carry a run on to ``count`` events, as a coordinator and its workers would."""
    with RunDirectory.open(path, FINGERPRINT, seed=1) as store:
        done = len(store.events())
        for event in events(count)[done:]:
            if not isinstance(event, Proposal):
                write_spooled_outcome(f"{path}/spool", event.index, {"value": event.value})
            store.append(event)
            acknowledge()
            if not isinstance(event, Proposal):
                store.spool.remove(event.index)
                if event.index % 2:
                    store.write_snapshot(event.index, {"x": event.x}, {"index": event.index})


def faults_after_kill(path: Path, count: int, acknowledged: int) -> list[str]:
    """What is wrong with a run directory whose writer was killed; carries the run to its end."""
    before = (path / JOURNAL).read_bytes() if (path / JOURNAL).exists() else b""
    faults = []
    try:
        if before:
            with RunDirectory.open(path, FINGERPRINT, read_only=True) as store:
                visible = len(store.events())
            if visible < acknowledged:
                faults.append(f"{acknowledged} events were acknowledged and {visible} can be read")
        with RunDirectory.open(path, FINGERPRINT, seed=1) as store:
            found = store.events()
            assert_same_events(found, events(count)[: len(found)])
            if not acknowledged <= len(found) <= acknowledged + 1:
                faults.append(f"{acknowledged} acknowledged, {len(found)} found")
            tail = store.torn_tail.read_bytes() if store.torn_tail else b""
            if before not in ((path / JOURNAL).read_bytes() + tail, before.rstrip(b"\n")):
                faults.append("bytes of the journal are gone")
            snapshot = store.latest_snapshot()
            if snapshot is not None and snapshot.metadata["index"] >= len(found) // 2:
                faults.append("a snapshot is ahead of the journal")
        work(path, count, lambda: None)
        if (path / JOURNAL).read_bytes() != reference_journal(count):
            faults.append("the resumed journal differs from the uninterrupted one")
    except (StoreError, AssertionError) as error:
        faults.append(f"{type(error).__name__}: {error}")
    return faults


def kill_at_every_boundary(root: Path, count: int, *, torn: bool) -> tuple[int, list[str]]:
    """Kill a run at each boundary in turn; with ``torn``, one that first has a tail to repair."""
    faults: list[str] = []
    for boundary in itertools.count():
        path = root / f"boundary-{torn}-{boundary}"
        complete = 0
        if torn:
            complete = count // 2
            work(path, complete, lambda: None)
            with (path / JOURNAL).open("ab") as journal:
                journal.write(reference_journal(count)[(path / JOURNAL).stat().st_size :][:50])

        def action(
            acknowledge: Callable[[], None], path: Path = path, boundary: int = boundary
        ) -> None:
            kill_at_boundary(boundary)
            work(path, count, acknowledge)

        acknowledged = killed_child(action, None)
        if acknowledged < 0:
            return boundary, faults
        found = faults_after_kill(path, count, complete + acknowledged)
        faults += [f"boundary {boundary}: {fault}" for fault in found]
        shutil.rmtree(path)
    raise AssertionError("unreachable")


def kill_at_random(root: Path, kills: int, count: int, seed: int) -> tuple[int, list[str]]:
    """Kill a run again and again at random times, resuming it; a new one when it is complete."""
    generator = random.Random(seed)
    started = time.perf_counter()
    work(root / "timing", count, lambda: None)
    longest = time.perf_counter() - started
    faults: list[str] = []
    for kill in range(kills):
        path = root / f"random-{kill}"
        acknowledged = killed_child(
            lambda acknowledge, path=path: work(path, count, acknowledge),
            generator.uniform(0.0, longest),
        )
        found = faults_after_kill(path, count, acknowledged)
        faults += [f"random kill {kill}: {fault}" for fault in found]
        shutil.rmtree(path)
    return kills, faults


def campaign_kills(root: Path, options: argparse.Namespace) -> int:
    plain, faults = kill_at_every_boundary(root, options.events, torn=False)
    torn, torn_faults = kill_at_every_boundary(root, options.events, torn=True)
    kills, random_faults = kill_at_random(root, options.random, 10 * options.events, options.seed)
    faults += torn_faults + random_faults
    print(f"kills: {plain + torn} at write boundaries, {kills} at random times")
    return _report(faults)


def campaign_locks(root: Path, options: argparse.Namespace) -> int:
    """Leave stale locks; let several processes race for each: exactly one may win."""
    faults: list[str] = []
    for number in range(options.locks):
        path = root / f"lock-{number}"
        killed_child(lambda _, path=path: _open_and_die(path), None)
        if not (path / "lock").read_bytes().strip():
            faults.append(f"lock {number} was not stale")
        winners = _race(path, options.racers)
        if winners != 1:
            faults.append(f"lock {number}: {winners} of {options.racers} took it over")
    print(f"locks: {options.locks} stale ones, {options.racers} processes racing for each")
    return _report(faults)


def _open_and_die(path: Path) -> None:
    store = RunDirectory.open(path, FINGERPRINT, seed=1)
    os.kill(os.getpid(), signal.SIGKILL)
    store.close()  # never reached; until here the variable keeps the store from being released


def _race(path: Path, racers: int) -> int:
    """How many of the processes that start together hold the directory at the same time."""
    start_reading, start_writing = os.pipe()
    result_reading, result_writing = os.pipe()
    children = []
    for _ in range(racers):
        child = os.fork()
        if child == 0:
            os.close(start_writing)
            os.read(start_reading, 1)  # returns when the parent closes its end
            _run_racer(path, result_writing)
        children.append(child)
    os.close(start_reading)
    os.close(start_writing)
    answers = b""
    while len(answers) < racers:
        answers += os.read(result_reading, racers)
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    os.close(result_reading)
    os.close(result_writing)
    return answers.count(b"w")


def _run_racer(path: Path, results: int) -> NoReturn:
    try:
        with RunDirectory.open(path, FINGERPRINT, seed=1):
            os.write(results, b"w")
            time.sleep(60)  # hold it until the parent has heard from all, and kills
    except StoreLockedError:
        os.write(results, b"r")
    os._exit(0)


@contextlib.contextmanager
def small_disk(directory: Path, kilobytes: int) -> Iterator[bool]:
    """A tmpfs of that size mounted there; False when the system does not permit it."""
    directory.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(directory)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(directory)], check=True)


def campaign_full_disk(root: Path, options: argparse.Namespace) -> int:
    """Fill a disk by appending, make space, go on; then the same with a fresh opening."""
    with small_disk(root / "disk", 256) as mounted:
        if not mounted:
            print("full disk: skipped, mounting a tmpfs is not permitted here (run it as root)")
            return 0
        return _report(_fill_and_resume(root / "disk", options.rounds))


def _fill_and_resume(disk: Path, rounds: int) -> list[str]:
    faults: list[str] = []
    wanted = events(2000)
    ballast = [disk / f"ballast-{number}" for number in range(rounds)]
    for path in ballast:
        path.write_bytes(bytes(12 * 1024))
    done, message = 0, ""
    for number, path in enumerate(ballast):
        with RunDirectory.open(disk / "run", FINGERPRINT, seed=1) as store:
            assert_same_events(store.events(), wanted[:done])
            for attempt in range(2):  # the second time in the same, still open store
                try:
                    while True:
                        store.append(wanted[done])
                        done += 1
                except StoreFullError as error:
                    message = str(error)
                if attempt == 0 and number % 2:
                    path.unlink()
            if len(store.events()) != done:
                faults.append(f"round {number}: {done} recorded, {len(store.events())} shown")
        journal = (disk / "run" / JOURNAL).read_bytes()
        if journal != b"".join(encode_line(i, event) for i, event in enumerate(wanted[:done])):
            faults.append(f"round {number}: the journal differs from what was recorded")
        path.unlink(missing_ok=True)
    print(f"full disk: {rounds} times, {done} events kept; the message: {message}")
    return faults


def campaign_appends(root: Path, options: argparse.Namespace) -> int:
    """Median and 99 % quantile of the time of an append, by the length of the journal."""
    lengths = [length for length in (10, 1000, 10000) if length <= options.longest]
    made = events(max(lengths) + 200)
    faults = []
    with RunDirectory.open(root / "appends", FINGERPRINT, seed=1) as store:
        times = []
        for event in made:
            started = time.perf_counter()
            store.append(event)
            times.append(time.perf_counter() - started)
    for length in lengths:
        near = np.array(times[length : length + 200])
        median, high = np.quantile(near, [0.5, 0.99])
        print(f"append at {length} lines: median {1e3 * median:.2f} ms, 99 % {1e3 * high:.2f} ms")
        if median > APPEND_LIMIT:
            faults.append(f"an append at {length} lines takes {1e3 * median:.1f} ms")
    print(f"a bare write and fsync there: median {1e3 * _bare_append_time(root):.2f} ms")
    started = time.perf_counter()
    with RunDirectory.open(root / "appends", FINGERPRINT):
        print(f"opening {len(made)} lines: {1e3 * (time.perf_counter() - started):.0f} ms")
    return _report(faults)


def _bare_append_time(root: Path) -> float:
    """What the disk itself takes for a line, the floor of any append."""
    descriptor = os.open(root / "bare", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    times = []
    for _ in range(200):
        started = time.perf_counter()
        os.write(descriptor, b" " * 250)
        os.fsync(descriptor)
        times.append(time.perf_counter() - started)
    os.close(descriptor)
    return float(np.median(times))


def _report(faults: Sequence[str]) -> int:
    for fault in faults:
        print(f"  FAULT {fault}")
    print(f"  {len(faults)} faults")
    return len(faults)


CAMPAIGNS = {
    "kills": campaign_kills,
    "locks": campaign_locks,
    "full-disk": campaign_full_disk,
    "appends": campaign_appends,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("campaigns", nargs="*", help=f"of {', '.join(CAMPAIGNS)}; default all")
    parser.add_argument("--events", type=int, default=12, help="events of a killed run")
    parser.add_argument("--random", type=int, default=200, help="kills at random times")
    parser.add_argument("--seed", type=int, default=0, help="of the random times")
    parser.add_argument("--locks", type=int, default=50, help="stale locks")
    parser.add_argument("--racers", type=int, default=8, help="processes racing for each")
    parser.add_argument("--rounds", type=int, default=6, help="times the disk is filled")
    parser.add_argument("--directory", help="where to work; default the temporary directory")
    parser.add_argument("--longest", type=int, default=10000, help="longest journal timed")


def run(options: argparse.Namespace) -> int:
    """Run the campaigns; return how many faults they found."""
    unknown = set(options.campaigns) - set(CAMPAIGNS)
    if unknown:
        raise SystemExit(f"no such campaign: {', '.join(sorted(unknown))}")
    if options.directory is not None:
        Path(options.directory).mkdir(parents=True, exist_ok=True)
    faults = 0
    for name in options.campaigns or CAMPAIGNS:
        with tempfile.TemporaryDirectory(dir=options.directory) as root:
            faults += CAMPAIGNS[name](Path(root), options)
    return faults


def main(argv: Sequence[str] | None = None) -> int:
    """Run the campaigns; return 1 when one found a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    return int(run(parser.parse_args(argv)) > 0)


if __name__ == "__main__":
    sys.exit(main())
