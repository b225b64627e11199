"""A model file, a stored run of it, and the command line called in this process."""

import json
import shutil
import sys
from dataclasses import dataclass

import pytest

import sparing
from sparing.cli import main

MODEL = """
import sparing


def log_density(x):
    return -0.5 * float(x[0] ** 2) - 0.918938533204672


def make(lower=-2.0):
    return sparing.Problem(log_density, lower, 2.0, names=["rate"])


problem = make()
narrower = make(lower=-1.0)


def with_wrong_bounds():
    return sparing.Problem(log_density, 2.0, -2.0)
"""


@dataclass(frozen=True)
class Answer:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def sparing_command(capsys, tmp_path):
    """Runs a command; the model files it imported are forgotten each time."""

    def run(*arguments):
        capsys.readouterr()
        path = list(sys.path)
        try:
            code = main([str(argument) for argument in arguments])
        finally:
            sys.path[:] = path
            for name, module in list(sys.modules.items()):
                if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
                    del sys.modules[name]
        return Answer(code, *capsys.readouterr())

    return run


@pytest.fixture
def model(tmp_path):
    """The path of a model file."""
    path = tmp_path / "some_model.py"
    path.write_text(MODEL)
    return path


@pytest.fixture(scope="session")
def stored(tmp_path_factory):
    """A run directory of the model's problem that ended by its budget, and its result."""
    path = tmp_path_factory.mktemp("stored") / "first"
    namespace = {}
    exec(MODEL, namespace)
    problem = namespace["problem"]
    options = {"seed": 3, "max_evaluations": 15, "tag": "data 7", "progress": False}
    return path, sparing.infer(problem, x0=[0.5], tolerance=0.2, store=path, **options)


@pytest.fixture
def directory(stored, tmp_path):
    """A copy of the stored run, to be changed at will."""
    return shutil.copytree(stored[0], tmp_path / "run")


@pytest.fixture
def result(stored):
    return stored[1]
