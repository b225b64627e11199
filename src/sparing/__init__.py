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

from sparing.errors import (
    LoadError,
    MissingExtraError,
    ProblemError,
    SettingsError,
    SparingError,
    SparingWarning,
    TargetError,
)
from sparing.executors import (
    RAISE,
    SKIP,
    FailurePolicy,
    LocalProcesses,
    TooManyFailuresError,
    retry,
)
from sparing.problem.evaluations import Evaluation, Proposal, Status
from sparing.problem.parameter_transform import BoundedMap
from sparing.problem.problem import Problem
from sparing.problem.synthetic_likelihood import synthetic_likelihood
from sparing.results.agreement import AgreementLimits, Diagnosis, diagnose
from sparing.results.comparison import Comparison, compare
from sparing.results.files.result_reader import load
from sparing.results.predictive import posterior_predictive
from sparing.results.result import Result
from sparing.results.several_runs import SeveralRuns
from sparing.running.infer import infer
from sparing.running.inference import Inference
from sparing.running.load_run import load_run
from sparing.running.simulation_based_calibration import simulation_based_calibration
from sparing.variational.posterior import Posterior
from sparing.vbmc.settings import Settings
from sparing.vbmc.stopping import StopReason

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
    "synthetic_likelihood",
]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
