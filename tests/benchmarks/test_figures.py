"""The paper's figures, from invented runs; what a campaign does not record is run once."""

import math
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.__main__ import main
from benchmarks.child_process import ChildError
from benchmarks.errors import BenchmarkError
from benchmarks.figures import control_runs, exact_draws, solutions
from benchmarks.figures.command import FIGURES, write_figures
from benchmarks.figures.control_runs import control_groups
from benchmarks.figures.cost import SMALLEST, WINDOW, cost_figure, median_interval, window_cost
from benchmarks.figures.curves import Metric, error_range, median_curve, thinned
from benchmarks.figures.demo import demo_figures, spread_out
from benchmarks.figures.densities import density_figure
from benchmarks.figures.exact_draws import WeightedDraws, draw_exactly
from benchmarks.figures.looks import look_of
from benchmarks.figures.neurons import neuron_figure
from benchmarks.figures.posterior import posterior_figure, quantiles, view
from benchmarks.figures.recorded_runs import (
    Source,
    failure_note,
    run_counts,
    synthetic_cells,
)
from benchmarks.figures.synthetic import full_figures, headline_figure
from benchmarks.figures.variability import variability_figures
from benchmarks.methods import METHODS, SAMPLERS, surrogate_posterior
from benchmarks.methods.base import Environment, Estimate, Method
from benchmarks.problems import load_problem
from benchmarks.records import RunFile, RunKey
from benchmarks.table import markdown_table, natural_order
from benchmarks.versus.runs import Group, Run

import sparing
from sparing.cli.demo_run import make_problem


def record(scale=1.0, n=40, **changes):
    """A run whose errors halve every ten evaluations, down to what it returned."""
    row = {
        "status": "ok",
        "dimension": 2,
        "evaluations": n,
        "lml_error": scale * 0.4,
        "lml_error_alternatives": {},
        "lml_sd": 0.3,
        "elbo_error": None,
        "gskl": scale * 0.2,
        "mmtv": 0.05,
        "converged": True,
        "version": "1",
        "library_seconds": 0.02 * n,
        "library_cpu_seconds": 0.02 * n,
        "library_cpu_before": [0.01 * k for k in range(n)],
        "peak_memory_mb": 200.0,
        "trace": [
            [k, scale * 8.0 * 2.0 ** (-k / 10), scale * 4.0 * 2.0 ** (-k / 10), 0.1]
            for k in range(10, n + 1, 10)
        ],
    }
    return {**row, **changes}


FAILED = {"status": "failed", "reason": "deliberate"}


def group(*records, problem="lumpy-2", method="sparing"):
    runs = [Run.from_record({**item, "problem": problem, "method": method}) for item in records]
    return Group(problem, method, runs)


def write_campaign(directory, problems, methods=("sparing", "sparing-paper", "wsabi-l"), seeds=3):
    file = RunFile(directory)
    for problem, dimension in problems.items():
        for method in methods:
            for seed in range(1, seeds + 1):
                other = {"recomputed": 0.1 * seed} if problem == "neuron-v1" else {}
                outcome = record(seed, dimension=dimension, lml_error_alternatives=other)
                file.append(RunKey(problem, method, seed, 40), outcome)
    return Source(directory, control_seeds=2, report=lambda _: None)


# Medians over runs


def test_medians_are_over_the_runs_that_did_not_fail():
    curve = median_curve(group(record(1), record(2), record(6), FAILED), Metric.LML)
    np.testing.assert_array_equal(curve.n, [10, 20, 30, 40])
    np.testing.assert_allclose(curve.median, [8, 4, 2, 0.8])
    np.testing.assert_allclose(curve.low, [4, 2, 1, 0.4])
    np.testing.assert_allclose(curve.high, [24, 12, 6, 2.4])
    assert curve.end == 40


def test_an_estimate_stands_until_the_next_one():
    """Between two posteriors the last one counts; a bad evidence counts as the worst."""
    trace = [[10, 1.0, 5.0, 0.1], [20, None, None, None], [30, 0.5, 3.0, 0.1]]
    runs = group(record(trace=trace), record(trace=[[20, 1.0, 1.0, 0.1]]))
    gskl = median_curve(runs, Metric.GSKL)
    np.testing.assert_array_equal(gskl.n, [20, 30, 40])  # with one run of two there is no median
    np.testing.assert_allclose(gskl.median, [3.0, 2.0, 0.2])
    alone = median_curve(group(record(trace=trace)), Metric.LML)
    np.testing.assert_array_equal(alone.median, [1.0, math.inf, 0.5, 0.4])


