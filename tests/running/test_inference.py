"""The run end to end: exact answers, determinism, ask and tell, failures as data."""

import inspect

import numpy as np
import pytest
from scipy import stats
from tests.light import LIGHT

import sparing
from sparing.variational.divergence import gaussianised_symmetric_kl


def gaussian_problem():
    covariance = np.array([[1.0, 0.8], [0.8, 1.0]])
    target = stats.multivariate_normal([0.5, -0.3], covariance)
    problem = sparing.Problem(lambda x: float(target.logpdf(x)) - 3.0, [-2, -2], [2, 2])
    return problem, -3.0, np.array([0.5, -0.3]), covariance


def run(problem, **options):
    options = {"seed": 1, "progress": False, **options}
    return sparing.infer(problem, **options)


def assert_close(result, log_evidence, mean, covariance, *, error=0.05, divergence=0.05):
    assert abs(result.log_evidence - log_evidence) < error
    posterior = result.posterior
    assert (
        gaussianised_symmetric_kl(posterior.mean, posterior.covariance, mean, covariance)
        < divergence
    )


@pytest.mark.parametrize(
    "settings", [sparing.Settings(), pytest.param(sparing.Settings.paper(), marks=pytest.mark.slow)]
)
def test_one_dimension_two_modes(settings):
    weights, means, sds = np.array([0.7, 0.3]), np.array([-1.0, 1.2]), np.array([0.4, 0.5])

    def log_density(x):
        return float(np.log(weights @ stats.norm.pdf(x[0], means, sds))) + 5.0

    result = run(sparing.Problem(log_density, [-2], [2]), settings=settings)
    mean = weights @ means
    variance = weights @ (sds**2 + means**2) - mean**2
    assert_close(result, 5.0, np.array([mean]), np.array([[variance]]))


def test_two_dimensions_correlated():
    problem, log_evidence, mean, covariance = gaussian_problem()
    result = run(problem)
    assert_close(result, log_evidence, mean, covariance, error=0.01, divergence=0.01)
    assert result.converged
    assert result.stop_reason is sparing.StopReason.STABLE
    assert result.warnings == ()


def test_three_dimensions_one_of_them_bounded_below_only():
    """A gamma likelihood with a shape bounded at 0, a bounded one, and an unbounded one."""
    gamma, beta, normal = stats.gamma(3.0, scale=0.5), stats.beta(2.0, 3.0), stats.norm(10.0, 2.0)
    problem = sparing.Problem(
        lambda x: float(gamma.logpdf(x[0]) + beta.logpdf(x[1]) + normal.logpdf(x[2])),
        [0.5, 0.2, 8.0],
        [3.0, 0.8, 12.0],
        lower=[0.0, 0.0, -np.inf],
        upper=[np.inf, 1.0, np.inf],
        names=["rate", "fraction", "shift"],
    )
    result = run(problem)
    mean = np.array([gamma.mean(), beta.mean(), normal.mean()])
    covariance = np.diag([gamma.var(), beta.var(), normal.var()])
    assert_close(result, 0.0, mean, covariance)
    draws = result.posterior.sample(1000, seed=1)
    assert np.all(draws[:, 0] > 0.0)
    assert np.all((draws[:, 1] > 0.0) & (draws[:, 1] < 1.0))


def test_likelihood_and_prior_are_multiplied():
    """A normal likelihood with a normal prior: the evidence is a normal density."""
    problem = sparing.Problem(
        lambda x: float(stats.norm.logpdf(1.0, x[0], 0.5)), [-2], [2], prior=stats.norm(0.0, 1.0)
    )
    result = run(problem)
    exact = stats.norm.logpdf(1.0, 0.0, np.sqrt(1.25))
    assert_close(result, exact, np.array([0.8]), np.array([[0.2]]), error=0.01)


@pytest.mark.slow
def test_same_seed_same_result_to_the_last_bit_and_another_seed_another():
    problem, *_ = gaussian_problem()
    first, second, other = (run(problem, seed=s, max_evaluations=30) for s in (4, 4, 5))
    assert first.log_evidence == second.log_evidence
    assert first.elbo == second.elbo
    for a, b in zip(first.evaluations, second.evaluations, strict=True):
        np.testing.assert_array_equal(a.x, b.x)
    np.testing.assert_array_equal(
        first.posterior.sample(10, seed=1), second.posterior.sample(10, seed=1)
    )
    assert first.log_evidence != other.log_evidence
    assert not np.array_equal(first.evaluations[0].x, other.evaluations[0].x)


