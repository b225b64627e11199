import csv
import json
from dataclasses import replace

import numpy as np
import pytest

import sparing
from sparing.cli.exit_codes import ExitCode
from sparing.executors import Outcome


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_file_from_a_run_directory(sparing_command, directory, result, tmp_path):
    pytest.importorskip("arviz")
    files = {
        "evaluations": tmp_path / "evaluations.csv",
        "samples": tmp_path / "samples.csv",
        "netcdf": tmp_path / "draws.nc",
        "summary": tmp_path / "summary.json",
    }
    options = [part for name, path in files.items() for part in (f"--{name}", path)]
    answer = sparing_command("export", directory, *options, "--draws", 50, "--seed", 4, "--json")
    assert answer.code == ExitCode.OK
    assert answer.json["written"] == {name: str(path) for name, path in files.items()}

    evaluations = rows_of(files["evaluations"])
    assert [float(row["rate"]) for row in evaluations] == [e.x[0] for e in result.evaluations]
    assert [float(row["log_joint"]) for row in evaluations] == [e.value for e in result.evaluations]
    assert {row["status"] for row in evaluations} == {"ok"}

    draws = result.posterior.sample(50, seed=4)
    samples = rows_of(files["samples"])
    assert [float(row["rate"]) for row in samples] == draws[:, 0].tolist()
    np.testing.assert_allclose(
        [float(row["log_density"]) for row in samples], result.posterior.log_density(draws)
    )

    import arviz

    read = arviz.from_netcdf(files["netcdf"])
    np.testing.assert_array_equal(read.posterior["rate"].values, draws.T)

    summary = json.loads(files["summary"].read_text())
    assert summary["log_evidence"] == result.log_evidence
    assert summary["parameters"]["rate"]["mean"] == result.posterior.mean[0]
    assert summary["covariance"] == result.posterior.covariance.tolist()
    assert summary["stop_reason"] == "budget"


def test_a_result_file_with_awkward_names_and_values(sparing_command, result, tmp_path):
    outcome = Outcome(
        *(-np.inf, sparing.Status.OUT_OF_SUPPORT, np.nan),
        message='a "quoted" text,\nin two lines \ud800',
    )
    entry = sparing.Evaluation(0, 7, np.array([1 / 3]), outcome, rule="a rule")
    problem = sparing.Problem(lambda x: 0.0, -2.0, 2.0, names=["status"])
    posterior = replace(result.posterior, names=("status",))
    path = tmp_path / "odd.sparing"
    odd = {"problem": problem, "posterior": posterior, "evaluations": (entry,)}
    replace(result, **odd, surrogate=None).save(path)
    files = tmp_path / "evaluations.csv", tmp_path / "summary.json"
    answer = sparing_command("export", path, "--evaluations", files[0], "--summary", files[1])
    assert answer.out == f"evaluations: {files[0]}\nsummary: {files[1]}\n"
    (row,) = rows_of(files[0])
    assert float(row["parameter status"]) == 1 / 3
    assert row["status"] == "out of support"
    assert (row["noise_sd"], row["kind"], row["rule"]) == ("0.0", "", "a rule")
    assert row["message"] == 'a "quoted" text,\nin two lines \\ud800'
    assert (float(row["log_joint"]), row["seconds"]) == (-np.inf, "nan")
    assert json.loads(files[1].read_text())["statuses"] == {"out of support": 1}


def test_nothing_asked_for(sparing_command, directory):
    answer = sparing_command("export", directory)
    assert answer.code == ExitCode.USAGE
    assert "--samples" in answer.err


@pytest.mark.parametrize("option", ["--summary", "--netcdf"])
def test_a_place_that_cannot_be_written(sparing_command, directory, tmp_path, option):
    if option == "--netcdf":
        pytest.importorskip("arviz")
    answer = sparing_command("export", directory, option, tmp_path / "nowhere" / "file")
    assert answer.code == ExitCode.FAILED
    assert answer.err.startswith("sparing: cannot write ")


def test_no_such_run(sparing_command, tmp_path, model):
    answer = sparing_command("export", tmp_path / "nowhere", "--summary", tmp_path / "x")
    assert answer.code == ExitCode.USAGE
    assert "there is no run directory and no result file" in answer.err
    assert sparing_command("export", tmp_path, "--summary", "x").code == ExitCode.USAGE
    answer = sparing_command("export", model, "--summary", tmp_path / "x")
    assert answer.code == ExitCode.DAMAGED
    assert "is not a file that sparing wrote" in answer.err
