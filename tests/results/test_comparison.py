import math

import numpy as np
import pytest
from tests.hand_made import make_result

from sparing.errors import SettingsError
from sparing.results.comparison import BayesFactor, Strength, compare, probability_text


def result(log_evidence, error=0.01, **options):
    return make_result(log_evidence=log_evidence, error=error, **options)


def test_two_models_in_closed_form():
    comparison = compare({"a": result(-10.0, 0.3), "b": result(-8.0, 0.4)})
    assert [model.name for model in comparison.models] == ["b", "a"]
    assert comparison.best.probability == pytest.approx(1 / (1 + math.exp(-2.0)))
    # The log odds are normal with mean 2 and sd 0.5, so the interval of p is exact.
    odds = [math.exp(2.0 + k * 1.959964 * 0.5) for k in (-1, 1)]
    bounds = [o / (1 + o) for o in odds]
    assert (comparison.best.low, comparison.best.high) == pytest.approx(tuple(bounds))
    factor = comparison.bayes_factor("a", "b")
    assert (factor.log_factor, factor.sd) == pytest.approx((-2.0, 0.5))
    assert factor.factor == pytest.approx(math.exp(-2.0))


def test_intervals_of_several_models_against_monte_carlo():
    log_evidence, sd = np.array([0.0, -0.7, 0.4]), np.array([0.1, 0.2, 0.15])
    weights = np.array([1.0, 2.0, 0.5])
    runs = {str(i): result(log_evidence[i], sd[i]) for i in range(3)}
    comparison = compare(runs, prior=weights)
    draws = np.random.default_rng(0).normal(log_evidence, sd, size=(200_000, 3))
    joint = weights * np.exp(draws)
    p = joint / joint.sum(axis=1, keepdims=True)
    for model in comparison.models:
        low, high = np.quantile(p[:, int(model.name)], [0.025, 0.975])
        assert (model.low, model.high) == pytest.approx((low, high), abs=0.006)
        assert model.prior == pytest.approx(weights[int(model.name)] / 3.5)
    assert sum(model.probability for model in comparison.models) == pytest.approx(1.0)


def test_prior_by_name_or_in_order():
    runs = {"a": result(0.0), "b": result(0.0)}
    by_name = compare(runs, prior={"b": 3.0, "a": 1.0})
    assert by_name == compare(runs, prior=[1.0, 3.0])
    assert (by_name.best.name, by_name.best.probability) == ("b", pytest.approx(0.75))


def test_evidences_far_apart_lose_no_digits():
    comparison = compare([result(0.0), result(-2000.0), result(-2001.0)])
    assert comparison.best.probability == 1.0
    assert comparison.models[1].probability == 0.0
    assert comparison.bayes_factor("model 1", "model 3").factor == math.inf
    assert all(np.isfinite([model.low, model.high]).all() for model in comparison.models)


@pytest.mark.parametrize(
    ("log_factor", "sd", "strength"),
    [
        (0.5, 0.01, Strength.BARE),
        (-2.0, 0.01, Strength.POSITIVE),
        (4.0, 0.01, Strength.STRONG),
        (-6.0, 0.01, Strength.VERY_STRONG),
        (6.0, 3.1, Strength.UNDECIDED),
        (0.0, 0.0, Strength.UNDECIDED),
    ],
)
def test_strength_in_words(log_factor, sd, strength):
    assert BayesFactor("a", "b", log_factor, sd).strength is strength


def test_text_names_what_to_be_careful_about():
    comparison = compare({"first": result(0.0, 0.2), "second": result(-0.1, 0.2, converged=False)})
    text = str(comparison)
    assert "first" in text
    assert "the run of second did not converge" in text
    assert "first and second are not told apart" in text
    assert not compare([result(0.0), result(9.0)]).cautions


@pytest.mark.parametrize(
    ("results", "prior", "message"),
    [
        ([result(0.0)], None, "two or more"),
        ([result(0.0), "run"], None, "model 2 must be a sparing.Result, got str"),
        ([result(0.0), result(math.nan)], None, "model 2 has no usable evidence"),
        ([result(0.0), result(0.0, math.inf)], None, "model 2 has no usable evidence"),
        ([result(0.0), result(0.0)], [1.0], "one positive number for each of the 2"),
        ([result(0.0), result(0.0)], [1.0, -1.0], "one positive number"),
        ([result(0.0), result(0.0)], {"model 1": 1.0}, "must name every model once"),
    ],
)
def test_faults_are_named(results, prior, message):
    with pytest.raises(SettingsError, match=message):
        compare(results, prior)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(KeyError, match="model 1, model 2"):
        compare([result(0.1), result(0.0)]).bayes_factor("model 1", "model 9")


def test_probabilities_near_one_keep_their_digits():
    assert [probability_text(p) for p in (0.99972345, 0.7, 0.0123456, 1.0, 0.0)] == [
        "0.999723",
        "0.700",
        "0.0123",
        "1",
        "0",
    ]


def test_notebooks_show_the_table_and_the_words():
    html = compare({"a <b>": result(-10.0, 0.3), "c": result(-8.0, 0.4)})._repr_html_()
    assert html.count("<tr>") == 3
    assert "a &lt;b&gt;" in html
    assert "log Bayes factor of c against" in html