@pytest.mark.slow
def test_the_users_random_state_is_neither_used_nor_changed():
    problem, *_ = gaussian_problem()
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    run(problem, max_evaluations=20, settings=sparing.Settings.paper())
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.slow
def test_ask_and_tell_is_the_same_run():
    problem, *_ = gaussian_problem()
    expected = run(problem, seed=3, max_evaluations=40)
    driven = sparing.Inference(problem, seed=3, max_evaluations=40)
    while not driven.finished:
        for proposal in driven.ask():
            driven.tell(proposal, problem.log_joint(proposal.x))
    assert driven.result().log_evidence == expected.log_evidence
    assert driven.ask() == []


def test_several_pending_points_differ_and_may_be_told_in_any_order():
    problem, log_evidence, mean, covariance = gaussian_problem()
    driven = sparing.Inference(problem, seed=3, max_evaluations=60)
    while not driven.finished:
        proposals = driven.ask(4)
        points = np.array([proposal.x for proposal in proposals])
        assert len(np.unique(points, axis=0)) == len(points)
        for proposal in reversed(proposals):
            driven.tell(proposal, problem.log_joint(proposal.x))
    assert_close(driven.result(), log_evidence, mean, covariance)


def test_a_proposal_can_be_told_only_once():
    problem, *_ = gaussian_problem()
    driven = sparing.Inference(problem, seed=3)
    (proposal,) = driven.ask()
    driven.tell(proposal, 0.0)
    with pytest.raises(ValueError, match="not pending"):
        driven.tell(proposal, 0.0)


def test_a_proposal_of_another_run_is_refused():
    problem, *_ = gaussian_problem()
    driven, other = (sparing.Inference(problem, seed=seed) for seed in (3, 4))
    driven.ask()
    with pytest.raises(ValueError, match="belongs to another run"):
        driven.tell(other.ask()[0], 0.0)
    for x in ([np.nan, 0.0], [0.0]):
        with pytest.raises(ValueError, match="belongs to another run"):
            driven.tell(sparing.Proposal(0, x), 0.0)
    assert driven.n_evaluations == 0


@pytest.mark.parametrize("value", ["-1.0", b"1", True, 1j, [1.0, 2.0], object(), 10**400])
def test_only_a_real_number_can_be_told(value):
    driven = sparing.Inference(gaussian_problem()[0], seed=3)
    (proposal,) = driven.ask()
    with pytest.raises(ValueError, match="must be one real number, got"):
        driven.tell(proposal, value)
    assert driven.n_evaluations == 0


@pytest.mark.parametrize("noise_sd", [-1.0, np.nan, np.inf, 1e200, "1", True, None])
def test_only_a_credible_noise_can_be_told(noise_sd):
    driven = sparing.Inference(gaussian_problem()[0], seed=3)
    (proposal,) = driven.ask()
    with pytest.raises(ValueError, match="noise_sd must be a number from 0 to 1e"):
        driven.tell(proposal, -1.0, noise_sd=noise_sd)
    assert driven.n_evaluations == 0


def test_a_noise_that_is_not_credible_is_a_failed_evaluation():
    problem = sparing.Problem(lambda x: (-0.5 * float(x @ x), 1e200 if x[0] > 1.0 else 0.0), -2, 2)
    result = run(problem, max_evaluations=14)
    assert {entry.message.split(", at")[0] for entry in result.failed} == {
        "log_density returned 1e+200 as the standard deviation of its noise, which must be a "
        "number from 0 to 1e+12"
    }


def test_a_point_on_a_hard_bound_is_recorded_as_told():
    """Moved inside, its value would be that of another point: 0.2 nats off with this slope."""
    problem = sparing.Problem(lambda x: np.log(200.0) - 200.0 * float(x[0]), 0, 1, lower=0)
    driven = sparing.Inference(problem, seed=1)
    assert driven.tell([0.0], problem.log_joint([0.0])).x.tolist() == [0.0]
    while not driven.finished:
        for proposal in driven.ask():
            driven.tell(proposal, problem.log_joint(proposal.x))
    result = driven.result()
    assert result.converged
    assert abs(result.log_evidence) < 0.004
    assert all(entry.value == problem.log_joint(entry.x) for entry in result.evaluations)


