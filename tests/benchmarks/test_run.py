import json
import lzma
import subprocess
import sys

import pytest
from benchmarks.__main__ import main
from benchmarks.child_process import PROJECT_ROOT, usable_cores
from benchmarks.errors import BenchmarkError
from benchmarks.methods import METHODS
from benchmarks.methods.base import LibraryClock
from benchmarks.records import RunFile, RunKey
from benchmarks.run import Campaign, Progress, keys_of, run_campaign
from benchmarks.table import compact_table, covered, markdown_table


def campaign(out, **changes):
    defaults = {
        "problems": ["lumpy-1-g0"],
        "methods": ["sparing"],
        "seeds": 1,
        "jobs": 2,
        "out": out,
        "budget": 400,
    }
    return Campaign(**{**defaults, **changes})


def records(out):
    return [json.loads(line) for line in (out / "runs.jsonl").read_text().splitlines()]


def test_a_campaign_records_the_errors_of_every_run(tmp_path, stub_library):
    lines = []
    wanted = campaign(tmp_path, methods=["sparing", "sparing-paper"], seeds=2)
    assert run_campaign(wanted, lines.append) == 0
    rows = records(tmp_path)
    assert {(row["method"], row["seed"]) for row in rows} == {
        (method, seed) for method in ("sparing", "sparing-paper") for seed in (1, 2)
    }
    assert all(row["converged"] == (row["method"] == "sparing-paper") for row in rows)
    for row in rows:
        assert row["evaluations"] == 400
        assert row["lml_error"] < 0.3  # plain Monte Carlo in one dimension
        assert row["elbo_error"] == pytest.approx(0.5, abs=0.3)
        assert row["gskl"] < 0.1 and row["mmtv"] < 0.2
        assert row["phase_seconds"] == {"fit": 0.5}
        assert [(n, sd) for n, _, _, sd in row["trace"]] == [(200, 0.2), (400, 0.1)]
        assert row["trace"][1][1] == pytest.approx(row["lml_error"])
        assert row["trace"][1][2] == pytest.approx(row["gskl"])
        assert len(row["library_cpu_before"]) == 400
        assert row["library_cpu_before"] == sorted(row["library_cpu_before"])
        assert row["library_cpu_before"][-1] <= row["library_cpu_seconds"]
        assert 10 < row["peak_memory_mb"] < 1000
    assert len(lines) == 5 and "left" in lines[-1]


def test_recorded_runs_of_other_methods_are_runs_of_a_campaign(tmp_path):
    """They are read, and none of them is sparing's own or failed."""
    packed = PROJECT_ROOT / "benchmarks" / "recorded" / "other-methods.jsonl.xz"
    (tmp_path / "runs.jsonl").write_bytes(lzma.decompress(packed.read_bytes()))
    done = RunFile(tmp_path).read()
    assert len(done) > 300
    assert {key.method for key in done} <= set(METHODS) - {"sparing"}
    for key, record in done.items():
        assert record["status"] == "ok"
        assert record["trace"][-1][0] <= key.budget
    assert {RunKey("lumpy-2", "bbq", seed, 200) for seed in range(1, 6)} <= set(done)


def test_sets_are_run_and_scored_by_what_their_shapes_have(tmp_path, stub_library):
    wanted = campaign(tmp_path, problems=["tuning-shell", "modes-1-0"], budget=100)
    assert run_campaign(wanted, lambda _: None) == 0
    rows = {row["problem"]: row for row in records(tmp_path)}
    assert sorted(rows) == ["modes-1-0", *(f"shell-{D}-{i}" for D in (2, 3) for i in (0, 2))]
    assert all(row["sd_ratio"] > 0 and row["limit_error"] > 0 for row in rows.values())
    modes = rows["modes-1-0"]
    assert len(modes["mode_masses"]) == len(modes["mode_weights"]) >= 2
    assert sum(modes["mode_masses"]) == pytest.approx(1)
    assert "mode_masses" not in rows["shell-2-0"]


def test_a_finished_campaign_is_not_repeated_and_a_torn_line_is(tmp_path, stub_library):
    run_campaign(campaign(tmp_path, seeds=2), lambda _: None)
    path = tmp_path / "runs.jsonl"
    whole = path.read_text()
    lines = []
    run_campaign(campaign(tmp_path, seeds=2), lines.append)
    assert path.read_text() == whole and "0 runs to do, 2 already" in lines[0]
    path.write_text(whole[:-40])
    run_campaign(campaign(tmp_path, seeds=2), lines.append)
    assert [row["status"] for row in records(tmp_path)] == ["ok", "ok"]


def test_a_damaged_line_inside_the_file_is_an_error(tmp_path):
    (tmp_path / "runs.jsonl").write_text('{"problem"\n{}\n')
    with pytest.raises(BenchmarkError, match="line 1 is not a record"):
        RunFile(tmp_path).read()


