"""The problem a user's Python file defines: ``model.py:problem``."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from sparing.cli.exit_codes import UsageError
from sparing.errors import SparingError
from sparing.problem.problem import Problem

DEFAULT_NAME = "problem"


def load_model(text: str) -> Problem:
    """The problem of ``FILE.py:NAME``: a `Problem`, or a function without arguments returning one.

    NAME is ``problem`` when left out. The file is run as ``import`` would, with its own folder on
    the path, so what it imports from there is found, also in worker processes.
    """
    path, name = _split(text)
    module = _imported(path)
    if not hasattr(module, name):
        known = [key for key, value in vars(module).items() if isinstance(value, Problem)]
        hint = f"; it has {', '.join(known)}" if known else ""
        raise UsageError(f"{path} defines no {name!r}{hint}. Name one as {path}:NAME")
    value = getattr(module, name)
    if callable(value):
        value = _called(value, f"{path}:{name}", path)
    if not isinstance(value, Problem):
        raise UsageError(
            f"{path}:{name} is no sparing.Problem but of type {type(value).__name__}: give the "
            "name of a Problem, or of a function without arguments that returns one"
        )
    return value


def _split(text: str) -> tuple[Path, str]:
    """File and name; a colon that no name follows belongs to the path (a Windows drive)."""
    before, colon, after = text.rpartition(":")
    if colon and after.isidentifier():
        return Path(before), after
    return Path(text), DEFAULT_NAME


def _imported(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"there is no file {path}; the model is given as FILE.py:NAME")
    module_name = path.stem
    if path.suffix != ".py" or not module_name.isidentifier():
        raise UsageError(f"{path} cannot be imported: its name must be like model.py")
    if module_name in sys.modules:
        raise UsageError(
            f"{path} cannot be imported under the name {module_name}, which another module has: "
            "rename the file"
        )
    spec = importlib.util.spec_from_file_location(module_name, path.resolve())
    assert spec is not None  # the suffix is .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # where pickling looks for what the file defines
    sys.path.insert(0, str(path.resolve().parent))
    with _explained(path, f"{path} cannot be run"):
        spec.loader.exec_module(module)
    return module


def _called(function: Any, label: str, path: Path) -> Any:
    try:
        inspect.signature(function).bind()
    except (TypeError, ValueError):
        raise UsageError(f"{label} must be callable without arguments") from None
    with _explained(path, f"{label} failed"):
        return function()


@contextmanager
def _explained(path: Path, what: str) -> Generator[None]:
    """Say what went wrong in the user's code, and in which of its lines."""
    try:
        yield
    except SparingError:  # faults of a Problem: they speak for themselves
        raise
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(path.resolve())]
        line = error.lineno if isinstance(error, SyntaxError) else (lines[-1] if lines else None)
        where = f", line {line}" if line is not None else ""
        raise UsageError(f"{what}{where}: {type(error).__name__}: {error}") from error
