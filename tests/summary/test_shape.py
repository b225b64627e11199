"""What is said of shapes that are known: mixtures fitted to exact draws."""

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tests.report.records import converged, good, made_by_hand, with_evidence, with_last

import sparing
from sparing.problem.evaluations import Evaluation, Outcome, Status
from sparing.problem.parameter_transform import ParameterTransform
from sparing.summary import Light, Topic, check_run
from sparing.summary.checks import COMPACT
from sparing.summary.numbers import listed
from sparing.summary.shape import features
from sparing.summary.story import tell_story
from sparing.variational.expectation_maximisation import fitted_mixture
from sparing.variational.normal_mixture import NormalMixture
from sparing.variational.posterior import Posterior

N = 4000
NAMES = tuple("abcdefghij")


def generator(seed=1):
    return np.random.default_rng(seed)


def posterior_of(draws, *, lower=-np.inf, n_components=30, whitened=False):
    """The mixture that describes the draws; the plausible box holds most of them."""
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)
    names = NAMES[: draws.shape[1]]
    problem = sparing.Problem(lambda x: 0.0, low, high, lower=lower, names=names)
    transform = ParameterTransform.from_problem(problem)
    if whitened:
        turn = rotation(draws.shape[1]) @ np.diag(np.linspace(0.3, 3.0, draws.shape[1]))
        transform = transform.whitened(np.full(draws.shape[1], 0.2), turn)
    even = np.full(len(draws), 1.0 / len(draws))
    u = transform.to_working(draws)
    return Posterior(fitted_mixture(u, even, n_components, 5, generator()), transform, names)


def found(draws, **options):
    return [feature.finding for feature in features(posterior_of(draws, **options), ())]


def rotation(dimension):
    return np.linalg.qr(generator(5).standard_normal((dimension, dimension)))[0]


def normal(dimension, n=N):
    spread = np.eye(dimension) + 0.9 * np.tril(np.ones((dimension, dimension)), -1)
    return generator().standard_normal((n, dimension)) @ spread.T


def banana(dimension, n=N):
    """The second coordinate is the square of the first, with noise."""
    draws = generator(2).standard_normal((n, dimension))
    draws[:, 1] = draws[:, 0] ** 2 + 0.3 * draws[:, 1]
    return draws


def funnel(dimension, s=2.0):
    z = generator(3).standard_normal((N, dimension))
    return np.column_stack([s * z[:, 0], np.exp(0.5 * s * z[:, :1]) * z[:, 1:]])


def shell(dimension, width=0.05):
    z = generator(4).standard_normal((N, dimension))
    radius = 1.0 + width * generator(5).standard_normal((N, 1))
    return radius * z / np.linalg.norm(z, axis=1, keepdims=True)


def heavy(dimension, degrees):
    g = generator(6)
    scale = np.sqrt(degrees / g.chisquare(degrees, size=(N, 1)))
    return scale * g.standard_normal((N, dimension))


def clusters(means, counts, sd=0.3):
    g = generator(7)
    return np.vstack(
        [
            np.asarray(mean) + sd * g.standard_normal((n, len(mean)))
            for mean, n in zip(means, counts, strict=True)
        ]
    )


