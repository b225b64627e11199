import sys

import pytest

from sparing.cli.exit_codes import UsageError
from sparing.cli.model_file import load_model
from sparing.errors import ProblemError
from sparing.problem.problem import Problem


@pytest.fixture(autouse=True)
def clean_interpreter(monkeypatch):
    modules = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def written(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["", ":problem", ":make"])
def test_an_object_a_function_and_the_default_name(model, name):
    problem = load_model(f"{model}{name}")
    assert isinstance(problem, Problem)
    assert problem.names == ("rate",)
    assert sys.modules["some_model"].log_density is problem.log_density


def test_neighbours_can_be_imported(tmp_path):
    written(tmp_path / "some_neighbour.py", "lower = -3.0\n")
    path = written(
        tmp_path / "some_model_2.py",
        "import sparing, some_neighbour\n"
        "problem = sparing.Problem(lambda x: 0.0, some_neighbour.lower, 2.0)\n",
    )
    assert load_model(str(path)).plausible_lower[0] == -3.0


def test_a_main_block_does_not_run(tmp_path, model):
    with model.open("a") as file:
        file.write("\nif __name__ == '__main__':\n    raise RuntimeError\n")
    assert isinstance(load_model(str(model)), Problem)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("problem = 3", "is no sparing.Problem but of type int"),
        ("other = 3", "defines no 'problem'"),
        ("def problem(data): ...", "must be callable without arguments"),
        ("def problem():\n    return None", "of type NoneType"),
        ("def problem():\n    x = 1\n    return x / 0", "failed, line 3: ZeroDivisionError"),
        ("\n\nimport no_such_module", "cannot be run, line 3: ModuleNotFoundError"),
        ("x = 1\nproblem = (", "cannot be run, line 2: SyntaxError"),
        ("import sys\nsys.exit(3)", "cannot be run, line 2: SystemExit: 3"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, text, message):
    path = written(tmp_path / "some_wrong_model.py", text)
    with pytest.raises(UsageError, match=message):
        load_model(str(path))


def test_problems_with_other_names_are_listed(model):
    with pytest.raises(UsageError, match="defines no 'decay'; it has problem, narrower"):
        load_model(f"{model}:decay")


def test_faults_of_a_problem_speak_for_themselves(model):
    with pytest.raises(ProblemError, match="plausible_lower"):
        load_model(f"{model}:with_wrong_bounds")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing.py", "there is no file"),
        ("model.txt", "its name must be like model.py"),
        ("my model.py", "its name must be like model.py"),
        ("json.py", "under the name json, which another module has"),
    ],
)
def test_files_that_cannot_be_imported(tmp_path, name, message):
    if name != "nothing.py":
        written(tmp_path / name, "problem = 1\n")
    with pytest.raises(UsageError, match=message):
        load_model(str(tmp_path / name))


def test_a_drive_letter_is_part_of_the_path():
    with pytest.raises(UsageError, match=r"there is no file C:\\models\\decay\.py"):
        load_model(r"C:\models\decay.py")
