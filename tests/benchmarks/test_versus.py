import math
import os
import stat
import sys

import numpy as np
import pytest
from benchmarks.__main__ import main
from benchmarks.errors import BenchmarkError
from benchmarks.methods.pyvbmc_method import environment_python
from benchmarks.records import RunFile, RunKey
from benchmarks.versus import campaign as versus
from benchmarks.versus.figures import (
    Verdict,
    cpu_ratio,
    curve_point,
    evaluations_needed,
    honesty,
    median_sd,
    reach,
)
from benchmarks.versus.goals import goals
from benchmarks.versus.plots import half_normal_quantiles, quartiles
from benchmarks.versus.report import comparable, report_text, write_report
from benchmarks.versus.runs import Group, Run, read_groups
from benchmarks.versus.samplers import sampler_need
from scipy import stats


def record(problem="lumpy-2", method="sparing", **changes):
    """A run of 40 evaluations whose errors halve every ten; 0.01 CPU s each and 1 s at the end."""
    n = changes.pop("evaluations", 40)
    scale = changes.pop("scale", 1.0)
    seconds = changes.pop("seconds", 0.01)
    steps = range(10, n + 1, 10)
    row = {
        "problem": problem,
        "method": method,
        "status": "ok",
        "version": "1.0",
        "evaluations": n,
        "lml_error": scale * 0.4,
        "lml_sd": 0.3,
        "gskl": scale * 0.2,
        "mmtv": 0.05,
        "converged": True,
        "library_cpu_seconds": seconds * n + 1.0,
        "library_cpu_before": [seconds * k for k in range(n)],
        "peak_memory_mb": 200.0,
        "trace": [
            [k, scale * 8.0 * 2.0 ** (-k / 10), scale * 4.0 * 2.0 ** (-k / 10), 0.1] for k in steps
        ],
    }
    return {**row, **changes}


FAILED = {"status": "failed", "reason": "deliberate"}


def group(*records, problem="lumpy-2", method="sparing"):
    runs = [Run.from_record({**item, "problem": problem, "method": method}) for item in records]
    return Group(problem, method, runs)


def test_a_run_is_read_at_any_number_of_evaluations():
    run = Run.from_record(record())
    assert run.dimension == 2
    np.testing.assert_array_equal(run.errors_at(9), [math.inf, math.inf])
    np.testing.assert_allclose(run.errors_at(10), [4.0, 2.0])
    np.testing.assert_allclose(run.errors_at(29), [2.0, 1.0])
    np.testing.assert_allclose(run.errors_at(39), [1.0, 0.5])
    for n in (40, 1000):  # what it returned, not its last snapshot
        np.testing.assert_allclose(run.errors_at(n), [0.4, 0.2])


def test_time_is_read_before_the_next_evaluation_or_at_the_end():
    run = Run.from_record(record())
    assert run.cpu_at(20) == pytest.approx(0.2)
    assert run.cpu_at(39) == pytest.approx(0.39)
    assert run.cpu_at(40) == run.cpu_at(90) == pytest.approx(1.4)


def test_what_is_not_finite_is_the_worst_and_what_is_not_estimated_is_absent():
    broken = Run.from_record(record(lml_error=None, gskl=None, lml_sd=None, mmtv=None))
    np.testing.assert_array_equal(broken.errors, [math.inf, math.inf])
    assert math.isnan(broken.sd) and math.isnan(broken.mmtv)
    chain = Run.from_record(
        record(method="mcmc", lml_error=None, lml_sd=None, trace=[[10, None, 1, None]])
    )
    np.testing.assert_array_equal(chain.errors, [math.nan, 0.2])
    np.testing.assert_array_equal(chain.errors_at(20), [math.nan, 1.0])
    assert Run.from_record(record(problem="neuron-v1", dimension=7)).dimension == 7


