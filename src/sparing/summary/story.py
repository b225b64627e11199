"""What a person is told about a run besides its numbers: how it stopped, worries, next steps."""

from __future__ import annotations

from dataclasses import dataclass

from sparing.problem.warning_text import topic_of
from sparing.summary.checks import COMPACT, LET_IT_GO_ON, Check, Light, Topic, check_run
from sparing.vbmc.exploration import LookElsewhere
from sparing.vbmc.run_record import RunRecord
from sparing.vbmc.stopping import StopReason

NOT_SOUGHT = (
    "let several runs agree (sparing.infer with runs=3): this one did not look for other modes"
)
STILL_UNSURE = (
    "a mode less than half as wide as those found, or outside the plausible box, may be missed: if "
    "there may be one, start near it (x0), or let several runs agree (runs=3)"
)
ITS_SOURCES = (
    "compare the runs whose evaluations it was given (sparing.diagnose, or sparing diagnose on "
    "their directory): what all of them missed is missing here too"
)


@dataclass(frozen=True)
class Story:
    """What to make of a run."""

    checks: tuple[Check, ...]
    light: Light
    verdict: str
    shape: str  # what to know of the posterior's shape, unless it is plain or a worry
    worries: tuple[tuple[Light, str], ...]  # how much it matters, and what may be wrong
    next_steps: tuple[str, ...]


VERDICTS = {
    Light.GREEN: "No check found a fault.",
    Light.AMBER: "Usable, but look closer at what is marked below.",
    Light.RED: "Do not rely on this result yet.",
}
PROVISIONAL = "The run has not ended: everything here is provisional."


def tell_story(record: RunRecord) -> Story:
    """Judge the run and say what follows from it."""
    checks = check_run(record)
    lights = {check.light for check in checks}
    light = next(light for light in (Light.RED, Light.AMBER, Light.GREEN) if light in lights)
    ended = record.stop_reason is not StopReason.UNFINISHED
    verdict = VERDICTS[light] if ended else PROVISIONAL
    findings = {check.topic: check.finding for check in checks if check.light is Light.GREEN}
    shape = findings.get(Topic.SHAPE, COMPACT).replace(COMPACT, "")
    return Story(checks, light, verdict, shape, _worries(record, checks), _steps(record, checks))


def stop_text(record: RunRecord) -> str:
    """Why the run stopped and whether it converged."""
    if record.stop_reason is StopReason.UNFINISHED:
        return str(record.stop_reason)
    return f"{record.stop_reason}: {'converged' if record.converged else 'NOT converged'}"


def sentence(text: str) -> str:
    """The text with a capital first letter and a full stop; names in it stay as they are."""
    end = "" if text.endswith((".", "?", "!")) else "."
    return f"{text[:1].upper()}{text[1:]}{end}"


def _worries(record: RunRecord, checks: tuple[Check, ...]) -> tuple[tuple[Light, str], ...]:
    """The run's own warnings, then what else the checks found; the worst first."""
    lights = {check.topic: check.light for check in checks}
    worries, covered = [], set()
    for text in record.warnings:
        topic = topic_of(text)
        # A check that sees the same has the name of the warning's topic.
        question = topic and Topic.__members__.get(topic.name)
        covered.add(question)
        # A warning is never good news, whatever the threshold of the check beside it.
        light = Light.RED if question and lights.get(question) is Light.RED else Light.AMBER
        worries.append((light, text))
    worries += [
        (check.light, f"{check.topic} {sentence(check.finding)}")
        for check in checks
        if check.light is not Light.GREEN and check.topic not in covered
    ]
    return tuple(sorted(worries, key=lambda worry: worry[0] is not Light.RED))


def _steps(record: RunRecord, checks: tuple[Check, ...]) -> tuple[str, ...]:
    """Advice of the checks, the worst first, and what is always worth doing."""
    if record.stop_reason is StopReason.UNFINISHED:
        return (LET_IT_GO_ON,)
    ordered = sorted(checks, key=lambda check: check.light is not Light.RED)
    steps = [step for check in ordered for step in check.advice]
    n_told = sum(entry.identifier is None for entry in record.evaluations)
    if n_told > record.n_evaluations - n_told:
        steps.append(ITS_SOURCES)
    elif not isinstance(record.settings.exploration, LookElsewhere):
        steps.append(NOT_SOUGHT)
    elif record.stop_reason is StopReason.STABLE:
        steps.append(STILL_UNSURE)
    return tuple(dict.fromkeys(steps))
