import json
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from tests.cli.conftest import MODEL

import sparing
from sparing import Status, StopReason
from sparing.cli import run
from sparing.cli.exit_codes import ExitCode
from sparing.running.stored_run import RESULT


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


def test_an_edited_model_is_refused(sparing_command, model, tmp_path):
    store = tmp_path / "run"
    sparing_command("run", model, "--store", store, "--quiet", "--seed", 1, "--max-evaluations", 12)
    edited = tmp_path / "edited.py"
    edited.write_text(MODEL.replace("-0.5 *", "-0.7 *"))
    assert edited.read_text() != MODEL
    for command in (("run", edited, "--store", store), ("resume", store, edited)):
        answer = sparing_command(*command, "--quiet", "--max-evaluations", 12)
        assert answer.code == ExitCode.OTHER_PROBLEM
        assert "the target seems to have changed" in answer.err
        answer = sparing_command(*command, "--quiet", "--max-evaluations", 12, "--unchecked")
        assert answer.code == ExitCode.NOT_TRUSTED


@pytest.mark.parametrize("apart", [False, True], ids=["one log", "two files"])
def test_the_summary_is_read_once(model, tmp_path, apart):
    arguments = ("run", str(model), "--seed", "1", "--max-evaluations", "12")
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        subprocess.run(
            [sys.executable, "-m", "sparing", *arguments],
            stdout=out,
            stderr=err if apart else subprocess.STDOUT,
            check=False,
        )
    seen = [(tmp_path / name).read_text().count("95 % interval") for name in ("out", "err")]
    assert seen == [1, 0]
    progress = (tmp_path / ("err" if apart else "out")).read_text()
    assert "after 12 evaluations: " in progress


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
        "check_target": True,
        "check_gradient": True,
        "tolerance": 0.05,
        "seed": None,
        "runs": None,
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


@pytest.fixture(scope="module")
def stored_group(tmp_path_factory):
    """A directory of two runs that ended by their budget, with their starting points."""
    path = tmp_path_factory.mktemp("several") / "runs"
    namespace = {}
    exec(MODEL, namespace)
    options = {"runs": 2, "seed": 4, "max_evaluations": 11, "tag": "data 7", "progress": False}
    x0 = [[0.5], [-0.5], [0.1]]
    several = sparing.infer(namespace["problem"], x0=x0, tolerance=1e-9, store=path, **options)
    return path, several


class TestSeveralRuns:
    def test_they_are_judged_and_kept(self, sparing_command, model, tmp_path):
        store = tmp_path / "runs"
        options = ("--runs", 2, "--seed", 1, "--max-evaluations", 40, "--store", store, "--quiet")
        answer = sparing_command("run", model, *options, "--json")
        assert answer.code == ExitCode.OK
        assert answer.json["converged"]
        assert answer.json["diagnosis"]["verdict"] == "agree"
        assert [run["path"] for run in answer.json["diagnosis"]["runs"]] == ["run 1", "run 2"]
        assert answer.json["result"]["log_evidence"] == pytest.approx(0.0, abs=0.02)
        assert answer.json["used"] == "the pooled run"
        assert answer.json["diagnosis"]["pooled"]["differences"] == []
        assert answer.json["n_evaluations"] == answer.json["result"]["n_evaluations"]
        status = sparing_command("status", store, "--json").json
        assert [run["state"] for run in status["runs"]] == ["finished"] * 3
        assert (status["n_runs"], status["seed"]) == (2, 1)
        assert status["runs"][-1]["converged"]

    def test_for_people(self, sparing_command, stored_group):
        path, several = stored_group
        lines = sparing_command("status", path).out.splitlines()
        assert lines[0].split()[:2] == ["run", "state"]
        assert [line.split()[0] for line in lines[1:]] == ["run-1", "run-2", "pooled-22"]
        text = sparing_command("diagnose", path).out
        assert text == f"{several.diagnosis}\n"

    def test_what_takes_one_result_takes_the_one_to_use(
        self, sparing_command, stored_group, tmp_path
    ):
        path, several = stored_group
        summary = tmp_path / "summary.json"
        assert sparing_command("export", path, "--summary", summary).code == ExitCode.OK
        exported = json.loads(summary.read_text())
        assert exported["log_evidence"] == several.result.log_evidence
        assert exported["n_evaluations"] == several.result.n_evaluations

    def test_what_takes_one_run_names_them(self, sparing_command, stored_group):
        answer = sparing_command("watch", stored_group[0])
        assert answer.code == ExitCode.USAGE
        assert "holds 2 runs: give one of them, such as" in answer.err

    def test_each_is_verified(self, sparing_command, stored_group, model, tmp_path):
        answer = sparing_command("verify", stored_group[0], model, "--json")
        assert (answer.code, answer.json["intact"]) == (ExitCode.OK, True)
        runs = [check["subject"].split(": ")[0] for check in answer.json["checks"]]
        assert list(dict.fromkeys(runs)) == ["run-1", "run-2", "pooled-22"]
        copy = shutil.copytree(stored_group[0], tmp_path / "copy")
        (copy / "run-2" / "problem.json").write_bytes(b"{")
        answer = sparing_command("verify", copy, "--json")
        assert (answer.code, answer.json["intact"]) == (ExitCode.DAMAGED, False)
        faults = [c["subject"] for c in answer.json["checks"] if c["finding"] == "damage"]
        assert faults == ["run-2: problem.json"]

    def test_resumed_as_they_were_started(self, sparing_command, stored_group, model, tmp_path):
        store = shutil.copytree(stored_group[0], tmp_path / "copy")
        command = ("resume", store, model, "--max-evaluations", 11, "--quiet", "--json")
        answer = sparing_command(*command)
        assert answer.code == ExitCode.NOT_TRUSTED
        assert answer.json["result"]["log_evidence"] == stored_group[1].result.log_evidence
        assert answer.json["seed"] == 4
        assert sparing.load(store / "pooled-22" / RESULT).n_evaluations == 33
        assert sparing.load(store / "run-2" / RESULT).n_evaluations == 11

    def test_another_model_is_refused(self, sparing_command, stored_group, model):
        answer = sparing_command("resume", stored_group[0], f"{model}:narrower", "--quiet")
        assert answer.code == ExitCode.OTHER_PROBLEM

    def test_the_result_is_saved_where_asked(
        self, sparing_command, stored_group, model, tmp_path, monkeypatch
    ):
        several = stored_group[1]
        monkeypatch.setattr(run, "infer", lambda problem, **options: several)
        saved = tmp_path / "mine.sparing"
        answer = sparing_command("run", model, "--runs", 2, "--save", saved)
        assert answer.out == several.summary() + "\n"
        assert sparing.load(saved).log_evidence == several.result.log_evidence

    def test_an_interruption_has_its_code(self, sparing_command, stored_group, model, monkeypatch):
        several = replace(stored_group[1], pooled=None)
        monkeypatch.setattr(run, "infer", lambda problem, **options: several)
        store = stored_group[0]
        assert sparing_command("run", model, "--store", store).code == ExitCode.INTERRUPTED


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
        assert "some_failing_model.py" in answer.err  # the user's own traceback, and no other
        assert "site-packages" not in answer.err
        assert "sparing/" not in answer.err
        status = sparing_command("status", tmp_path / "run", "--json").json
        assert status["n_evaluations"] == 1
        assert status["statuses"] == {str(Status.FAILED): status["n_evaluations"]}
        report = sparing_command("export", tmp_path / "run", "--summary", tmp_path / "x.json")
        assert report.code == ExitCode.FAILED