@pytest.mark.parametrize(
    ("x", "fault"),
    [
        ([0.0, 3.0], "x: x2 = 3 is outside its bounds"),
        ([np.nan, 0.0], "x: x1 = nan is not finite"),
        ([1e300, 0.0], "x: x1 = 1e+300 is more than 1e+15 widths of its plausible box away"),
        (["0", 0.0], "x holds '0', which is not a real number"),
    ],
)
def test_a_point_that_cannot_be_used_is_refused(x, fault):
    problem = sparing.Problem(lambda x: 0.0, [-1, -1], [1, 1], lower=[-np.inf, -2], upper=[None, 2])
    driven = sparing.Inference(problem, seed=3)
    with pytest.raises(sparing.ProblemError) as caught:
        driven.tell(x, 0.0)
    assert fault in caught.value.faults[0]
    assert driven.n_evaluations == 0


def test_the_budget_is_kept_and_said_when_it_ends_the_run():
    problem, *_ = gaussian_problem()
    result = run(problem, max_evaluations=22)
    assert result.n_evaluations == 22
    assert not result.converged
    assert result.stop_reason is sparing.StopReason.BUDGET
    assert any("stable" in text for text in result.warnings)


@pytest.mark.parametrize("budget", [2, 5, 11])
def test_tiny_budgets_give_a_result(budget):
    problem, *_ = gaussian_problem()
    result = run(problem, max_evaluations=budget)
    assert result.n_evaluations == budget
    assert np.isfinite(result.log_evidence)


def test_failures_are_recorded_and_the_run_goes_on():
    problem, log_evidence, mean, covariance = gaussian_problem()
    calls = []

    def fragile(x):
        calls.append(x)
        if len(calls) % 7 == 3:
            raise RuntimeError("the solver diverged")
        if len(calls) % 7 == 5:
            return float("nan")
        return problem.log_joint(x)

    result = run(sparing.Problem(fragile, [-2, -2], [2, 2]))
    assert_close(result, log_evidence, mean, covariance)
    failed = [entry for entry in result.evaluations if entry.status is sparing.Status.FAILED]
    assert len(failed) > 3
    assert any("the solver diverged" in entry.message for entry in failed)
    assert any("failed" in text for text in result.warnings)


def test_a_target_that_never_works_is_a_clear_error():
    def broken(x):
        raise ZeroDivisionError("no data loaded")

    with pytest.raises(sparing.TargetError, match="no data loaded"):
        run(sparing.Problem(broken, [-1], [1]))


def test_minus_infinity_is_out_of_support_and_is_learned():
    """A half-normal without telling the library about the bound."""
    problem = sparing.Problem(
        lambda x: float(stats.norm.logpdf(x[0])) if x[0] > 0 else -np.inf, [-1.0], [3.0]
    )
    result = run(problem)
    assert any(
        entry.status is sparing.Status.OUT_OF_SUPPORT and entry.value == -np.inf
        for entry in result.evaluations
    )
    half = stats.halfnorm()
    assert_close(result, np.log(0.5), np.array([half.mean()]), np.array([[half.var()]]), error=0.1)


def test_a_density_that_never_falls_is_said_to_be_one():
    result = run(sparing.Problem(lambda x: 0.0, [-1, -1], [1, 1]), max_evaluations=60)
    assert any("does not fall to zero" in text for text in result.warnings)


def test_the_callback_sees_every_iteration_and_can_stop():
    problem, *_ = gaussian_problem()
    seen = []

    def callback(info):
        seen.append(info)
        return "stop" if len(seen) == 3 else None

    result = run(problem, callback=callback)
    assert result.stop_reason is sparing.StopReason.CALLBACK
    assert [info.iteration for info in seen] == [1, 2, 3]
    assert len(result.history) == 3


