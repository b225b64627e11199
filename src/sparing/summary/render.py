"""``print(result)``, and what a notebook shows for it.

Styles stand in the elements of HTML: a notebook has its own.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from html import escape

from sparing.readable_text import readable
from sparing.summary.checks import Light
from sparing.summary.numbers import derived_rows, duration, estimate, parameter_rows
from sparing.summary.story import stop_text, tell_story
from sparing.vbmc.run_record import RunRecord

WIDTH = 96
MARKS = {Light.RED: "!!", Light.AMBER: "!"}
# Told apart by brightness and sign as well as by hue.
COLOURS = {Light.GREEN: "#007a5e", Light.AMBER: "#b35900", Light.RED: "#b3003c"}
SIGNS = {Light.GREEN: "✓", Light.AMBER: "!", Light.RED: "✗"}
PARAMETER_HEADER = ("parameter", "mean", "sd", "95 % interval")


def text_summary(record: RunRecord) -> str:
    """Evidence, parameters, how it stopped, what to worry about, what to do next.

    >>> from sparing.summary import text_summary
    >>> text_summary(result) == str(result)
    True
    """
    story = tell_story(record)
    bound = estimate(record.elbo, record.elbo_sd)
    lines = [
        f"log evidence  {estimate(record.log_evidence, record.log_evidence_sd)}"
        f"   (lower bound {bound})",
        f"evaluations   {_evaluations(record)}   ({_times(record)})",
        f"stopped       {stop_text(record)}",
        "",
    ]
    table = [PARAMETER_HEADER, *_parameter_cells(record)]
    name, mean, sd, _ = (max(map(len, column)) for column in zip(*table, strict=True))
    lines += [f"{a:<{name}}  {b:>{mean}}  {c:>{sd}}  {d}".rstrip() for a, b, c, d in table]
    if failure := derived_rows(record)[1]:
        lines += ["", *_item("!", failure)]
    if story.shape:
        lines += ["", "what it looks like", *_item("-", story.shape)]
    if story.worries:
        lines += ["", "what to worry about"]
        for light, text in story.worries:
            lines += _item(MARKS[light], text)
    lines += ["", "what to do next"]
    for step in (*story.next_steps, 'see the pictures and every check: result.report("run.html")'):
        lines += _item("-", step)
    return readable("\n".join(lines))


def html_summary(record: RunRecord) -> str:
    """The text summary's content as a fragment of HTML.

    >>> from sparing.summary import html_summary
    >>> html_summary(result).splitlines()[0]
    '<div class="sparing-result">'
    """
    story = tell_story(record)
    facts = {
        "log evidence": f"<b>{estimate(record.log_evidence, record.log_evidence_sd)}</b>",
        "lower bound": estimate(record.elbo, record.elbo_sd),
        "evaluations": _evaluations(record),
        "time": _times(record),
        "stopped": escape(stop_text(record)),
    }
    parameters = [(escape(name), *numbers) for name, *numbers in _parameter_cells(record)]
    worries = [f"{_coloured(light, light)}: {escape(text)}" for light, text in story.worries]
    parts = [
        '<div class="sparing-result">',
        html_table([(f"<i>{name}</i>", value) for name, value in facts.items()]),
        html_table(parameters, PARAMETER_HEADER, numbers=True),
        f"<p>{_coloured(story.light, story.verdict)}</p>"
        + _html_list("Derived quantities", filter(None, [escape(derived_rows(record)[1])]))
        + _html_list("What it looks like", [escape(story.shape)] if story.shape else [])
        + _html_list("What to worry about", worries)
        + _html_list("What to do next", map(escape, story.next_steps)),
        "</div>",
    ]
    return readable("\n".join(parts))


def html_table(
    rows: Iterable[Sequence[str]], header: Sequence[str] = (), *, numbers: bool = False
) -> str:
    """Cells of HTML as a table; ``numbers`` stand on the right, in all columns but the first."""

    def line(cells: Sequence[str], tag: str) -> str:
        sides = ("right" if numbers and i else "left" for i in range(len(cells)))
        aligned = (
            f'<{tag} style="text-align:{side};padding-right:1em">{cell}</{tag}>'
            for side, cell in zip(sides, cells, strict=True)
        )
        return f"<tr>{''.join(aligned)}</tr>"

    head = f"<thead>{line(header, 'th')}</thead>" if header else ""
    return f"<table>{head}<tbody>{''.join(line(row, 'td') for row in rows)}</tbody></table>"


def _html_list(heading: str, items: Iterable[str]) -> str:
    entries = "".join(f"<li>{item}</li>" for item in items)
    return f"<p>{heading}</p><ul>{entries}</ul>" if entries else ""


def _coloured(light: Light, text: str) -> str:
    return f'<b style="color:{COLOURS[light]}">{SIGNS[light]} {text}</b>'


def _evaluations(record: RunRecord) -> str:
    failed = f", {len(record.failed)} failed" if record.failed else ""
    return f"{record.n_evaluations}{failed}"


def _times(record: RunRecord) -> str:
    return f"library {duration(record.library_seconds)}, target {duration(record.target_seconds)}"


def _parameter_cells(record: RunRecord) -> list[tuple[str, ...]]:
    derived, _ = derived_rows(record)
    numbers = [*parameter_rows(record), *derived]
    rows = [(*others, f"[{low}, {high}]") for *others, low, high in numbers]
    return rows + [
        (name, f"{value:g}", "fixed", "") for name, value in record.problem.fixed.items()
    ]


def _item(mark: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=f"  {mark:<2} ",
        subsequent_indent=" " * 5,
        break_long_words=False,
        break_on_hyphens=False,
    )
