import json

import numpy as np
import pytest
from benchmarks.__main__ import main
from benchmarks.random_problems import Bound, Box, Budget, random_problem


def test_problems_are_valid_and_reproducible():
    for number in range(80):
        problem = random_problem(number)
        again = random_problem(number)
        np.testing.assert_array_equal(problem.plausible_lower, again.plausible_lower)
        assert problem.offset == again.offset
        assert np.all(problem.lower < problem.plausible_lower)
        assert np.all(problem.plausible_lower < problem.plausible_upper)
        assert np.all(problem.plausible_upper < problem.upper)
        middle = 0.5 * (problem.plausible_lower + problem.plausible_upper)
        assert np.isfinite(problem.log_density(middle))


def test_problems_cover_every_kind():
    problems = [random_problem(number) for number in range(80)]
    assert {problem.dimension for problem in problems} == set(range(1, 7))
    assert {bound for problem in problems for bound in problem.bounds} == set(Bound)
    assert {problem.box for problem in problems} == set(Box)
    assert {len(problem.mixture.log_weights) for problem in problems} == {1, 2, 3, 4}
    scales = np.concatenate([problem.scale for problem in problems])
    assert scales.min() < 1e-5 and scales.max() > 1e5
    offsets = [problem.offset for problem in problems]
    assert min(offsets) < -9e4 and max(offsets) > 9e4


def test_bounds_are_where_their_kind_says():
    for number in range(50):
        problem = random_problem(number)
        for d, bound in enumerate(problem.bounds):
            assert np.isfinite(problem.lower[d]) == (bound in (Bound.LOWER, Bound.BOTH))
            assert np.isfinite(problem.upper[d]) == (bound in (Bound.UPPER, Bound.BOTH))


def test_the_density_is_normalised_in_the_users_coordinates_up_to_scale_and_offset():
    number = next(n for n in range(100) if random_problem(n).dimension == 1)
    problem = random_problem(number)
    grid = problem.shift[0] + problem.scale[0] * np.linspace(-15, 15, 20_001)
    density = np.exp([problem.log_density(np.array([x])) - problem.offset for x in grid])
    assert np.trapezoid(density, grid) == pytest.approx(problem.scale[0], rel=1e-6)


def test_the_small_budget_grows_with_the_dimension():
    assert [Budget.SMALL.evaluations(D) for D in (1, 6)] == [40, 90]
    assert Budget.FULL.evaluations(2) == 200


@pytest.mark.parametrize(
    ("mode", "outcome", "code", "said"),
    [
        ("", "result", 0, "result: 1; clear error: 0; CRASH: 0"),
        ("warn", "result", 0, "1 x RuntimeWarning: deliberate"),
        ("refuse", "clear error", 0, "this input cannot be used"),
        ("raise", "CRASH", 1, "ZeroDivisionError: deliberate"),
        ("outside", "CRASH", 1, "samples are not finite"),
        ("die", "CRASH", 1, "ended with code 7"),
    ],
)
def test_every_ending_is_classified(tmp_path, stub_library, capsys, mode, outcome, code, said):
    stub_library(mode)
    out = tmp_path / "outcomes.jsonl"
    arguments = ["robustness", "--runs", "1", "--first", "5", "--out", str(out)]
    assert main(arguments) == code
    (answer,) = [json.loads(line) for line in out.read_text().splitlines()]
    assert answer["number"] == 5
    assert answer["outcome"] == outcome
    assert said in capsys.readouterr().out