def test_a_failed_run_counts_as_the_worst():
    both = group(record(), FAILED)
    assert [run.failed for run in both.runs] == [False, True]
    assert both.evaluations == 40 and math.isinf(both.errors[0])
    three = group(record(), record(), FAILED)
    np.testing.assert_allclose(three.errors, [0.4, 0.2])
    np.testing.assert_allclose(three.median_errors_at(20), [2.0, 1.0])
    assert math.isnan(group(FAILED).evaluations) and len(group(FAILED).grid) == 0


def test_the_curve_compares_at_the_same_number_of_evaluations():
    ours = group(record(scale=0.5))
    theirs = group(record(evaluations=60, lml_error=0.1, gskl=0.3))
    whole, half = (curve_point(ours, theirs, share) for share in (1.0, 0.5))
    assert whole.n == 60 and half.n == 30
    np.testing.assert_allclose(whole.errors, [0.2, 0.1])  # ended at 40 and keeps its estimate
    np.testing.assert_allclose(whole.baseline_errors, [0.1, 0.3])
    assert whole.verdict is Verdict.WORSE
    np.testing.assert_allclose(half.errors, [0.5, 0.25])
    np.testing.assert_allclose(half.baseline_errors, [1.0, 0.5])
    assert half.verdict is Verdict.NO_WORSE
    tiny = group(record(lml_error=0.015, gskl=0.019))
    best = group(record(lml_error=0.001, gskl=0.001))
    assert curve_point(tiny, best, 1.0).verdict is Verdict.NEGLIGIBLE
    nearly = group(record(lml_error=0.015, gskl=0.021))
    assert curve_point(nearly, best, 1.0).verdict is Verdict.WORSE


def test_an_error_is_reached_when_the_median_stays_at_or_below_it():
    relapsing = group(record(trace=[[10, 0.1, 5.0, 0], [20, 3.0, 1.0, 0], [30, 0.4, 0.4, 0]]))
    np.testing.assert_array_equal(evaluations_needed(relapsing, np.array([0.4, 1.0])), [30, 20])
    np.testing.assert_array_equal(
        evaluations_needed(relapsing, np.array([5.0, 0.1])), [10, math.inf]
    )
    # of three runs two are needed: the second reaches 1.0 at 30 evaluations
    three = group(record(scale=0.5), record(), record(scale=2.0))
    np.testing.assert_array_equal(evaluations_needed(three, np.array([1.0, 9.0])), [30, 10])
    assert np.all(np.isinf(evaluations_needed(group(FAILED), np.ones(2))))


def test_reaching_is_a_share_of_the_baselines_evaluations():
    item = reach(group(record()), group(record(evaluations=80, lml_error=2.0, gskl=0.5)))
    np.testing.assert_array_equal(item.needed, [20, 30])
    assert item.ratio == pytest.approx(30 / 80)
    small = group(record(lml_error=0.01, gskl=0.018, trace=[[20, 0.019, 0.015, 0]]))
    tiny = group(record(evaluations=100, lml_error=0.012, gskl=0.001))
    assert math.isinf(reach(small, tiny).ratio)
    assert reach(small, tiny).ratio_negligible == pytest.approx(20 / 100)


def test_time_is_compared_over_the_same_evaluations():
    item = cpu_ratio(group(record()), group(record(evaluations=80, seconds=0.2)))
    assert item.n == 40
    assert item.seconds == pytest.approx((0.4 + 1.0) / 40)  # it ended there: the final fit counts
    assert item.baseline_seconds == pytest.approx(0.2)
    assert item.ratio == pytest.approx(0.035 / 0.2)
    assert item.loop_ratio == pytest.approx(0.05)
    untimed = group(record(library_cpu_before=[]))
    assert math.isnan(cpu_ratio(untimed, group(record())).ratio)


def test_honesty_counts_coverage_and_false_claims():
    runs = [
        record(lml_error=0.05, gskl=0.05),  # right, and says so
        record(lml_error=0.7),  # outside 2 sd = 0.6, above the tolerance
        record(lml_error=0.5, gskl=1.5),  # covered, with a useless posterior
        record(lml_error=3.0, converged=False),  # wrong, but claims nothing
        FAILED,
    ]
    word = honesty(group(*runs).runs)
    assert (word.n_runs, word.n_failed, word.n_converged) == (5, 1, 3)
    assert word.n_covered == 2 and word.coverage == pytest.approx(0.4)
    assert (word.n_above_tolerance, word.n_blunders) == (2, 1)
    chains = [record(lml_error=None, lml_sd=None, gskl=gskl) for gskl in (0.05, 0.5)]
    word = honesty(group(*chains, method="mcmc").runs)  # judged by what they do estimate
    assert word.n_above_tolerance == 1 and math.isnan(word.coverage)


