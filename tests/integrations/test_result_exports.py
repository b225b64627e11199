"""What `sparing.Result` hands to pandas, GetDist and corner."""

import doctest
import sys
from dataclasses import replace

import numpy as np
import pytest
from tests.hand_made import make_result

import sparing
from sparing.executors import FailureKind, Outcome
from sparing.integrations import columns, shared
from sparing.integrations.columns import column_names
from sparing.integrations.shared import optional_module

NAMES = ("log_sigma", "status")


def half_bounded_result():
    """Two parameters, the first positive; three evaluations, of which one failed."""
    problem = sparing.Problem(
        lambda x: 0.0, [0.5, -2.0], [2.0, 2.0], lower=[0.0, None], names=NAMES
    )
    ok, failed = sparing.Status.OK, sparing.Status.FAILED
    evaluations = (
        sparing.Evaluation(
            0, 0, np.array([1.0, 0.5]), Outcome(-3.0, ok, 0.25, worker="host:7"), rule="a rule"
        ),
        sparing.Evaluation(
            *(1, 1, np.array([2.0, 1.5])),
            Outcome(np.nan, failed, 0.5, "it raised \ud800", kind=FailureKind.EXCEPTION),
        ),
        sparing.Evaluation(
            2, None, np.array([3.0, 2.5]), Outcome(-4.0, ok, 0.75, started=1e9, noise_sd=0.5)
        ),
    )
    return replace(make_result(problem, sd=0.3), evaluations=evaluations)


def test_examples_of_internal_modules():
    for module in (columns, shared):
        assert doctest.testmod(module).failed == 0


def test_draws_as_a_table():
    pytest.importorskip("pandas")
    result = half_bounded_result()
    table = result.to_dataframe(30, seed=4)
    assert tuple(table.columns) == NAMES
    np.testing.assert_array_equal(table.to_numpy(), result.posterior.sample(30, seed=4))


def test_evaluations_as_a_table():
    pytest.importorskip("pandas")
    table = half_bounded_result().evaluations_dataframe()
    assert table.index.name == "evaluation"
    assert table["log_sigma"].tolist() == [1.0, 2.0, 3.0]
    assert table["parameter status"].tolist() == [0.5, 1.5, 2.5]
    assert table["status"].tolist() == ["ok", "failed", "ok"]
    np.testing.assert_array_equal(table["value"], [-3.0, np.nan, -4.0])
    assert table["duration"].tolist() == [0.25, 0.5, 0.75]
    np.testing.assert_array_equal(table["started"], [np.nan, np.nan, 1e9])
    assert table["worker"].tolist() == ["host:7", "", ""]
    assert table["message"].tolist() == ["", "it raised \\ud800", ""]
    assert table["kind"].tolist() == ["", "exception", ""]
    assert table["noise_sd"].tolist() == [0.0, 0.0, 0.5]
    assert table["rule"].tolist() == ["a rule", "", ""]


def test_no_evaluations_still_make_a_table():
    pytest.importorskip("pandas")
    table = replace(half_bounded_result(), evaluations=()).evaluations_dataframe()
    assert table.shape == (0, 2 + 11)


def test_getdist_sees_the_moments_the_bounds_and_the_best_draw():
    pytest.importorskip("getdist")
    result = half_bounded_result()
    samples = result.to_getdist(5000, seed=2)
    draws = result.posterior.sample(5000, seed=2)
    np.testing.assert_allclose(samples.mean(NAMES), draws.mean(axis=0))
    np.testing.assert_allclose(samples.cov(list(NAMES)), np.cov(draws.T), rtol=1e-3)
    assert samples.ranges.getLower("log_sigma") == 0.0
    assert samples.ranges.getUpper("log_sigma") is None
    assert samples.ranges.getLower("status") is None
    best = samples.getLikeStats()
    assert best.logLike_sample == -result.posterior.log_density(draws).max()
    # The density estimate knows the bound: without it half of the mass would leak below.
    density = samples.get1DDensity("log_sigma")
    assert density.Prob(0.05) > 10 * density.Prob(-0.05)


def test_getdist_labels_can_be_drawn():
    pytest.importorskip("getdist")
    pytest.importorskip("matplotlib")
    from matplotlib.mathtext import MathTextParser

    problem = sparing.Problem(
        lambda x: 0.0, [-1] * 4, [1] * 4, names=["a", "50 % of_it & {$x}", r"\mu_0", "θ[0]"]
    )
    labels = make_result(problem).to_getdist(50).getParamNames().labels()
    assert labels == ["a", r"\mathrm{50\ \%\ of\_it\ &\ \{\$x\}}", r"\mu_0", r"\mathrm{θ[0]}"]
    for label in labels:
        MathTextParser("path").parse(f"${label}$")


def test_getdist_labels_of_the_user():
    pytest.importorskip("getdist")
    result = half_bounded_result()
    samples = result.to_getdist(50, labels=[r"\log\sigma", "s"])
    assert samples.getParamNames().labels() == [r"\log\sigma", "s"]
    with pytest.raises(sparing.SettingsError, match="1 labels for 2 parameters"):
        result.to_getdist(50, labels=["s"])


def test_corner_takes_the_draws():
    corner = pytest.importorskip("corner")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    posterior = half_bounded_result().posterior
    figure = corner.corner(posterior.sample(2000, seed=1), labels=posterior.names)
    labels = {axes.get_xlabel() for axes in figure.axes} - {""}
    pyplot.close(figure)
    assert labels == set(NAMES)


def test_names_of_columns_stay_apart():
    names = ["value", "rate", "parameter value"]
    assert column_names(names, ["value"]) == [
        "parameter value",
        "rate",
        "parameter parameter value",
    ]


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    for package in ("pandas", "getdist", "arviz"):
        monkeypatch.setitem(sys.modules, package, None)
    result = make_result()
    calls = {
        "pandas": result.to_dataframe,
        "getdist": result.to_getdist,
        "arviz": result.to_arviz,
    }
    for package, call in calls.items():
        with pytest.raises(sparing.MissingExtraError, match=f"pip install .sparing.{package}.'"):
            call()
    with pytest.raises(sparing.MissingExtraError):
        result.evaluations_dataframe()


def test_a_broken_package_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "broken_package.py").write_text("import package_that_nobody_has\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="package_that_nobody_has") as caught:
        optional_module("broken_package", "extra")
    assert not isinstance(caught.value, sparing.MissingExtraError)


def test_what_was_made_is_kept_up_to_a_number():
    keys = [shared.new_key() for _ in range(shared.LARGEST + 1)]
    for key in keys:
        assert shared.once_per_process(key, lambda key=key: [key]) == [key]
    first, last = (shared.once_per_process(key, list) for key in (keys[0], keys[-1]))
    assert (first, last) == ([], [keys[-1]])