def test_history_carries_what_the_contract_promises():
    problem, *_ = gaussian_problem()
    result = run(problem, max_evaluations=30)
    last = result.history[-1]
    assert last.n == last.n_evaluations == 30
    assert last.n_components == last.K
    assert np.isfinite([last.elbo, last.elbo_sd, last.reliability]).all()
    assert {"active sampling", "surrogate", "variational"} <= set(last.timings)
    assert result.library_seconds == pytest.approx(sum(info.seconds for info in result.history))
    entry = result.evaluations[0]
    assert entry.status is sparing.Status.OK
    assert entry.duration >= 0.0
    assert entry.value == problem.log_joint(entry.x)


BAD_ARGUMENTS = {
    "problem": [None, 3],
    "max_evaluations": [1, 20.5, True, "a", np.nan, np.inf, -np.inf, 1j],
    "tolerance": [0.0, -1.0, np.nan, np.inf, "a", True, None, [0.1], 10**400],
    "settings": ["paper", 3],
    "seed": [-1, 1.5, True, "a"],
    "batch_size": [0, -1, 2.5, np.nan, np.inf, "a", True],
    "workers": [0, -1, 2.5, np.nan, np.inf, "a", True],
    "time_limit": [0.0, -1.0, np.nan, np.inf, "a", True],
    "failures": ["skip", 3],
    "store": ["", " ", "a\0b", b"run", 3, True],
    "tag": [3, None],
    "progress": ["no", None, 2],
    "callback": [3],
    "runs": [0, -1, 2.5, "a", True],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, bad in BAD_ARGUMENTS.items() for value in bad]
)
def test_bad_arguments_are_refused_before_anything_is_made(name, value, tmp_path, monkeypatch):
    def never(x):
        raise AssertionError("evaluated")

    monkeypatch.chdir(tmp_path)
    options = {"problem": sparing.Problem(never, [-1], [1]), "progress": False, name: value}
    with pytest.raises(sparing.SettingsError, match=rf"1 fault:\n  - {name} must be "):
        sparing.infer(**options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("n", [0, -1, 1.5, True, np.nan, "a"])
def test_ask_takes_whole_numbers_only(n):
    with pytest.raises(ValueError, match="whole number"):
        sparing.Inference(gaussian_problem()[0], seed=1).ask(n)


def test_starting_points_are_evaluated_first():
    problem, *_ = gaussian_problem()
    x0 = np.array([[0.5, 0.5], [-1.0, 1.0]])
    result = run(problem, x0=x0, max_evaluations=12)
    np.testing.assert_array_equal([entry.x for entry in result.evaluations[:2]], x0)


def test_to_arviz_holds_the_draws_by_name():
    pytest.importorskip("arviz")
    problem, *_ = gaussian_problem()
    data = run(problem, max_evaluations=20).to_arviz(n=50)
    assert data.posterior["x1"].shape == (1, 50)
    assert "log_evidence" in data.attrs


def test_a_target_is_called_a_few_frames_below_infer():
    depths = []

    def log_density(x):
        depths.append(len(inspect.stack()))
        return -0.5 * float(x @ x)

    problem = sparing.Problem(log_density, -np.ones(2), np.ones(2))
    sparing.infer(problem, seed=1, max_evaluations=2, progress=False)
    assert max(depths) - len(inspect.stack()) <= 7


@pytest.mark.parametrize("lower", [None, [0.0, -5.0]], ids=["unbounded", "bounded"])
def test_what_the_user_makes_of_numpys_errors_is_for_the_user(tmp_path, lower):
    """Underflow is ordinary in ours."""
    seen = []

    def log_density(x):
        seen.append(np.geterr()["under"])
        return -0.5 * float((x - 1.0) @ (x - 1.0))

    problem = sparing.Problem(log_density, [0.5, -1.0], [3.0, 3.0], lower)
    options = {"seed": 1, "settings": LIGHT, "progress": False, "store": tmp_path}
    with np.errstate(all="raise"):
        sparing.infer(problem, max_evaluations=12, **options)
        result = sparing.infer(problem, max_evaluations=20, **options)
        assert "log evidence" in result.summary()
        draws = result.posterior.sample(200, seed=1)
        assert np.isfinite(result.posterior.log_density(draws)).all()
        result.save(tmp_path / "result.sparing")
        sparing.load(tmp_path / "result.sparing")
    assert set(seen) == {"raise"}
