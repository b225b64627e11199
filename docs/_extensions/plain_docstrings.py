"""Docstrings as sparing writes them, turned into what Sphinx reads.

They are plain text for ``help()``. Blocks are separated by empty lines, and there are four kinds:

    examples      lines that begin with >>>, and what they print
    tables        a name, a colon or two spaces, its meaning; longer meanings are indented below it
    indented      anything else that is indented, such as a formula: shown as it is
    paragraphs    text, with names in `backquotes`; nothing else in it is markup

Classes that users read and never build (dataclasses with a field that must be given) are shown
without the arguments of their constructor.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

ROW = re.compile(
    r"(?:(?P<listed>[a-z_]\w*(?:, [a-z_]\w*)*):\s+|(?P<name>\S(?:.*?\S)?):?\s{2,})(?P<meaning>\S.*)"
)
CODE = re.compile(r"``(?P<double>.+?)``|`(?P<single>[^`]+)`")
MARKUP = re.compile(r"([*|_`\\])")
NOTHING = "\\ "  # ends inline code where a letter follows
LIST_ITEM = re.compile(r"(- |\d+\. )")


def convert(docstring: list[str]) -> list[str]:
    """The lines of a docstring as lines of reStructuredText."""
    lines: list[str] = []
    for block in _blocks(docstring):
        lines += [*_convert_block(block), ""]
    return lines


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    block: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            block.append(line.rstrip())
        elif block:
            yield block
            block = []


def _convert_block(block: list[str]) -> list[str]:
    indent = min(len(line) - len(line.lstrip()) for line in block)
    lines = [line[indent:] for line in block]
    if lines[0].startswith(">>>"):
        return lines
    if rows := _table(lines):
        return [text for name, meaning in rows for text in (_code(name), f"    {_prose(meaning)}")]
    if indent:
        return ["::", "", *(f"    {line}" for line in lines)]
    if all(LIST_ITEM.match(line) or line.startswith("  ") for line in lines):
        return [_prose(line) for line in lines]
    return [_prose(" ".join(lines))]


def _table(lines: list[str]) -> list[tuple[str, str]]:
    """(name, meaning) of each row; empty when the block is no table."""
    rows: list[tuple[str, str]] = []
    for line in lines:
        if line.startswith(" ") and rows:
            name, meaning = rows.pop()
            rows.append((name, f"{meaning} {line.strip()}"))
        elif match := ROW.fullmatch(line):
            rows.append((match["listed"] or match["name"], match["meaning"]))
        else:
            return []
    return rows


def _prose(text: str) -> str:
    """Text in which only names in backquotes are markup."""
    pieces, end = [], 0
    for match in CODE.finditer(text):
        pieces += [_escape(text[end : match.start()]), _code(match["double"] or match["single"])]
        end = match.end()
        if end < len(text) and text[end].isalnum():
            pieces.append(NOTHING)
    return "".join([*pieces, _escape(text[end:])])


def _code(text: str) -> str:
    return f"``{text}``" if "`" not in text else _escape(text)


def _escape(text: str) -> str:
    return MARKUP.sub(r"\\\1", text)


def process(
    _app: Sphinx, _kind: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    """Convert in place, as autodoc asks."""
    lines[:] = convert(lines)


def hide_constructor(
    _app: Sphinx, _kind: str, _name: str, thing: object, *_: object
) -> tuple[str, None] | None:
    """An empty signature for dataclasses that are read, not built."""
    if not (isinstance(thing, type) and dataclasses.is_dataclass(thing)):
        return None
    missing = dataclasses.MISSING
    required = any(
        field.init and field.default is missing and field.default_factory is missing
        for field in dataclasses.fields(thing)
    )
    generated = thing.__dataclass_params__.init  # pyright: ignore[reportAttributeAccessIssue]
    return ("", None) if generated and required else None


def setup(app: Sphinx) -> ExtensionMetadata:
    """Hear of every docstring and signature autodoc reads."""
    app.connect("autodoc-process-docstring", process)
    app.connect("autodoc-process-signature", hide_constructor)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
