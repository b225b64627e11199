import numpy as np
import pytest
from scipy.special import ndtr
from tests.hand_made import flat, make_result, normal_posterior, unbounded_problem

import sparing
from sparing.errors import SettingsError
from sparing.results.agreement import (
    AgreementLimits,
    Verdict,
    diagnose,
    marginal_total_variation,
    pair_agreement,
)


def normal_log_density(x):
    return -0.5 * float(x @ x)


class TestTotalVariation:
    @pytest.mark.parametrize("distance", [0.0, 0.1, 1.0, 4.0, 1000.0])
    def test_shifted_normals(self, distance):
        problem = unbounded_problem()
        pair = normal_posterior(problem, 0.0, 1.0), normal_posterior(problem, distance, 1.0)
        (found,) = marginal_total_variation(*pair)
        assert found == pytest.approx(2 * ndtr(distance / 2) - 1, abs=2e-3)

    def test_normals_of_different_width(self):
        problem = unbounded_problem()
        narrow, wide = normal_posterior(problem, 0.0, 1.0), normal_posterior(problem, 0.0, 2.0)
        # They cross where x^2 (1 - 1/4) / 2 = log 2; inside, the narrow one is above.
        x = np.sqrt(2 * np.log(2) / 0.75)
        exact = (2 * ndtr(x) - 1) - (2 * ndtr(x / 2) - 1)
        (found,) = marginal_total_variation(narrow, wide)
        assert found == pytest.approx(exact, abs=2e-3)
        assert marginal_total_variation(wide, narrow) == (found,)

    def test_bounded_parameter_by_quadrature(self):
        problem = sparing.Problem(flat, 0.2, 0.8, lower=0.0, upper=1.0)
        one, two = normal_posterior(problem, 0.1, 0.6), normal_posterior(problem, -0.4, 0.5)
        grid = np.linspace(0.0, 1.0, 20_001)[1:-1]
        difference = one.marginal_density(0, grid) - two.marginal_density(0, grid)
        exact = 0.5 * np.abs(difference).sum() * (grid[1] - grid[0])
        (found,) = marginal_total_variation(one, two)
        assert found == pytest.approx(exact, abs=3e-3)

    def test_each_parameter_by_itself(self):
        problem = unbounded_problem(2)
        one = normal_posterior(problem, [0.0, 0.0], 1.0)
        two = normal_posterior(problem, [0.0, 2.0], 1.0)
        found = marginal_total_variation(one, two)
        assert found == pytest.approx((0.0, 2 * ndtr(1.0) - 1), abs=2e-3)


def test_a_pair_in_closed_form():
    runs = [
        make_result(mean=0.0, log_evidence=-1.0, error=0.3),
        make_result(mean=1.0, log_evidence=-1.5, error=0.4, seed=1),
    ]
    pair = pair_agreement(0, 1, runs)
    assert (pair.first, pair.second) == (1, 2)
    assert (pair.difference, pair.difference_sd) == pytest.approx((0.5, 0.5))
    assert pair.divergence == pytest.approx(0.5)  # of unit normals a distance 1 apart
    assert pair.sd_ratio == pytest.approx((1.0,))
    assert pair.mmtv == pytest.approx(2 * ndtr(0.5) - 1, abs=2e-3)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_unit_of_a_parameter_does_not_matter(scale):
    """Also where the square of a standard deviation is beyond what a float can hold."""
    problem = sparing.Problem(flat, -2.0 * scale, 2.0 * scale)
    runs = [make_result(problem, mean=m * scale, sd=scale, seed=m) for m in (0, 1)]
    assert pair_agreement(0, 1, runs).divergence == pytest.approx(0.5)


def test_what_two_runs_report_as_their_errors_adds_up():
    runs = [make_result(posterior_error=0.01), make_result(posterior_error=0.03, seed=1)]
    assert pair_agreement(0, 1, runs).expected_divergence == pytest.approx(0.04)
    unknown = make_result(posterior_error=np.nan, seed=1)
    assert pair_agreement(0, 1, (runs[0], unknown)).expected_divergence == pytest.approx(0.01)


class TestDifferences:
    def texts(self, error=0.01, posterior_error=0.0, **changes):
        errors = {"error": error, "posterior_error": posterior_error}
        runs = [make_result(**errors), make_result(seed=1, **errors, **changes)]
        return pair_agreement(0, 1, runs).differences(["x1"], AgreementLimits())

    def test_nothing_differs(self):
        assert self.texts() == ()

    def test_evidence_beyond_its_error(self):
        (text,) = self.texts(log_evidence=-0.2)
        assert text == "log evidence by 0.2 ± 0.014"

    def test_a_negligible_difference_is_none_however_small_the_error(self):
        assert self.texts(log_evidence=-0.09, error=0.0) == ()
        assert self.texts(mean=0.15) == ()
        assert self.texts(sd=1.1) == ()

    def test_a_large_difference_within_its_error_is_none(self):
        assert self.texts(log_evidence=-2.0, error=1.0) == ()
        assert self.texts(mean=0.5, posterior_error=0.1) == ()
        assert self.texts(sd=1.5, posterior_error=0.1) == ()

    def test_a_standard_deviation_by_itself(self):
        problem = unbounded_problem(2)
        for sd in (1.17, 1 / 1.17):
            runs = [make_result(problem), make_result(problem, seed=1, sd=[1.0, sd])]
            (text,) = pair_agreement(0, 1, runs).differences(["a", "b"], AgreementLimits())
            assert text == "the standard deviation of b by 17 %"

    def test_moments_and_marginals(self):
        moments, marginals = self.texts(mean=2.0)
        assert moments == "moments by a gsKL of 2"
        assert marginals == "the marginal of x1 by a total variation of 0.68"

    def test_not_a_number_is_no_agreement(self):
        assert "log evidence by nan" in self.texts(log_evidence=np.nan)[0]


