"""What a person reads about a run: numbers, checks, worries, next steps."""

import math
import signal
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy import stats
from tests.hand_made import with_outcome
from tests.report.records import (
    LOG_EVIDENCE,
    converged,
    failing,
    good,
    made_by_hand,
    one_dimensional,
    too_short,
    with_evidence,
    with_last,
)

import sparing
from sparing.problem.evaluations import Proposal, Status
from sparing.problem.priors import parse_prior
from sparing.problem.warning_text import WarningTopic
from sparing.report.meanings import WARNING_MEANINGS
from sparing.running.interruption import Interruption
from sparing.store import RunDirectory
from sparing.summary import Light, Topic, check_run
from sparing.summary.numbers import duration, estimate, parameter_rows, rounded
from sparing.summary.story import ITS_SOURCES, NOT_SOUGHT, STILL_UNSURE, tell_story
from sparing.variational.divergence import gaussianised_symmetric_kl
from sparing.vbmc.exploration import LOOKING, Trusting
from sparing.vbmc.final import FinalSolution, warnings_for_the_user
from sparing.vbmc.state import initial_state
from sparing.vbmc.stopping import StopReason


def light_of(result, topic):
    """The light of one check; None when it was not made."""
    return next((check.light for check in check_run(result) if check.topic is topic), None)


def test_nothing_the_target_said_reaches_the_terminal_as_it_is():
    def log_density(x):
        if x[0] > 0.9:
            raise ValueError("\x1b[2J\ud800")
        return -0.5 * float(x @ x)

    result = sparing.infer(
        sparing.Problem(log_density, -2, 2), seed=1, max_evaluations=12, progress=False
    )
    assert result.failed[0].message == "ValueError: \x1b[2J\ud800"  # the record is as it was
    for text in (result.summary(), result._repr_html_(), *result.warnings):
        text.encode("utf-8")
        assert "\x1b" not in text
    assert r"\x1b[2J\ud800" in result.summary()


# ------------------------------------------------------------------ numbers


@pytest.mark.parametrize(
    ("value", "scale", "text"),
    [
        (93.1234, 4.912, "93.12"),
        (1.88412, 0.2224, "1.884"),
        (-0.0004, 1.0, "0.00"),
        (12345.6, 321.0, "12346"),
        (3.2e-7, 1.1e-8, "3.2e-07"),
        (math.inf, 1.0, "inf"),
        (2.0, math.nan, "2"),
    ],
)
def test_numbers_to_the_decimal_that_matters(value, scale, text):
    assert rounded(value, scale) == text


@pytest.mark.parametrize(
    ("value", "sd", "text"),
    [
        (-18.28134, 0.0123, "-18.281 ± 0.012"),
        (-18.28134, 0.31, "-18.28 ± 0.31"),
        (-1234.5, 12.0, "-1234 ± 12"),
        (0.918712, 3.4e-5, "0.9187 ± 3e-05"),
        (1.0, 0.0, "1 ± 0"),
        (-math.inf, math.nan, "-inf ± nan"),
    ],
)
def test_estimates_to_the_second_digit_of_their_error(value, sd, text):
    assert estimate(value, sd) == text


def test_times_in_the_unit_that_suits():
    assert [duration(s) for s in (0.04, 119.0, 120.0, 7200.0)] == [
        "0.0 s",
        "119.0 s",
        "2.0 min",
        "2.0 h",
    ]


def test_intervals_hold_95_percent_of_the_draws():
    result = made_by_hand(3)
    draws = result.posterior.sample(100_000, seed=1)
    for index, (_, *row) in enumerate(parameter_rows(result)):
        mean, sd, low, high = map(float, row)
        inside = (draws[:, index] > low) & (draws[:, index] < high)
        assert inside.mean() == pytest.approx(0.95, abs=0.01)
        assert mean == pytest.approx(draws[:, index].mean(), abs=0.03)
        assert sd == pytest.approx(draws[:, index].std(), rel=0.03)


