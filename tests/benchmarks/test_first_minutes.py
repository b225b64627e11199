import shutil
import subprocess

import pytest
from benchmarks.child_process import PROJECT_ROOT
from benchmarks.errors import BenchmarkError
from benchmarks.first_minutes import Step, text, walk

from benchmarks import __main__ as command_line

PAGE = """
```sh
touch made   # what a reader types
make test    # what a reader need not
```

```python
from matplotlib.figure import Figure

Figure().savefig("own.svg")
```

```python
raise RuntimeError("here")
```
"""


@pytest.fixture
def project(tmp_path):
    """A repository with one page and the tools that read it."""
    root = tmp_path / "project"
    for tool in ("benchmarks/page_reader.py", "docs/figures/page_code.py"):
        (root / tool).parent.mkdir(parents=True)
        shutil.copy(PROJECT_ROOT / tool, root / tool)
    (root / "page.md").write_text(PAGE)
    commit = ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "all")
    for arguments in (("init", "--quiet"), ("add", "."), commit):
        subprocess.run(["git", *arguments], cwd=root, check=True)
    return root


def test_commands_and_blocks_are_steps_and_pictures_are_kept(project, tmp_path):
    out = tmp_path / "out"
    steps = walk(out, project, ["page.md"], more=["ls made", "ls missing"])
    assert [step.what for step in steps] == [
        *("`git clone`", "`touch made`", "`make test`", "`ls made`", "`ls missing`"),
        *("page.md, line 8", "page.md, line 14"),
    ]
    outcomes = [step.outcome.partition(":")[0] for step in steps]
    assert outcomes == ["ok", "ok", "left out", "ok", "failed with 2", "ok", "failed with 1"]
    assert [path.name for path in (out / "pictures").iterdir()] == ["page-1.png"]
    assert "RuntimeError: here" in (out / "page" / "printed.log").read_text()
    assert not (project / "made").exists()  # the clone is another place
    with pytest.raises(BenchmarkError, match="name another directory"):
        walk(out, project, ["page.md"])


@pytest.mark.parametrize(("outcome", "code"), [("ok", 0), ("failed with 1: see log", 1)])
def test_the_command_prints_a_table_and_tells_of_a_failure(outcome, code, monkeypatch, capsys):
    steps = [Step("`make demo`", 61.25, outcome), Step("README.md, line 5", 1.0, "ok")]
    monkeypatch.setattr(command_line.first_minutes, "walk", lambda out: steps)
    assert command_line.main(["first-minutes"]) == code
    assert capsys.readouterr().out == text(steps) + "\n"
    assert f"| `make demo` | 61.2 | {outcome} |" in text(steps)
    assert "| all | 62 |  |" in text(steps)
