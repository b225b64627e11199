import re

import numpy as np
import pytest
from benchmarks.__main__ import main
from benchmarks.errors import BenchmarkError
from benchmarks.problems import load_problem
from benchmarks.profile import (
    Profile,
    compile_seconds,
    growth_exponent,
    profile,
    profile_text,
    windows,
)


def test_windows_hold_the_mean_time_and_leave_the_final_fit_out():
    cpu = np.array([5.0, 6.0, 8.0, 11.0, 15.0, 115.0])  # c(0) to c(5): 1, 2, 3, 4, final 100
    assert list(windows(cpu, 3)) == [(1, 3, 2.0), (4, 4, 4.0)]
    assert list(windows(cpu, 50)) == [(1, 4, 2.5)]


@pytest.mark.parametrize("power", [0.0, 0.5, 2.0])
def test_the_growth_exponent_is_that_of_a_power(power):
    n = np.arange(1, 601, dtype=float)
    cpu = np.concatenate([[0.0], np.cumsum(0.01 * n**power)])
    cpu[-1] += 50.0  # the final fit does not count
    assert growth_exponent(cpu) == pytest.approx(power, abs=0.02)


def test_a_short_run_has_no_growth_exponent():
    assert np.isnan(growth_exponent(np.linspace(0, 1, 150)))


def test_the_text_adds_up():
    spent = Profile(
        problem="cigar-2",
        phase_seconds={"fit": 3.0, "search": 6.0},
        wall_seconds=10.0,
        cpu=np.concatenate([np.linspace(0.5, 2.5, 200), [3.5]]),
        lml_error=0.25,
        gskl=0.5,
        memory_before_mb=None,
        memory_mb=321.0,
        functions="",
    )
    text = profile_text(spent, 100)
    assert "cigar-2: 200 evaluations, library CPU 3.50 s, LML error 0.25" in text
    rows = re.findall(r"^\| (.+?) \| ([\d.]+) \| ([\d.]+) \| (\d+%) \|$", text, re.MULTILINE)
    assert rows == [
        ("search", "6.00", "30.0", "60%"),
        ("fit", "3.00", "15.0", "30%"),
        ("outside the phases", "1.00", "5.0", "10%"),
        ("all", "10.00", "50.0", "100%"),
    ]
    assert "| 1 to 100 | 10.1 |" in text and "| 101 to 199 | 10.1 |" in text
    assert "0.50 s before the first evaluation, 1.00 s after the last" in text
    assert "peak memory 321 MB, of which before the run unknown" in text


def test_a_run_is_profiled_to_the_end_of_its_budget():
    spent = profile(load_problem("lumpy-1-g0", None), 60, seed=1, top=3)
    assert spent.evaluations == 60  # the default tolerance is met long before
    assert spent.lml_error < 0.05
    assert np.all(np.diff(spent.cpu) > 0)
    assert set(spent.phase_seconds) >= {"active sampling", "surrogate", "variational"}
    assert 0 < sum(spent.phase_seconds.values()) < spent.wall_seconds
    assert "function calls" in spent.functions and "3 due to restriction" in spent.functions


def test_a_run_with_gradients_is_profiled():
    problem = load_problem("lumpy-2-g0", None)
    spent = profile(problem, 20, seed=1, top=None, gradients=True)
    assert spent.evaluations == 20
    assert spent.gskl < profile(problem, 20, seed=1, top=None).gskl
    with pytest.raises(BenchmarkError, match="skewed-2-0 has no gradient"):
        profile(load_problem("skewed-2-0", None), 20, seed=1, top=None, gradients=True)


def test_the_command_prints_the_profile(capsys):
    assert main(["profile", "--problem", "lumpy-1-g0", "--evaluations", "20"]) == 0
    out = capsys.readouterr().out
    assert "lumpy-1-g0: 20 evaluations" in out and "| 1 to 19 |" in out
    assert "empty cache" not in out and "function calls" not in out


COMPILE_ALL = """
import os, pathlib, time
def compile_with_notice(announce):
    mark = pathlib.Path(os.environ["NUMBA_CACHE_DIR"], "compiled")
    if not mark.exists():
        time.sleep(0.5)
        mark.touch()
"""


def test_compiling_is_timed_with_an_empty_cache_and_again(tmp_path, stub_library):
    kernels = tmp_path / "stub" / "sparing" / "kernels"
    (kernels / "compilation.py").write_text(COMPILE_ALL)
    cold, warm = compile_seconds()
    assert cold - warm > 0.25
    (kernels / "compilation.py").write_text("raise RuntimeError('no compiler')")
    with pytest.raises(BenchmarkError, match="no compiler"):
        compile_seconds()