# ------------------------------------------------------------------ checks


def test_a_good_run_is_green_throughout():
    checks = check_run(good())
    assert {check.light for check in checks} == {Light.GREEN}
    assert {check.topic for check in checks} == set(Topic) - {Topic.BOUNDS, Topic.WHOLE_NUMBERS}
    assert all(check.advice == () for check in checks)
    assert tell_story(good()).worries == ()


@pytest.mark.parametrize(
    ("reason", "index", "light"),
    [
        (StopReason.BUDGET, 0.5, Light.AMBER),
        (StopReason.BUDGET, 4.0, Light.RED),
        (StopReason.INTERRUPTED, math.nan, Light.RED),
        (StopReason.UNFINISHED, 9.0, Light.AMBER),
    ],
)
def test_convergence(reason, index, light):
    features = replace(
        converged().history[-1].features,
        change_of_elbo=index,
        uncertainty_of_elbo=index,
        change_of_posterior=index,
    )
    result = replace(with_last(converged(), features=features), stop_reason=reason)
    assert light_of(result, Topic.CONVERGENCE) is light


def test_a_run_that_has_looked_elsewhere_says_so():
    """And names how many evaluations that took."""
    result = converged()
    n = sum(entry.rule in LOOKING for entry in result.evaluations)
    (check,) = [check for check in check_run(result) if check.topic is Topic.ELSEWHERE]
    assert check.light is Light.GREEN
    assert f"{n} of {result.n_evaluations} evaluations" in check.finding
    fill = tuple(replace(entry, rule=LOOKING[-1]) for entry in result.evaluations[:3])
    others = tuple(replace(entry, rule="") for entry in result.evaluations[3:])
    looked = replace(result, evaluations=fill + others)
    (check,) = [check for check in check_run(looked) if check.topic is Topic.ELSEWHERE]
    assert check.light is Light.GREEN
    assert f"3 of {result.n_evaluations} evaluations" in check.finding


@pytest.mark.parametrize("reason", [StopReason.BUDGET, StopReason.INTERRUPTED])
def test_a_run_that_ended_early_may_have_missed_a_mode(reason):
    result = replace(converged(), stop_reason=reason)
    (check,) = [check for check in check_run(result) if check.topic is Topic.ELSEWHERE]
    assert check.light is Light.AMBER
    assert "may have been missed" in check.finding
    assert "max_evaluations" in check.advice[0]
    assert light_of(too_short(), Topic.ELSEWHERE) is Light.AMBER


def test_mass_that_is_not_excluded_is_named_where_the_look_is_not_over():
    """As much again as there is in the posterior: half of it is outside."""
    doubted = with_evidence(converged(), curvature=math.log(2.0))
    for reason, named in ((StopReason.BUDGET, True), (StopReason.STABLE, False)):
        result = replace(doubted, stop_reason=reason)
        (check,) = [check for check in check_run(result) if check.topic is Topic.ELSEWHERE]
        assert ("50 % of the mass that the surrogate does not exclude" in check.finding) is named
    searching = with_last(replace(doubted, stop_reason=StopReason.BUDGET), warm_up=True)
    (check,) = [check for check in check_run(searching) if check.topic is Topic.ELSEWHERE]
    assert "exclude" not in check.finding


@pytest.mark.parametrize(
    "settings", [sparing.Settings.paper(), replace(sparing.Settings(), exploration=Trusting())]
)
def test_where_nobody_was_to_look_elsewhere_nobody_is_told(settings):
    assert light_of(replace(converged(), settings=settings), Topic.ELSEWHERE) is None


def test_a_run_that_is_still_searching_is_red():
    assert light_of(too_short(), Topic.SEARCH) is Light.RED
    assert tell_story(too_short()).light is Light.RED


