from dataclasses import replace

import numpy as np
import pytest
from tests.report.records import (
    converged,
    failing,
    log_joint,
    one_dimensional,
    too_short,
)

import sparing
from sparing.plots import plot_slices


@pytest.mark.parametrize("make", [converged, too_short])
def test_the_surrogate_of_a_result_knows_the_target(make):
    x = converged().posterior.sample(50, seed=4)
    mean, sd = make().surrogate.log_joint(x)
    truth = np.array([log_joint(point) for point in x])
    assert np.max(np.abs(mean - truth) / np.hypot(sd, 0.02)) < 5.0
    assert np.median(np.abs(mean - truth)) < 0.05


def test_the_surrogate_of_a_result_is_the_run_s_own():
    """Of a posterior that is narrow beside the box: the paper leaves the first points out of it."""

    def narrow(x):
        return -50.0 * float(x @ x)

    problem, settings = sparing.Problem(narrow, [-2, -2], [2, 2]), sparing.Settings.paper()
    run = sparing.Inference(problem, seed=3, max_evaluations=60, settings=settings)
    while proposals := run.ask(1):
        run.tell(proposals[0], narrow(proposals[0].x))
    result, own = run.result(), run._engine.state.trained
    assert result.surrogate is own
    assert own.surrogate.training.n_points == len(own.trained_on) < result.n_evaluations


def test_a_result_without_a_surrogate_says_so():
    with pytest.raises(ValueError, match="no surrogate to draw"):
        plot_slices(replace(one_dimensional(), surrogate=None))


def test_slices_follow_the_target_through_the_mode():
    result = converged()
    mode = result.posterior.mode()
    for index, ax in enumerate(plot_slices(result).axes):
        x, mean = ax.lines[0].get_data()
        points = np.tile(mode, (len(x), 1))
        points[:, index] = x
        truth = np.array([log_joint(point) for point in points])
        top = truth > truth.max() - 3.0
        np.testing.assert_allclose(mean[top], truth[top], atol=0.05)
        posterior = ax.lines[1].get_ydata()
        np.testing.assert_allclose(posterior[top], truth[top], atol=0.3)
        low, high = ax.get_xlim()
        assert low < mode[index] < high
        assert ax.get_ylim()[0] == pytest.approx(mean.max() - 8.0)


def test_with_one_parameter_the_points_lie_on_the_slice():
    result = one_dimensional()
    ax = plot_slices(result).axes[0]
    points = next(line for line in ax.lines if line.get_label() == "evaluated points")
    np.testing.assert_array_equal(points.get_xdata(), [entry.x[0] for entry in result.evaluations])
    np.testing.assert_array_equal(points.get_ydata(), [entry.value for entry in result.evaluations])


@pytest.mark.slow
def test_bounds_and_failures(tmp_path):
    result = failing()
    figure = plot_slices(result)
    drawn = [ax for ax in figure.axes if ax.axison]
    assert len(drawn) == result.problem.dimension
    figure.savefig(tmp_path / "slices.png", dpi=40)
