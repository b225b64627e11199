import sys
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.integrate import trapezoid

from sparing.errors import MissingExtraError
from sparing.plots import ORANGE, evaluated_points, plot_posterior, plot_trace, region_levels


@dataclass(frozen=True)
class FakeProblem:
    names: tuple[str, ...]


@dataclass(frozen=True)
class FakeEvaluation:
    x: np.ndarray
    value: float


@dataclass(frozen=True)
class FakePosterior:
    """A normal with sd 1, 2, ... D, or a point when ``spread`` is 0."""

    dimension: int
    spread: float = 1.0

    def sample(self, n, seed=None):
        sd = self.spread * np.arange(1, self.dimension + 1)
        return 5.0 + sd * np.random.default_rng(seed).standard_normal((n, self.dimension))


@dataclass(frozen=True)
class FakeIteration:
    n_evaluations: int
    elbo: float
    elbo_sd: float
    log_evidence: float
    log_evidence_sd: float
    reliability: float
    n_components: int
    warm_up: bool


@dataclass(frozen=True)
class FakeResult:
    problem: FakeProblem
    posterior: FakePosterior
    evaluations: tuple[FakeEvaluation, ...]
    history: tuple[FakeIteration, ...] = field(default=())


def fake_result(dimension, spread=1.0):
    generator = np.random.default_rng(dimension)
    values = [0.0] * 28 + [float("nan"), float("-inf")]
    return FakeResult(
        FakeProblem(tuple(f"parameter {d}" for d in range(dimension))),
        FakePosterior(dimension, spread),
        tuple(FakeEvaluation(5.0 + generator.standard_normal(dimension), v) for v in values),
        tuple(fake_iteration(i) for i in range(20)),
    )


def fake_iteration(i):
    error = 10.0 ** (4 - i)
    return FakeIteration(
        n_evaluations=10 + 5 * i,
        elbo=-2.0 - error,
        elbo_sd=error,
        log_evidence=-1.9,
        log_evidence_sd=0.5 * error,
        reliability=float("inf") if i == 0 else 20.0 / i,
        n_components=2 if i < 6 else i - 3,
        warm_up=i < 6,
    )


@pytest.mark.parametrize("dimension", [1, 2, 5, 12])
def test_posterior_has_a_panel_per_marginal_and_pair(dimension, tmp_path):
    result = fake_result(dimension)
    figure = plot_posterior(result, n_samples=2000)
    drawn = [ax for ax in figure.axes if ax.axison]
    assert len(drawn) == dimension * (dimension + 1) // 2
    assert max(figure.get_size_inches()) <= 24
    names = {ax.get_xlabel() for ax in drawn} - {""}
    assert names == set(result.problem.names)
    figure.savefig(tmp_path / "posterior.png", dpi=50)


def test_points_shown_are_the_usable_evaluations():
    result = fake_result(2)
    figure = plot_posterior(result, n_samples=2000)
    scattered = [
        collection.get_offsets()
        for ax in figure.axes
        for collection in ax.collections
        if len(collection.get_offsets()) > 1
    ]
    assert len(scattered) == 1
    np.testing.assert_array_equal(scattered[0], evaluated_points(result))
    assert evaluated_points(result).shape == (28, 2)


def test_axes_show_where_the_posterior_is():
    figure = plot_posterior(fake_result(2), n_samples=20_000)
    diagonal = [figure.axes[0], figure.axes[3]]
    for sd, ax in zip((1.0, 2.0), diagonal, strict=True):
        low, high = ax.get_xlim()
        # Half of the central 99.8 % of a normal is 3.09 sd, and 15 % of the whole is added.
        assert (high - low) / 2 == pytest.approx(1.3 * 3.09 * sd, rel=0.08)
        assert (high + low) / 2 == pytest.approx(5.0, abs=0.4 * sd)


def test_marginal_drawn_is_a_density():
    ax = plot_posterior(fake_result(1), n_samples=20_000).axes[0]
    x, density = ax.lines[0].get_data()
    assert trapezoid(density, x) == pytest.approx(1.0, abs=0.01)
    assert density.max() == pytest.approx(1 / np.sqrt(2 * np.pi), rel=0.08)


def test_same_seed_same_picture():
    first, again, other = (
        plot_posterior(fake_result(1), seed=seed).axes[0].lines[0].get_ydata() for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_posterior_without_width_is_drawn(tmp_path):
    figure = plot_posterior(fake_result(2, spread=0.0), n_samples=100)
    figure.savefig(tmp_path / "point.png", dpi=50)


def test_odd_names_are_not_formulas(tmp_path):
    result = fake_result(2)
    odd = FakeResult(FakeProblem(("price in $", r"$\sigma$")), result.posterior, result.evaluations)
    figure = plot_posterior(odd, n_samples=200)
    figure.savefig(tmp_path / "names.png", dpi=50)


def test_region_levels_hold_the_mass_they_name():
    x = np.linspace(-5, 5, 201)
    density = np.exp(-0.5 * (x[:, None] ** 2 + x[None, :] ** 2))
    for mass, level in zip((0.9, 0.5), region_levels(density, (0.9, 0.5)), strict=True):
        # A disc of a standard normal holds 1 - exp(-r^2 / 2), and its edge has that height.
        assert level == pytest.approx(1.0 - mass, abs=0.01)


@pytest.mark.parametrize("density", [np.zeros((4, 4)), np.eye(1)])
def test_region_levels_of_a_degenerate_density(density):
    assert region_levels(density, (0.9, 0.5)) is None


def test_trace_shows_both_estimates_and_follows_the_end(tmp_path):
    result = fake_result(2)
    figure = plot_trace(result)
    evidence_ax, reliability_ax, components_ax = figure.axes
    elbo, log_evidence = evidence_ax.lines
    np.testing.assert_array_equal(elbo.get_ydata(), [info.elbo for info in result.history])
    assert set(log_evidence.get_ydata()) == {-1.9}
    assert log_evidence.get_color() == ORANGE
    assert [text.get_text() for text in evidence_ax.get_legend().get_texts()] == [
        "ELBO",
        "log evidence",
    ]
    low, high = evidence_ax.get_ylim()
    assert -3.0 < low < high < 0.0  # the warm-up's -10000 would hide the rest
    assert np.isnan(reliability_ax.lines[0].get_ydata()[0])
    assert components_ax.lines[0].get_ydata()[-1] == 16
    figure.savefig(tmp_path / "trace.png", dpi=50)


@pytest.mark.parametrize("n_iterations", [0, 1, 3])
def test_trace_of_a_short_run(n_iterations, tmp_path):
    result = fake_result(2)
    short = FakeResult(
        result.problem, result.posterior, result.evaluations, result.history[:n_iterations]
    )
    plot_trace(short).savefig(tmp_path / "trace.png", dpi=50)


@pytest.mark.parametrize("plot", [plot_posterior, plot_trace])
def test_without_matplotlib_the_error_names_the_extra(plot, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"sparing\[plots\]"):
        plot(fake_result(2))
