"""The code of the documentation's pages: found, the Python run in order within a page, and what it
prints written into the page: a block of text right after one of code is that code's output.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```python[^\S\n]*\n(.*?)^```[^\S\n]*$", re.DOTALL | re.MULTILINE)
OUTPUT = re.compile(r"\n\n```text\n(.*?)^```[^\S\n]*$", re.DOTALL | re.MULTILINE)
COMMANDS = re.compile(r"^```sh[^\S\n]*\n(.*?)^```[^\S\n]*$", re.DOTALL | re.MULTILINE)


def commands(text: str) -> list[str]:
    """The lines for the shell that are meant to be run, without their comments."""
    lines = "".join(COMMANDS.findall(text)).splitlines()
    bare = (line.partition(" #")[0].strip() for line in lines)
    return [line for line in bare if line and not line.startswith("#")]


def code_blocks(text: str) -> list[tuple[int, str]]:
    """(line number of the first line of code, code) of each block."""
    return [
        (text.count("\n", 0, match.start(1)) + 1, match.group(1)) for match in BLOCK.finditer(text)
    ]


def run_blocks(
    text: str, filename: str, done: Callable[[int], None] = lambda _: None
) -> dict[str, Any]:
    """Run the blocks in one namespace, with tracebacks that point into the page.

    ``done`` is told the line of each block after it has run.
    """
    namespace: dict[str, Any] = {"__name__": "__documentation__"}
    for line, code in code_blocks(text):
        # Empty lines in front make the line numbers those of the page. Annotations are evaluated
        # there, as where a reader types them.
        code = compile("\n" * (line - 1) + code, filename, "exec", dont_inherit=True)
        exec(code, namespace)
        done(line)
    return namespace


def run_page(path: Path) -> dict[str, Any]:
    """Run a page's blocks in the current directory."""
    return run_blocks(path.read_text(encoding="utf-8"), str(path))


def with_outputs(text: str, filename: str) -> str:
    """The page with what its blocks print now; one that ends with "..." keeps its length."""
    printed, outputs = StringIO(), dict[int, str]()

    def keep(line: int) -> None:
        outputs[line] = printed.getvalue()
        printed.seek(0)
        printed.truncate()

    with redirect_stdout(printed):
        run_blocks(text, filename, keep)
    parts, end = [], 0
    for block in BLOCK.finditer(text):
        shown = OUTPUT.match(text, block.end())
        if shown is None:
            continue
        lines = outputs[text.count("\n", 0, block.start(1)) + 1].splitlines()
        old = shown[1].splitlines()
        if old[-1:] == ["..."]:
            lines = [*lines[: len(old) - 1], "..."]
        parts += [text[end : shown.start(1)], *(f"{line.rstrip()}\n" for line in lines)]
        end = shown.end(1)
    return "".join([*parts, text[end:]])
