"""The Python code of the documentation's pages: found, and run in order within a page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```python[^\S\n]*\n(.*?)^```[^\S\n]*$", re.DOTALL | re.MULTILINE)


def code_blocks(text: str) -> list[tuple[int, str]]:
    """(line number of the first line of code, code) of each block."""
    return [
        (text.count("\n", 0, match.start(1)) + 1, match.group(1)) for match in BLOCK.finditer(text)
    ]


def run_blocks(text: str, filename: str) -> dict[str, Any]:
    """Run the blocks in one namespace, with tracebacks that point into the page."""
    namespace: dict[str, Any] = {"__name__": "__documentation__"}
    for line, code in code_blocks(text):
        # Empty lines in front make the line numbers those of the page. Annotations are evaluated
        # there, as where a reader types them.
        code = compile("\n" * (line - 1) + code, filename, "exec", dont_inherit=True)
        exec(code, namespace)
    return namespace


def run_page(path: Path) -> dict[str, Any]:
    """Run a page's blocks in the current directory."""
    return run_blocks(path.read_text(encoding="utf-8"), str(path))
