"""The strategies that ``Settings`` is composed of, to change one with ``dataclasses.replace``.

>>> from dataclasses import replace
>>> from sparing.strategies import LowerBound, PosteriorDraw, VarianceReduction
>>> settings = replace(sparing.Settings(), evidence=LowerBound())
>>> settings = replace(settings, rules=(VarianceReduction(n_references=256), PosteriorDraw()))
"""

from sparing.acquisition.cma_es import CmaEs
from sparing.acquisition.initial_design import LatinHypercube, UniformDesign
from sparing.acquisition.rules import (
    EvenDraw,
    Frontier,
    PointRule,
    PosteriorDraw,
    ProspectiveSampling,
    TemperedSampling,
    UncertaintySampling,
    VarianceReduction,
)
from sparing.acquisition.search import ShrinkingClouds
from sparing.surrogate.collapsed_training import Collapsed
from sparing.surrogate.interface import Surrogate, SurrogateTraining
from sparing.surrogate.map_then_slice.training import MapThenSlice
from sparing.surrogate.support import LearntEdges, StandIns
from sparing.surrogate.training_data import CompressedDepths, MeasuredValues
from sparing.variational.fit import VariationalSettings
from sparing.variational.whitening import Unwhitened, Whitened
from sparing.vbmc.answer import BestBound, LastFit, SmallestError, ThoroughSample
from sparing.vbmc.evidence import LowerBound, SurrogatePosterior
from sparing.vbmc.exploration import LookAtOnce, LookElsewhere, Trusting
from sparing.vbmc.posterior_error import ExpectedError, Untested
from sparing.vbmc.settings import HyperparameterSchedule
from sparing.vbmc.stopping import Stopping
from sparing.vbmc.warm_up import Climbing, WatchingBound

__all__ = [
    "BestBound",
    "Climbing",
    "CmaEs",
    "Collapsed",
    "CompressedDepths",
    "EvenDraw",
    "ExpectedError",
    "Frontier",
    "HyperparameterSchedule",
    "LastFit",
    "LatinHypercube",
    "LearntEdges",
    "LookAtOnce",
    "LookElsewhere",
    "LowerBound",
    "MapThenSlice",
    "MeasuredValues",
    "PointRule",
    "PosteriorDraw",
    "ProspectiveSampling",
    "ShrinkingClouds",
    "SmallestError",
    "StandIns",
    "Stopping",
    "Surrogate",
    "SurrogatePosterior",
    "SurrogateTraining",
    "TemperedSampling",
    "ThoroughSample",
    "Trusting",
    "UncertaintySampling",
    "UniformDesign",
    "Untested",
    "Unwhitened",
    "VarianceReduction",
    "VariationalSettings",
    "WatchingBound",
    "Whitened",
]