def test_the_median_sd_is_over_small_problems():
    small = group(record(lml_sd=0.1), record(lml_sd=0.3), record(lml_sd=None))
    large = group(record(lml_sd=5.0), problem="lumpy-10")
    assert median_sd([small, large], 6) == pytest.approx(0.2)


def test_what_a_sampler_needs_is_measured_or_extrapolated():
    ours = group(record(lml_error=0.1, gskl=0.1))
    sampler = group(
        record(evaluations=1000, lml_error=0.3, gskl=0.05, trace=[[500, 1, 0.08, 0]]),
        method="nested-sampling",
    )
    need = sampler_need(ours, sampler)
    assert need.lml.extrapolated and need.lml.evaluations == pytest.approx(9000)  # (0.3 / 0.1)^2
    assert not need.gskl.extrapolated and need.gskl.evaluations == 500
    perfect = group(record(lml_error=1e-9, gskl=1e-9))  # 0.02 is as good
    need = sampler_need(perfect, sampler)
    assert need.lml.evaluations == pytest.approx(1000 * 15**2)
    assert need.gskl.evaluations == pytest.approx(1000 * 2.5)
    chain = group(record(lml_error=None, lml_sd=None, gskl=0.05, trace=[]), method="mcmc")
    assert math.isnan(sampler_need(ours, chain).lml.evaluations)


def goal(pairs, figure):
    (item,) = [item for item in goals(pairs) if item.figure.startswith(figure)]
    return item


def test_goals_are_met_by_a_method_that_is_better_in_everything():
    better = record(lml_error=0.01, gskl=0.01, evaluations=20, library_cpu_seconds=0.2)
    worse = record(lml_error=0.5, gskl=0.5, seconds=1.0)
    pairs = [(group(better), group(worse, method="pyvbmc"))]
    assert [item.figure for item in goals(pairs) if not item.met] == [
        "median reported sd, D <= 6"  # 0.3, too vague
    ]
    swapped = [(group(worse, method="pyvbmc"), group(better))]
    assert not goal(swapped, "errors after N evaluations").met
    assert not goal(swapped, "library CPU").met
    assert goal(swapped, "coverage").measured == "100% of 1 runs"


def test_goals_name_how_many_problems_meet_them():
    near, far = record(lml_error=0.09, gskl=0.09), record(lml_error=0.15, gskl=0.15)
    pairs = [
        (group(item, problem=problem), group(record(), problem=problem))
        for problem, item in (("lumpy-6", near), ("cigar-6", far), ("cigar-10", far))
    ]
    item = goal(pairs, "LML error and gsKL at the end")
    assert item.measured == "2 of 3 problems" and not item.met
    assert goal(pairs, "evaluations at the end where D <= 2").measured == "0 of 0 problems"
    blunder = [(group(record(lml_error=2.0)), group(record()))]
    assert not goal(blunder, "converged with an error above 1").met
    assert not goal(blunder, "coverage").met


@pytest.fixture
def directory(tmp_path):
    file = RunFile(tmp_path)
    for problem, budget in (("lumpy-2", 200), ("cigar-10", 600)):
        for seed, scale in ((1, 0.5), (2, 1.0), (3, 1.2)):
            file.append(
                RunKey(problem, "pyvbmc", seed, budget),
                record(problem, "pyvbmc", evaluations=60, scale=scale, seconds=0.3),
            )
            file.append(
                RunKey(problem, "sparing", seed, budget), record(problem, scale=scale * 0.5)
            )
        chain = record(problem, "mcmc", evaluations=5000, lml_error=None, lml_sd=None)
        trace = [[n, None, e, None] for n, e, *_ in chain["trace"]]
        chain |= {"trace": trace, "library_cpu_before": []}
        file.append(RunKey(problem, "mcmc", 1, 5000), chain)
    file.append(RunKey("lumpy-2", "sparing", 4, 200), FAILED)
    file.append(RunKey("lumpy-2", "sparing", 1, 50), record(lml_error=77.0))  # a smaller budget
    file.append(RunKey("student-2", "sparing", 1, 200), record("student-2"))  # no rival yet
    return tmp_path


