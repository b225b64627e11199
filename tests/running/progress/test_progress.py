import io
import logging
import math
import sys
from dataclasses import dataclass, field

import pytest
from rich.console import Console

import sparing
from sparing.kernels import compilation
from sparing.problem.parameter_transform import ParameterTransform
from sparing.problem.problem import Problem
from sparing.running.progress import display as progress
from sparing.running.progress import progress as run_progress
from sparing.running.progress.display import Display, LiveDisplay, PlainDisplay, make_display
from sparing.running.progress.progress import Progress, number
from sparing.variational.mixture import GaussianMixture
from sparing.variational.posterior import Posterior

TRANSFORM = ParameterTransform.from_problem(
    Problem(lambda x: 0.0, [-2.0, -2.0], [2.0, 2.0], names=["rate", "shift"])
)
POSTERIOR = Posterior(
    GaussianMixture([1.0], [[0.25, -0.125]], [1.0], [0.025, 0.05]), TRANSFORM, ("rate", "shift")
)


@dataclass(frozen=True)
class FakeProblem:
    names: tuple[str, ...] = ("a", "b")


@dataclass(frozen=True)
class FakeIteration:
    iteration: int = 3
    n_evaluations: int = 25
    n_training: int = 24
    elbo: float = -2.5
    elbo_sd: float = 0.25
    elcbo: float = -3.25
    n_components: int = 7
    reliability: float = 1.75
    n_hyperparameter_samples: int = 8
    warm_up: bool = False
    stable: bool = False
    timings: dict[str, float] = field(default_factory=lambda: {"surrogate": 0.5, "search": 1.5})
    log_evidence: float = -2.25
    log_evidence_sd: float = 0.125
    posterior: Posterior = POSTERIOR


class FakeTerminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def use_terminal(monkeypatch):
    """Make standard error a terminal of 100 columns, and standard output none.

    Not a fixture: pytest puts its own streams in place between set-up and test.
    """
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    stream = FakeTerminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    return stream


def run_through(display):
    with display:
        display.compiling()
        display.start()
        display.running(2)
        display.evaluation(10, 1, 1.25)
        display.evaluation(11, 1, float("nan"))  # nobody timed it
        display.evaluation(20, 1, 0.5)
        display.iteration(FakeIteration(iteration=1, n_evaluations=20, warm_up=True))
        display.iteration(FakeIteration())
        display.evaluation(26, 2)
        display.finish("log evidence -2.25 +- 0.12: converged")


def test_plain_lines_carry_the_figures():
    stream = io.StringIO()
    run_through(PlainDisplay(Progress(2, 200), stream))
    lines = stream.getvalue().splitlines()
    assert all(line.startswith("sparing: ") for line in lines)
    assert compilation.NOTICE in lines[0]
    assert "2 parameters, at most 200 evaluations" in lines[1]
    assert "iteration 1: 20/200 evaluations (1 failed), 2 running" in lines[2]
    assert "left" in lines[2]
    assert "warm-up" in lines[2]
    assert "log evidence -2.25 ± 0.12, ELBO -2.50 ± 0.25, K = 7" in lines[3]
    assert "reliability 1.750, not yet stable" in lines[3]
    assert lines[4] == "sparing: log evidence -2.25 +- 0.12: converged"
    # Timings of both iterations added up, the longest phase first.
    time_text = "time in the target 1.8 s, in the library 4.0 s (search 3.0, surrogate 1.0)"
    assert lines[5].endswith(time_text)


def test_what_is_not_known_is_not_called_a_number():
    assert number(math.nan) == "not known yet"
    assert number(0.25) == "0.250"


def test_plain_evaluations_speak_only_after_a_silence(monkeypatch):
    stream = io.StringIO()
    display = PlainDisplay(Progress(1, 9), stream)
    display.evaluation(1, 0)
    assert stream.getvalue() == ""
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_PLAIN_LINES", 0.0)
    display.evaluation(2, 0)
    assert "2/9 evaluations" in stream.getvalue()


def test_a_closed_stream_does_not_end_the_run():
    stream = io.StringIO()
    stream.close()
    run_through(PlainDisplay(Progress(2, 200), stream))


def test_plain_text_survives_an_ascii_stream():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    PlainDisplay(Progress(2, 5), stream).finish("σ = 1 ± 2")
    assert b"sparing: ? = 1 +- 2\n" in raw.getvalue()


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), 1e12])
def test_unusual_numbers_are_shown(value):
    stream = io.StringIO()
    display = PlainDisplay(Progress(2, 5), stream)
    display.iteration(FakeIteration(elbo=value, elbo_sd=value, reliability=value))
    assert f"ELBO {value:.4g} ± {value:.4g}" in stream.getvalue()


