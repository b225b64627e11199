"""sparing: posterior and log evidence from few evaluations of an expensive log likelihood.

>>> import numpy as np
>>> import sparing
>>> def log_density(x):
...     slope, offset = x
...     return -0.5 * ((slope - 1.2) ** 2 / 0.3**2 + (offset + 0.5) ** 2 / 0.2**2)
>>> problem = sparing.Problem(log_density, [0, -1], [2, 1], names=["slope", "offset"])
>>> result = sparing.infer(problem, seed=1, progress=False)
>>> print(result)
log evidence  -0.9... ± 0.0...
...
parameter    mean     sd  95 % interval
slope        1.20...
offset      -0.50...

The examples of all other docstrings go on from here.
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
from sparing.several_runs import SeveralRuns
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
    "SeveralRuns",
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