def tables(text):
    """Section title -> rows of cells, without the header."""
    found = {}
    for section in text.split("\n## ")[1:]:
        lines = [line for line in section.splitlines() if line.startswith("|")]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        assert all(len(row) == len(rows[0]) for row in rows)
        found[section.splitlines()[0]] = [dict(zip(rows[0], row, strict=True)) for row in rows[2:]]
    return found


def test_the_largest_budget_counts(directory):
    groups = read_groups(directory)
    assert len(groups["sparing"]["lumpy-2"].runs) == 4
    assert max(run.errors[0] for run in groups["sparing"]["lumpy-2"].finished) < 1


def test_the_report_holds_every_figure(directory, capsys):
    assert main(["versus-report", str(directory)]) == 0
    text = capsys.readouterr().out
    found = tables(text)
    assert list(found) == [
        "In short",
        "The end of the run",
        "After the same number of evaluations",
        "Evaluations for pyvbmc's final errors",
        "Library time",
        "What a method says of itself",
        "What sampling would need for the errors of sparing",
    ]
    ends = {(row["problem"], row["method"]): row for row in found["The end of the run"]}
    assert len(ends) == 6
    ours = ends["lumpy-2", "sparing"]
    assert ours["runs"] == "4" and ours["failed"] == "1" and ours["evaluations"] == "40 [40, 40]"
    assert ours["LML error"].startswith("0.22 [0.1, –")  # a failed run is the worst
    assert ours["coverage"] == "75%" and ours["peak MB"] == "200"
    assert ends["lumpy-2", "mcmc"]["LML error"] == ends["lumpy-2", "mcmc"]["coverage"] == "–"
    curve = found["After the same number of evaluations"]
    assert [row["n"] for row in curve] == ["60", "30", "60", "30"]
    assert [row["problem"] for row in curve] == ["lumpy-2"] * 2 + ["cigar-10"] * 2
    reached = {row["problem"]: row for row in found["Evaluations for pyvbmc's final errors"]}
    assert reached["cigar-10"]["n for gsKL"] == "40"
    assert reached["cigar-10"]["ratio to N (goal <= 0.7)"] == "0.67"
    (time, _) = found["Library time"]
    assert time["n"] == "40" and time["sparing"] == "0.035" and time["pyvbmc"] == "0.3"
    words = {row["method"]: row for row in found["What a method says of itself"]}
    assert words["sparing"]["problems"] == "3" and words["pyvbmc"]["runs"] == "6"
    need = found["What sampling would need for the errors of sparing"][1]
    assert need["problem"] == "cigar-10" and need["needed, LML error"] == "–"
    assert need["needed, gsKL"] == "~10,000"  # 0.2 after 5,000 evaluations, 0.1 wanted


def test_the_report_and_its_plots_are_written(directory):
    text = write_report(directory, "sparing", "pyvbmc")
    written = (directory / "versus.md").read_text()
    assert written.startswith(text)
    names = {path.name for path in directory.glob("*.png")}
    assert names == {
        "lml_error.png",
        "gskl.png",
        "lml_error_samplers.png",
        "gskl_samplers.png",
        "calibration.png",
        "cpu.png",
    }
    assert all(f"]({name})" in written for name in names)
    assert all((directory / name).stat().st_size > 5000 for name in names)


def test_methods_can_be_compared_the_other_way_round(directory):
    groups = read_groups(directory)
    names = "pyvbmc", "sparing"
    rows = tables(report_text(groups, comparable(groups, *names), *names))["Library time"]
    assert float(rows[0]["ratio (goal <= 0.1)"]) == pytest.approx(0.3 / 0.035, rel=0.01)