def lumpy(dimension):
    """Normals so close to each other that they make one hill."""
    means = generator(8).uniform(-1.0, 1.0, (12, dimension))
    return clusters(means, [N // 12] * 12, sd=1.0)


# ------------------------------------------------------------------ nothing to see


@pytest.mark.parametrize("draws", [normal(1), normal(2), normal(5), normal(10), normal(4, 600)])
def test_a_normal_is_compact(draws):
    assert found(draws) == []


def test_lumps_and_skewness_are_nothing_odd():
    assert found(lumpy(2)) == []
    assert found(lumpy(4)) == []
    assert found(generator().gamma(1.5, size=(N, 3)), lower=0.0) == []
    assert found(generator().gamma(6.0, size=(N, 3)) @ (np.eye(3) + 0.5 * np.eye(3, k=1))) == []


def test_q_itself_is_described_as_well():
    """The paper's posterior is a mixture of another kind."""
    assert features(made_by_hand(3, n_components=1).posterior, ()) == ()
    (feature,) = features(made_by_hand(3).posterior, ())
    assert feature.finding.startswith("2 separate modes, with their masses: parameter 1 =")


# ------------------------------------------------------------------ one mode


@pytest.mark.parametrize(("dimension", "whitened"), [(2, False), (4, False), (4, True)])
def test_a_curved_ridge_is_named_by_its_parameters(dimension, whitened):
    """In the parameters, whatever the coordinates of the run are."""
    (finding,) = found(banana(dimension), whitened=whitened)
    assert finding.startswith("a curved ridge: b bends with a")


@pytest.mark.parametrize("dimension", [2, 3, 6])
def test_a_ridge_may_bend_in_any_direction(dimension):
    (finding,) = found(banana(dimension) @ rotation(dimension).T)
    assert finding.startswith("a curved ridge")


def test_a_thin_ridge_is_named_by_what_it_ties():
    """d is b but for a small bend and a little noise; c bends by more, but is wide."""
    t, noise, other, rest = generator().standard_normal((4, N))
    tied = t + 0.05 * t**2 + 0.05 * noise
    (finding,) = found(np.column_stack([rest, t, other + 0.15 * t**2, tied]))
    assert finding.startswith("a curved ridge: d bends with b")


def test_no_parameter_bends_with_itself():
    """Two that are nearly a: in what bends, a counts as much as both together."""
    t, first, second = generator().standard_normal((3, N))
    tied = (t + 0.04 * t**2)[:, None] + 0.05 * np.column_stack([first, second])
    (finding,) = found(np.column_stack([t, tied]))
    assert re.match("a curved ridge: a bends with [bc]", finding)


def test_the_arms_of_a_ridge_are_no_funnel_although_they_are_far_apart():
    """Seen at the end where they are; at the other one, noise makes a cloud."""
    t, noise = generator().standard_normal(N), generator(9).standard_t(3, N)
    (finding,) = found(np.column_stack([t, -(t**2) - 0.8 * noise]))
    assert finding.startswith("a curved ridge: b bends with a")


def test_a_ridge_may_have_one_arm():
    v, z = generator(3).standard_normal((2, N))
    for sign in (1.0, -1.0):
        (finding,) = found(np.column_stack([sign * v, np.exp(v) * (1.0 + 0.3 * z)]))
        assert finding.startswith("a curved ridge: b bends with a")


@pytest.mark.parametrize("s", [1.2, 2.5])
def test_a_funnel_says_whose_width_depends_on_what(s):
    (feature,) = features(posterior_of(funnel(4, s)), ())
    assert feature.finding.startswith("a funnel: the width of b, c and d depends on a")
    assert feature.advice.startswith("infer b, c and d in units of the width that a stands for")


def test_the_width_of_a_group_about_its_mean_is_a_funnel_too():
    """The groups' own spread hardly changes: that of what is left beside the mean does."""
    g = generator()
    mu, log_tau = 3.0 * g.standard_normal(N), g.standard_normal(N)
    groups = mu[:, None] + np.exp(log_tau)[:, None] * g.standard_normal((N, 3))
    (finding,) = found(np.column_stack([mu, log_tau, groups]))
    assert re.match("a funnel: the width of .* depends on b", finding)


def test_both_ends_of_a_funnel_may_be_the_narrow_one():
    draws = funnel(3)
    draws[:, 0] *= -1.0
    (finding,) = found(draws)
    assert "the width of b and c depends on a" in finding


def test_a_funnel_with_sharp_sides_is_one_as_well():
    """Flat across, it has less kurtosis than a normal, as the arms of a ridge have."""
    v, x = 0.55 * generator().standard_normal(N), generator(2).uniform(-1.0, 1.0, N)
    (finding,) = found(np.column_stack([v, np.exp(v) * x]))
    assert finding.startswith("a funnel: the width of b depends on a")


@pytest.mark.parametrize("dimension", [2, 3])
def test_a_shell_is_hollow(dimension):
    (finding,) = found(shell(dimension), n_components=60)
    assert finding.startswith("a thin shell")


def test_pieces_of_a_surface_are_no_modes():
    angles = 2.0 * np.pi * np.arange(20) / 20
    means = np.column_stack([np.cos(angles), np.sin(angles)])
    pieces = NormalMixture(np.full(20, 0.05), means, np.tile(0.05 * np.eye(2), (20, 1, 1)))
    whole = replace(posterior_of(shell(2)), mixture=pieces)
    (feature,) = features(whole, ())
    assert feature.finding.startswith("a thin shell")


def test_heavy_tails_are_told_from_skewed_ones():
    (finding,) = found(heavy(3, 2.5))
    assert finding.startswith("heavy tails")
    assert found(heavy(3, 30.0)) == []
    exponential = generator().exponential(size=(N, 1))
    assert found(exponential) == []
    wide = heavy(2, 30.0)
    wide[:, 1] = heavy(1, 2.5)[:, 0]
    (finding,) = found(wide)
    assert "most of all in b" in finding


# ------------------------------------------------------------------ several modes


@pytest.mark.parametrize("whitened", [False, True])
def test_modes_have_their_masses_and_means(whitened):
    draws = clusters([[0.0, 5.0], [3.0, 5.0], [0.0, 9.0]], [2400, 1200, 400])
    (finding,) = found(draws, whitened=whitened)
    assert finding.startswith("3 separate modes")
    places = re.findall(r"a = (\S+), b = (\S+) \((\d+) %\)", finding)
    expected = [(0.0, 5.0, 60), (3.0, 5.0, 30), (0.0, 9.0, 10)]
    np.testing.assert_allclose(np.array(places, dtype=float), expected, atol=0.1)


def test_modes_of_bounded_parameters_are_where_the_user_looks():
    draws = np.exp(clusters([[0.0], [3.0]], [2000, 2000], sd=0.1))
    (finding,) = found(draws, lower=0.0)
    places = [float(text) for text in re.findall(r"a = (\S+) \(50 %\)", finding)]
    np.testing.assert_allclose(sorted(places), [1.0, np.exp(3.0)], rtol=0.05)


def test_many_modes_are_told_apart_by_one_parameter():
    means = [[0.0, 2.0 * k, 0.0] for k in (4, 1, 2, 3)]
    (finding,) = found(clusters(means, [1000] * 4))
    places = [float(text) for text in re.findall(r"b = (\S+) \(2\d %\)", finding)]
    np.testing.assert_allclose(sorted(places), [2.0, 4.0, 6.0, 8.0], atol=0.3)
    assert "a =" not in finding


def test_what_is_odd_about_the_largest_mode_is_told_as_well():
    both = np.vstack([banana(2, 3000), clusters([[0.0, -12.0]], [1000])])
    modes, form = found(both, n_components=40)
    assert modes.startswith("2 separate modes")
    assert form.startswith("a curved ridge")


def test_a_mode_that_hardly_has_any_mass_is_not_told_of():
    assert found(clusters([[0.0, 0.0], [9.0, 9.0]], [3985, 15])) == []


# ------------------------------------------------------------------ an edge


def evaluated(allowed, n=13, reach=3.0):
    """A grid of evaluations, with density zero where ``allowed`` is false."""
    places = np.array(list(product(np.linspace(-reach, reach, n), repeat=2)))
    return tuple(
        Evaluation(i, None, x, Outcome(0.0, Status.OK, 0.1))
        if allowed(x)
        else Evaluation(i, None, x, Outcome(-np.inf, Status.OUT_OF_SUPPORT, 0.1))
        for i, x in enumerate(places)
    )


def circular(n=N):
    return generator().standard_normal((n, 2))


def test_mass_beyond_an_edge_is_named_with_what_it_does_to_the_evidence():
    """22.7 % of the mass are beyond three quarters of a standard deviation: 0.26 nats."""
    (feature,) = features(posterior_of(circular()), evaluated(lambda x: x[0] < 0.75))
    assert feature.harmful
    assert "an edge in a cuts it" in feature.finding
    (share,) = re.findall(r"some (\d+) % of it", feature.finding)
    assert float(share) == pytest.approx(22.7, abs=2.0)
    assert feature.finding.endswith("too high by about 0.3")
    assert feature.advice == "give the edge as a bound of a (lower, upper)"


def test_an_edge_across_parameters_names_them():
    (feature,) = features(posterior_of(circular()), evaluated(lambda x: x[0] + x[1] < 1.4))
    assert "an edge in a and b cuts it" in feature.finding
    assert "sums or differences of a and b" in feature.advice


def test_an_edge_is_found_where_parameters_go_together():
    """The edge is in b alone, although draws beyond it have large a as well."""
    draws = circular() @ np.array([[1.0, 0.8], [0.0, 0.6]])
    (feature,) = features(posterior_of(draws), evaluated(lambda x: x[1] < 0.9, n=25))
    assert "an edge in b cuts it" in feature.finding


def test_a_posterior_that_ends_at_the_edge_is_told_of_but_right():
    draws = circular(8000)
    cut = posterior_of(draws[draws[:, 0] < 0.75], n_components=60)
    (feature,) = features(cut, evaluated(lambda x: x[0] < 0.75))
    assert not feature.harmful
    assert "cuts it" in feature.finding
    assert "%" not in feature.finding


def test_zeros_far_away_are_no_edge():
    assert features(posterior_of(circular()), evaluated(lambda x: x[0] < 2.9)) == ()


def test_failures_are_neither_zeros_nor_points_inside():
    """Without them a tenth more of the mass would seem to be inside."""
    evaluations = evaluated(lambda x: x[0] < 0.75)
    failing = tuple(
        replace(entry, outcome=Outcome(np.nan, Status.FAILED, 0.1))
        if entry.status is Status.OUT_OF_SUPPORT and entry.index % 2
        else entry
        for entry in evaluations
    )
    (feature,) = features(posterior_of(circular()), failing)
    (share,) = re.findall(r"some (\d+) % of it", feature.finding)
    assert float(share) == pytest.approx(22.7, abs=3.0)
    usable = tuple(entry for entry in failing if entry.status is not Status.OUT_OF_SUPPORT)
    assert features(posterior_of(circular()), usable) == ()


# ------------------------------------------------------------------ the check


def bent():
    return replace(good(), posterior=replace(posterior_of(banana(2)), names=("slope", "offset")))


def check_of(result):
    return next((check for check in check_run(result) if check.topic is Topic.SHAPE), None)


def test_a_shape_is_described_without_alarm():
    check = check_of(bent())
    assert check.light is Light.GREEN
    assert "offset bends with slope" in check.finding
    assert check.advice == ()
    assert check_of(good()).finding == COMPACT
    assert check_of(with_last(converged(), warm_up=True)) is None  # there is none yet


@pytest.mark.parametrize("trouble", ["held-out draws", "posterior"])
def test_a_shape_that_the_surrogate_did_not_follow_is_a_worry_with_advice(trouble):
    result = bent()
    if trouble == "posterior":
        rows = tuple(replace(info, posterior_error=1.0) for info in result.history)
        result = replace(result, history=rows)
    else:
        result = with_evidence(result, inflation=3.0**2)
    check = check_of(result)
    assert check.light is Light.AMBER
    assert check.finding.endswith("the surrogate has not followed all of it")
    assert "logarithms of slope and offset" in check.advice[0]
    assert check_of(replace(result, posterior=good().posterior)).light is Light.GREEN


def test_an_edge_that_spoils_the_numbers_is_a_worry_whatever_else():
    posterior = replace(posterior_of(circular()), names=("slope", "offset"))
    result = replace(good(), posterior=posterior)
    for edge, light in ((0.75, Light.AMBER), (1.75, Light.GREEN)):
        evaluations = evaluated(lambda x, edge=edge: x[0] < edge)
        assert check_of(replace(result, evaluations=evaluations)).light is light


def test_the_summary_shows_a_shape_that_is_worth_knowing_and_shows_it_once():
    plain, odd = str(good()), str(bent())
    assert "what it looks like" not in plain
    assert "what it looks like\n  -  a curved ridge: offset bends with slope" in odd
    assert "What it looks like" in bent()._repr_html_()
    worried = with_evidence(bent(), inflation=3.0**2)
    assert tell_story(worried).shape == ""
    assert str(worried).count("bends with") == 1
    hostile = replace(bent(), posterior=replace(bent().posterior, names=("<i>", "<b>")))
    assert "&lt;b&gt; bends with &lt;i&gt;" in hostile._repr_html_()


def test_lists_of_names():
    names = list("abcdef")
    assert [listed(names[:n]) for n in (1, 2, 4, 6)] == [
        "a",
        "a and b",
        "a, b, c and d",
        "a, b, c and 3 others",
    ]