@pytest.mark.parametrize(
    ("sd", "light"), [(0.05, Light.GREEN), (0.5, Light.AMBER), (1.5, Light.RED)]
)
def test_error_of_the_evidence_against_what_was_asked_for(sd, light):
    assert light_of(with_evidence(converged(), sd=sd), Topic.EVIDENCE) is light


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        (StopReason.STABLE, "a run with a smaller tolerance (it was 0.1) goes on for longer"),
        (StopReason.BUDGET, "allow more evaluations (max_evaluations)"),
    ],
)
def test_advice_is_something_that_helps(reason, advice):
    """More evaluations are of no use to a run that ended by itself."""
    result = replace(with_evidence(converged(), sd=0.5), stop_reason=reason)
    (check,) = [check for check in check_run(result) if check.topic is Topic.EVIDENCE]
    assert advice in check.advice[0]


def test_a_pooled_run_points_to_its_sources_instead_of_more_runs():
    result = converged()
    told = tuple(replace(entry, identifier=None) for entry in result.evaluations)
    for evaluations, expected in ((result.evaluations, STILL_UNSURE), (told, ITS_SOURCES)):
        assert tell_story(replace(result, evaluations=evaluations)).next_steps[-1] == expected


def test_what_remains_unsure_depends_on_whether_it_was_looked_for():
    result = converged()
    trusting = replace(result, settings=replace(result.settings, exploration=Trusting()))
    assert tell_story(trusting).next_steps == (NOT_SOUGHT,)
    ended = tell_story(replace(result, stop_reason=StopReason.BUDGET)).next_steps
    assert not {NOT_SOUGHT, STILL_UNSURE} & set(ended)  # the check of it has said so


@pytest.mark.parametrize(
    ("n", "inflation", "light"),
    [
        (20, 1.0, Light.GREEN),
        (20, 2.0**2, Light.AMBER),
        (20, 3.0**2, Light.RED),
        (2, 1.0, None),
        (2, 3.0**2, Light.RED),
        (0, 1.0, None),
    ],
)
def test_honesty_of_the_error_bars(n, inflation, light):
    result = with_evidence(converged(), inflation=inflation, sd=0.11)
    rows = tuple(replace(info, n_held_out=0) for info in result.history)
    result = with_last(replace(result, history=rows), n_held_out=n)
    assert light_of(result, Topic.SURROGATE) is light


@pytest.mark.parametrize(
    ("inflation", "sd", "posterior_error", "light"),
    [
        (2.0**2, 0.09, 0.0, Light.GREEN),
        (2.0**2, 0.11, 0.0, Light.AMBER),
        (2.0**2, 0.09, 1.0, Light.AMBER),
        (3.0**2, 0.09, 0.0, Light.RED),
    ],
)
def test_errors_that_were_widened_and_are_small_are_honest(inflation, sd, posterior_error, light):
    result = with_evidence(converged(), inflation=inflation, sd=sd)
    rows = tuple(replace(info, posterior_error=posterior_error) for info in result.history)
    result = with_last(replace(result, history=rows), n_held_out=20)
    assert light_of(result, Topic.SURROGATE) is light


@pytest.mark.parametrize(
    ("sd", "light"), [(0.01, Light.GREEN), (0.5, Light.AMBER), (3.0, Light.RED)]
)
def test_noise(sd, light):
    assert light_of(with_last(converged(), noise_sd=sd), Topic.NOISE) is light


@pytest.mark.parametrize(("sd", "light"), [(0.5, Light.GREEN), (3.0, Light.RED)])
def test_noise_that_was_told(sd, light):
    result = with_last(converged(), noise_sd=sd)
    told = tuple(with_outcome(entry, noise_sd=sd) for entry in result.evaluations)
    result = replace(result, evaluations=told)
    assert light_of(result, Topic.NOISE) is light
    (check,) = [check for check in check_run(result) if check.topic is Topic.NOISE]
    assert "as it says itself" in check.finding


