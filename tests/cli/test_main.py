import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from sparing import errors
from sparing.cli import main, run
from sparing.cli.exit_codes import ExitCode, UsageError, code_for

ROOT = Path(__file__).parent.parent.parent
COMMANDS = (
    *("demo", "run", "resume", "status", "report", "watch"),
    *("export", "verify", "compare", "diagnose"),
)


def test_help_lists_every_command_and_code(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    text = capsys.readouterr().out
    assert all(f"\n    {command} " in text for command in COMMANDS)
    assert all(f"\n  {code:<4} {code.meaning}" in text for code in ExitCode)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example_that_it_accepts(command, capsys, monkeypatch):
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    text = capsys.readouterr().out
    example = text.partition("example:\n  sparing ")[2].strip()
    assert example.startswith(command)
    # Parsed, and then refused only because none of its files are here.
    monkeypatch.setattr(run, "run_demo", lambda options: 0)
    assert main(example.split()) in (ExitCode.OK, ExitCode.USAGE)


def test_no_command_is_a_usage_error(capsys):
    with pytest.raises(SystemExit, match="2"):
        main([])
    assert "COMMAND" in capsys.readouterr().err


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out.startswith("sparing ")


def test_the_installed_command_is_main():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    module, _, name = tomllib.loads(text)["project"]["scripts"]["sparing"].partition(":")
    assert getattr(import_module(module), name) is main


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.StoreMismatchError("run", []), 4),
        (errors.TargetChangedError([0.5], -1.0, [-2.0]), 4),
        (errors.StoreLockedError("in use"), 5),
        (errors.StoreCorruptError("bad line"), 6),
        (errors.StoreFullError("full"), 1),
        (errors.LoadError("no result"), 6),
        (errors.ProblemError(["bad"]), 2),
        (errors.SettingsError(["bad"]), 2),
        (UsageError("bad"), 2),
        (errors.TargetError("nowhere finite"), 1),
        (errors.MissingExtraError("matplotlib", "plots"), 1),
        (OSError(28, "No space left on device", "x.html"), 1),
        (KeyboardInterrupt("interrupted after 3 evaluations"), 130),
        (KeyboardInterrupt(), 130),
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors_become_a_line_and_a_code(error, code, monkeypatch, sparing_command, directory):
    from sparing.cli import status

    def fail(path):
        raise error

    monkeypatch.setattr(status, "read_status", fail)
    answer = sparing_command("status", directory)
    assert (answer.code, answer.out) == (code, "")
    assert answer.err.startswith("sparing: ")
    assert "Traceback" not in answer.err
    machine = sparing_command("status", directory, "--json")
    assert machine.json["exit_code"] == code
    assert machine.err == f"sparing: {machine.json['error']}\n"


def test_a_bug_is_not_hidden(monkeypatch, directory):
    from sparing.cli import status

    def fail(path):
        raise AssertionError("a bug")

    monkeypatch.setattr(status, "read_status", fail)
    with pytest.raises(AssertionError, match="a bug"):
        main(["status", str(directory)])


def test_code_of_an_error_of_no_special_kind():
    assert code_for(errors.SparingError("?")) is ExitCode.FAILED


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="pipes end otherwise there")
def test_a_reader_that_goes_away_and_an_encoding_without_the_sign(directory):
    command = [sys.executable, "-m", "sparing", "status", str(directory)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUNBUFFERED": ""}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment}
    reader_gone = subprocess.Popen(command, **pipes)
    assert reader_gone.stdout is not None
    reader_gone.stdout.close()
    assert reader_gone.stderr is not None
    assert reader_gone.stderr.read() == b""
    reader_gone.stderr.close()
    assert reader_gone.wait() == ExitCode.FAILED
    finished = subprocess.run(command, **pipes, check=True)
    assert b"log evidence" in finished.stdout


def documented(name):
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def commands_in_the_documentation():
    text = documented("command-line.md") + documented("diagnosing.md")
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [part.strip() for block in blocks for part in re.split(r"&&|\n", block)]
    return [line for line in lines if line]


@pytest.mark.parametrize("line", commands_in_the_documentation())
def test_documented_commands_can_be_typed(line, capsys):
    program, *arguments = shlex.split(line)
    assert program == "sparing"
    assert main(arguments) == ExitCode.USAGE  # only since the files are not here
    assert "usage:" not in capsys.readouterr().err


def test_the_documented_exit_codes_are_these():
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", documented("command-line.md"), re.MULTILINE)
    by_signal = {"143"}  # from the driver: SIGTERM
    codes = {int(code): text for code, text in rows if code not in by_signal}
    assert codes == {int(code): code.meaning for code in ExitCode}
