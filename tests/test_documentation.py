"""Runs every ```python block of the documentation, in order within a file."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```python[^\S\n]*\n(.*?)^```[^\S\n]*$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)[^)]*\)")


def pages():
    top_level = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
    found = [ROOT / name for name in top_level if (ROOT / name).exists()]
    return found + sorted((ROOT / "docs").rglob("*.md"))


def code_blocks(text):
    """(line number of the first line of code, code) of each block."""
    return [
        (text.count("\n", 0, match.start(1)) + 1, match.group(1)) for match in BLOCK.finditer(text)
    ]


def run_blocks(text, filename):
    """Run the blocks in one namespace, with tracebacks that point into the page."""
    namespace = {"__name__": "__documentation__"}
    for line, code in code_blocks(text):
        # Empty lines in front make the line numbers those of the page.
        exec(compile("\n" * (line - 1) + code, filename, "exec"), namespace)
    return namespace


def page_name(path):
    return str(path.relative_to(ROOT))


PAGES_WITH_CODE = [path for path in pages() if code_blocks(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("path", PAGES_WITH_CODE, ids=page_name)
def test_code_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # what a block writes goes there
    run_blocks(path.read_text(encoding="utf-8"), str(path))


@pytest.mark.parametrize("path", pages(), ids=page_name)
def test_links_lead_somewhere(path):
    targets = LINK.findall(path.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (path.parent / target).exists()]
    assert not missing


def test_readme_has_code_and_both_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(code_blocks(text)) >= 3
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in ("demo", "test"):
        assert f"make {command}" in text
        assert re.search(rf"^{command}:", makefile, re.MULTILINE)


def test_continuous_integration_runs_the_readme_s_command():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.search(r"^exec make test$", script, re.MULTILINE)


def test_blocks_share_a_namespace_in_order():
    text = "```python\nx = 1\n```\ntext\n```text\nx = 5\n```\n```pycon\n>>> x = 6\n```\n" + (
        "```python\nx += 1\n```\n"
    )
    assert run_blocks(text, "page")["x"] == 2


def test_a_failing_block_is_reported_at_its_line():
    text = "# Title\n\n```python\nfine = 1\nraise RuntimeError('here')\n```\n"
    with pytest.raises(RuntimeError, match="here") as caught:
        run_blocks(text, "page.md")
    frame = caught.traceback[-1]
    assert (str(frame.path).endswith("page.md"), frame.lineno + 1) == (True, 5)
