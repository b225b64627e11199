"""Gradients in a run: told, kept, named where they are missing."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from tests.hand_made import with_outcome
from tests.light import LIGHT

import sparing
from sparing.executors import evaluate, evaluate_remotely
from sparing.problem.evaluation_codec import InvalidRecordError
from sparing.problem.evaluations import Evaluation, Outcome, Status
from sparing.problem.warning_text import WarningTopic
from sparing.running.several import tell_known
from sparing.store import RunDirectory
from sparing.store.journal import decode_line, encode_line

NAMES = ["a", "b"]
PRIOR = [stats.norm(0.0, 2.0), stats.norm(0.5, 2.0)]


def value(x):
    return -0.5 * float(x @ x)


def both(x):
    """Without a gradient on one side, with one that is not finite on another."""
    if x[0] < -1.0:
        return value(x), None
    return value(x), -x if x[0] < 1.5 else x * np.nan


def make_problem(log_density=both, gradient=True, **options):
    box = {"plausible_lower": [-2.0, -2.0], "plausible_upper": [2.0, 2.0], "names": NAMES}
    return sparing.Problem(log_density, **box, prior=PRIOR, gradient=gradient, **options)


def gradient_at(x):
    return (-x - (x - [0.0, 0.5]) / 4.0).tolist()


OPTIONS = {"seed": 1, "settings": LIGHT, "progress": False}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("gradients") / "run"


@pytest.fixture(scope="module")
def result(directory):
    return sparing.infer(make_problem(), max_evaluations=20, store=directory, **OPTIONS)


def gradients_of(evaluations):
    return [entry.outcome.gradient for entry in evaluations]


def test_every_evaluation_keeps_its_gradient(result):
    assert {entry.gradient is None for entry in result.evaluations} == {True, False}
    for entry in result.evaluations:
        if -1.0 <= entry.x[0] < 1.5:
            np.testing.assert_allclose(entry.gradient, gradient_at(entry.x), rtol=1e-12)
        else:
            assert entry.gradient is None
            assert entry.value == pytest.approx(value(entry.x) + entry.log_prior)


def test_those_that_are_missing_are_named(result):
    missing = [entry for entry in result.evaluations if entry.gradient is None]
    (warning,) = [w for w in result.warnings if w.topic is WarningTopic.GRADIENTS]
    assert warning.startswith(f"{len(missing)} of 20 evaluations gave no gradient that can be used")
    reason = "it is missing" if missing[0].x[0] < 0.0 else "it is nan with respect to a"
    assert f"(first: {reason})" in warning


def test_the_journal_and_the_file_have_them(result, directory, tmp_path):
    stored = RunDirectory.open(directory, read_only=True).events()
    assert gradients_of(e for e in stored if isinstance(e, Evaluation)) == gradients_of(
        result.evaluations
    )
    result.save(tmp_path / "result.sparing")
    again = sparing.load(tmp_path / "result.sparing")
    assert gradients_of(again.evaluations) == gradients_of(result.evaluations)
    assert [w.topic for w in again.warnings] == [w.topic for w in result.warnings]


def test_a_resumed_run_is_the_one_that_was_not_stopped(result, tmp_path):
    for n in (12, 20):
        resumed = sparing.infer(
            make_problem(), max_evaluations=n, store=tmp_path / "run", **OPTIONS
        )
    assert gradients_of(resumed.evaluations) == gradients_of(result.evaluations)
    assert resumed.log_evidence == result.log_evidence


def test_a_run_begun_without_them_goes_on_with_them(tmp_path):
    options = {"store": tmp_path / "run", **OPTIONS}
    sparing.infer(make_problem(value, None), max_evaluations=12, **options)
    result = sparing.infer(make_problem(value, np.negative), max_evaluations=14, **options)
    given = [gradient is not None for gradient in gradients_of(result.evaluations)]
    assert given == [False] * 12 + [True] * 2
    assert WarningTopic.GRADIENTS not in [w.topic for w in result.warnings]


def test_tables_have_a_column_for_each_parameter(result):
    pytest.importorskip("pandas")
    table = result.evaluations_dataframe()
    assert table.columns.tolist()[-2:] == ["d/d a", "d/d b"]
    expected = [g or (math.nan, math.nan) for g in gradients_of(result.evaluations)]
    np.testing.assert_array_equal(table[["d/d a", "d/d b"]], expected)
    without = [with_outcome(entry, gradient=None) for entry in result.evaluations]
    table = replace(result, evaluations=tuple(without)).evaluations_dataframe()
    assert table.columns.tolist()[-1] == "rule"


def test_a_worker_sends_and_spools_them(tmp_path):
    x = np.array([0.5, -0.3])
    record = evaluate_remotely(make_problem(), x, 3, str(tmp_path))
    assert record["gradient"] == pytest.approx(gradient_at(x))
    assert json.loads((tmp_path / "3.json").read_text())["record"] == record


def test_a_gradient_is_told_with_a_value():
    run = sparing.Inference(make_problem(), seed=1)
    joint, gradient = run.problem.log_joint_and_gradient([0.5, -0.3])
    entry = run.tell([0.5, -0.3], joint, gradient=gradient)
    np.testing.assert_array_equal(entry.gradient, gradient)
    assert run.tell([0.5, 0.5], -2.0, gradient=[1, 2]).outcome.gradient == (1.0, 2.0)
    assert run.tell([0.5, 0.4], -math.inf, gradient=gradient).gradient is None
    assert run.tell([0.5, 0.3], math.nan, gradient=gradient).gradient is None
    assert run.tell([0.5, 0.2], error="no value", gradient=gradient).gradient is None


def test_a_gradient_that_is_not_told_or_not_finite_is_named():
    run = sparing.Inference(make_problem(), seed=1)
    assert run.tell([0.5, 0.5], -2.0).message == "no gradient: it was not told"
    entry = run.tell([0.5, 0.5], -2.0, gradient=[math.nan, 1.0])
    assert (entry.value, entry.gradient) == (-2.0, None)
    assert entry.message == "no gradient: it is nan with respect to a"
    plain = sparing.Inference(make_problem(value, None), seed=1)
    assert plain.tell([0.5, 0.5], -2.0).message == ""


@pytest.mark.parametrize(
    ("gradient", "reason"),
    [
        ([1.0, 2.0, 3.0], r"its shape is \(3,\), not \(2,\)"),
        (1.0, r"its shape is \(\), not \(2,\)"),
        ([[1.0, 2.0]], r"its shape is \(1, 2\), not \(2,\)"),
        (["steep", "flat"], "it holds 'steep', which is not a real number"),
    ],
)
def test_a_wrong_shape_is_refused(gradient, reason):
    run = sparing.Inference(make_problem(), seed=1)
    with pytest.raises(ValueError, match=f"the gradient cannot be used: {reason}"):
        run.tell([0.5, 0.5], -2.0, gradient=gradient)
    assert run.n_evaluations == 0


OK = Outcome(-1.0, Status.OK, 0.1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gradient": (1.0, math.inf)}, "finite numbers beside a value"),
        ({"gradient": (1.0, 2.0), "status": Status.FAILED, "value": math.nan}, "beside a value"),
        ({"gradient": (1.0, "steep")}, "gradient is 'steep'"),
    ],
)
def test_an_outcome_with_no_gradient_at_all_is_refused(changes, words):
    run = sparing.Inference(make_problem(), seed=1)
    with pytest.raises(InvalidRecordError, match=words):
        run.tell_outcome([0.5, 0.5], replace(OK, **changes))


def test_an_outcome_of_another_number_of_parameters_is_refused(tmp_path):
    run = sparing.Inference(make_problem(), seed=1)
    with pytest.raises(ValueError, match="its gradient has 3 numbers for 2 parameters"):
        run.tell_outcome([0.5, 0.5], replace(OK, gradient=(1.0, 2.0, 3.0)))
    assert run.n_evaluations == 0


def test_an_outcome_may_hold_an_array():
    run = sparing.Inference(make_problem(), seed=1)
    entry = run.tell_outcome([0.5, 0.5], replace(OK, gradient=np.array([1.0, 2.0])))
    assert entry.outcome.gradient == (1.0, 2.0)


def test_a_pooled_run_is_told_them():
    known = [Evaluation(0, None, np.zeros(2), replace(OK, gradient=(0.1, 1 / 3)))]
    pooled = sparing.Inference(make_problem(), seed=1)
    tell_known(pooled, known)
    assert pooled.evaluations[0].outcome.gradient == (0.1, 1 / 3)


def test_the_journal_says_nothing_of_them_where_there_are_none():
    plain = Evaluation(0, None, np.zeros(2), OK)
    assert b"gradient" not in encode_line(0, plain)
    line = encode_line(1, with_outcome(plain, gradient=(0.1, 1 / 3)))
    assert decode_line(line.rstrip(b"\n"))[1].outcome.gradient == (0.1, 1 / 3)


def test_without_gradients_nothing_changes(tmp_path):
    plain = sparing.infer(make_problem(value, None), max_evaluations=12, **OPTIONS)
    assert gradients_of(plain.evaluations) == [None] * 12
    outcome = evaluate(make_problem(value, None), np.zeros(2))
    assert (outcome.gradient, outcome.message) == (None, "")
