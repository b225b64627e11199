from dataclasses import replace

import numpy as np
import pytest

import sparing
from sparing import Status, StopReason
from sparing.cli import run
from sparing.cli.exit_codes import ExitCode
from sparing.stored_run import RESULT


def test_a_run_that_converges(sparing_command, model, tmp_path):
    answer = sparing_command("run", model, "--seed", 1, "--quiet", "--json")
    assert answer.code == ExitCode.OK
    assert answer.err == ""
    assert answer.json["converged"]
    assert answer.json["log_evidence"] == pytest.approx(0.0, abs=0.02)
    assert answer.json["parameters"]["rate"]["sd"] == pytest.approx(1.0, abs=0.02)
    quantiles = answer.json["parameters"]["rate"]["quantiles"]
    assert quantiles["0.975"] == pytest.approx(1.96, abs=0.06)
    assert list(tmp_path.iterdir()) == [model]  # nothing was asked to be kept


def test_a_run_whose_budget_ends_is_kept_and_goes_on(sparing_command, model, tmp_path):
    store = tmp_path / "runs" / "a"
    options = ("--store", store, "--seed", 1, "--quiet")
    answer = sparing_command("run", model, *options, "--max-evaluations", 12)
    assert answer.code == ExitCode.NOT_TRUSTED
    assert "rate" in answer.out
    assert sparing.load(store / RESULT).n_evaluations == 12
    again = sparing_command("run", model, *options, "--max-evaluations", 15, "--json")
    assert again.json["n_evaluations"] == 15
    assert sparing.load(store / RESULT).n_evaluations == 15


def test_options_reach_the_inference(sparing_command, model, tmp_path, monkeypatch, result):
    seen = {}

    def fake_infer(problem, **options):
        seen.update(options)
        return result

    monkeypatch.setattr(run, "infer", fake_infer)
    numbers = ("--workers", 2, "--batch-size", 3, "--time-limit", 0.5, "--tolerance", 0.05)
    saved = tmp_path / "mine.sparing"
    answer = sparing_command("run", model, *numbers, "--save", saved, "--max-evaluations", 9)
    assert seen == {
        "store": None,
        "max_evaluations": 9,
        "workers": 2,
        "batch_size": 3,
        "time_limit": 0.5,
        "tolerance": 0.05,
        "seed": None,
        "progress": True,
    }
    assert answer.out == result.summary() + "\n"  # no terminal, so the summary is printed
    assert sparing.load(saved).log_evidence == result.log_evidence


def test_workers_evaluate_what_the_file_defines(sparing_command, model):
    answer = sparing_command(
        "run", model, "--workers", 2, "--max-evaluations", 12, "--quiet", "--json"
    )
    assert answer.json["statuses"] == {"ok": 12}


def test_what_the_model_prints_does_not_disturb_the_json(sparing_command, tmp_path):
    path = tmp_path / "some_talking_model.py"
    path.write_text(
        "import sparing\nprint('hello')\n\n\n"
        "def log_density(x):\n    print('again')\n    return -0.5 * x[0] ** 2\n\n\n"
        "problem = sparing.Problem(log_density, -2, 2)\n"
    )
    answer = sparing_command("run", path, "--max-evaluations", 12, "--quiet", "--json")
    assert answer.json["n_evaluations"] == 12
    assert answer.err.split() == ["hello"] + ["again"] * 12


@pytest.mark.parametrize(
    ("reason", "converged", "code"),
    [
        (StopReason.STABLE, True, ExitCode.OK),
        (StopReason.BUDGET, False, ExitCode.NOT_TRUSTED),
        (StopReason.INTERRUPTED, False, ExitCode.INTERRUPTED),
    ],
)
def test_exit_code(sparing_command, model, monkeypatch, result, reason, converged, code):
    changed = replace(result, stop_reason=reason, converged=converged)
    monkeypatch.setattr(run, "infer", lambda problem, **options: changed)
    assert sparing_command("run", model).code == code