class TestVerdict:
    def test_the_run_that_missed_a_mode_is_dropped(self):
        runs = [
            make_result(seed=0),
            make_result(seed=1, log_evidence=-0.7, mean=1.5),
            make_result(seed=2, log_evidence=0.02),
        ]
        diagnosis = diagnose(runs)
        assert diagnosis.verdict is Verdict.MOST_AGREE
        assert (diagnosis.best, diagnosis.kept, diagnosis.dropped) == (3, (1, 3), (2,))
        assert "most runs agree; run 2 differs from run 3: log evidence by 0.72" in str(diagnosis)
        assert len(diagnosis.runs[1].differences) == 3
        assert len(diagnosis.pairs) == 3
        assert "use run 3" in str(diagnosis)

    def test_the_highest_evidence_that_stands_alone_is_no_answer(self):
        runs = [make_result(seed=0), make_result(seed=1), make_result(seed=2, log_evidence=3.0)]
        diagnosis = diagnose(runs)
        assert diagnosis.verdict is Verdict.DISAGREE
        assert diagnosis.best == 3
        assert "more evaluations" in str(diagnosis)

    def test_an_uncertain_evidence_does_not_win(self):
        runs = [make_result(seed=0), make_result(seed=1, log_evidence=0.5, error=0.5)]
        assert diagnose(runs).best == 1

    def test_converged_runs_come_first(self):
        runs = [
            make_result(seed=0, log_evidence=0.05, converged=False),
            make_result(seed=1),
            make_result(seed=2),
        ]
        diagnosis = diagnose(runs)
        assert diagnosis.best != 1

    def test_a_run_that_did_not_converge_may_still_agree(self):
        """To run out of evaluations is no disagreement."""
        late = [make_result(seed=seed, converged=False) for seed in (1, 2)]
        diagnosis = diagnose([make_result(seed=0), *late])
        assert (diagnosis.verdict, diagnosis.dropped) == (Verdict.AGREE, ())
        assert diagnosis.finding.endswith("; run 2 did not converge; run 3 did not converge")
        assert "no run converged" not in str(diagnosis)
        assert str(diagnosis).count("NOT converged, agrees") == 2

    def test_no_run_converged(self):
        diagnosis = diagnose([make_result(seed=i, converged=False) for i in range(2)])
        assert diagnosis.verdict is Verdict.AGREE
        assert "no run converged" in str(diagnosis)

    def test_how_closely_runs_agree_is_said(self):
        runs = [make_result(seed=0), make_result(seed=1, log_evidence=0.03, sd=1.12)]
        finding = "all runs agree, log evidences to 0.03 and standard deviations to 12 %"
        assert diagnose(runs).finding == finding

    def test_real_runs(self):
        problem = sparing.Problem(normal_log_density, [-2, -2], [2, 2], names=["a", "b"])
        runs = [
            sparing.infer(problem, seed=seed, max_evaluations=60, progress=False)
            for seed in (1, 2, 3)
        ]
        diagnosis = diagnose(runs)
        assert diagnosis.verdict is Verdict.AGREE
        assert max(pair.divergence for pair in diagnosis.pairs) < 0.05
        assert max(pair.mmtv for pair in diagnosis.pairs) < 0.1


class TestFaults:
    def check(self, results, message):
        with pytest.raises(SettingsError, match=message):
            diagnose(results)

    def test_one_run(self):
        self.check([make_result()], "two or more runs, got 1")

    def test_no_result(self):
        self.check([make_result(), None], "result 2 must be a sparing.Result, got NoneType")

    def test_another_problem(self):
        other = sparing.Problem(flat, -2, 2, names=["rate"])
        self.check([make_result(), make_result(other, seed=1)], "its parameters differ")
        bounded = sparing.Problem(flat, -2, 2, lower=-9)
        self.check([make_result(), make_result(bounded, seed=1)], "its lower bounds differ")

    def test_the_same_run_twice(self):
        self.check([make_result(seed=1), make_result(seed=1)], "1 and 2 evaluated the same points")


def test_another_plausible_box_is_the_same_problem():
    other = sparing.Problem(flat, -1, 3)
    assert diagnose([make_result(), make_result(other, seed=1)]).verdict is Verdict.AGREE
