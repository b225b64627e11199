"""``sparing verify``: is everything in a run directory as it was written?

Only the journal and ``problem.json`` cannot be made again, so only they can be damaged; anything
else that is wrong is a note.
"""

from __future__ import annotations

import argparse
import enum
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from sparing.cli.arguments import MODEL_HELP, Commands, add_command, add_json
from sparing.cli.exit_codes import ExitCode, UsageError
from sparing.cli.model_file import load_model
from sparing.cli.output import answer, make_table, only_the_answer, status_counts
from sparing.cli.stored_runs import open_run, require_run_directory
from sparing.errors import LoadError, StoreCorruptError, StoreError
from sparing.problem.evaluation_codec import InvalidRecordError, record_to_outcome
from sparing.problem.evaluations import Evaluation, Event, Proposal
from sparing.problem.problem import Problem
from sparing.results.files.result_reader import load
from sparing.running.stored_run import (
    RESULT,
    latest_iteration,
    pending_proposals,
    require_same_model,
    saved_result,
    stored_identity,
)
from sparing.store import RunDirectory, Spool
from sparing.store.files import read_regular_file
from sparing.store.journal import Scan, digests, scan
from sparing.store.lock import Holder, lock_state
from sparing.store.repair import Repair, repair, require_new
from sparing.store.run_directory import JOURNAL, PROBLEM, SNAPSHOTS, SPOOL
from sparing.store.run_group import open_group, read_group
from sparing.store.snapshots import latest_snapshot


class Finding(enum.Enum):
    """What was found where something was looked at."""

    OK = "ok"
    NOTE = "note"  # worth knowing; nothing is lost
    DAMAGE = "DAMAGE"


@dataclass(frozen=True)
class Remark:
    """One thing that was looked at, and what there is to say of it."""

    subject: str
    finding: Finding
    text: str


def add_parser(commands: Commands) -> None:
    """The arguments of the command."""
    parser = add_command(commands, "verify", verify, "runs/decay model.py:problem")
    parser.add_argument("directory", type=Path, help="the run directory")
    parser.add_argument("model", nargs="?", help=f"{MODEL_HELP} (optional)")
    parser.add_argument(
        "--repair",
        type=Path,
        metavar="NEW_DIR",
        help="copy everything that is intact to a new run directory, and say what is missing",
    )
    add_json(parser)


def verify(options: argparse.Namespace) -> ExitCode:
    """Check the integrity of a run directory.

    Checksums and order of every line, the problem's fingerprint, the lock, points in flight,
    results that workers left, snapshots and the saved result. Nothing is changed. With a model,
    also whether it is the run's. Of a directory of several runs, each is checked.

    With --repair, every record whose checksum holds is copied to a new run directory, with which
    the run goes on: also what lies behind a damaged line.
    """
    if options.repair is not None:
        return _repair(options)
    problem = None
    if options.model is not None:
        with only_the_answer(options):
            problem = load_model(options.model)
    group = read_group(options.directory)
    remarks: list[Remark] = []
    for path in (options.directory,) if group is None else group.begun_paths:
        found = _inspect_run(path, options.model, problem)
        prefix = "" if group is None else f"{path.name}: "
        remarks += [replace(remark, subject=prefix + remark.subject) for remark in found]
    damaged = any(remark.finding is Finding.DAMAGE for remark in remarks)
    members = {
        "directory": str(options.directory),
        "intact": not damaged,
        "checks": [asdict(found) | {"finding": found.finding.name.lower()} for found in remarks],
    }
    rows = [(remark.subject, remark.finding.value, remark.text) for remark in remarks]
    advice = "restore what is damaged from a copy, or keep what is not with --repair NEW_DIR"
    verdict = f"DAMAGED: {advice}" if damaged else "intact"
    answer(options, members, make_table(("what", "finding", ""), rows), verdict)
    return ExitCode.DAMAGED if damaged else ExitCode.OK


