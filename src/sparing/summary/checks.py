"""What can be wrong with a run, judged from its record: one light and a few words for each topic.

k     Pareto shape of the importance weights       z   residual of a held-out draw over its
rho   reliability index (S2.4.1)                       predicted standard deviation
s     standardised coordinates, in which the plausible box is [-1/2, 1/2]
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sparing.problem.priors import IndependentPrior
from sparing.problem.problem import Problem
from sparing.problem.user_values import format_interval
from sparing.summary.numbers import counted, listed
from sparing.summary.shape import features
from sparing.summary.whole_numbers import rounded_parameters
from sparing.vbmc.exploration import LOOKING, LookElsewhere
from sparing.vbmc.final import FAR_OUTSIDE
from sparing.vbmc.importance import LARGEST_PARETO_K
from sparing.vbmc.run_record import RunRecord
from sparing.vbmc.stopping import StopReason

# Errors of the log evidence "of order 1 or less" are wanted for comparing models (Section 4.1).
LARGE_EVIDENCE_ERROR = 1.0
# sqrt of the variance inflation. Up to 1.7 it was found on runs whose errors, so widened, were
# right (docs/decisions/0006); from half its largest value on (5) the surrogate knows little.
LARGEST_GOOD_Z, LARGEST_FAIR_Z = 1.7, 2.5
FEWEST_HELD_OUT = 5
# Noise of the log density, in nats, that no result can tell from none; and up to which a few
# hundred evaluations average it out (docs/decisions/0012).
LARGEST_EXACT_NOISE, LARGEST_FAIR_NOISE = 0.05, 2.0
# Vehtari et al., "Pareto smoothed importance sampling": reliable below.
LARGEST_GOOD_K = 0.5
# A mean that is off by half its sd is no longer within what a plot hides.
LARGEST_FAIR_SHIFT = 0.5
LARGEST_KNOWN_SHIFT = 1.0  # beyond, it may be anything: a surrogate has gone wrong far away
LARGEST_FAIR_FAILED_FRACTION = 0.1
# The 95 % interval may reach as far beyond the plausible box as the box's own half-width.
LARGEST_GOOD_REACH = 1.0
# A posterior with this much of its mass within this fraction of the box from a bound leans on it.
LEANING_MASS, LEANING_FRACTION = 0.05, 0.01
FULL_TURNS = (2.0 * math.pi, math.pi, 360.0, 180.0)  # of angles and of directions of lines

COMPACT = "one compact mode, without a curved ridge, a funnel, heavy tails or an edge"
LET_IT_GO_ON = "let the run go on"
RUN_AGAIN = "run the same command again: with store= it goes on where it stopped"
MORE_EVALUATIONS = (
    "allow more evaluations (max_evaluations); with store= the same call goes on where it stopped"
)


class Light(enum.StrEnum):
    """A verdict; the value is what the user reads.

    >>> from sparing.summary import Light
    >>> print(Light.AMBER)
    look closer
    """

    GREEN = "good"
    AMBER = "look closer"
    RED = "do not rely on it"


class Topic(enum.StrEnum):
    """A question about a run: the value is the question.

    >>> from sparing.summary import Topic
    >>> print(Topic.CONVERGENCE)
    Did it converge?
    """

    CONVERGENCE = "Did it converge?"
    SEARCH = "Was the posterior found?"
    ELSEWHERE = "Was it looked for elsewhere?"
    SHAPE = "What does the posterior look like?"
    POSTERIOR = "How precise is the posterior?"
    EVIDENCE = "How precise is the log evidence?"
    SURROGATE = "Are the error bars honest?"
    NOISE = "Is the log density exact?"
    WHOLE_NUMBERS = "Does the log density round a parameter?"
    WEIGHTS = "Does the posterior cover what the surrogate sees?"
    FAILURES = "Did evaluations fail?"
    BOX = "Was the plausible box in the right place?"
    BOUNDS = "Does a bound cut the posterior?"


@dataclass(frozen=True)
class Check:
    """The answer to one question: what was found and, unless it is good, what to do about it.

    >>> from sparing.summary import Topic, check_run
    >>> (convergence,) = [c for c in check_run(result) if c.topic is Topic.CONVERGENCE]
    >>> convergence.light, convergence.advice
    (<Light.GREEN: 'good'>, ())
    """

    topic: Topic
    light: Light
    finding: str
    advice: tuple[str, ...] = ()


# Light, finding and advice, which is dropped where the light is green.
Answer = tuple[Light, str, *tuple[str, ...]]


def check_run(record: RunRecord) -> tuple[Check, ...]:
    """Every check that the record of the run allows, in the order in which to read them.

    >>> from sparing.summary import Light, check_run
    >>> [str(check.topic) for check in check_run(result) if check.light is Light.RED]
    []
    """
    checks = []
    for topic, check in _CHECKS.items():
        if (answer := check(record)) is not None:
            light, finding, *advice = answer
            checks.append(Check(topic, light, finding, () if light is Light.GREEN else (*advice,)))
    return tuple(checks)


def _graded(value: float, largest_good: float, largest_fair: float) -> Light:
    """What is not a number is not good."""
    if value <= largest_good:
        return Light.GREEN
    return Light.AMBER if value <= largest_fair else Light.RED


def _go_on(record: RunRecord) -> str:
    """How to get more evaluations: after a run that ended by itself, only by asking for more."""
    if record.stop_reason is not StopReason.STABLE:
        return MORE_EVALUATIONS
    tolerance = record.settings.stopping.tolerance_sd
    return f"ask for more: a run with a smaller tolerance (it was {tolerance:g}) goes on for longer"


def _convergence(record: RunRecord) -> Answer:
    if record.stop_reason is StopReason.STABLE:
        n = record.settings.stopping.n_stable
        text = f"posterior and evidence have hardly changed over the last {n} iterations"
        return Light.GREEN, text
    index = record.history[-1].reliability
    finding = f"{record.stop_reason}; the reliability index is {index:.2g}, and below 1 when stable"
    if record.stop_reason is StopReason.UNFINISHED:
        return Light.AMBER, finding, LET_IT_GO_ON
    interrupted = record.stop_reason is StopReason.INTERRUPTED
    advice = RUN_AGAIN if interrupted else MORE_EVALUATIONS
    return Light.AMBER if index < 1.0 else Light.RED, finding, advice


def _search(record: RunRecord) -> Answer:
    if record.history[-1].warm_up:
        finding = "the run has not found the bulk of the posterior yet: it is still climbing"
        advice = "give x0 near the mode, if you know where it is"
        return Light.RED, finding, MORE_EVALUATIONS, advice
    found = next(info for info in record.history if not info.warm_up)
    return Light.GREEN, f"its bulk was found within {counted(found.n_evaluations, 'evaluation')}"


def _elsewhere(record: RunRecord) -> Answer | None:
    if not isinstance(record.settings.exploration, LookElsewhere):
        return None
    n = sum(entry.rule in LOOKING for entry in record.evaluations)
    spent = f"{n} of {counted(record.n_evaluations, 'evaluation')} were spent on it"
    if record.stop_reason is StopReason.STABLE:
        return Light.GREEN, f"yes, and nothing was found that is not in the posterior; {spent}"
    finding = f"not to the end: {spent}, and another mode may have been missed"
    if record.evidence.corrected and not record.history[-1].warm_up:
        outside = -math.expm1(-record.evidence.curvature)
        finding += (
            f"; {100.0 * outside:.2g} % of the mass that the surrogate does not exclude is where "
            "it knows little"
        )
    return Light.AMBER, finding, MORE_EVALUATIONS


def _shape(record: RunRecord) -> Answer | None:
    """Amber only where numbers are wrong because of the shape, or others doubt them anyway."""
    if record.history[-1].warm_up:
        return None
    found = features(record.posterior, record.evaluations)
    if not found:
        return Light.GREEN, COMPACT
    finding, advice = "; ".join(f.finding for f in found), [f.advice for f in found]
    answers = _posterior(record), _surrogate(record)
    if any(answer is not None and answer[0] is not Light.GREEN for answer in answers):
        return Light.AMBER, f"{finding}; the surrogate has not followed all of it", *advice
    return Light.AMBER if any(f.harmful for f in found) else Light.GREEN, finding, *advice


def _posterior(record: RunRecord) -> Answer | None:
    accuracy, dimension = record.settings.accuracy, record.posterior.dimension
    divergence = accuracy.recent([info.posterior_error for info in record.history])
    if math.isnan(divergence):
        return None
    # Normals whose means differ by delta sds in each parameter have a gsKL of D delta^2 / 2.
    shift = math.sqrt(2.0 * divergence / dimension)
    finding = f"its expected error is that of means which are {shift:.2g} standard deviations off"
    if shift > LARGEST_KNOWN_SHIFT:
        finding = "the surrogate is not sure of it at all"
    if divergence <= accuracy.limit(dimension):
        return Light.GREEN, finding
    return Light.AMBER if shift <= LARGEST_FAIR_SHIFT else Light.RED, finding, _go_on(record)


def _evidence(record: RunRecord) -> Answer:
    sd, tolerance = record.log_evidence_sd, record.settings.stopping.tolerance_sd
    finding = f"its standard deviation is {sd:.2g}, where {tolerance:g} was asked for"
    return _graded(sd, tolerance, LARGE_EVIDENCE_ERROR), finding, _go_on(record)


def _surrogate(record: RunRecord) -> Answer | None:
    n = sum(info.n_held_out for info in record.history)
    z = math.sqrt(record.evidence.inflation)
    light = _graded(z, LARGEST_GOOD_Z, LARGEST_FAIR_Z)
    draws = f"{counted(n, 'posterior draw')} predicted before being evaluated"
    if light is Light.GREEN:
        if n < FEWEST_HELD_OUT:  # too little to say more
            return None
        return light, f"yes, by {draws}: the recent ones miss by what the surrogate expects"
    missed = f"the recent ones miss by {z:.1f} times what the surrogate expects"
    widened = "the error of the log evidence is widened by that"
    if light is Light.AMBER and _is_precise(record):
        return Light.GREEN, f"yes: of {draws}, {missed}, and {widened}"
    return light, f"of {draws}, {missed}; {widened}", _go_on(record)


def _is_precise(record: RunRecord) -> bool:
    """Whether the errors, of which what held-out draws miss is a part, are as small as wanted."""
    answers = _evidence(record), _posterior(record)
    return all(answer is None or answer[0] is Light.GREEN for answer in answers)


def _noise(record: RunRecord) -> Answer:
    sd = record.history[-1].noise_sd
    if sd <= LARGEST_EXACT_NOISE:
        return Light.GREEN, "yes: its values lie on a smooth surface"
    fair = sd <= LARGEST_FAIR_NOISE
    better = "more evaluations or better estimates make the result more precise"
    if any(entry.noise_sd > 0.0 for entry in record.evaluations):
        finding = f"no, as it says itself: noise of some {sd:.2g} nats was allowed for"
        return Light.GREEN if fair else Light.RED, finding, better
    finding = f"its values scatter about a smooth surface by some {sd:.2g} nats"
    rough = "look for what makes it rough (tolerances of a solver, random numbers)"
    advice = f"if your log density is no estimate, {rough}", f"if it is one, {better}"
    return Light.AMBER if fair else Light.RED, finding, *advice


def _whole_numbers(record: RunRecord) -> Answer | None:
    names = rounded_parameters(record)
    if not names:
        return None
    finding = (
        f"it seems to, {listed(names)}: its values change by steps, from one whole number to the "
        "next, and what is between them is made up by the surrogate"
    )
    if len(names) == record.problem.dimension:
        return Light.AMBER, finding, "evaluate the log density at the whole numbers themselves"
    advice = (
        f"make one run for each whole number, as of problem.fix({dict.fromkeys(names, 3)}), and "
        "compare them with sparing.compare ('Discrete parameters' in the FAQ)"
    )
    return Light.AMBER, finding, advice


def _weights(record: RunRecord) -> Answer | None:
    k = record.evidence.pareto_k
    if math.isnan(k):
        return None
    if k == -math.inf:
        return Light.GREEN, "yes: no importance weight stands out"
    finding = f"the Pareto shape of the importance weights is {k:.2f}"
    light = _graded(k, LARGEST_GOOD_K, LARGEST_PARETO_K)
    if light is Light.GREEN:
        return light, f"yes: {finding}"
    return light, f"{finding}: part of the posterior may be missing", _go_on(record)


def _failures(record: RunRecord) -> Answer:
    n, total = len(record.failed), record.n_evaluations
    if n == 0:
        return Light.GREEN, f"none of {counted(total, 'evaluation')}"
    finding = f"{n} of {total} gave no value (first: {record.failed[0].message})"
    advice = "see where it failed (result.failed) and whether the posterior has mass there"
    few = n <= LARGEST_FAIR_FAILED_FRACTION * total
    return Light.AMBER if few else Light.RED, finding, advice


def _box(record: RunRecord) -> Answer:
    posterior = record.posterior
    interval = posterior.quantile([0.025, 0.975])
    # s_i is a rising function of x_i alone, so quantiles of the one are those of the other.
    reach = np.max(np.abs(posterior.transform.standardised(interval)), axis=0)
    worst = int(np.argmax(reach))
    light = _graded(reach[worst], LARGEST_GOOD_REACH, FAR_OUTSIDE)
    if light is Light.GREEN:
        return light, "the posterior lies in it, or close to it"
    low, high = record.problem.plausible_lower[worst], record.problem.plausible_upper[worst]
    finding = (
        f"the 95 % interval of {posterior.names[worst]}, {format_interval(*interval[:, worst])}, "
        f"reaches far beyond its box {format_interval(low, high)}"
    )
    return light, finding, "move the plausible box to where the posterior is, and run again"


def _bounds(record: RunRecord) -> Answer | None:
    problem = record.problem
    if not np.any(np.isfinite(problem.lower) | np.isfinite(problem.upper)):
        return None
    near = LEANING_FRACTION * (problem.plausible_upper - problem.plausible_lower)
    low, high = record.posterior.quantile([LEANING_MASS, 1.0 - LEANING_MASS])
    at_lower, at_upper = low <= problem.lower + near, high >= problem.upper - near
    for i, name in enumerate(problem.names):
        prior_at_lower, prior_at_upper = _prior_mass_near(problem, i, near[i])
        circle = name in problem.periodic
        at_lower[i] &= prior_at_lower < LEANING_MASS and not circle
        at_upper[i] &= prior_at_upper < LEANING_MASS and not circle
    leaning = at_lower | at_upper
    if not np.any(leaning):
        return Light.GREEN, "no: little of the posterior is at a bound"
    names = [name for name, leans in zip(problem.names, leaning, strict=True) if leans]
    advice = "make sure the bound is meant: without it the answer would be another one"
    if angles := [name for name in names if _may_be_an_angle(record, name)]:
        advice += f". Is {listed(angles)} an angle? Then Problem(..., periodic={angles})"
    return Light.AMBER, f"the posterior leans on a bound of {', '.join(names)}", advice


def _prior_mass_near(problem: Problem, index: int, near: float) -> tuple[float, float]:
    """Of one parameter's prior the mass near its lower and its upper bound; 0 where not known."""
    if not isinstance(problem.prior, IndependentPrior):
        return 0.0, 0.0
    distribution = problem.prior.distributions[index]
    lower, upper = problem.lower[index] + near, problem.upper[index] - near
    return float(distribution.cdf(lower)), 1.0 - float(distribution.cdf(upper))


