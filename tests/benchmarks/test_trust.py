import pytest
from benchmarks.__main__ import main
from benchmarks.errors import BenchmarkError
from benchmarks.records import RunFile, RunKey
from benchmarks.trust import is_wrong, missed_modes, trust_table


def record(lml_error=0.05, **changes):
    row = {
        "status": "ok",
        "evaluations": 100,
        "lml_error": lml_error,
        "lml_sd": 0.1,
        "gskl": 0.02,
        "sd_ratio": 0.9,
        "limit_error": 0.2,
        "converged": True,
    }
    return {**row, **changes}


def rows_of(text):
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    assert all(len(row) == len(cells[0]) for row in cells)
    return {(row[0], row[1]): dict(zip(cells[0], row, strict=True)) for row in cells[2:]}


@pytest.fixture
def directory(tmp_path):
    modes = {"mode_weights": [0.7, 0.3]}
    runs = [
        ("modes-2-0", record(0.36, lml_sd=0.01, mode_masses=[1.0, 0.0], **modes)),
        ("modes-3-0", record(0.7, sd_ratio=0.5, mode_masses=[0.68, 0.32], **modes)),
        ("modes-3-2", record(None, gskl=None, converged=False, sd_ratio=None)),
        ("shell-2-0", record(gskl=1.5, sd_ratio=1.5, evaluations=200, limit_error=None)),
        ("shell-2-2", {"status": "failed", "reason": "x"}),
    ]
    for seed, (problem, run) in enumerate(runs):
        RunFile(tmp_path).append(RunKey(problem, "sparing", seed, 200), run)
    return tmp_path


def test_families_are_summed_up_and_all_of_them_together(directory):
    rows = rows_of(trust_table(directory))
    assert [name for _, name in rows] == ["modes", "shell", "all"]
    modes, shell, everything = (rows["sparing", name] for name in ("modes", "shell", "all"))
    assert modes["runs"] == "3" and modes["within 2 sds"] == "0%"
    assert modes["converged"] == "2" and modes["converged and wrong"] == "1"
    assert modes["wrong"] == "2" and modes["missed a mode"] == "1 of 2"
    assert modes["sd ratio, worst"] == "0.50" and modes["sd ratio, median"] == "0.7"
    assert shell["failed"] == "1" and shell["converged and wrong"] == "1"
    assert shell["missed a mode"] == "-" and shell["95 % limits"] == "inf"
    assert everything["runs"] == "5" and everything["within 2 sds"] == "25%"
    assert everything["converged and wrong"] == "2" and everything["evaluations"] == "100"
    assert everything["LML sd"] == "0.1"


def test_problems_may_have_rows_of_their_own(directory, capsys):
    assert main(["trust", str(directory), "--by-problem"]) == 0
    rows = rows_of(capsys.readouterr().out)
    names = ["modes-2-0", "modes-3-0", "modes-3-2", "shell-2-0", "shell-2-2", "all"]
    assert [name for _, name in rows] == names
    assert rows["sparing", "shell-2-2"]["wrong"] == "-"


def test_what_is_wrong_and_what_is_missed():
    assert not is_wrong(record(0.5, gskl=1.0))
    assert is_wrong(record(0.51)) and is_wrong(record(gskl=1.1)) and is_wrong(record(None))
    assert missed_modes(record()) is None
    assert missed_modes(record(mode_masses=[0.5, 0.14, 0.3], mode_weights=[0.4, 0.3, 0.3])) == 1


def test_records_from_before_these_scores_are_read(tmp_path):
    old = {key: value for key, value in record().items() if key not in ("sd_ratio", "limit_error")}
    RunFile(tmp_path).append(RunKey("lumpy-2", "sparing", 1, 200), old)
    row = rows_of(trust_table(tmp_path))["sparing", "lumpy"]
    assert row["sd ratio, worst"] == row["95 % limits"] == "-"
    with pytest.raises(BenchmarkError, match="no runs recorded"):
        trust_table(tmp_path / "other")
