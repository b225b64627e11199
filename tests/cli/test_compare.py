import math

import pytest
from tests.hand_made import make_result

from sparing.cli.exit_codes import ExitCode


@pytest.fixture
def saved(tmp_path):
    def save(name, **options):
        path = tmp_path / f"{name}.sparing"
        make_result(**options).save(path)
        return path

    return save


def test_models_by_file_name_and_by_given_name(sparing_command, saved, directory, result):
    other = saved("other", log_evidence=result.log_evidence - 2.0, error=0.1)
    answer = sparing_command("compare", directory, f"growth={other}", "--json")
    assert answer.code == ExitCode.OK
    models = answer.json["models"]
    assert [model["name"] for model in models] == ["run", "growth"]
    assert models[0]["probability"] == pytest.approx(1 / (1 + math.exp(-2.0)))
    (factor,) = answer.json["bayes_factors"]
    assert factor["log_factor"] == pytest.approx(2.0)
    assert factor["strength"] == "positive"
    assert "did not converge" in answer.json["cautions"][0]


def test_prior_odds(sparing_command, saved):
    paths = saved("a"), saved("b")
    answer = sparing_command("compare", *paths, "--prior-odds", "1,4", "--json")
    assert answer.json["models"][0] == answer.json["models"][0] | {"name": "b", "prior": 0.8}
    answer = sparing_command("compare", *paths, "--prior-odds", "1,4,5")
    assert answer.code == ExitCode.USAGE
    with pytest.raises(SystemExit, match="2"):
        sparing_command("compare", *paths, "--prior-odds", "1;4")


def test_for_people(sparing_command, saved):
    text = sparing_command("compare", saved("a", log_evidence=-3.0), saved("b")).out
    assert text.splitlines()[1].startswith("b ")
    assert "log Bayes factor of b against a: 3.000 ± 0.014 (positive)" in text


def test_names_that_coincide_become_paths(sparing_command, saved, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    paths = [str(saved("a")), str(saved("elsewhere/a"))]
    answer = sparing_command("compare", *paths, "--json")
    assert sorted(model["name"] for model in answer.json["models"]) == sorted(paths)
    assert sparing_command("compare", paths[0], paths[0]).code == ExitCode.USAGE


def test_a_result_in_a_run_directory_is_called_like_the_directory(
    sparing_command, directory, result, saved
):
    result.save(directory / "result.sparing")
    answer = sparing_command("compare", directory / "result.sparing", saved("b"), "--json")
    assert {model["name"] for model in answer.json["models"]} == {"run", "b"}


def test_one_run_is_no_comparison(sparing_command, saved):
    answer = sparing_command("compare", saved("a"))
    assert answer.code == ExitCode.USAGE
    assert "two or more" in answer.err


class TestDiagnose:
    def test_runs_that_agree(self, sparing_command, saved):
        paths = [str(saved(name, seed=seed)) for seed, name in enumerate("abc")]
        answer = sparing_command("diagnose", *paths, "--json")
        assert answer.code == ExitCode.OK
        assert answer.json["verdict"] == "agree"
        assert answer.json["best"] in paths
        assert [run["path"] for run in answer.json["runs"]] == paths
        assert len(answer.json["pairs"]) == 3
        assert "all runs agree" in sparing_command("diagnose", *paths).out

    def test_runs_that_disagree(self, sparing_command, saved):
        answer = sparing_command("diagnose", saved("a"), saved("b", seed=1, mean=5.0), "--json")
        assert answer.code == ExitCode.NOT_TRUSTED
        assert answer.json["verdict"] == "disagree"
        assert sum(run["kept"] for run in answer.json["runs"]) == 1