def test_a_run_that_ended_keeps_its_estimate():
    curve = median_curve(group(record(1, n=20), record(1, n=20), record(1, n=60)), Metric.LML)
    assert curve.end == 20 and curve.n[-1] == 60
    np.testing.assert_allclose(curve.median[curve.n >= 20], 0.4)


def test_there_is_no_curve_without_an_estimate():
    assert median_curve(group(FAILED), Metric.LML) is None
    chain = record(lml_error=None, trace=[[10, None, 1.0, None]])
    assert median_curve(group(chain, method="mcmc"), Metric.LML) is None
    assert median_curve(group(chain, method="mcmc"), Metric.GSKL) is not None


def test_long_curves_keep_their_ends():
    counts = thinned(np.arange(1.0, 1001.0))
    assert len(counts) <= 40 and counts[0] == 1 and counts[-1] == 1000
    assert np.all(np.diff(counts) > 0)


def test_axes_hold_whole_decades_and_the_threshold():
    small = median_curve(group(record(0.01)), Metric.LML)  # 0.04 down to 0.004
    assert error_range([small]) == pytest.approx((1e-3, 10.0))
    assert error_range([]) == pytest.approx((0.1, 10.0))
    huge = median_curve(group(record(1e7)), Metric.LML)
    assert error_range([huge]) == pytest.approx((0.1, 1e4))


# The campaign


def test_members_of_a_family_share_a_panel_unless_one_is_published():
    groups = {
        "sparing": {
            "cigar-6-g1": group(record()),
            "cigar-6-g2": group(record(), FAILED),
            "lumpy-10": group(record()),
            "cigar-6": group(record()),
            "neuron-v1": group(record()),
        }
    }
    cells = synthetic_cells(groups)
    labels = [(row.label, D, len(cells[row, D][0].runs)) for row, D in sorted(cells)]
    assert labels == [("lumpy", 10, 1), ("cigar", 6, 1), ("cigar, generated", 6, 3)]


def test_failures_and_runs_are_counted():
    groups = [group(record(), FAILED), group(FAILED), group(record(), record(), method="bape")]
    assert failure_note(groups) == "Failed runs, left out: sparing 2 of 3."
    assert failure_note(groups[2:]) == ""
    assert run_counts(groups) == "1 to 2 runs"
    assert run_counts(groups[:1]) == "1 run" and run_counts([group(FAILED)]) == "no run"


def test_no_two_methods_look_alike():
    looks = [look_of(method) for method in [*METHODS, "control"] if method not in SAMPLERS]
    assert len({(look.colour, look.marker, look.line) for look in looks}) == len(looks)
    assert len({look.label for look in looks}) == len(looks)


def test_neurons_are_featured_and_else_the_dimension_nearest_to_theirs(tmp_path):
    source = write_campaign(tmp_path / "a", {"lumpy-2": 2, "student-6": 6, "lumpy-10": 10})
    assert source.featured() == ["student-6"]
    source = write_campaign(tmp_path / "b", {"lumpy-6": 6, "neuron-v2": 7, "neuron-v1": 7})
    assert source.featured() == ["neuron-v1", "neuron-v2"]
    assert source.budget("lumpy-6") == 40


def test_a_typical_run_is_the_median_one(tmp_path):
    file = RunFile(tmp_path)
    for seed, gskl in enumerate([0.5, None, 0.1, 0.3, 0.2], start=1):
        file.append(RunKey("lumpy-2", "sparing", seed, 40), record(gskl=gskl))
    file.append(RunKey("lumpy-2", "sparing", 6, 40), FAILED)
    file.append(RunKey("lumpy-2", "sparing", 7, 20), record(gskl=0.29))  # of a smaller budget
    source = Source(tmp_path)
    assert source.typical_seed("lumpy-2", "sparing") == 4
    assert source.typical_seed("lumpy-2", "sparing-paper") == 1


def test_a_campaign_of_samplers_alone_has_no_curves(tmp_path):
    source = write_campaign(tmp_path, {"lumpy-2": 2}, methods=["mcmc"])
    with pytest.raises(BenchmarkError, match="runs of mcmc only"):
        headline_figure(source)


