"""Quantities that follow from the parameters."""

import json
from dataclasses import replace

import numpy as np
import pytest

import sparing
from sparing.cli.export import samples_csv
from sparing.cli.output import json_text, result_members
from sparing.plots import plot_derived

BOX = [0.0, 0.0], [2.0, 2.0]


def log_density(x):
    return -0.5 * float(((x - 1.0) ** 2).sum() / 0.04)


def derive(x):
    return {"sum": x[0] + x[1], "a/b": x[0] / x[1]}


def problem(derived=derive, **options):
    return sparing.Problem(log_density, *BOX, names=["a", "b"], derived=derived, **options)


def faults(derived, **options):
    with pytest.raises(sparing.ProblemError) as caught:
        problem(derived, **options)
    return caught.value.faults


@pytest.fixture(scope="module")
def result():
    return sparing.infer(problem(), seed=1, max_evaluations=20, progress=False)


def test_it_is_asked_about_all_parameters():
    fixed = problem(fixed={"b": 0.5})
    found = fixed.derived.values(np.array([[1.0], [2.0]]))
    assert {name: values.tolist() for name, values in found.items()} == {
        "sum": [1.5, 2.5],
        "a/b": [2.0, 4.0],
    }
    assert fixed.free("b").derived.values(np.array([[1.0, 4.0]]))["sum"] == [5.0]


@pytest.mark.parametrize(
    ("derived", "fault"),
    [
        ("sum", "derived must be a function of x, not 'sum'"),
        (lambda x: None, "derived returned None (is a return statement missing?) instead of a"),
        (lambda x: 3.0, "derived returned 3.0 instead of a dict of numbers, at a = 1.0, b = 1.0"),
        (lambda x: {"c": "high"}, "derived gave 'high' for 'c', which is not one number"),
        (lambda x: {"c": x}, "derived gave array([1., 1.]) for 'c', which is not one number"),
        (lambda x: {"a": 1.0}, "derived gives 'a', which is a parameter"),
        (lambda x: {"c": 1 / (x[0] - 1)["z"]}, "derived raised IndexError"),
    ],
)
def test_what_is_wrong_with_it_is_a_fault_before_anything_is_evaluated(derived, fault):
    (found,) = faults(derived)
    assert found.startswith(fault)


def test_it_is_tried_within_the_support():
    def only_in_order(x):
        assert x[0] < x[1]
        return {"gap": x[1] - x[0]}

    cut = problem(only_in_order, support=lambda x: x[0] < x[1])
    assert cut.derived.names == ("gap",)


def test_names_that_change_are_told():
    def fickle(x):
        return {"c": 1.0} if x[0] < 1.5 else {"d": 1.0}

    with pytest.raises(sparing.TargetError, match=r"gives d at a = 1\.9, .* elsewhere c"):
        problem(fickle).derived.values(np.array([[1.0, 1.0], [1.9, 1.0]]))


@pytest.mark.slow
def test_it_changes_nothing_else(result):
    plain = sparing.infer(problem(None), seed=1, max_evaluations=20, progress=False)
    assert result.log_evidence == plain.log_evidence
    np.testing.assert_array_equal(result.posterior.mean, plain.posterior.mean)
    assert plain.derived == {}


@pytest.mark.slow
def test_it_is_where_parameters_are(result, tmp_path):
    draws = result.posterior.even_sample(2048)
    np.testing.assert_array_equal(result.derived["sum"], draws.sum(axis=1))
    assert result.derived["sum"].mean() == pytest.approx(2.0, abs=0.02)
    assert result.derived["sum"].std() == pytest.approx(0.2 * np.sqrt(2.0), rel=0.05)
    rows = [line.split() for line in str(result).splitlines()]
    (row,) = [row for row in rows if row and row[0] == "sum"]
    assert float(row[1]) == pytest.approx(result.derived["sum"].mean(), abs=0.001)
    assert "<td>a/b</td>" in result.report(tmp_path / "run.html").read_text()
    assert ">a/b</td>" in result._repr_html_()
    table = result.to_dataframe(n=5)
    assert table.columns.tolist() == ["a", "b", "sum", "a/b"]
    np.testing.assert_array_equal(table["a/b"], table["a"] / table["b"])
    posterior = result.to_arviz(n=5).posterior
    assert set(posterior.data_vars) == {"a", "b", "sum", "a|b"}
    np.testing.assert_array_equal(posterior["sum"].values[0], table["sum"])
    assert samples_csv(result, 3, 0).splitlines()[0] == "a,b,sum,a/b,log_density"
    assert set(json.loads(json_text(result_members(result)))["derived"]) == {"sum", "a/b"}
    names = result.to_getdist(n=50).getParamNames()
    assert [p.name for p in names.names if p.isDerived] == ["sum", "a/b"]


@pytest.mark.slow
def test_the_picture_shows_each(result):
    figure = plot_derived(result)
    assert [ax.get_xlabel() for ax in figure.axes] == ["sum", "a/b"]
    (line,) = figure.axes[0].lines
    x, density = line.get_data()
    assert abs(x[np.argmax(density)] - 2.0) < 0.2
    assert np.sum(density) * (x[1] - x[0]) == pytest.approx(1.0, abs=0.02)
    with pytest.raises(ValueError, match="derives nothing"):
        plot_derived(replace(result, problem=problem(None)))


@pytest.mark.slow
def test_a_function_that_fails_at_the_end_costs_no_result(tmp_path):
    def fragile(x):
        if x[0] > 1.2:
            raise ArithmeticError("too large")
        return {"c": x[0]}

    result = sparing.infer(problem(fragile), seed=1, max_evaluations=12, progress=False)
    told = "derived raised ArithmeticError: too large, at a = 1."
    assert told in " ".join(str(result).split())
    assert told in result.report(tmp_path / "run.html").read_text()
    with pytest.raises(sparing.TargetError, match="too large"):
        result.to_dataframe(n=1000)
    with pytest.warns(sparing.SparingWarning, match="saved without what is derived"):
        result.save(tmp_path / "run.sparing")
    assert sparing.load(tmp_path / "run.sparing").log_evidence == result.log_evidence


@pytest.mark.slow
def test_a_file_keeps_the_numbers(result, tmp_path):
    result.save(tmp_path / "run.sparing")
    loaded = sparing.load(tmp_path / "run.sparing")
    np.testing.assert_array_equal(loaded.derived["a/b"], result.derived["a/b"])
    assert str(loaded) == str(result)
    with pytest.warns(sparing.SparingWarning, match="sum, a/b left out"):
        assert loaded.to_dataframe(n=5).columns.tolist() == ["a", "b"]
    whole = sparing.load(tmp_path / "run.sparing", problem=problem())
    assert whole.to_dataframe(n=5).equals(result.to_dataframe(n=5))
    loaded.save(tmp_path / "again.sparing")
    assert (tmp_path / "again.sparing").read_bytes() == (tmp_path / "run.sparing").read_bytes()
