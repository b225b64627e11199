"""``print(result)``."""

from __future__ import annotations

import textwrap

from sparing.summary.checks import Light
from sparing.summary.numbers import duration, estimate, parameter_rows
from sparing.summary.story import stop_text, tell_story
from sparing.vbmc.run_record import RunRecord

WIDTH = 96
MARKS = {Light.RED: "!!", Light.AMBER: "!"}


def text_summary(record: RunRecord) -> str:
    """Evidence, parameters, how it stopped, what to worry about, what to do next.

    >>> from sparing.summary import text_summary
    >>> text_summary(result) == str(result)
    True
    """
    story = tell_story(record)
    failed = f", {len(record.failed)} failed" if record.failed else ""
    times = f"library {duration(record.library_seconds)}, target {duration(record.target_seconds)}"
    bound = estimate(record.elbo, record.elbo_sd)
    lines = [
        f"log evidence  {estimate(record.log_evidence, record.log_evidence_sd)}"
        f"   (lower bound {bound})",
        f"evaluations   {record.n_evaluations}{failed}   ({times})",
        f"stopped       {stop_text(record)}",
        "",
        *_parameters(record),
    ]
    if story.worries:
        lines += ["", "what to worry about"]
        for worry in story.worries:
            lines += _item(MARKS[worry.light], worry.text)
    lines += ["", "what to do next"]
    for step in (*story.next_steps, 'see the pictures and every check: result.report("run.html")'):
        lines += _item("-", step)
    return "\n".join(lines)


def _parameters(record: RunRecord) -> list[str]:
    """The table of parameters; columns as wide as they need to be."""
    rows = [
        (row.name, row.mean, row.sd, f"[{row.low}, {row.high}]") for row in parameter_rows(record)
    ]
    header = ("parameter", "mean", "sd", "95 % interval")
    table = [header, *rows]
    name, mean, sd, _ = (max(map(len, column)) for column in zip(*table, strict=True))
    return [f"{a:<{name}}  {b:>{mean}}  {c:>{sd}}  {d}" for a, b, c, d in table]


def _item(mark: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=f"  {mark:<2} ",
        subsequent_indent=" " * 5,
        break_long_words=False,
        break_on_hyphens=False,
    )