@pytest.mark.parametrize(
    ("k", "light"),
    [
        (-math.inf, Light.GREEN),
        (0.3, Light.GREEN),
        (0.6, Light.AMBER),
        (0.9, Light.RED),
        (math.inf, Light.RED),
        (math.nan, None),
    ],
)
def test_importance_weights(k, light):
    assert light_of(with_evidence(converged(), pareto_k=k), Topic.WEIGHTS) is light


@pytest.mark.parametrize(
    ("shift", "light"), [(0.15, Light.GREEN), (0.4, Light.AMBER), (0.8, Light.RED), (13, Light.RED)]
)
def test_error_of_the_posterior_in_standard_deviations(shift, light):
    """The shift is recovered from the divergence of normals that are so far apart, if not huge."""
    centre, identity = np.zeros(2), np.eye(2)
    divergence = gaussianised_symmetric_kl(centre, identity, centre + shift, identity)
    result = converged()
    rows = tuple(replace(info, posterior_error=divergence) for info in result.history)
    (check,) = [
        check
        for check in check_run(replace(result, history=rows))
        if check.topic is Topic.POSTERIOR
    ]
    assert check.light is light
    assert (f"{shift:g} standard deviations" in check.finding) is (shift < 1)


def test_the_posterior_s_error_is_not_judged_where_it_was_not_estimated():
    assert light_of(too_short(), Topic.POSTERIOR) is None


def test_failures_count_and_points_out_of_support_do_not():
    result = converged()
    lost = with_outcome(
        result.evaluations[0], status=Status.TIMED_OUT, value=math.nan, message="late"
    )
    outside = [
        with_outcome(entry, status=Status.OUT_OF_SUPPORT, value=-math.inf)
        for entry in result.evaluations[1:]
    ]
    one = replace(result, evaluations=(lost, *result.evaluations[1:]))
    assert light_of(replace(result, evaluations=tuple(outside)), Topic.FAILURES) is Light.GREEN
    assert light_of(one, Topic.FAILURES) is Light.AMBER
    assert light_of(replace(result, evaluations=(lost, lost, *outside[:5])), Topic.FAILURES) is (
        Light.RED
    )


@pytest.mark.parametrize(
    ("spread", "shift", "light"),
    [
        (1.0, 0.0, Light.GREEN),
        (10.0, 0.0, Light.AMBER),
        (1.0, 0.8, Light.AMBER),  # one end is still inside
        (1.0, 50.0, Light.RED),
    ],
)
def test_a_posterior_outside_the_plausible_box(spread, shift, light):
    # The mixture is in units of the box, and this posterior fills the box.
    result = one_dimensional()
    mixture = result.posterior.mixture
    moved = replace(mixture, means=spread * mixture.means + shift, factors=spread * mixture.factors)
    result = replace(result, posterior=replace(result.posterior, mixture=moved))
    (check,) = [check for check in check_run(result) if check.topic is Topic.BOX]
    assert check.light is light
    assert ("location" in check.finding) is (light is not Light.GREEN)
    low, high = result.posterior.quantile([0.025, 0.975])[:, 0]
    assert (f"[{low:g}, {high:g}]" in check.finding) is (light is not Light.GREEN)


def test_a_posterior_that_leans_on_a_bound():
    problem = sparing.Problem(
        lambda x: -20.0 * float(x[0]), [0.0], [1.0], lower=[0.0], upper=[1.0], names=["rate"]
    )
    assert light_of(converged(), Topic.BOUNDS) is None  # it has no bounds
    assert light_of(made_by_hand(3), Topic.BOUNDS) is Light.GREEN
    leaning = sparing.infer(problem, seed=1, max_evaluations=15, progress=False)
    # 18 % of the mass of an exponential with rate 20 lie below 0.01.
    (check,) = [check for check in check_run(leaning) if check.topic is Topic.BOUNDS]
    assert check.light is Light.AMBER
    assert "rate" in check.finding
    # A prior that piles up there itself is reason enough.
    prior = parse_prior(stats.beta(0.3, 1.0), ["rate"])
    problem.__setstate__({"prior": prior})
    assert light_of(replace(leaning, problem=problem), Topic.BOUNDS) is Light.GREEN
    problem.__setstate__({"prior": parse_prior(stats.beta(3.0, 1.0), ["rate"])})
    assert light_of(replace(leaning, problem=problem), Topic.BOUNDS) is Light.AMBER


