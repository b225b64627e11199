import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid
from tests.report.records import converged, failing, made_by_hand, one_dimensional

from sparing.errors import MissingExtraError
from sparing.plots import evaluated_points, plot_posterior
from sparing.problem.problem import Problem
from sparing.variational.mixture import GaussianMixture


def legend_texts(figure):
    legends = [*figure.legends, *(ax.get_legend() for ax in figure.axes if ax.get_legend())]
    return {text.get_text() for legend in legends for text in legend.get_texts()}


@pytest.mark.parametrize("dimension", [1, 2, 5, pytest.param(12, marks=pytest.mark.slow)])
def test_a_panel_per_marginal_and_pair(dimension, tmp_path):
    result = made_by_hand(dimension)
    figure = plot_posterior(result)
    assert len(figure.axes) == dimension * (dimension + 1) // 2
    assert max(figure.get_size_inches()) <= 20
    assert {ax.get_xlabel() for ax in figure.axes} - {""} == set(result.problem.names)
    figure.savefig(tmp_path / "posterior.png", dpi=40)


def test_dots_are_the_evaluations_and_crosses_those_without_a_value():
    result = failing()
    figure = plot_posterior(result)
    dots, crosses = figure.axes[1].collections[-2:]  # the panel of the first two parameters
    np.testing.assert_array_equal(dots.get_offsets(), evaluated_points(result)[:, :2])
    lost = [entry.x[:2] for entry in result.failed]
    assert len(lost) > 0
    np.testing.assert_array_equal(crosses.get_offsets(), lost)
    assert "without a value" in legend_texts(figure)


def test_axes_show_where_the_posterior_is_and_end_at_bounds():
    result = made_by_hand(3)
    draws = result.posterior.sample(100_000, seed=1)
    axes = plot_posterior(result).axes
    for index, ax in enumerate([axes[0], axes[2], axes[5]]):  # the diagonal
        low, high = ax.get_xlim()
        inside = (draws[:, index] > low) & (draws[:, index] < high)
        assert inside.mean() > 0.995
        assert high - low < 3 * np.ptp(np.quantile(draws[:, index], [0.001, 0.999]))
        assert low >= result.problem.lower[index]
        assert high <= result.problem.upper[index]


def test_marginal_drawn_is_a_density():
    ax = plot_posterior(one_dimensional()).axes[0]
    x, density = ax.lines[0].get_data()
    assert trapezoid(density, x) == pytest.approx(1.0, abs=0.01)
    assert density.max() == pytest.approx(1 / np.sqrt(2 * np.pi), rel=0.05)


def test_numbers_above_the_marginals_are_mean_and_sd():
    result = converged()
    title = plot_posterior(result).axes[0].get_title()
    name, numbers = title.split(": ")
    assert name == result.problem.names[0]
    mean, sd = (float(text) for text in numbers.split("±"))
    assert mean == pytest.approx(result.posterior.mean[0], abs=0.01)
    assert sd == pytest.approx(result.posterior.sd[0], abs=0.01)


def test_reference_samples_are_drawn_in_outline(tmp_path):
    result = converged()
    reference = result.posterior.sample(20_000, seed=5)
    figure = plot_posterior(result, reference=reference)
    assert "reference samples" in legend_texts(figure)
    found, outline = figure.axes[0].lines[:2]
    inferred = np.interp(outline.get_xdata(), *found.get_data())
    np.testing.assert_allclose(outline.get_ydata(), inferred, atol=0.05)
    figure.savefig(tmp_path / "reference.png", dpi=40)


@pytest.mark.parametrize("reference", [np.zeros(5), np.zeros((5, 3)), np.full((5, 2), np.nan)])
def test_reference_of_another_shape_is_refused_by_name(reference):
    with pytest.raises(ValueError, match=r"reference must be .*slope, offset"):
        plot_posterior(converged(), reference=reference)


def test_a_posterior_without_width_is_drawn(tmp_path):
    result = made_by_hand(2, whitened=False)
    mixture = result.posterior.mixture
    point = GaussianMixture(
        mixture.weights, mixture.means * 0, mixture.scales * 1e-14, mixture.lengths
    )
    narrow = replace(result, posterior=replace(result.posterior, mixture=point))
    plot_posterior(narrow).savefig(tmp_path / "point.png", dpi=40)


def test_odd_names_are_not_formulas(tmp_path):
    result = converged()
    problem = Problem(result.problem.log_density, [-2, -2], [2, 2], names=["price in $", r"$\mu$"])
    figure = plot_posterior(replace(result, problem=problem))
    figure.savefig(tmp_path / "names.png", dpi=40)
    assert figure.axes[-1].get_xlabel() == r"$\mu$"


def test_many_dots_become_pixels_in_a_vector_file(tmp_path):
    few, many = (plot_posterior(made_by_hand(2, n)) for n in (50, 3000))
    assert not few.axes[1].collections[-2].get_rasterized()
    assert many.axes[1].collections[-2].get_rasterized()
    many.savefig(tmp_path / "many.svg")
    assert "data:image/png" in (tmp_path / "many.svg").read_text(encoding="utf-8")


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"sparing\[plots\]"):
        plot_posterior(converged())


def test_a_figure_shows_itself_in_a_notebook():
    assert plot_posterior(one_dimensional())._repr_png_().startswith(b"\x89PNG")


def test_a_prior_of_each_parameter_is_drawn_beside_the_marginals():
    result = converged()
    assert "prior" not in legend_texts(plot_posterior(result))
    problem = Problem(
        result.problem.log_density,
        result.problem.plausible_lower,
        result.problem.plausible_upper,
        names=result.problem.names,
        prior=[stats.norm(0.0, 3.0), stats.norm(0.0, 2.0)],
    )
    figure = plot_posterior(replace(result, problem=problem))
    assert "prior" in legend_texts(figure)
    x, density = figure.axes[0].lines[1].get_data()
    np.testing.assert_allclose(density, stats.norm(0.0, 3.0).pdf(x))
