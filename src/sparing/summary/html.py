"""What a notebook shows for a result. Styles stand in the elements: a notebook has its own."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from sparing.summary.checks import Light
from sparing.summary.numbers import duration, estimate, parameter_rows
from sparing.summary.story import Story, stop_text, tell_story
from sparing.vbmc.run_record import RunRecord

# Told apart by brightness and sign as well as by hue.
COLOURS = {Light.GREEN: "#007a5e", Light.AMBER: "#b35900", Light.RED: "#b3003c"}
SIGNS = {Light.GREEN: "✓", Light.AMBER: "!", Light.RED: "✗"}


def html_summary(record: RunRecord) -> str:
    """The text summary's content as a fragment of HTML.

    >>> from sparing.summary import html_summary
    >>> html_summary(result).splitlines()[0]
    '<div class="sparing-result">'
    """
    story = tell_story(record)
    failed = f", {len(record.failed)} failed" if record.failed else ""
    times = f"library {duration(record.library_seconds)}, target {duration(record.target_seconds)}"
    facts = (
        ("log evidence", f"<b>{estimate(record.log_evidence, record.log_evidence_sd)}</b>"),
        ("lower bound", estimate(record.elbo, record.elbo_sd)),
        ("evaluations", f"{record.n_evaluations}{failed}"),
        ("time", times),
        ("stopped", escape(stop_text(record))),
    )
    return "\n".join(
        [
            '<div class="sparing-result">',
            _table(None, [(f"<i>{name}</i>", value) for name, value in facts]),
            _table(("parameter", "mean", "sd", "95 % interval"), _parameter_cells(record)),
            _verdict(story),
            "</div>",
        ]
    )


def _parameter_cells(record: RunRecord) -> Iterable[tuple[str, ...]]:
    for row in parameter_rows(record):
        yield escape(row.name), row.mean, row.sd, f"[{row.low}, {row.high}]"


def _table(header: tuple[str, ...] | None, rows: Iterable[tuple[str, ...]]) -> str:
    """Without a header all cells are text; with one, numbers stand behind the first column."""

    def line(cells: tuple[str, ...], tag: str) -> str:
        sides = ("left" if i == 0 or header is None else "right" for i in range(len(cells)))
        aligned = (
            f'<{tag} style="text-align:{side};padding-right:1em">{cell}</{tag}>'
            for side, cell in zip(sides, cells, strict=True)
        )
        return f"<tr>{''.join(aligned)}</tr>"

    head = "" if header is None else f"<thead>{line(header, 'th')}</thead>"
    return f"<table>{head}<tbody>{''.join(line(row, 'td') for row in rows)}</tbody></table>"


def _verdict(story: Story) -> str:
    worries = "".join(
        f'<li><b style="color:{COLOURS[worry.light]}">{SIGNS[worry.light]} {worry.light}</b>: '
        f"{escape(worry.text)}</li>"
        for worry in story.worries
    )
    steps = "".join(f"<li>{escape(step)}</li>" for step in story.next_steps)
    return (
        f'<p><b style="color:{COLOURS[story.light]}">{SIGNS[story.light]} {story.verdict}</b></p>'
        + (f"<p>What to worry about</p><ul>{worries}</ul>" if worries else "")
        + (f"<p>What to do next</p><ul>{steps}</ul>" if steps else "")
    )