def test_a_report_that_cannot_be_made_is_explained(tmp_path, directory):
    with pytest.raises(BenchmarkError, match="no runs recorded"):
        write_report(tmp_path / "empty", "sparing", "pyvbmc")
    with pytest.raises(BenchmarkError, match="no runs of sparing-paper"):
        write_report(directory, "sparing-paper", "pyvbmc")
    groups = {
        "sparing": {"lumpy-2": group(record())},
        "pyvbmc": {"lumpy-2": group(FAILED), "cigar-2": group(record())},
    }
    with pytest.raises(BenchmarkError, match="no problem in common"):
        comparable(groups, "sparing", "pyvbmc")


def test_bands_hold_the_middle_half_and_survive_infinities():
    values = np.array([[4.0, 1.0, 3.0, 2.0], [1.0, math.inf, math.inf, 2.0]])
    low, middle, high = quartiles(values)
    np.testing.assert_array_equal(low, [1.0, 1.0])
    np.testing.assert_array_equal(middle, [2.5, math.inf])
    np.testing.assert_array_equal(high, [3.0, math.inf])


def test_calibration_is_against_the_half_normal():
    expected = stats.halfnorm.ppf([0.125, 0.375, 0.625, 0.875])
    np.testing.assert_allclose(half_normal_quantiles(4), expected)


def versus_arguments(out, *more):
    return ["versus", "--problems", "lumpy-1-g0", "--budget", "30", "--out", str(out), *more]


def test_versus_runs_the_methods_in_turns(tmp_path, stub_library):
    more = ["--seeds", "2", "--methods", "mcmc", "sparing", "--sampler-budget", "100"]
    code = main(versus_arguments(tmp_path, "--pyvbmc-python", sys.executable, *more))
    keys = list(RunFile(tmp_path).read())
    turns = ["sparing", "pyvbmc", "mcmc"]
    assert [(key.method, key.seed) for key in keys] == [(m, s) for s in (1, 2) for m in turns]
    assert [key.budget for key in keys] == [30, 30, 100] * 2
    rows = list(RunFile(tmp_path).read().values())
    assert code == 1 and "No module named 'pyvbmc'" in rows[1]["reason"]
    assert rows[2]["evaluations"] == 100 and rows[2]["lml_error"] is None


def test_the_environment_is_made_when_none_is_given_and_found_the_next_time(tmp_path, monkeypatch):
    made, ran = [], []

    def create(directory):
        made.append(directory)
        interpreter = environment_python(directory)
        interpreter.parent.mkdir(parents=True, exist_ok=True)
        interpreter.write_text("#!/bin/sh\nexit 0\n")  # "import pyvbmc" succeeds
        interpreter.chmod(interpreter.stat().st_mode | stat.S_IEXEC)
        return interpreter

    monkeypatch.setattr(versus, "create_environment", create)
    monkeypatch.setattr(versus, "run_campaign", lambda campaign, report: ran.append(campaign) or 0)
    for _ in range(2):
        assert main(versus_arguments(tmp_path)) == 0
    assert made == [tmp_path / "pyvbmc-env"]
    assert [item.pyvbmc_python for item in ran] == [environment_python(made[0])] * 2
    environment_python(made[0]).write_text("#!/bin/sh\nexit 1\n")  # cut short, so made again
    assert main(versus_arguments(tmp_path)) == 0 and len(made) == 2


def test_versus_knows_what_to_run_by_default(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(versus, "run_campaign", lambda campaign, report: ran.append(campaign) or 0)
    main(["versus", "--out", str(tmp_path), "--pyvbmc-python", "python"])
    (wanted,) = ran
    assert len(wanted.problems) == 9 and wanted.problems[0] == "lumpy-2"
    assert wanted.methods == ["sparing", "pyvbmc"] and wanted.jobs == 1 and wanted.seeds is None
    if hasattr(os, "sched_getaffinity"):
        assert wanted.core == max(os.sched_getaffinity(0))
