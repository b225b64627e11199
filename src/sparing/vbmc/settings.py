"""Every choice of the algorithm, in one frozen object.

Each part stands beside the code that reads it; here they are put together. ``Settings()`` is what
we recommend, ``Settings.paper()`` is the 2018 algorithm constant by constant. Where the two
differ, ``docs/decisions/`` holds the measurement that says why.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sparing.acquisition.initial_design import InitialDesignSettings
from sparing.acquisition.propose import AcquisitionSettings, Rule
from sparing.problem.parameter_transform import BoundedMap
from sparing.surrogate.hyperparameters import SurrogateSettings
from sparing.surrogate.training_data import DeepValues
from sparing.variational.settings import VariationalSettings
from sparing.variational.whitening import WhiteningSettings
from sparing.vbmc.evidence import EvidenceSettings
from sparing.vbmc.held_out import CalibrationSettings
from sparing.vbmc.posterior_error import PosteriorErrorSettings
from sparing.vbmc.stopping import StoppingSettings, WarmUpSettings


@dataclass(frozen=True)
class HyperparameterSchedule:
    """How many hyperparameter samples, and when sampling gives way to MAP (Section 3.4)."""

    numerator: float = 80.0  # n_gp = round(80 / sqrt(n)), Section 3.4
    max_samples_in_warm_up: int = 8  # Section 3.5
    # The paper sets no other limit. Samples here are independent (decisions/0009), and six of them
    # average as much as many more of a chain.
    max_samples: int | None = 6
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
        return cls(
            max_samples=None,
            variance_threshold=1e-4,
            retraining_growth=0.0,
        )

    def n_samples(self, n_training: int, *, warm_up: bool) -> int:
        """n_gp for the current size of the training set."""
        n = max(1, round(self.numerator / n_training**0.5))
        limits = [self.max_samples_in_warm_up] if warm_up else []
        if self.max_samples is not None:
            limits.append(self.max_samples)
        return min([n, *limits])


@dataclass(frozen=True)
class FinalFit:
    """A last variational fit with more components, kept when it does not hurt.

    Fifty in the strongest peer; since the posterior is corrected by importance weights, twenty give
    the same errors in less time (docs/decisions/0010).
    """

    n_components: int = 20


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
    initial_design: InitialDesignSettings = field(default_factory=InitialDesignSettings)
    surrogate: SurrogateSettings = field(default_factory=SurrogateSettings)
    hyperparameters: HyperparameterSchedule = field(default_factory=HyperparameterSchedule)
    deep_values: DeepValues | None = field(default_factory=DeepValues)
    variational: VariationalSettings = field(default_factory=VariationalSettings)
    acquisition: AcquisitionSettings = field(default_factory=AcquisitionSettings)
    warm_up: WarmUpSettings = field(default_factory=WarmUpSettings)
    whitening: WhiteningSettings | None = field(default_factory=WhiteningSettings)
    stopping: StoppingSettings = field(default_factory=StoppingSettings)
    evidence: EvidenceSettings = field(default_factory=EvidenceSettings)
    calibration: CalibrationSettings = field(default_factory=CalibrationSettings)
    posterior_error: PosteriorErrorSettings | None = field(default_factory=PosteriorErrorSettings)
    final_fit: FinalFit | None = field(default_factory=FinalFit)

    @classmethod
    def paper(cls, rule: Rule = Rule.PROSPECTIVE) -> Settings:
        """The algorithm of the 2018 paper to the letter (``rule``: VBMC-P, or VBMC-U).

        >>> settings = sparing.Settings.paper(sparing.Rule.UNCERTAINTY)
        >>> settings.stopping.n_stable, settings.whitening
        (8, None)
        """
        return cls(
            bounded_map=BoundedMap.LOGIT,  # S2.3
            initial_design=InitialDesignSettings.paper(),
            surrogate=SurrogateSettings.paper(),
            hyperparameters=HyperparameterSchedule.paper(),
            deep_values=None,
            variational=VariationalSettings.paper(),
            acquisition=AcquisitionSettings.paper(rule),
            warm_up=WarmUpSettings.paper(),
            whitening=None,
            stopping=StoppingSettings.paper(),
            evidence=EvidenceSettings.paper(),
            posterior_error=None,
            final_fit=None,
        )

    def budget(self, dimension: int) -> int:
        """The default number of evaluations, 50 (D + 2) (Section 4).

        >>> sparing.Settings().budget(2)
        200
        """
        return self.evaluations_per_dimension * (dimension + 2)
