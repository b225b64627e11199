import sys
from dataclasses import dataclass

import numpy as np
import pytest

from sparing.__main__ import main
from sparing.cli import demo_run as demo


@dataclass(frozen=True)
class ExactPosterior:
    """The demonstration's exact posterior, in place of an inferred one."""

    truth: demo.Truth

    @property
    def mean(self):
        return self.truth.mean

    @property
    def sd(self):
        return self.truth.sd

    def log_density(self, x):
        return demo.log_posterior(x, self.truth)

    def unwrapped(self, x):
        return x


@dataclass(frozen=True)
class FakeEvaluation:
    x: np.ndarray
    value: float


@dataclass(frozen=True)
class FakeResult:
    problem: object
    posterior: ExactPosterior
    log_evidence: float = -1.234
    log_evidence_sd: float = 0.056
    elbo: float = -1.345
    elbo_sd: float = 0.067
    n_evaluations: int = 2
    library_seconds: float = 7.8
    stop_reason: str = "stable"
    warnings: tuple[str, ...] = ("not [really] inferred",)
    evaluations: tuple[FakeEvaluation, ...] = (
        FakeEvaluation(np.array([0.0, 1.0]), -1.0),
        FakeEvaluation(np.array([1.0, 0.0]), -2.0),
    )


def fake_infer(problem, *, seed):
    return FakeResult(problem, ExactPosterior(demo.exact_answer()))


def test_exact_answer_against_a_grid():
    truth = demo.exact_answer()
    problem = demo.make_problem()
    a, b = np.linspace(-5, 5, 161), np.linspace(-16, 6, 331)
    grid = np.stack(np.meshgrid(a, b), axis=-1).reshape(-1, 2)
    cell = (a[1] - a[0]) * (b[1] - b[0])
    density = np.exp(demo.log_posterior(grid, truth))
    assert density.sum() * cell == pytest.approx(1.0, abs=1e-6)
    mean = density @ grid * cell
    sd = np.sqrt(density @ (grid - mean) ** 2 * cell)
    np.testing.assert_allclose(truth.mean, mean, atol=1e-5)
    np.testing.assert_allclose(truth.sd, sd, rtol=1e-5)
    # The target that is inferred is the one whose answer this is.
    some = grid[::5000]
    log_joint = [problem.log_joint(x) for x in some]
    expected = demo.log_posterior(some, truth) + truth.log_evidence
    np.testing.assert_allclose(log_joint, expected, rtol=1e-10)


def test_plausible_box_holds_most_of_the_mass():
    truth, problem = demo.exact_answer(), demo.make_problem()
    a = np.linspace(problem.plausible_lower[0], problem.plausible_upper[0], 201)
    b = np.linspace(problem.plausible_lower[1], problem.plausible_upper[1], 201)
    grid = np.stack(np.meshgrid(a, b), axis=-1).reshape(-1, 2)
    mass = np.exp(demo.log_posterior(grid, truth)).sum() * (a[1] - a[0]) * (b[1] - b[0])
    assert 0.85 < mass < 1.0


def test_command_prints_the_numbers_and_draws(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(demo, "infer", fake_infer)
    assert main(["demo", "--output", str(tmp_path / "new" / "folder"), "--seed", "3"]) == 0
    printed = capsys.readouterr().out
    truth = demo.exact_answer()
    for text in ("-1.234 ± 0.056", "-1.345 ± 0.067", f"{truth.log_evidence:.3f}", "7.8 s"):
        assert text in printed
    assert "warning: not [really] inferred" in printed
    assert (tmp_path / "new" / "folder" / "demo.png").stat().st_size > 10_000


def test_without_matplotlib_nothing_is_evaluated(monkeypatch, tmp_path, capsys):
    def must_not_run(problem, *, seed):
        raise AssertionError

    monkeypatch.setattr(demo, "infer", must_not_run)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["demo", "--output", str(tmp_path)]) == 1
    assert "sparing[plots]" in capsys.readouterr().err
