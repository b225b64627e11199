from dataclasses import replace
from importlib.metadata import version

import numpy as np
import pytest
from tests.hand_made import make_result

import sparing
from sparing.executors import Outcome

arviz = pytest.importorskip("arviz")


@pytest.fixture
def result():
    problem = sparing.Problem(lambda x: 0.0, [-2.0, -2.0], [2.0, 2.0], names=["draw", "v/c"])
    entries = [(-1.0, sparing.Status.OK), (-np.inf, sparing.Status.OUT_OF_SUPPORT)]
    evaluations = tuple(
        sparing.Evaluation(
            *(i, i, np.array([i, i + 0.5])),
            Outcome(value, status, 0.1 * i, message="half a \ud800" * i, noise_sd=0.25 * i),
            rule="a rule",
        )
        for i, (value, status) in enumerate(entries)
    )
    made = make_result(problem, mean=1.0, sd=0.5, log_evidence=-7.5, error=0.02)
    return replace(made, evaluations=evaluations)


def check(data, result, draws):
    """Every group and attribute, of a container just made or read from a file."""
    posterior = data.posterior
    assert posterior["parameter draw"].dims == ("chain", "draw")
    np.testing.assert_array_equal(posterior["parameter draw"].values, draws[:, 0][None])
    np.testing.assert_array_equal(posterior["v|c"].values, draws[:, 1][None])
    np.testing.assert_array_equal(
        data.sample_stats["lp"].values[0], result.posterior.log_density(draws)
    )
    evaluations = data.evaluations
    assert evaluations["value"].dims == ("evaluation",)
    assert evaluations["draw"].values.tolist() == [0.0, 1.0]
    assert evaluations["v|c"].values.tolist() == [0.5, 1.5]
    assert evaluations["value"].values.tolist() == [-1.0, -np.inf]
    assert evaluations["status"].values.tolist() == ["ok", "out of support"]
    assert evaluations["duration"].values.tolist() == [0.0, 0.1]
    assert evaluations["noise_sd"].values.tolist() == [0.0, 0.25]
    assert evaluations["message"].values.tolist() == ["", "half a \\ud800"]
    assert evaluations["kind"].values.tolist() == ["", ""]
    assert evaluations["rule"].values.tolist() == ["a rule", "a rule"]
    attributes = data.attrs
    assert (attributes["log_evidence"], attributes["log_evidence_sd"]) == (-7.5, 0.02)
    assert (attributes["converged"], attributes["n_evaluations"]) == (1, 2)
    assert attributes["inference_library_version"] == version("sparing")


def test_groups_and_attributes(result):
    data = result.to_arviz(40, seed=3)
    kind = "InferenceData" if arviz.__version__.startswith("0.") else "DataTree"
    assert type(data).__name__ == kind
    check(data, result, result.posterior.sample(40, seed=3))


def test_the_same_after_netcdf(result, tmp_path):
    path = tmp_path / "run.nc"
    result.to_arviz(40, seed=3).to_netcdf(str(path))
    check(arviz.from_netcdf(str(path)), result, result.posterior.sample(40, seed=3))


def test_arviz_computes_with_it(result):
    summary = arviz.summary(result.to_arviz(4000), kind="stats")
    np.testing.assert_allclose(summary["mean"].astype(float), 1.0, atol=0.05)
    np.testing.assert_allclose(summary["sd"].astype(float), 0.5, atol=0.05)
