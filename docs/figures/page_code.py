"""The code of the documentation's pages: found, and the Python run in order within a page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```python[^\S\n]*\n(.*?)^```[^\S\n]*$", re.DOTALL | re.MULTILINE)
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
