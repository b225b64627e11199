"""Every choice of the algorithm, in one frozen object composed of strategies.

A strategy is a frozen dataclass with its own settings and the method that reads them; each stands
beside the code it belongs to. ``Settings()`` is what we recommend, ``Settings.paper()`` is the 2018
algorithm constant by constant:

                     Settings()                             Settings.paper()
    bounded_map      PROBIT                                 LOGIT
    initial_design   LatinHypercube                         UniformDesign
    depths           CompressedDepths                       MeasuredValues
    edges            LearntEdges                            StandIns
    surrogate        Collapsed                              MapThenSlice
    variational      soft penalties                         the ELBO as it is
    warm_up          Climbing                               WatchingBound
    rules            VarianceReduction, draws, Frontier     ProspectiveSampling, by CMA-ES
    coordinates      Whitened                               Unwhitened
    evidence         SurrogatePosterior                     LowerBound
    accuracy         ExpectedError                          Untested
    exploration      LookElsewhere                          Trusting
    answer           SmallestError                          BestBound
    final_fit        ThoroughSample                         LastFit

Where the two differ, ``docs/decisions/`` holds the measurement that says why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sparing.acquisition.cma_es import CmaEs
from sparing.acquisition.initial_design import LatinHypercube, UniformDesign
from sparing.acquisition.rules import (
    ALL_SAMPLES,
    EvenDraw,
    Frontier,
    PosteriorDraw,
    ProspectiveSampling,
    Rule,
    UncertaintySampling,
    VarianceReduction,
)
from sparing.errors import SettingsError
from sparing.problem.parameter_transform import BoundedMap
from sparing.surrogate.collapsed_training import Collapsed
from sparing.surrogate.map_then_slice.training import MapThenSlice
from sparing.surrogate.support import LearntEdges, StandIns
from sparing.surrogate.training_data import CompressedDepths, MeasuredValues
from sparing.variational.fit import VariationalSettings
from sparing.variational.whitening import Unwhitened, Whitened
from sparing.vbmc.answer import BestBound, LastFit, SmallestError, ThoroughSample
from sparing.vbmc.evidence import LowerBound, SurrogatePosterior
from sparing.vbmc.exploration import LookAtOnce, LookElsewhere, Trusting
from sparing.vbmc.posterior_error import ExpectedError, Untested
from sparing.vbmc.stopping import Stopping
from sparing.vbmc.warm_up import Climbing, WatchingBound


@dataclass(frozen=True)
class HyperparameterSchedule:
    """How many hyperparameter samples, and when sampling gives way to MAP (Section 3.4)."""

    numerator: float = 80.0  # n_gp = round(80 / sqrt(n)), Section 3.4
    max_samples_in_warm_up: int = 8  # Section 3.5
    # The paper sets no other limit. Samples here are independent (decisions/0009), and six of them
    # average as much as many more of a chain.
    max_samples: float = 6
    # Sampling stops when the variance of the expected log joint over samples has been below this
    # for this many iterations (Section 3.4: "below a threshold for several iterations"; it gives no
    # number). Never by default: samples are cheap, and with one of them the error of the evidence
    # came out too small on student-6 (within two sds in 5 of 7 runs, in 7 of 7 with samples).
    variance_threshold: float = 0.0
    n_iterations: int = 4
    # Hyperparameters are trained again when the training set has grown by this fraction. Every
    # iteration in the paper; with hundreds of points five more change them by nothing, and
    # training is what takes the time (docs/decisions/0008).
    retraining_growth: float = 0.04

    @classmethod
    def paper(cls) -> HyperparameterSchedule:
        """Section 3.4: trained in every iteration."""
        return cls(max_samples=math.inf, variance_threshold=1e-4, retraining_growth=0.0)

    def n_samples(self, n_training: int, *, searching: bool) -> int:
        """n_gp for the current size of the training set."""
        n = max(1, round(self.numerator / n_training**0.5))
        largest = self.max_samples_in_warm_up if searching else math.inf
        return int(min(n, largest, self.max_samples))


# The strategies, and what each of them must be able to do.
STRATEGIES = {
    "bounded_map": "log_tail",
    "initial_design": "draw",
    "depths": "applied",
    "edges": "support",
    "surrogate": "train",
    "sampling": "n_samples",
    "warm_up": "must_climb",
    "coordinates": "candidates",
    "evidence": "estimate",
    "accuracy": "is_small",
    "exploration": "look",
    "answer": "choose",
    "final_fit": "answer",
}


@dataclass(frozen=True)
class Settings:
    """The algorithm's settings; the defaults are the recommended ones.

    ``dataclasses.replace`` changes one of them:

    >>> from dataclasses import replace
    >>> settings = sparing.Settings()
    >>> stopping = replace(settings.stopping, n_stable=8)
    >>> careful = replace(settings, stopping=stopping, bounded_map=sparing.BoundedMap.LOGIT)
    >>> result = sparing.infer(problem, settings=careful, max_evaluations=15, progress=False)
    >>> result.settings.stopping.n_stable
    8
    """

    bounded_map: BoundedMap = BoundedMap.PROBIT
    evaluations_per_dimension: int = 50  # default budget 50 (D + 2), Section 4
    n_active: int = 5  # points per iteration, Section 3.3
    initial_design: LatinHypercube | UniformDesign = LatinHypercube()
    depths: CompressedDepths | MeasuredValues = CompressedDepths()
    edges: LearntEdges | StandIns = LearntEdges()
    surrogate: Collapsed | MapThenSlice = Collapsed()
    sampling: HyperparameterSchedule = HyperparameterSchedule()
    variational: VariationalSettings = VariationalSettings()
    warm_up: Climbing | WatchingBound = Climbing()
    rules: tuple[Rule, ...] = (  # they take turns, after the warm-up
        VarianceReduction(),
        PosteriorDraw(),
        Frontier(),
        VarianceReduction(),
        EvenDraw(),
        Frontier(),
    )
    coordinates: Whitened | Unwhitened = Whitened()
    evidence: SurrogatePosterior | LowerBound = SurrogatePosterior()
    accuracy: ExpectedError | Untested = ExpectedError()
    stopping: Stopping = Stopping()
    exploration: LookElsewhere | LookAtOnce | Trusting = LookElsewhere()
    answer: SmallestError | BestBound = SmallestError()
    final_fit: ThoroughSample | LastFit = ThoroughSample()

    def __post_init__(self) -> None:
        faults = [
            f"{name} must be a strategy with a method {method}(), such as "
            f"{getattr(Settings, name)!r}; got {value!r}"
            for name, method in STRATEGIES.items()
            if not hasattr(value := getattr(self, name), method)
        ]
        if not self.rules or not all(hasattr(rule, "choose") for rule in self.rules):
            text = f"rules must be one or more, each with a method choose(), got {self.rules!r}"
            faults.append(text)
        if faults:
            raise SettingsError(faults)

    @classmethod
    def paper(
        cls, rule: type[ProspectiveSampling | UncertaintySampling] = ProspectiveSampling
    ) -> Settings:
        """The algorithm of the 2018 paper to the letter (``rule``: VBMC-P, or VBMC-U).

        >>> from sparing.strategies import UncertaintySampling
        >>> settings = sparing.Settings.paper(UncertaintySampling)
        >>> settings.stopping.n_stable, settings.coordinates
        (8, Unwhitened())
        """
        rules = (rule(search=CmaEs(), n_samples=ALL_SAMPLES),)  # Section 3.3, Eq. 10
        return cls(
            bounded_map=BoundedMap.LOGIT,  # S2.3
            initial_design=UniformDesign(),
            depths=MeasuredValues(),
            edges=StandIns(),
            surrogate=MapThenSlice(),
            sampling=HyperparameterSchedule.paper(),
            variational=VariationalSettings.paper(),
            warm_up=WatchingBound(rules),
            rules=rules,
            coordinates=Unwhitened(),
            evidence=LowerBound(),
            accuracy=Untested(),
            stopping=Stopping.paper(),
            exploration=Trusting(),
            answer=BestBound(),
            final_fit=LastFit(),
        )

    def budget(self, dimension: int) -> int:
        """The default number of evaluations, 50 (D + 2) (Section 4).

        >>> sparing.Settings().budget(2)
        200
        """
        return self.evaluations_per_dimension * (dimension + 2)