def _may_be_an_angle(record: RunRecord, name: str) -> bool:
    """Whether its range is a full turn, or the density about the same at both of its bounds."""
    problem, i = record.problem, record.problem.names.index(name)
    lower, upper = problem.lower[i], problem.upper[i]
    if not (np.isfinite(lower) and np.isfinite(upper)):
        return False
    if any(math.isclose(upper - lower, turn, rel_tol=1e-3) for turn in FULL_TURNS):
        return True
    inward = LEANING_FRACTION * (upper - lower)
    first, last = record.posterior.marginal_density(name, [lower + inward, upper - inward])
    return bool(0.5 * last < first < 2.0 * last)


_CHECKS: dict[Topic, Callable[[RunRecord], Answer | None]] = {
    Topic.CONVERGENCE: _convergence,
    Topic.SEARCH: _search,
    Topic.ELSEWHERE: _elsewhere,
    Topic.SHAPE: _shape,
    Topic.POSTERIOR: _posterior,
    Topic.EVIDENCE: _evidence,
    Topic.SURROGATE: _surrogate,
    Topic.NOISE: _noise,
    Topic.WHOLE_NUMBERS: _whole_numbers,
    Topic.WEIGHTS: _weights,
    Topic.FAILURES: _failures,
    Topic.BOX: _box,
    Topic.BOUNDS: _bounds,
}