def _repair(options: argparse.Namespace) -> ExitCode:
    """Copy what is intact of each run, and say what is not."""
    old, new = options.directory, options.repair
    if options.model is not None:
        raise UsageError("--repair takes no model: verify the new directory with it")
    require_new(new)
    group = read_group(old)
    if group is not None:
        open_group(new, group.n_runs, group.seed)
    paths = {old: new} if group is None else {p: new / p.name for p in group.begun_paths}
    repairs: dict[Path, Repair] = {}
    lost: list[StoreError] = []
    for path, target in paths.items():
        try:
            repairs[target] = repair(path, target)
        except StoreError as error:  # of one among several: the others are worth keeping
            if group is None:
                raise
            lost.append(error)
    members = {
        "directory": str(old),
        "repaired": str(new),
        "runs": [{"path": str(path)} | asdict(done) for path, done in repairs.items()],
        "lost": [str(error) for error in lost],
    }
    rows = []
    for path, done in repairs.items():
        kept = f"{done.n_evaluations} evaluations of {done.n_proposals} proposals"
        rows.append((str(path), "kept", f"{kept}, {done.n_spooled} results that workers left"))
        rows += [(str(path), "missing", text) for text in done.missing]
    rows += [("a run", "lost", str(error)) for error in lost]
    verdict = f"{new} holds what is intact: go on with it as with the run"
    answer(options, members, make_table(("what", "finding", ""), rows), verdict)
    return ExitCode.DAMAGED if lost else ExitCode.OK


def _inspect_run(directory: Path, model: str | None, problem: Problem | None) -> list[Remark]:
    """What there is to say of one run; another model is an error, which names what differs."""
    require_run_directory(directory)
    remarks = list(inspect_directory(directory))
    if problem is not None and not any(remark.finding is Finding.DAMAGE for remark in remarks):
        with open_run(directory) as store:
            require_same_model(store, problem)
        remarks.append(Remark("model", Finding.OK, f"{model} is the model of this run"))
    return remarks


def inspect_directory(directory: Path) -> Iterator[Remark]:
    """All remarks on a run directory, one after the other."""
    store, of_problem = _inspect_problem(directory)
    yield of_problem
    found = scan(read_regular_file(directory / JOURNAL) or b"")
    yield from _inspect_journal(directory, found)
    events = [entry.event for entry in found.entries]
    yield from _inspect_points(events, store and stored_identity(store).problem)
    lock = lock_state(directory)
    usual = lock.holder in (Holder.NOBODY, Holder.ALIVE)
    yield Remark("lock", Finding.OK if usual else Finding.NOTE, lock.text)
    yield from _inspect_spool(directory, events)
    yield _inspect_snapshots(directory, found, store)
    yield from _inspect_result(directory, store)


def _inspect_problem(directory: Path) -> tuple[RunDirectory | None, Remark]:
    """The store, closed, or None when this release cannot read its problem; and what was found."""
    if not (directory / PROBLEM).exists():
        return None, Remark(PROBLEM, Finding.DAMAGE, "it is missing, and there are evaluations")
    try:
        with RunDirectory.open(directory, read_only=True) as store:
            names = stored_identity(store).problem.names
    except StoreCorruptError as error:
        return None, Remark(PROBLEM, Finding.DAMAGE, str(error))
    except LoadError as error:
        text = f"intact, but this release cannot use it: {error}"
        return None, Remark(PROBLEM, Finding.NOTE, text)
    text = f"fingerprint of a problem with the parameters {', '.join(names)}"
    return store, Remark(PROBLEM, Finding.OK, text)


def _inspect_journal(directory: Path, found: Scan) -> Iterator[Remark]:
    evaluations = [e.event for e in found.entries if isinstance(e.event, Evaluation)]
    kinds = ", ".join(f"{n} {kind}" for kind, n in status_counts(evaluations).items()) or "none"
    text = f"{len(found.entries)} lines with correct checksums; evaluations: {kinds}"
    yield Remark(JOURNAL, Finding.OK, text)
    if found.fault:
        yield Remark(JOURNAL, Finding.DAMAGE, f"{found.fault}; only the lines before can be read")
    if found.tail:
        text = f"incomplete last line ({len(found.tail)} bytes), as an interrupted write leaves it"
        yield Remark(JOURNAL, Finding.NOTE, f"{text}; the next run moves it aside")
    if found.unterminated:
        yield Remark(JOURNAL, Finding.NOTE, "the last line lacks only its end")
    for path in sorted(directory.glob(f"{Path(JOURNAL).stem}.torn-*")):
        yield Remark(path.name, Finding.NOTE, "an incomplete line that an earlier run moved aside")