# ------------------------------------------------------------------ warnings


def test_every_topic_has_a_meaning():
    assert set(WARNING_MEANINGS) == {*WarningTopic, None}


def test_each_warning_of_a_run_has_the_topic_of_the_check_that_sees_the_same():
    result = failing()
    far = replace(result.posterior.mixture, means=result.posterior.mixture.means + 50.0)
    solution = FinalSolution(
        replace(result.posterior, mixture=far),
        result.elbo,
        result.elbo_sd,
        replace(result.evidence, pareto_k=2.0),
    )
    state = initial_state(result.posterior.transform, np.empty((0, 3)))
    warnings = warnings_for_the_user(solution, state, result.evaluations, StopReason.BUDGET)
    topics = [Topic[warning.topic.name] for warning in warnings]
    expected = [Topic.CONVERGENCE, Topic.SEARCH, Topic.BOX, Topic.FAILURES, Topic.WEIGHTS]
    assert topics == expected


def test_each_warning_of_a_run_directory_has_its_topic(tmp_path):
    with RunDirectory.open(tmp_path, {"names": ["a"]}, seed=1) as store:
        store.append(Proposal(0, np.zeros(1)))
        store.write_snapshot(1, {"a": np.zeros(1)}, {})
    (snapshot,) = (tmp_path / "snapshots").iterdir()
    snapshot.write_bytes(b"damaged")
    (tmp_path / "spool" / "0.json").write_bytes(b"damaged")
    with (tmp_path / "evaluations.jsonl").open("ab") as journal:
        journal.write(b'{"seq": 1')
    with RunDirectory.open(tmp_path, read_only=True) as store:
        read_only = [warning.topic for warning in store.warnings]
    with RunDirectory.open(tmp_path, {"names": ["a"]}, seed=2) as store:
        store.latest_snapshot()
        list(store.spool.harvest())
        topics = [warning.topic for warning in store.warnings]
    assert read_only == [WarningTopic.INCOMPLETE_LINE]
    assert topics == [
        WarningTopic.INCOMPLETE_LINE,
        WarningTopic.SEED_KEPT,
        WarningTopic.DAMAGED_FILE,
        WarningTopic.DAMAGED_FILE,
    ]


def test_a_worry_is_told_once():
    """The run's warning and the check that sees the same are one worry."""
    worries = [text for _, text in tell_story(too_short()).worries]
    assert sum("searching" in text for text in worries) == 1
    assert sum("stable" in text for text in worries) == 1
    assert "searching" in worries[0]  # the worst comes first
    unknown = replace(good(), warnings=("something new",))
    assert [text for _, text in tell_story(unknown).worries] == ["something new"]


# ------------------------------------------------------------------ text and HTML


def test_text_of_a_good_run():
    text = str(good())
    lines = text.splitlines()
    assert float(lines[0].split()[2]) == pytest.approx(LOG_EVIDENCE, abs=0.05)
    assert "the solution has been stable for long enough: converged" in text
    assert "what to worry about" not in text
    assert "runs=3" in text
    assert "result.report" in text
    header = lines.index(next(line for line in lines if line.startswith("parameter")))
    for name, mean, line in zip(
        ("slope", "offset"), (0.5, -0.3), lines[header + 1 :], strict=False
    ):
        cells = line.replace("[", "").replace("]", "").replace(",", "").split()
        assert cells[0] == name
        assert float(cells[1]) == pytest.approx(mean, abs=0.05)
        assert float(cells[2]) == pytest.approx(1.0, abs=0.05)
        assert float(cells[3]) == pytest.approx(mean - 1.96, abs=0.1)
        assert float(cells[4]) == pytest.approx(mean + 1.96, abs=0.1)


