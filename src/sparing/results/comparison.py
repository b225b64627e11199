"""Which of several models the data favour: Bayes factors and posterior model probabilities.

    l_i, s_i    log evidence of model i and its standard deviation, independent between runs
    pi_i        prior probability of model i
    log B_ij    l_i - l_j, the log Bayes factor; its variance is s_i^2 + s_j^2
    p_i         pi_i exp(l_i) / sum_j pi_j exp(l_j), the posterior probability

An error of the log evidence is turned into an interval of p_i through the log odds of model i
against all others, o_i = log p_i - log(1 - p_i): its derivative by l_i is 1 and by the l_j of
another model is -p_j / (1 - p_i), so that to first order

    var(o_i) = s_i^2 + sum_{j != i} (p_j / (1 - p_i))^2 s_j^2

which is exact for two models. Evidences are comparable when every run saw the same data and every
density is normalised: each prior must integrate to one.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from scipy.special import expit, log_softmax

from sparing.errors import SettingsError
from sparing.numerics.arrays import Array
from sparing.results.result import Result
from sparing.summary.numbers import names_by_fixed
from sparing.summary.render import html_table

INTERVAL_SDS = 1.959963984540054  # half the width of a central 95 % interval of a normal
HEADER = ("model", "log evidence", "probability", "95 % interval")
LARGEST_PRECISION = 15  # decimals of a probability that a float tells from one
# A log Bayes factor closer to zero than this many of its sds does not tell the models apart.
TELLING_SDS = 2.0


class Strength(enum.StrEnum):
    """How strong a Bayes factor is (Kass and Raftery, "Bayes factors", 1995, Section 3.2)."""

    UNDECIDED = "within its own error"
    BARE = "not worth more than a bare mention"
    POSITIVE = "positive"
    STRONG = "strong"
    VERY_STRONG = "very strong"


# Upper limits of 2 log B for all but the last.
_LIMITS = ((2.0, Strength.BARE), (6.0, Strength.POSITIVE), (10.0, Strength.STRONG))


@dataclass(frozen=True)
class BayesFactor:
    """How much the data favour one model over another, as a log Bayes factor with its sd."""

    model: str
    against: str
    log_factor: float
    sd: float

    @property
    def factor(self) -> float:
        """The Bayes factor itself; infinite when too large for a float."""
        return math.exp(self.log_factor) if self.log_factor < 709.0 else math.inf

    @property
    def strength(self) -> Strength:
        """Its size in words, whichever of the two models it favours."""
        size = abs(self.log_factor)
        if size <= TELLING_SDS * self.sd:
            return Strength.UNDECIDED
        return next((word for limit, word in _LIMITS if 2.0 * size <= limit), Strength.VERY_STRONG)

    def __str__(self) -> str:
        return (
            f"log Bayes factor of {self.model} against {self.against}: "
            f"{self.log_factor:z.3f} ± {self.sd:.3f} ({self.strength})"
        )


@dataclass(frozen=True)
class ModelEvidence:
    """One of the models compared; ``low`` and ``high`` bound 95 % of ``probability``'s error."""

    name: str
    log_evidence: float
    sd: float
    prior: float
    probability: float
    low: float
    high: float
    converged: bool


@dataclass(frozen=True)
class Comparison:
    """Several models with their posterior probabilities, the most probable first.

    >>> likely = sparing.Problem(lambda x: log_density(x) + np.log(9), [0, -1], [2, 1])
    >>> other = sparing.infer(likely, seed=1, progress=False)
    >>> comparison = sparing.compare({"first": result, "second": other})
    >>> [model.name for model in comparison.models], comparison.best.name
    (['second', 'first'], 'second')
    >>> [str(factor.strength) for factor in comparison.factors], comparison.cautions
    (['positive'], ())
    """

    models: tuple[ModelEvidence, ...]

    @property
    def best(self) -> ModelEvidence:
        """The most probable model."""
        return self.models[0]

    def bayes_factor(self, model: str, against: str) -> BayesFactor:
        """How much the data favour one model over another, both by name.

        >>> likely = sparing.Problem(lambda x: log_density(x) + np.log(9), [0, -1], [2, 1])
        >>> other = sparing.infer(likely, seed=1, progress=False)
        >>> comparison = sparing.compare({"first": result, "second": other})
        >>> round(comparison.bayes_factor("first", against="second").log_factor, 1)  # log(1 / 9)
        -2.2
        """
        first, second = self._model(model), self._model(against)
        difference = first.log_evidence - second.log_evidence
        return BayesFactor(model, against, difference, math.hypot(first.sd, second.sd))

    def _model(self, name: str) -> ModelEvidence:
        by_name = {model.name: model for model in self.models}
        if name not in by_name:
            raise KeyError(f"no model is called {name!r}; there are {', '.join(by_name)}")
        return by_name[name]

    @property
    def factors(self) -> tuple[BayesFactor, ...]:
        """The most probable model against each of the others."""
        best, *others = self.models
        return tuple(self.bayes_factor(best.name, other.name) for other in others)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What to know before believing it."""
        texts = [
            f"the run of {model.name} did not converge: its evidence may move by more than its "
            "error says. Allow it more evaluations"
            for model in self.models
            if not model.converged
        ]
        texts += [
            f"{factor.model} and {factor.against} are not told apart: the log Bayes factor "
            f"{factor.log_factor:z.3f} ± {factor.sd:.3f} is within {TELLING_SDS:g} of its sds"
            for factor in self.factors
            if factor.strength is Strength.UNDECIDED
        ]
        return tuple(texts)

    def __str__(self) -> str:
        name = max([5, *(len(model.name) for model in self.models)])
        lines = [f"{a:<{name}}  {b:>20}  {c:>11}  {d}" for a, b, c, d in (HEADER, *self._rows())]
        lines += [str(factor) for factor in self.factors]
        lines += [f"caution: {text}" for text in self.cautions]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The same as notebooks show it."""
        rows = [tuple(map(escape, row)) for row in self._rows()]
        texts = [str(factor) for factor in self.factors]
        texts += [f"caution: {text}" for text in self.cautions]
        paragraphs = "".join(f"<p>{escape(text)}</p>" for text in texts)
        return f"<div>{html_table(rows, HEADER, numbers=True)}{paragraphs}</div>"

    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [
            (
                model.name,
                f"{model.log_evidence:z.3f} ± {model.sd:.3f}",
                probability_text(model.probability),
                f"[{probability_text(model.low)}, {probability_text(model.high)}]",
            )
            for model in self.models
        ]