def test_a_campaign_of_failures_has_no_figures(tmp_path):
    RunFile(tmp_path).append(RunKey("lumpy-2", "sparing", 1, 40), FAILED)
    with pytest.raises(BenchmarkError, match=r"every run in .* failed"):
        cost_figure(Source(tmp_path))


# Figures from recorded runs


def drawn(figure):
    """The panels that show something, and the labels in the legend."""
    panels = [ax for ax in figure.axes if ax.axison]
    labels = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return panels, labels


def has_threshold(ax):
    dashed = [line for line in ax.lines if line.get_linestyle() == "--"]
    return any(np.all(np.asarray(line.get_ydata()) == 1.0) for line in dashed)


def test_the_synthetic_figures_have_a_panel_for_every_family_and_dimension(tmp_path):
    problems = {"lumpy-2": 2, "lumpy-4": 4, "lumpy-6": 6, "cigar-2": 2}
    source = write_campaign(tmp_path, problems)
    RunFile(tmp_path).append(RunKey("cigar-2", "wsabi-l", 4, 40), FAILED)
    (headline,) = headline_figure(source)
    panels, labels = drawn(headline.figure)
    # D = 2 and 6 of lumpy, D = 2 of cigar, for both errors
    assert len(panels) == 6 and all(has_threshold(ax) for ax in panels)
    assert labels == ["sparing", "VBMC-P", "WSABI-L"]
    note = headline.figure.legends[-1].get_title().get_text()
    assert note == "Failed runs, left out: WSABI-L 1 of 10."
    full = full_figures(source)
    assert [drawing.name for drawing in full] == ["figure-2-full-lml", "figure-2-full-gskl"]
    assert all(len(drawn(drawing.figure)[0]) == 4 for drawing in full)
    assert "3 runs" in full[0].caption


def test_neurons_are_compared_with_both_values_of_the_evidence(tmp_path):
    source = write_campaign(tmp_path, {"neuron-v1": 7, "neuron-synthetic": 7})
    (drawing,) = neuron_figure(source)
    panels, _ = drawn(drawing.figure)
    assert len(panels) == 5  # the synthetic cell has one value only
    final = next(ax for ax in panels if ax.get_xlabel().startswith("final"))
    medians = [float(line.get_xdata()[0]) for line in final.lines if line.get_marker() == "o"]
    assert medians == pytest.approx([0.8, 0.2] * 3)  # published and recomputed, of seed 2
    with pytest.raises(BenchmarkError, match="--problems neuron-v1 neuron-v2"):
        neuron_figure(write_campaign(tmp_path / "none", {"lumpy-2": 2}))


def test_variability_shows_every_run_and_three_percentiles(tmp_path):
    source = write_campaign(tmp_path, {"neuron-v1": 7}, methods=["sparing", "bmc"], seeds=10)
    (drawing,) = variability_figures(source)
    top, bottom = drawn(drawing.figure)[0]
    last = [float(np.asarray(line.get_ydata())[-1]) for line in top.lines]
    assert len(last) == 10 + 3 + 1 and len(bottom.lines) == len(last)
    # Ten runs end at 0.4, 0.8, ... 4.0: the fifth, eighth and ninth of them.
    assert last[10:13] == pytest.approx([2.0, 3.2, 3.6])
    with pytest.raises(BenchmarkError, match="no run of sparing or sparing-paper"):
        variability_figures(write_campaign(tmp_path / "none", {"lumpy-2": 2}, methods=["bmc"]))


def test_cost_is_total_time_by_dimension_and_local_time_along_the_run(tmp_path):
    source = write_campaign(tmp_path, {"lumpy-2": 2, "student-6": 6})
    (drawing,) = cost_figure(source)
    by_dimension, along = drawn(drawing.figure)[0]
    ours = next(box for box in by_dimension.containers if box.get_label() == "sparing")
    np.testing.assert_allclose(ours.lines[0].get_ydata(), [0.02, 0.02])
    line = next(line for line in along.lines if line.get_label() == "sparing")
    np.testing.assert_allclose(line.get_ydata(), [0.01])
    assert "student-6" in along.get_title()