@pytest.mark.parametrize(
    ("mode", "reason"),
    [("raise", "ZeroDivisionError: deliberate"), ("die", "ended with code 7"), ("hang", "within")],
)
def test_failures_are_recorded_with_their_reason_and_can_be_retried(
    tmp_path, stub_library, mode, reason
):
    stub_library(mode)
    timeout = 1.5 if mode == "hang" else 60.0
    assert run_campaign(campaign(tmp_path, timeout=timeout), lambda _: None) == 1
    (row,) = records(tmp_path)
    assert row["status"] == "failed" and reason in row["reason"]
    if mode == "raise":
        assert "in infer" in row["traceback"]
        stub_library("")
        assert run_campaign(campaign(tmp_path), lambda _: None) == 0
        assert len(records(tmp_path)) == 1
        run_campaign(campaign(tmp_path, retry_failed=True), lambda _: None)
        ((key, row),) = RunFile(tmp_path).read().items()
        assert key == RunKey("lumpy-1-g0", "sparing", 1, 400) and row["status"] == "ok"


def test_runs_taken_back_are_done_again_even_after_an_interruption(tmp_path, stub_library):
    quiet = lambda _: None  # noqa: E731
    run_campaign(campaign(tmp_path, methods=["sparing", "sparing-paper"]), quiet)
    run_campaign(campaign(tmp_path, redo=["sparing"]), quiet)
    rows = records(tmp_path)
    assert {row["method"] for row in rows[:2]} == {"sparing", "sparing-paper"}  # in any order
    assert [row["method"] for row in rows[2:]] == ["sparing", "sparing"]
    assert [row["status"] for row in rows] == ["ok", "ok", "forgotten", "ok"]
    file = RunFile(tmp_path)
    file.forget([RunKey("lumpy-1-g0", "sparing", 1, 400)])  # and now the machine goes down
    assert [key.method for key in file.read()] == ["sparing-paper"]
    run_campaign(campaign(tmp_path), quiet)
    assert {key.method for key in file.read()} == {"sparing-paper", "sparing"}


@pytest.mark.skipif(not usable_cores(), reason="this system cannot pin a process to a core")
def test_a_run_is_pinned_to_the_core_asked_for(tmp_path, stub_library):
    stub_library("affinity")
    core = usable_cores()[-1]
    run_campaign(campaign(tmp_path, core=core, jobs=1), lambda _: None)
    run_campaign(campaign(tmp_path, seeds=2), lambda _: None)
    pinned, free = records(tmp_path)
    assert f"cores [{core}]" in pinned["reason"]
    assert f"cores {usable_cores()}" in free["reason"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"core": 10**6, "jobs": 1}, r"--core 1000000 cannot be used \(usable: "),
        ({"core": (usable_cores() or [0])[0]}, "--jobs at 1|cannot be used"),
        ({"redo": ["pyvbmc"]}, "--redo pyvbmc: it is not one of the methods"),
    ],
)
def test_campaigns_that_cannot_be_run_are_refused(tmp_path, changes, message):
    with pytest.raises(BenchmarkError, match=message):
        run_campaign(campaign(tmp_path, **changes), lambda _: None)


def test_methods_take_turns_and_large_problems_have_fewer_seeds(tmp_path):
    wanted = campaign(
        tmp_path,
        problems=["lumpy-1-g0", "lumpy-7-g0"],
        methods=["sparing", "mcmc"],
        seeds=None,
        budget=None,
        sampler_budget=5000,
    )
    keys = keys_of(wanted)
    assert keys[:3] == [
        RunKey("lumpy-1-g0", "sparing", 1, 150),
        RunKey("lumpy-1-g0", "mcmc", 1, 5000),
        RunKey("lumpy-7-g0", "sparing", 1, 450),
    ]
    seeds = {name: {key.seed for key in keys if key.problem == name} for name in wanted.problems}
    assert seeds == {"lumpy-1-g0": set(range(1, 11)), "lumpy-7-g0": set(range(1, 6))}


def test_a_worker_needs_no_package_that_only_some_methods_have():
    absent = ("sparing", "numba", "pyvbmc", "dynesty", "emcee", "matplotlib")
    code = f"import sys; sys.modules.update(dict.fromkeys({absent}))"
    code += "; from benchmarks.worker import perform; "
    code += (
        "print(perform(dict(problem='lumpy-2-g0', method='pyvbmc', seed=1, budget=9, data=None)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT_ROOT, capture_output=True, text=True, check=True
    )
    assert "import of pyvbmc halted" in done.stdout


def test_pyvbmc_without_its_environment_is_explained(tmp_path, capsys):
    arguments = ["run", "--problems", "lumpy-2-g0", "--methods", "pyvbmc", "--out", str(tmp_path)]
    assert main(arguments) == 2
    assert "pyvbmc-env" in capsys.readouterr().err


