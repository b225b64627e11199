from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from tests.report.records import converged, one_dimensional, too_short

from sparing.plots import plot_evidence, plot_reliability, plot_trace
from sparing.vbmc.stopping import Reliability


def with_history(n_warm_up=3, n_after=6, **changes):
    """Rows whose log evidence is far off during the warm-up and settles afterwards."""
    base = converged()
    row = base.history[-1]
    rows = []
    for i in range(n_warm_up + n_after):
        error = 1e4 if i < n_warm_up else 0.5**i
        rows.append(
            replace(
                row,
                iteration=i + 1,
                n_evaluations=10 + 5 * i,
                elbo=-3.2 - error,
                elbo_sd=error,
                log_evidence=-3.0 - error,
                log_evidence_sd=error,
                warm_up=i < n_warm_up,
                features=None if i == 0 else Reliability(*(1.0 / i, 2.0 / i, 3.0 / i)),
                posterior_error=np.nan if i < n_warm_up else 0.04 / i,
                n_held_out=0 if i < n_warm_up else 2,
                held_out_squares=0.0 if i < n_warm_up else 2.0 * 1.5**2,
                n_components=2 + i,
                **changes,
            )
        )
    return replace(base, history=tuple(rows))


def test_evidence_shows_both_estimates_and_what_was_returned():
    result = with_history()
    ax = plot_evidence(result).axes[0]
    lines = {line.get_label(): line for line in ax.lines}
    after = [info for info in result.history if not info.warm_up]
    expected = [info.log_evidence for info in after]
    np.testing.assert_array_equal(lines["log evidence"].get_ydata(), expected)
    np.testing.assert_array_equal(
        lines["lower bound (ELBO)"].get_ydata(), [info.elbo for info in after]
    )
    returned = ax.containers[0].lines[0]
    assert returned.get_data() == ([result.n_evaluations], [result.log_evidence])
    assert "still searching" in [text.get_text() for text in ax.get_legend().get_texts()]
    assert not ax.yaxis.get_major_formatter().get_useOffset()  # -102.1915, not -0.0915 of -1.021e2
    low, high = ax.get_ylim()
    assert -10.0 < low < high < 0.0  # the warm-up's -10000 would hide the rest


def test_band_is_two_standard_deviations_either_way():
    result = with_history()
    band = plot_evidence(result).axes[0].collections[1]
    last = result.history[-1]
    ends = [y for x, y in band.get_paths()[0].vertices if x == last.n_evaluations]
    assert min(ends) == pytest.approx(last.log_evidence - 2 * last.log_evidence_sd)
    assert max(ends) == pytest.approx(last.log_evidence + 2 * last.log_evidence_sd)


def test_reliability_shows_every_condition_of_the_stop():
    result = with_history()
    features_ax, held_out_ax = plot_reliability(result).axes
    lines = {line.get_label(): line.get_ydata() for line in features_ax.lines}
    assert np.isnan(lines["reliability index"][0])
    np.testing.assert_allclose(lines["reliability index"][1:], [2.0 / i for i in range(1, 9)])
    assert lines["error of the log evidence"][-1] == pytest.approx(2.0 / 8)
    # 0.04 / 8 of 0.02 for each of two parameters.
    assert lines["error of the posterior"][-1] == pytest.approx(0.04 / 8 / 0.04)
    assert features_ax.get_yscale() == "log"
    dots = next(line for line in held_out_ax.lines if "draws" in line.get_label())
    np.testing.assert_allclose(dots.get_ydata(), np.full(6, 1.5))


def test_bars_are_the_distribution_of_an_honest_error():
    figure = plot_reliability(with_history())
    (bars,) = figure.axes[1].collections[:1]
    low, high = bars.get_segments()[0][:, 1]
    z = np.random.default_rng(1).normal(size=(200_000, 2))
    rms = np.sqrt(np.mean(z**2, axis=1))
    assert (low, high) == pytest.approx(np.quantile(rms, [0.025, 0.975]), rel=0.02)
    assert high == pytest.approx(np.sqrt(stats.chi2(2).ppf(0.975) / 2))


def test_conditions_nobody_asked_for_are_not_in_the_legend():
    result = with_history()
    rows = [replace(info, posterior_error=np.nan) for info in result.history]
    ax = plot_reliability(replace(result, history=tuple(rows))).axes[0]
    assert "error of the posterior" not in {line.get_label() for line in ax.lines}


def test_a_run_without_held_out_draws_says_so(tmp_path):
    figure = plot_reliability(too_short())
    assert "no posterior draw" in figure.axes[1].texts[0].get_text()
    figure.savefig(tmp_path / "reliability.png", dpi=40)


def test_trace_shows_components():
    ax = plot_trace(with_history()).axes[2]
    assert ax.lines[0].get_ydata()[-1] == 10
    assert ax.get_xlabel() == "evaluations"


@pytest.mark.parametrize("plot", [plot_evidence, plot_reliability, plot_trace])
@pytest.mark.parametrize("n_iterations", [1, 3])
def test_a_short_history_is_drawn(plot, n_iterations, tmp_path):
    result = one_dimensional()
    short = replace(result, history=result.history[:n_iterations])
    plot(short).savefig(tmp_path / "short.png", dpi=40)