def probability_text(probability: float) -> str:
    """Three digits of it, or of what is missing to one."""
    if not 0.5 < probability < 1.0:
        return f"{probability:.3g}"
    decimals = 2 - math.floor(math.log10(1.0 - probability))
    return f"{probability:.{min(decimals, LARGEST_PRECISION)}f}"


def compare(
    results: Mapping[str, Result] | Sequence[Result],
    prior: Mapping[str, float] | Sequence[float] | None = None,
) -> Comparison:
    """Compare models by the evidence of one run of each.

    ``results`` by name of the model, or in order, and then they are called "model 1", ..., or by
    what is fixed in them where something is: "offset = 0" and "all free". ``prior`` holds prior
    weights by name or in order, of any positive size; none: all models are equal.

    >>> likely = sparing.Problem(lambda x: log_density(x) + np.log(3), [0, -1], [2, 1])
    >>> comparison = sparing.compare([result, sparing.infer(likely, seed=1, progress=False)])
    >>> comparison.best.name, round(comparison.best.probability, 2)
    ('model 2', 0.75)
    >>> nested = sparing.infer(problem.fix(offset=0.0), seed=1, progress=False)
    >>> [model.name for model in sparing.compare([result, nested]).models]
    ['all free', 'offset = 0']
    """
    named = _checked(results)
    weights = _prior_weights(tuple(named), prior)
    log_evidence = np.array([result.log_evidence for result in named.values()])
    sd = np.array([result.log_evidence_sd for result in named.values()])
    log_prior = np.log(weights) - np.log(weights.sum())
    log_probability = log_softmax(log_prior + log_evidence)
    log_odds, error = _log_odds(log_probability, sd)
    columns = (
        log_evidence,
        sd,
        np.exp(log_prior),
        np.exp(log_probability),
        expit(log_odds - INTERVAL_SDS * error),
        expit(log_odds + INTERVAL_SDS * error),
    )
    rows = zip(named.items(), *(column.tolist() for column in columns), strict=True)
    models = [
        ModelEvidence(name, *numbers, converged=bool(result.converged))
        for (name, result), *numbers in rows
    ]
    order = np.argsort(-log_probability, kind="stable")
    return Comparison(tuple(models[i] for i in order))


def _log_odds(log_probability: Array, sd: Array) -> tuple[Array, Array]:
    """o_i and its standard deviation for every model."""
    n = len(log_probability)
    log_odds, error = np.empty(n), np.empty(n)
    for i in range(n):
        others = np.arange(n) != i
        # log(1 - p_i), which would lose its digits.
        log_rest = np.logaddexp.reduce(log_probability[others])
        shares = np.exp(log_probability[others] - log_rest)
        log_odds[i] = log_probability[i] - log_rest
        error[i] = np.hypot(sd[i], np.linalg.norm(shares * sd[others]))
    return log_odds, error


def _checked(results: Mapping[str, Result] | Sequence[Result]) -> Mapping[str, Result]:
    """The results by name, of two or more models with an evidence; every fault at once."""
    if not isinstance(results, Mapping):
        results = _named(results)
    faults = [
        f"{name} must be a sparing.Result, got {type(result).__name__}"
        for name, result in results.items()
        if not isinstance(result, Result)
    ]
    if len(results) < 2:
        faults.append(f"a comparison needs the results of two or more models, got {len(results)}")
    faults = faults or [
        f"{name} has no usable evidence ({result.log_evidence:g} ± {result.log_evidence_sd:g})"
        for name, result in results.items()
        if not (math.isfinite(result.log_evidence) and 0.0 <= result.log_evidence_sd < math.inf)
    ]
    if faults:
        raise SettingsError(faults)
    return results


def _named(results: Sequence[Result]) -> dict[str, Result]:
    """Results by number, or by what is fixed in them where that tells them apart."""
    fixed = [result.problem.fixed if isinstance(result, Result) else {} for result in results]
    names = names_by_fixed(fixed) or [f"model {i + 1}" for i in range(len(results))]
    return dict(zip(names, results, strict=True))


def _prior_weights(
    names: Sequence[str], prior: Mapping[str, float] | Sequence[float] | None
) -> Array:
    if prior is None:
        return np.ones(len(names))
    if isinstance(prior, Mapping):
        if set(prior) != set(names):
            fault = f"prior must name every model once: {', '.join(names)}; got {', '.join(prior)}"
            raise SettingsError([fault])
        prior = [prior[name] for name in names]
    weights = np.asarray(prior, dtype=np.float64)
    if weights.shape != (len(names),) or not np.all(np.isfinite(weights) & (weights > 0.0)):
        fault = f"prior must hold one positive number for each of the {len(names)} models"
        raise SettingsError([f"{fault}: {prior!r}"])
    return weights