def test_the_cost_of_a_window_is_what_was_spent_in_it():
    times = np.cumsum(np.arange(2 * WINDOW))  # evaluation k costs k + 1
    run = replace(group(record()).runs[0], cpu_before=times.astype(float))
    assert window_cost(run, 0) == pytest.approx(np.mean(np.arange(1, WINDOW + 1)))
    assert window_cost(run, WINDOW) is None
    low, middle, high = median_interval([[0.0, 0.0, 0.0], [1.0, 2.0, 9.0]])
    assert (low[0], middle[0], high[0]) == (SMALLEST,) * 3
    assert (low[1], middle[1], high[1]) == (1.0, 2.0, 9.0)


# What is run once and kept


@pytest.fixture(scope="module")
def short_run():
    return sparing.infer(make_problem(), seed=1, max_evaluations=14, progress=False)


@pytest.fixture
def runs_made(monkeypatch, short_run):
    """Runs of the library replaced by a short one; what was asked for is returned."""
    asked = []

    def infer(problem, **options):
        asked.append(options)
        return short_run

    monkeypatch.setattr(solutions.sparing, "infer", infer)
    return asked


def test_the_demo_shows_several_iterations_and_is_run_once(tmp_path, runs_made, short_run):
    source = Source(tmp_path, report=lambda _: None)
    paper, default = demo_figures(source)
    assert [options["settings"] for options in runs_made] == [
        sparing.Settings.paper(),
        sparing.Settings(),
    ]
    panels, labels = drawn(paper.figure)
    assert len(panels) == min(5, len(short_run.history)) + 2
    assert "exact LML" in labels and "ELBO" in labels
    assert default.name == "figure-1-demo-sparing"
    demo_figures(source)
    assert len(runs_made) == 2
    (tmp_path / "solutions" / "demo_sparing_seed1.sparing").write_bytes(b"cut short")
    demo_figures(source)
    assert len(runs_made) == 3


def test_iterations_are_spread_out():
    assert spread_out(17, 5) == [1, 5, 9, 13, 17]
    assert spread_out(3, 5) == [1, 2, 3] and spread_out(1, 5) == [1]


def test_densities_show_the_exact_posterior_and_both_solutions(tmp_path, runs_made):
    (drawing,) = density_figure(Source(tmp_path, report=lambda _: None))
    panels, _ = drawn(drawing.figure)
    assert len(panels) == 9 and len(runs_made) == 6
    problem = load_problem("cigar-2-g1", None)
    starts = [options["x0"] for options in runs_made]
    assert any(np.array_equal(start, problem.starting_point(1)) for start in starts)
    # 95 % of the cigar lies within 2.45 SDs, whose outline the exact panel draws.
    outline = np.vstack(panels[2].collections[0].get_paths()[0].to_polygons())
    centred = outline - problem.posterior_mean
    squares = np.einsum(
        "ij,jk,ik->i", centred, np.linalg.inv(problem.posterior_covariance), centred
    )
    assert np.sqrt(squares.max()) == pytest.approx(2.45, abs=0.1)


@pytest.mark.parametrize("name", ["lumpy-2-g0", "cigar-4-g0"])
def test_draws_have_the_exact_moments(name):
    problem = load_problem(name, None)
    draws = draw_exactly(problem, 20_000)
    mean = draws.weights @ draws.points
    centred = draws.points - mean
    covariance = (draws.weights[:, None] * centred).T @ centred
    sd = np.sqrt(np.diag(problem.posterior_covariance))
    error = 4 / math.sqrt(draws.effective_sample_size)
    np.testing.assert_allclose((mean - problem.posterior_mean) / sd, 0, atol=error)
    np.testing.assert_allclose(
        covariance / np.outer(sd, sd),
        problem.posterior_covariance / np.outer(sd, sd),
        atol=3 * error,
    )
    # The marginal, known exactly, is not that of the proposal.
    cumulative = problem.marginals[0].cdf(quantiles(draws, 0, [0.05, 0.5, 0.95]))
    np.testing.assert_allclose(cumulative, [0.05, 0.5, 0.95], atol=0.02)


def test_draws_that_say_little_are_refused():
    problem = load_problem("lumpy-2-g0", None)
    far = replace(problem, posterior_mean=problem.posterior_mean + 50.0)
    with pytest.raises(BenchmarkError, match="worth only"):
        draw_exactly(far, 1000)


