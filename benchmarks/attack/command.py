"""Attack the library: every kind of hostile case, each in a process of its own.

A case ends with the result of a run that nobody attacked, or refused with a message for people.
Whatever else happens (another result, an evaluation that is lost, a raw error, a process that
hangs or lives on) has broken it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.attack import asking, densities, files, kills, surroundings, targets
from benchmarks.attack.cases import Case, Ending, Verdict, judged
from benchmarks.attack.runs import reference, reference_of_several
from benchmarks.errors import BenchmarkError

Kind = Callable[[int, np.random.Generator], list[Case]]

KINDS: dict[str, tuple[str, Kind]] = {
    "kills": ("runs killed at random times and around writes", kills.kills),
    "kills-of-several": ("several runs, killed", kills.kills_of_several),
    "writes": ("the store alone, killed around its writes", kills.writes),
    "signals": ("signals to a run with workers", kills.signals),
    "damage": ("damaged and swapped files of a run", files.damaged_stores),
    "made-up": ("made-up results, snapshots and spooled outcomes", files.made_up_files),
    "links": ("links in a run directory", files.links),
    "targets": ("evil targets", targets.evil_targets),
    "changed": ("targets edited between two calls", targets.changed_targets),
    "misuse": ("misuse of ask, tell and arguments; threads", asking.misuse),
    "memory": ("2,000 tells, 150 evaluations: memory", asking.memory),
    "pools": ("pools of the user's, with targets that fail", surroundings.pools),
    "live": ("the live page", surroundings.live_page),
    "densities": ("adversarial densities", densities.densities),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join(KINDS)}; default: all")
    parser.add_argument("--cases", type=int, default=12, help="of each kind, at most (default 12)")
    parser.add_argument("--seed", type=int, default=1, help="of whatever is random")


def run(options: argparse.Namespace) -> int:
    """Attack, print what broke and a table; the number of cases that broke."""
    unknown = set(options.kinds) - set(KINDS)
    if unknown:
        raise BenchmarkError(f"no such kind: {', '.join(sorted(unknown))}")
    reference(), reference_of_several()  # once for all the processes; compiles the kernels, too
    rows = {}
    for name in options.kinds or KINDS:
        generator = np.random.default_rng([options.seed, list(KINDS).index(name)])
        begin = time.perf_counter()
        verdicts = attack(KINDS[name][1](options.cases, generator))
        rows[name] = (verdicts, time.perf_counter() - begin)
    print(table(rows))
    return sum(verdict.ending is None for verdicts, _ in rows.values() for verdict in verdicts)


def attack(cases: Sequence[Case]) -> list[Verdict]:
    """Try every case, and say what broke as soon as it does."""
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="attack-") as root:
        for number, case in enumerate(cases):
            verdict = judged(case, Path(root, f"case-{number}"))
            verdicts.append(verdict)
            if verdict.ending is None:
                print(f"BROKE {case.name}: {verdict.reason}", flush=True)
    return [verdict for verdict in verdicts if verdict.ending is not Ending.ABSENT]


def table(rows: dict[str, tuple[list[Verdict], float]]) -> str:
    """A line for each kind: cases, how they ended, seconds."""
    lines = ["| kind | cases | held | right | refused | broke | seconds |", "|" + "---|" * 7]
    totals = np.zeros(5, dtype=int)
    whole = 0.0
    for name, (verdicts, seconds) in rows.items():
        endings = [verdict.ending for verdict in verdicts]
        right, refused = endings.count(Ending.RIGHT), endings.count(Ending.REFUSED)
        counts = [len(endings), right + refused, right, refused, endings.count(None)]
        totals, whole = totals + counts, whole + seconds
        cells = [KINDS[name][0], *map(str, counts), f"{seconds:.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
    lines.append(f"| **all** | {' | '.join(map(str, totals))} | {whole:.0f} |")
    return "\n".join(lines)
