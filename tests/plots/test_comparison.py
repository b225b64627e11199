from dataclasses import replace

import pytest
from tests.report.records import converged, made_by_hand, one_dimensional, too_short

from sparing.plots import plot_comparison


def test_evidence_and_marginals_of_each_run(tmp_path):
    runs = {"long": converged(), "short": too_short()}
    figure = plot_comparison(runs)
    evidence_ax, *marginals = figure.axes
    for place, run in enumerate(runs.values()):
        bar, dot = evidence_ax.lines[2 * place : 2 * place + 2]
        error = 2 * run.log_evidence_sd
        expected = [run.log_evidence - error, run.log_evidence + error]
        assert list(bar.get_xdata()) == pytest.approx(expected)
        assert (dot.get_markerfacecolor() == "white") is not run.converged
    assert [ax.get_xlabel() for ax in marginals] == ["slope", "offset"]
    assert all(len(ax.lines) == 2 for ax in marginals)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["long", "short"]
    first, second = marginals[0].lines
    assert first.get_color() != second.get_color()
    assert first.get_linestyle() != second.get_linestyle()
    figure.savefig(tmp_path / "comparison.png", dpi=40)


def test_runs_without_names_are_numbered():
    figure = plot_comparison([converged(), converged()])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["run 1", "run 2"]


def test_nested_models_are_named_by_what_is_fixed_in_them():
    nested = replace(converged(), problem=converged().problem.fix(offset=0.5))
    figure = plot_comparison([converged(), nested])
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["all free", "offset = 0.5"]


def test_models_with_different_parameters():
    figure = plot_comparison([converged(), one_dimensional()])
    panels = {ax.get_xlabel(): len(ax.lines) for ax in figure.axes[1:] if ax.axison}
    assert panels == {"slope": 1, "offset": 1, "location": 1}


@pytest.mark.slow
def test_twelve_parameters(tmp_path):
    figure = plot_comparison([made_by_hand(12), made_by_hand(12, n_components=2)])
    assert sum(ax.axison for ax in figure.axes) == 13
    figure.savefig(tmp_path / "many.png", dpi=40)


def test_every_run_has_a_look_of_its_own():
    figure = plot_comparison([one_dimensional()] * 28)
    looks = {(line.get_color(), line.get_linestyle()) for line in figure.axes[1].lines}
    assert len(looks) == 28


@pytest.mark.parametrize(("runs", "message"), [([], "at least one"), ([None] * 29, "at most 28")])
def test_too_few_or_too_many_runs(runs, message):
    results = [replace(converged()) for _ in runs]
    with pytest.raises(ValueError, match=message):
        plot_comparison(results)