def test_missing_data_stops_before_the_first_run(tmp_path, capsys):
    arguments = ["run", "--problems", "lumpy-2", "--methods", "sparing", "--out", str(tmp_path)]
    assert main(arguments) == 2
    assert "--data PATH" in capsys.readouterr().err
    assert not (tmp_path / "runs.jsonl").exists()


def record(lml_error, **changes):
    row = {
        "status": "ok",
        "evaluations": 100,
        "lml_error": lml_error,
        "lml_sd": 0.1,
        "elbo_error": 0.4,
        "gskl": 0.02,
        "mmtv": 0.03,
        "library_seconds": 5.0,
    }
    return {**row, **changes}


def test_the_table_shows_medians_failures_and_coverage(tmp_path):
    file = RunFile(tmp_path)
    for seed, error in enumerate([0.05, 0.15, 0.9], start=1):
        file.append(RunKey("lumpy-2", "sparing", seed, 200), record(error))
    file.append(RunKey("lumpy-2", "sparing", 4, 200), {"status": "failed", "reason": "x"})
    file.append(RunKey("lumpy-2", "pyvbmc", 1, 200), record(None))
    file.append(RunKey("lumpy-2", "pyvbmc", 1, 100), {"status": "failed", "reason": "x"})
    lines = markdown_table(tmp_path).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert all(len(row) == len(cells[0]) for row in cells)
    by_label = {(row[0], row[1]): dict(zip(cells[0], row, strict=True)) for row in cells[2:]}
    ours = by_label["lumpy-2 (budget 200)", "sparing"]
    assert ours["runs"] == "4" and ours["failed"] == "1"
    assert ours["LML error"].startswith("0.15 [0.05, 0.9]")
    assert ours["library s / evaluation"] == "0.050"
    assert ours["coverage"] == "67%"
    assert by_label["lumpy-2 (budget 200)", "pyvbmc"]["LML error"].startswith("inf")
    assert by_label["lumpy-2 (budget 100)", "pyvbmc"]["LML error"] == "-"


def test_the_compact_table_has_a_column_for_each_method(tmp_path):
    file = RunFile(tmp_path)
    for seed, error in enumerate([0.05, 0.153, 900.4], start=1):
        row = record(error, gskl=1000 * error, library_cpu_seconds=2.0)
        file.append(RunKey("lumpy-10", "sparing", seed, 600), row)
    file.append(RunKey("lumpy-10", "pyvbmc", 1, 600), record(None, library_cpu_seconds=50.0))
    file.append(RunKey("lumpy-2", "mcmc", 1, 200), record(None))
    file.append(RunKey("lumpy-2", "sparing", 1, 200), {"status": "failed", "reason": "x"})
    assert compact_table(tmp_path, "lml").splitlines() == [
        "| lml | sparing | pyvbmc | mcmc |",
        "| --- | --- | --- | --- |",
        "| lumpy-2 | - | - | - |",  # failed, not run, without an evidence
        "| lumpy-10 | 0.15 | inf | - |",
    ]
    assert compact_table(tmp_path, "gskl").splitlines()[-1] == "| lumpy-10 | 153 | 0.02 | - |"
    with pytest.raises(BenchmarkError, match="no runs recorded"):
        compact_table(tmp_path / "other", "cpu")


def test_an_empty_table_is_explained(tmp_path):
    with pytest.raises(BenchmarkError, match="no runs recorded"):
        markdown_table(tmp_path)


def test_coverage_is_two_standard_deviations():
    assert covered(0.2, 0.1)
    assert not covered(0.21, 0.1)
    assert not covered(None, 0.1) and not covered(0.2, None)


class FakeTime:
    """Seconds that pass only when told to."""

    now = 0.0

    def perf_counter(self):
        return self.now

    process_time = perf_counter

    def spend(self, seconds):
        self.now += seconds
        return seconds


@pytest.fixture
def fake_time(monkeypatch):
    fake = FakeTime()
    monkeypatch.setattr("benchmarks.methods.base.time", fake)
    return fake


def test_the_clock_leaves_out_what_is_excluded(fake_time):
    clock = LibraryClock()
    target = clock.exclude(fake_time.spend)
    with clock:
        fake_time.spend(1.0)
        assert target(30.0) == 30.0
        fake_time.spend(2.0)
    fake_time.spend(100.0)
    assert clock.wall == pytest.approx(3.0)
    assert clock.cpu == pytest.approx(3.0)


def test_the_clock_survives_a_target_that_raises(fake_time):
    def fail():
        fake_time.spend(30.0)
        raise ZeroDivisionError

    clock = LibraryClock()
    with clock:
        fake_time.spend(1.0)
        with pytest.raises(ZeroDivisionError):
            clock.exclude(fail)()
    assert clock.wall == pytest.approx(1.0)


def test_time_left_follows_the_work_done():
    progress = Progress(total=300, jobs=2)
    progress.advance(100, 60.0)
    assert progress.time_left() == "1 min 00 s"
    progress.advance(100, 60 * 60 * 10)
    assert progress.time_left() == "2 h 30 min"