def test_time_left_is_the_rest_of_the_budget_at_the_pace_of_this_process(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(run_progress.time, "monotonic", lambda: now)
    progress_so_far = run_progress.Progress(dimension=2, max_evaluations=100, started=now)
    for n_evaluations in range(31, 36):  # an earlier process made 30
        assert math.isnan(progress_so_far.seconds_left)
        now += 60.0
        progress_so_far.evaluation(n_evaluations, 0, 50.0)
    # Five evaluations in five minutes leave 65 minutes for the other 65.
    assert progress_so_far.seconds_left == pytest.approx(65 * 60.0)
    assert progress_so_far.clock_text() == "0:05:00, at most 1:05:00 left"
    assert progress_so_far.target_seconds == 250.0
    progress_so_far.last = FakeIteration(stable=True)
    assert progress_so_far.clock_text() == "0:05:00"  # it ends now


def test_silence_on_request(capsys):
    display = make_display(False, FakeProblem(), 200)
    run_through(display)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_a_pipe_gets_plain_lines_on_standard_error(capsys, monkeypatch):
    monkeypatch.setattr(progress.importlib.util, "find_spec", lambda name: object())  # has widgets
    display = make_display(True, FakeProblem(), 200)
    assert isinstance(display, PlainDisplay)
    run_through(display)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "iteration 3" in captured.err


def test_no_standard_error_means_silence(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert type(make_display(True, FakeProblem(), 200)) is Display


def test_a_terminal_gets_a_panel(monkeypatch):
    terminal = use_terminal(monkeypatch)
    display = make_display(True, FakeProblem(), 200)
    assert isinstance(display, LiveDisplay)
    run_through(display)
    shown = terminal.getvalue()
    assert compilation.NOTICE in shown
    assert "26/200 evaluations (2 failed), 2 running" in shown
    for text in ("2 parameters", "-2.25 ± 0.12", "converged", "time in the target", "1.8 s"):
        assert text in shown
    assert "24 points, 8 hyperparameter samples" in shown
    assert "rate" in shown
    assert "0.998 ± 0.100" in shown  # one of 1 ± 0.1, at a glance
    many = Progress(12, 200, parameters=tuple((f"x{i}", "1 ± 2") for i in range(12)))
    assert many.parameter_rows()[-1] == ("", "and 4 others")


def test_a_dumb_terminal_gets_plain_lines(monkeypatch):
    use_terminal(monkeypatch)
    assert isinstance(make_display(True, FakeProblem(), 200), LiveDisplay)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(make_display(True, FakeProblem(), 200), PlainDisplay)


def test_a_notebook_without_widgets_gets_plain_lines(monkeypatch):
    class NotebookConsole(Console):
        def __init__(self, **options):
            super().__init__(**options, force_jupyter=True)

    monkeypatch.setattr(progress, "Console", NotebookConsole)
    monkeypatch.setattr(progress.importlib.util, "find_spec", lambda name: None)
    assert isinstance(make_display(True, FakeProblem(), 200), PlainDisplay)
    monkeypatch.setattr(progress.importlib.util, "find_spec", lambda name: object())
    assert isinstance(make_display(True, FakeProblem(), 200), LiveDisplay)


def test_an_error_gives_the_terminal_back(monkeypatch):
    terminal = use_terminal(monkeypatch)
    out, err = sys.stdout, sys.stderr
    with (
        pytest.raises(RuntimeError, match="target"),
        make_display(True, FakeProblem(), 9) as display,
    ):
        display.start()
        assert sys.stderr is not err  # what the target prints goes above the panel
        assert sys.stdout is out  # but a redirected output is not moved to the terminal
        raise RuntimeError("target")
    assert sys.stderr is err
    assert terminal.getvalue().rstrip().endswith("\x1b[?25h")  # the cursor is visible again


def test_a_target_that_prints_to_a_terminal_appears_above_the_panel(monkeypatch):
    terminal = use_terminal(monkeypatch)
    monkeypatch.setattr(sys, "stdout", FakeTerminal())
    with make_display(True, FakeProblem(), 9) as display:
        display.start()
        sys.stdout.write("from the target\n")
    assert "from the target" in terminal.getvalue()


def test_logging_is_left_alone(capsys):
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    run_through(make_display(True, FakeProblem(), 200))
    assert (root.level, list(root.handlers)) == before


@pytest.mark.parametrize("cached", [True, False])
def test_compiling_is_announced_before_it_happens(monkeypatch, cached):
    events = []
    monkeypatch.setattr(compilation, "all_cached", lambda: cached)
    monkeypatch.setattr(compilation, "compile_all", lambda **_: events.append("compile"))
    compilation.compile_with_notice(lambda: events.append("announce"))
    assert events == (["compile"] if cached else ["announce", "compile"])


def test_a_run_shows_its_panel(monkeypatch):
    terminal = use_terminal(monkeypatch)
    problem = sparing.Problem(lambda x: -0.5 * float(x @ x), [-2.0], [2.0], names=["location"])
    sparing.infer(problem, seed=1, max_evaluations=12)
    shown = terminal.getvalue()
    for text in ("sparing: 1 parameter", "12/12 evaluations", "mixture components"):
        assert text in shown