def _inspect_points(events: Sequence[Event], problem: Problem | None) -> Iterator[Remark]:
    """What single lines cannot show: every result answers a proposal, once, at its point."""
    if problem is not None and events and len(events[0].x) != problem.dimension:
        text = f"points have {len(events[0].x)} coordinates, the problem {problem.dimension}"
        yield Remark(JOURNAL, Finding.DAMAGE, text)
    proposed: dict[int, Proposal] = {}
    answered: set[int] = set()
    for event in events:
        identifier = event.identifier
        if isinstance(event, Proposal):
            proposed[event.identifier] = event
        elif identifier is not None:
            fault = _answer_fault(event, proposed.get(identifier), identifier in answered)
            if fault:
                text = f"the result of proposal {identifier} {fault}"
                yield Remark(JOURNAL, Finding.DAMAGE, text)
            answered.add(identifier)
    pending = pending_proposals(events)
    text = f"{len(pending)} submitted and without a result"
    again = "; evaluated again when the run goes on" if pending else ""
    yield Remark("points in flight", Finding.OK, text + again)


def _answer_fault(result: Evaluation, proposal: Proposal | None, answered_before: bool) -> str:
    if proposal is None:
        return "was never proposed"
    if answered_before:
        return "is there twice"
    return "" if proposal.x.tobytes() == result.x.tobytes() else "is of another point"


def _inspect_spool(directory: Path, events: Sequence[Event]) -> Iterator[Remark]:
    spool = Spool(directory / SPOOL, read_only=True)
    waiting, faults = set(), []
    for identifier, record in spool.harvest():
        try:
            record_to_outcome(record)
            waiting.add(identifier)
        except InvalidRecordError as error:
            faults.append(f"{spool.directory}/{identifier}.json cannot be used: {error}")
    useful = waiting & {proposal.identifier for proposal in pending_proposals(events)}
    text = f"{len(useful)} results that workers left, to be taken up when the run goes on"
    leftovers = f"; {len(waiting - useful)} already recorded" if waiting - useful else ""
    yield Remark(SPOOL, Finding.OK, text + leftovers)
    for warning in (*spool.warnings, *faults):
        yield Remark(SPOOL, Finding.NOTE, f"{warning}; that point is evaluated again")


def _inspect_snapshots(directory: Path, found: Scan, store: RunDirectory | None) -> Remark:
    snapshot, warnings = latest_snapshot(directory / SNAPSHOTS, digests(found.entries))
    if warnings:
        return Remark(SNAPSHOTS, Finding.NOTE, f"{'; '.join(warnings)} (only a cache)")
    if snapshot is None:
        return Remark(SNAPSHOTS, Finding.OK, "none; resuming replays the journal from its start")
    info = store and latest_iteration(store)
    if info is not None:
        return Remark(SNAPSHOTS, Finding.OK, f"the newest is of iteration {info.iteration}")
    return Remark(SNAPSHOTS, Finding.NOTE, "not of this release; resuming replays the journal")


def _inspect_result(directory: Path, store: RunDirectory | None) -> Iterator[Remark]:
    if not (directory / RESULT).exists():
        return
    try:
        load(directory / RESULT)
    except LoadError as error:
        yield Remark(RESULT, Finding.NOTE, f"{error}; resuming the run writes it again")
        return
    if store is not None:
        current = saved_result(store) is not None
        text = "has every evaluation" if current else "is not of this journal's end, and not used"
        yield Remark(RESULT, Finding.OK if current else Finding.NOTE, text)