def test_weighted_quantiles_are_those_of_repeated_points():
    generator = np.random.default_rng(1)
    points = generator.standard_normal((2000, 1))
    repeats = generator.integers(1, 6, size=2000)
    draws = WeightedDraws(points, repeats / repeats.sum())
    expected = np.quantile(np.repeat(points[:, 0], repeats), [0.1, 0.5, 0.9])
    np.testing.assert_allclose(quantiles(draws, 0, [0.1, 0.5, 0.9]), expected, atol=0.01)
    wide = WeightedDraws(10 * points, draws.weights)
    low, high = view(draws, wide, 0)
    assert low < 10 * np.quantile(points, 0.005) and high > 10 * np.quantile(points, 0.995)


def test_the_posterior_figure_draws_both_and_keeps_the_exact_one(tmp_path, runs_made, monkeypatch):
    monkeypatch.setattr(exact_draws, "N_DRAWS", 2000)
    source = write_campaign(tmp_path, {"lumpy-2-g0": 2})
    (drawing,) = posterior_figure(source)
    panels, labels = drawn(drawing.figure)
    assert len(panels) == 3 and any("exact" in label for label in labels)
    assert runs_made[0]["max_evaluations"] == 40
    monkeypatch.setattr(exact_draws, "draw_exactly", None)  # not needed the second time
    posterior_figure(source)
    assert len(runs_made) == 1


# The control experiment


def offset_method(problem):
    """A method that evaluates draws about the exact posterior, and errs by a quarter of a nat."""

    def run(given, log_joint, x0, seed, budget, clock):
        points = draw_exactly(problem, 2000).points[:budget]
        for x in points:
            log_joint(x)
        moments = problem.posterior_mean, problem.posterior_covariance
        evidence = problem.log_evidence + 0.25
        return Estimate(evidence, 0.1, evidence, 0.1, *moments, points, True, (), "1")

    return Method("offset", Environment.PROJECT, run)


def test_the_control_learns_from_the_points_alone(monkeypatch):
    problem = load_problem("lumpy-2-g0", None)
    monkeypatch.setattr(control_runs, "find_method", lambda _: offset_method(problem))
    monkeypatch.setattr(surrogate_posterior, "N_DRAWS", 2000)
    request = {"problem": "lumpy-2-g0", "seed": 1, "budget": 45, "data": None}
    answer = control_runs.perform(request)
    vbmc, control = answer["sparing-paper"], answer["control"]
    assert vbmc["lml_error"] == pytest.approx(0.25) and vbmc["gskl"] == pytest.approx(0)
    assert control["evaluations"] == 45 and control["trace"][-1][0] == 45
    assert len(control["trace"]) == 2  # at 20 and 45, where other methods are given a posterior
    # The offset is not in the points: WSABI-L finds the evidence, the surrogate the moments.
    assert control["lml_error"] < 0.1 and control["gskl"] < 0.05


def test_control_runs_are_done_once_and_failures_are_counted(tmp_path, monkeypatch):
    calls = []

    def call(module, request, timeout):
        calls.append(request)
        if request["seed"] == 2:
            raise ChildError("no memory")
        return {"sparing-paper": record(1.0), "control": record(0.5)}

    monkeypatch.setattr(control_runs.child_process, "call", call)
    source = write_campaign(tmp_path, {"lumpy-2-g0": 2})
    for _ in range(2):
        groups = control_groups(source, ["lumpy-2-g0"])["lumpy-2-g0"]
        assert [request["seed"] for request in calls] == [1, 2]
        assert [group.method for group in groups] == ["sparing-paper", "control"]
        assert [group.finished[0].errors[0] for group in groups] == pytest.approx([0.4, 0.2])
        assert failure_note(groups) == "Failed runs, left out: VBMC-P 1 of 2, control 1 of 2."
    assert calls[0]["budget"] == 40
    (drawing,) = FIGURES["control"](source)
    panels, labels = drawn(drawing.figure)
    assert len(panels) == 2 and labels == ["VBMC-P", "control", "WSABI-L"]


# The command


