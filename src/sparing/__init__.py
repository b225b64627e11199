"""sparing: posterior and log evidence from few evaluations of an expensive log likelihood.

problem = sparing.Problem(log_density, plausible_lower, plausible_upper)
result = sparing.infer(problem)
print(result)
"""

from importlib.metadata import version as _version

from sparing.acquisition.propose import Rule
from sparing.agreement import AgreementLimits
from sparing.calibration import simulation_based_calibration
from sparing.comparison import Comparison, compare
from sparing.diagnose import Diagnosis, diagnose
from sparing.driver import infer
from sparing.errors import (
    LoadError,
    MissingExtraError,
    ProblemError,
    SettingsError,
    SparingError,
    SparingWarning,
    TargetError,
)
from sparing.evaluation_log import Evaluation, Proposal, Status
from sparing.executors import (
    RAISE,
    SKIP,
    FailurePolicy,
    LocalProcesses,
    TooManyFailuresError,
    retry,
)
from sparing.inference import Inference
from sparing.parameter_transform import BoundedMap
from sparing.posterior import Posterior
from sparing.predictive import posterior_predictive
from sparing.problem import Problem
from sparing.result import Result
from sparing.serialisation.result_reader import load
from sparing.settings import Settings
from sparing.stopping import StopReason
from sparing.stored_run import load_run

__version__ = _version("sparing")

__all__ = [
    "RAISE",
    "SKIP",
    "AgreementLimits",
    "BoundedMap",
    "Comparison",
    "Diagnosis",
    "Evaluation",
    "FailurePolicy",
    "Inference",
    "LoadError",
    "LocalProcesses",
    "MissingExtraError",
    "Posterior",
    "Problem",
    "ProblemError",
    "Proposal",
    "Result",
    "Rule",
    "Settings",
    "SettingsError",
    "SparingError",
    "SparingWarning",
    "Status",
    "StopReason",
    "TargetError",
    "TooManyFailuresError",
    "compare",
    "diagnose",
    "infer",
    "load",
    "load_run",
    "posterior_predictive",
    "retry",
    "simulation_based_calibration",
]
