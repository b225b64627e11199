"""Log densities that are estimates: the noise they declare reaches everything that needs it."""

import math

import numpy as np
import pytest
from tests.hand_made import with_outcome

import sparing
from sparing.errors import InvalidValueError
from sparing.executors import evaluate
from sparing.problem.evaluations import Evaluation, Outcome, Status
from sparing.problem.parameter_transform import ParameterTransform
from sparing.running.several import tell_known
from sparing.store.journal import decode_line, encode_line
from sparing.surrogate.training_data import CompressedDepths, MeasuredValues, training_set

LOG_2_PI = math.log(2.0 * math.pi)


def noise_sd_at(x):
    """Small around the mode, large in the tails."""
    return 0.1 + 0.4 * min(float(x @ x), 4.0)


def estimated_log_density(x):
    """A standard normal in two dimensions, with noise that is a function of the point."""
    digits = np.random.default_rng(np.asarray(x).view(np.uint64))
    noise = noise_sd_at(x) * digits.standard_normal()
    return -0.5 * float(x @ x) - LOG_2_PI + noise, noise_sd_at(x)


def make_problem(log_density=estimated_log_density):
    return sparing.Problem(log_density, [-2.0, -2.0], [2.0, 2.0], names=["a", "b"])


@pytest.fixture(scope="module")
def result():
    return sparing.infer(make_problem(), seed=1, max_evaluations=100, progress=False)


def test_the_answer_is_right_within_its_error(result):
    assert abs(result.log_evidence) < 3.0 * result.log_evidence_sd
    assert result.log_evidence_sd < 0.2
    np.testing.assert_allclose(result.posterior.mean, 0.0, atol=0.25)
    np.testing.assert_allclose(result.posterior.sd, 1.0, atol=0.25)


def test_every_evaluation_keeps_its_noise(result):
    for entry in result.evaluations:
        assert entry.noise_sd == noise_sd_at(entry.x)
    column = result.evaluations_dataframe()["noise_sd"]
    np.testing.assert_array_equal(column, [entry.noise_sd for entry in result.evaluations])


def test_the_history_tells_the_size_of_the_noise(result):
    declared = np.median([entry.noise_sd for entry in result.evaluations])
    assert result.history[-1].noise_sd == pytest.approx(declared, rel=0.3)


def test_a_saved_result_has_it(result, tmp_path):
    result.save(tmp_path / "result.sparing")
    again = sparing.load(tmp_path / "result.sparing")
    assert [e.noise_sd for e in again.evaluations] == [e.noise_sd for e in result.evaluations]


@pytest.mark.slow
def test_a_resumed_run_ends_as_one_that_was_not_stopped(tmp_path):
    def run(store, n):
        return sparing.infer(
            make_problem(), seed=2, store=tmp_path / store, max_evaluations=n, progress=False
        )

    whole = run("whole", 30)
    run("halves", 20)
    halves = run("halves", 30)
    assert halves.log_evidence == whole.log_evidence
    np.testing.assert_array_equal(halves.posterior.mean, whole.posterior.mean)


def test_points_asked_for_together_are_those_asked_for_one_by_one():
    """A point that is pending and one that is about to be are expected to be as noisy."""
    runs = [sparing.Inference(make_problem(), seed=3) for _ in range(2)]
    for run in runs:
        for proposal in run.ask(10):
            value, noise_sd = run.problem.estimated_log_joint(proposal.x)
            run.tell(proposal, value, noise_sd=noise_sd)
    together = [proposal.x for proposal in runs[0].ask(4)]
    one_by_one = [runs[1].ask(1)[0].x for _ in range(4)]
    np.testing.assert_array_equal(together, one_by_one)


def test_noise_is_told_with_a_value():
    run = sparing.Inference(make_problem(), seed=1)
    entry = run.tell([0.5, 0.5], -2.0, noise_sd=0.7)
    assert entry.noise_sd == 0.7
    assert run.tell([0.5, 0.4], -math.inf, noise_sd=0.7).noise_sd == 0.0  # there is no value
    with pytest.raises(ValueError, match="noise_sd must be a number from 0 to"):
        run.tell([0.5, 0.5], -2.0, noise_sd=-1.0)


def test_a_pooled_run_is_told_the_noise():
    known = [Evaluation(0, None, np.zeros(2), Outcome(-1.0, Status.OK, 0.1, noise_sd=0.3))]
    pooled = sparing.Inference(make_problem(), seed=1)
    tell_known(pooled, known)
    assert pooled.evaluations[0].noise_sd == 0.3


@pytest.mark.parametrize("noise_sd", [-0.1, math.nan, math.inf, "small", None, [0.1, 0.2]])
def test_noise_that_is_none_is_refused(noise_sd):
    problem = make_problem(lambda _: (-1.0, noise_sd))
    with pytest.raises(InvalidValueError, match="as the standard deviation of its noise"):
        problem.log_joint([0.0, 0.0])
    assert evaluate(problem, np.zeros(2)).status is Status.FAILED


@pytest.mark.parametrize("returned", [(-1.0, 0.1, 0.2), [-1.0, 0.1], np.array([-1.0, 0.1])])
def test_only_a_pair_is_an_estimate(returned):
    with pytest.raises(InvalidValueError, match="instead of one real number"):
        make_problem(lambda _: returned).log_joint([0.0, 0.0])


def test_out_of_support_there_is_no_noise():
    outcome = evaluate(make_problem(lambda _: (-math.inf, 0.5)), np.zeros(2))
    assert (outcome.status, outcome.noise_sd) == (Status.OUT_OF_SUPPORT, 0.0)


def test_the_journal_says_nothing_of_exact_values():
    exact = Evaluation(0, None, np.zeros(2), Outcome(-1.0, Status.OK, 0.1))
    assert b"noise" not in encode_line(0, exact)
    line = encode_line(1, with_outcome(exact, noise_sd=1 / 3))
    assert decode_line(line.rstrip(b"\n"))[1].noise_sd == 1 / 3


@pytest.mark.parametrize("deep_values", [MeasuredValues(), CompressedDepths()])
def test_the_surrogate_is_trained_with_it(deep_values):
    problem = make_problem()
    evaluations = [
        Evaluation(
            i, None, np.array([0.1 * i, 0.0]), Outcome(-float(i), Status.OK, 0.0, noise_sd=0.2 * i)
        )
        for i in range(5)
    ]
    training = training_set(evaluations, ParameterTransform.from_problem(problem), deep_values)
    np.testing.assert_allclose(training.noise_variance, (0.2 * np.arange(5)) ** 2)
    assert training.typical_noise_variance == pytest.approx(0.16)
    assert training.with_point(np.zeros(2), 0.0).typical_noise_variance == pytest.approx(0.16)