def test_every_figure_is_written_with_its_caption_and_the_table(tmp_path, runs_made, monkeypatch):
    monkeypatch.setattr(exact_draws, "N_DRAWS", 2000)
    answer = {"sparing-paper": record(1.0), "control": record(0.5)}
    monkeypatch.setattr(control_runs.child_process, "call", lambda *_, **__: answer)
    lines = []
    source = replace(write_campaign(tmp_path, {"lumpy-2-g0": 2}), report=lines.append)
    written = write_figures(source, tmp_path / "pictures")
    names = [path.name for path in written]
    assert names == [
        "figure-1-demo-sparing-paper.png",
        "figure-1-demo-sparing.png",
        "figure-2-synthetic.png",
        "figure-2-full-lml.png",
        "figure-2-full-gskl.png",
        "figure-s1-densities.png",
        "figure-s-posterior.png",
        "figure-s-variability-sparing.png",
        "figure-s-variability-sparing-paper.png",
        "figure-s-cost.png",
        "figure-s-control.png",
        "figures.md",
    ]
    assert any(line.startswith("neurons left out: ") for line in lines)
    page = written[-1].read_text()
    assert all(f"]({name})" in page for name in names[:-1])
    assert markdown_table(tmp_path) in page
    assert all(path.stat().st_size > 5000 for path in written[:-1])


def test_the_command_says_what_is_missing(tmp_path, runs_made, capsys):
    assert main(["figures", str(tmp_path / "nothing")]) == 2
    assert "no runs recorded" in capsys.readouterr().err
    write_campaign(tmp_path, {"lumpy-2": 2})
    assert main(["figures", str(tmp_path), "--only", "neurons"]) == 2
    assert "--problems neuron-v1" in capsys.readouterr().err
    assert main(["figures", str(tmp_path), "--only", "posterior"]) == 2
    assert "--data PATH" in capsys.readouterr().err
    out = tmp_path / "out"
    assert main(["figures", str(tmp_path), "--out", str(out), "--only", "demo", "cost"]) == 0
    assert {path.name for path in out.iterdir()} == {
        "figure-1-demo-sparing-paper.png",
        "figure-1-demo-sparing.png",
        "figure-s-cost.png",
    }


# The table


def cells_of(directory):
    lines = markdown_table(directory).splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert all(len(row) == len(rows[0]) for row in rows)
    return [dict(zip(rows[0], row, strict=True)) for row in rows[2:]]


def test_the_table_has_both_values_of_the_evidence_and_no_invented_infinities(tmp_path):
    write_campaign(tmp_path, {"neuron-v1": 7, "lumpy-10": 10, "lumpy-2": 2}, methods=["sparing"])
    file = RunFile(tmp_path)
    file.append(RunKey("lumpy-2", "mcmc", 1, 900), record(lml_error=None, lml_sd=None, mmtv=None))
    file.append(RunKey("lumpy-2", "agp", 1, 40), FAILED)
    file.append(RunKey("lumpy-2", "bmc", 1, 40), record(gskl=None))
    rows = {(row["problem"], row["method"]): row for row in cells_of(tmp_path)}
    assert [problem for problem, _ in rows] == [
        *["lumpy-2 (budget 40)"] * 3,
        "lumpy-2 (budget 900)",
        "lumpy-10",
        "neuron-v1",
    ]
    neuron = rows["neuron-v1", "sparing"]
    assert neuron["LML error"] == "0.8 [0.4, 1.2]"
    assert neuron["LML error (recomputed)"] == "0.2 [0.1, 0.3]"
    assert rows["lumpy-10", "sparing"]["LML error (recomputed)"] == "-"
    assert neuron["ELBO error"] == "-" and neuron["library s / evaluation"] == "0.020"
    chain = rows["lumpy-2 (budget 900)", "mcmc"]
    assert chain["LML error"] == chain["MMTV"] == "-" and chain["gsKL"] == "0.2"
    assert rows["lumpy-2 (budget 40)", "bmc"]["gsKL"] == "inf"
    assert rows["lumpy-2 (budget 40)", "agp"]["LML error"] == "-"


def test_names_sort_by_their_numbers():
    names = ["neuron-v1", "lumpy-10-g2", "lumpy-2", "lumpy-10", "cigar-6", "lumpy-2-g10"]
    assert sorted(names, key=natural_order) == [
        "cigar-6",
        "lumpy-2",
        "lumpy-2-g10",
        "lumpy-10",
        "lumpy-10-g2",
        "neuron-v1",
    ]