def test_text_of_a_bad_run():
    text = str(too_short())
    assert "NOT converged" in text
    worries = text[text.index("what to worry about") : text.index("what to do next")]
    assert "!! the run ended while still searching" in worries
    assert "max_evaluations" in text[text.index("what to do next") :]
    assert max(len(line) for line in text.splitlines()) <= 96


def test_text_of_an_unfinished_run():
    result = replace(good(), stop_reason=StopReason.UNFINISHED, converged=False)
    assert "stopped       the run has not ended yet\n" in str(result)
    assert tell_story(result).verdict.startswith("The run has not ended")
    searching = replace(with_last(result, warm_up=True), warnings=())
    assert tell_story(searching).next_steps == ("let the run go on",)


def test_names_of_any_length_keep_the_columns():
    result = made_by_hand(2)
    names = ("a", "a rather long name of a parameter")
    result = replace(result, posterior=replace(result.posterior, names=names))
    lines = str(result).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("parameter"))
    columns = {line.index("[") for line in lines[start + 1 : start + 3]}
    assert columns == {lines[start].index("95 %")}


class Cells(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text.append(data)


def test_notebooks_show_the_summary_as_html():
    cells = Cells()
    cells.feed(failing()._repr_html_())
    text = " ".join(cells.text)
    assert "<b>share</b>" in text  # a name, not a tag
    assert "the <solver> diverged" in text
    for expected in ("log evidence", "95 % interval", "What to worry about", "What to do next"):
        assert expected in text
    assert "script" not in cells.tags
    assert "No check found a fault" in good()._repr_html_()


def test_short_form():
    number, _, rest = repr(good()).removeprefix("Result(log_evidence=").partition(" ± ")
    assert float(number) == pytest.approx(LOG_EVIDENCE, abs=0.05)
    assert rest.startswith("0.0100, n_evaluations=")


@pytest.mark.parametrize(
    ("value", "scale", "text"),
    [
        (0.99972, 5e-5, "0.99972"),
        (1.00002, 5e-5, "1.00002"),
        (3.2e8, 1e7, "3.2e+08"),
        (0.0, 1e-9, "0"),
        (1.5, 0.0, "1.5"),
        (math.inf, 1.0, "inf"),
        (12.3456, 0.123, "12.346"),
    ],
)
def test_numbers_show_as_many_digits_as_their_scale_is_worth(value, scale, text):
    assert rounded(value, scale) == text


def test_a_history_is_a_tuple_that_notebooks_show_as_a_table():
    history = converged().history
    assert isinstance(history, tuple)
    html = history._repr_html_()
    assert html.count("<tr>") == len(history) + 1
    assert "warm-up" in html
    assert f"{history[-1].n_evaluations}</td>" in html


def test_an_interrupted_run_is_to_be_run_again():
    result = replace(too_short(), stop_reason=StopReason.INTERRUPTED)
    assert "run the same command again" in " ".join(result.summary().split())


def test_how_a_run_ended_in_one_line():
    interruption = Interruption()
    text = interruption.ending(converged(), "runs/mine")
    assert "\n" not in text
    assert text.endswith("converged")
    assert f"after {converged().n_evaluations} evaluations" in text
    interruption.signal = signal.SIGINT
    again = "interrupted: run the same command again, and it goes on from 'runs/mine'"
    interrupted = replace(converged(), stop_reason=StopReason.INTERRUPTED)
    assert interruption.ending(interrupted, "runs/mine").endswith(again)
    assert interruption.ending(interrupted, None).endswith("interrupted")
    assert interruption.ending(converged(), "runs/mine") == text  # it came too late to matter