def test_bad_arguments_are_refused_by_name(sparing_command, model, capsys):
    for option, value in (("--workers", 0), ("--seed", -1), ("--tolerance", 0), ("--seed", "a")):
        with pytest.raises(SystemExit, match="2"):
            sparing_command("run", model, option, value)
        assert f"argument {option}" in capsys.readouterr().err
    answer = sparing_command("run", model, "--max-evaluations", 1)
    assert answer.code == ExitCode.USAGE
    assert "max_evaluations must be a whole number >= 2, got 1" in answer.err


class TestResume:
    def test_a_run_started_from_python_goes_on_as_it_was(
        self, sparing_command, directory, model, tmp_path, result
    ):
        namespace = {}
        exec(model.read_text(), namespace)
        options = {"seed": 3, "max_evaluations": 20, "progress": False, "tolerance": 0.2}
        whole = sparing.infer(namespace["problem"], x0=[0.5], **options)
        command = ("resume", directory, model, "--max-evaluations", 20, "--quiet", "--json")
        answer = sparing_command(*command)
        assert answer.code == ExitCode.NOT_TRUSTED
        assert answer.json["log_evidence"] == whole.log_evidence
        assert answer.json["seed"] == 3
        resumed = sparing.load(directory / RESULT)
        assert resumed.settings == whole.settings
        points = [[entry.x for entry in run.evaluations] for run in (resumed, whole)]
        np.testing.assert_array_equal(*points)

    def test_another_model_is_refused_and_nothing_is_evaluated(
        self, sparing_command, directory, model
    ):
        before = (directory / "evaluations.jsonl").read_bytes()
        answer = sparing_command("resume", directory, f"{model}:narrower", "--quiet")
        assert answer.code == ExitCode.OTHER_PROBLEM
        assert "parameters.rate.plausible_lower: -2.0 there, -1.0 now" in answer.err
        assert (directory / "evaluations.jsonl").read_bytes() == before

    def test_a_model_of_another_dimension_is_refused_by_its_names(
        self, sparing_command, directory, tmp_path
    ):
        path = tmp_path / "some_plane.py"
        path.write_text(
            "import sparing\nproblem = sparing.Problem(lambda x: 0.0, [-2, -2], [2, 2])\n"
        )
        answer = sparing_command("resume", directory, path, "--quiet")
        assert answer.code == ExitCode.OTHER_PROBLEM
        assert 'names: ["rate"] there, ["x1", "x2"] now' in answer.err

    def test_a_run_in_use_is_refused(self, sparing_command, directory, model):
        namespace = {}
        exec(model.read_text(), namespace)
        same = {"x0": [0.5], "tolerance": 0.2, "tag": "data 7"}
        with sparing.Inference(namespace["problem"], store=directory, **same):
            answer = sparing_command("resume", directory, model, "--quiet")
        assert answer.code == ExitCode.IN_USE
        assert "in use by this process itself" in answer.err

    def test_a_directory_without_a_run(self, sparing_command, model, tmp_path):
        answer = sparing_command("resume", tmp_path, model)
        assert answer.code == ExitCode.USAGE
        assert "is not a run directory" in answer.err

    def test_a_target_that_fails_everywhere(self, sparing_command, tmp_path):
        path = tmp_path / "some_failing_model.py"
        path.write_text(
            "import sparing\n\n\ndef log_density(x):\n    raise RuntimeError('no licence')\n\n\n"
            "problem = sparing.Problem(log_density, -2, 2)\n"
        )
        answer = sparing_command("run", path, "--quiet", "--store", tmp_path / "run")
        assert answer.code == ExitCode.FAILED
        assert "no licence" in answer.err
        assert "Traceback" not in answer.err
        status = sparing_command("status", tmp_path / "run", "--json").json
        assert status["statuses"] == {str(Status.FAILED): status["n_evaluations"]}
        report = sparing_command("export", tmp_path / "run", "--summary", tmp_path / "x.json")
        assert report.code == ExitCode.FAILED
