"""Hand-made moments of a run: a normal target in two dimensions and a surrogate that knows it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from sparing.acquisition.initial_design import INITIAL_DESIGN
from sparing.numerics.random_streams import RandomStreams
from sparing.problem.evaluations import Evaluation, Outcome, Status
from sparing.problem.parameter_transform import ParameterTransform
from sparing.problem.problem import Problem
from sparing.surrogate.gaussian_process import condition
from sparing.surrogate.training_data import MeasuredValues, training_set
from sparing.variational.elbo import evaluate_elbo
from sparing.variational.mixture import GaussianMixture
from sparing.variational.posterior import Posterior
from sparing.vbmc.evidence import Evidence, SurrogatePosterior
from sparing.vbmc.state import Iteration, Phase, Solution, State, TrainedSurrogate
from sparing.vbmc.stopping import Reliability

NAMES = ("slope", "offset")
STREAMS = RandomStreams(1)
LOG_EVIDENCE = math.log(2.0 * math.pi)


def log_joint(x):
    """A standard normal density, not normalised: its evidence is 2 pi."""
    return -0.5 * float(x @ x)


PROBLEM = Problem(log_joint, [-2.0, -2.0], [2.0, 2.0], names=NAMES)
TRANSFORM = ParameterTransform.from_problem(PROBLEM)  # u = x / 4
LOG_JACOBIAN = 2.0 * math.log(4.0)
# The posterior, and what a run might take it for.
EXACT = GaussianMixture([1.0], [[0.0, 0.0]], [0.25], [1.0, 1.0])
ROUGH = GaussianMixture([0.5, 0.5], [[-0.05, 0.0], [0.1, 0.02]], [0.2, 0.25], [1.0, 1.1])
GOOD = Reliability(0.5, 0.5, 0.5)


def evaluation(
    index, x=(0.0, 0.0), value=None, *, identifier=None, rule="", status=Status.OK, noise_sd=0.0
):
    x = np.asarray(x, dtype=float)
    value = log_joint(x) if value is None else value
    outcome = Outcome(value, status, 0.1, "" if status is Status.OK else "boom", noise_sd=noise_sd)
    return Evaluation(index, identifier, x, outcome, rule)


def design(n=10, seed=1):
    """Evaluations of points spread over the plausible box."""
    points = np.random.default_rng(seed).uniform(-2.0, 2.0, size=(n, 2))
    return [evaluation(i, x, identifier=i, rule=INITIAL_DESIGN) for i, x in enumerate(points)]


def surrogate(evaluations=None, *, n_samples=2, transform=TRANSFORM):
    """A process whose mean function is the target; it is sure of the values near the points."""
    entries = design() if evaluations is None else evaluations
    training = training_set(entries, transform, MeasuredValues())
    lengths, widths = [math.log(0.5)] * 2, [math.log(0.25)] * 2
    psi = np.array([*lengths, 0.0, math.log(1e-3), LOG_JACOBIAN, 0.0, 0.0, *widths])
    samples = psi + 0.05 * np.arange(n_samples)[:, None] * (np.arange(9) < 3)
    return condition(training, samples)


def trained(evaluations=None, *, transform=TRANSFORM, retrained=True, n_samples=2):
    entries = design() if evaluations is None else evaluations
    process = surrogate(entries, n_samples=n_samples, transform=transform)
    return TrainedSurrogate(transform, process, tuple(e.index for e in entries), retrained)


def steep(n=10):
    """A trained surrogate on the way up: even its best points differ by hundreds of nats."""
    return trained([evaluation(e.index, e.x, -100.0 * e.index) for e in design(n)])


def evidence(log_evidence=LOG_EVIDENCE, sd=0.1, pareto_k=0.1):
    return Evidence(log_evidence, sd, True, pareto_k, 1000.0, 0.01, 1.5)


def row(iteration=1, **changes):
    """One iteration of a run after its warm-up."""
    facts = {
        "iteration": iteration,
        "n_evaluations": 10 + 5 * (iteration - 1),
        "n_training": 10 + 5 * (iteration - 1),
        "elbo": 1.8,
        "elbo_sd": 0.05,
        "elcbo": 1.65,
        "log_evidence": 1.8,
        "log_evidence_sd": 0.1,
        "n_components": 2,
        "n_pruned": 0,
        "n_hyperparameter_samples": 2,
        "retrained": True,
        "hyperparameter_variance": 0.01,
        "n_held_out": 2,
        "held_out_squares": 2.5,
        "posterior_error": 0.001,
        "noise_sd": 0.003,
        "jitter": 0.0,
        "features": GOOD,
        "warm_up": False,
        "stable": False,
        "whitened": False,
        "evidence": evidence(),
        "posterior": Posterior(ROUGH, TRANSFORM, NAMES),
    }
    return Iteration(**(facts | changes))


def state(history=None, **changes):
    """A settled run after the given iterations; three by default."""
    facts = {
        "transform": TRANSFORM,
        "mixture": ROUGH,
        "trained": trained(),
        "phase": Phase.SETTLED,
        "sampling_stopped": False,
        "trimmed": frozenset(),
        "last_whitening": 0,
        "history": tuple(row(t) for t in (1, 2, 3)) if history is None else tuple(history),
    }
    return State(**(facts | changes))


def solution(mixture=ROUGH, n_pruned=0, evaluations=None, **options):
    """The mixture as if it had been fitted to a surrogate of the evaluations."""
    found = trained(evaluations, **options)
    elbo = evaluate_elbo(mixture, found.surrogate, 500, np.random.default_rng(3))
    return Solution(found, mixture, elbo, n_pruned)


@dataclass(frozen=True)
class RecordedEvidence(SurrogatePosterior):
    """Notes from where it is asked to sample."""

    asked: list = field(default_factory=list)

    def estimate(self, *given, proposals=(), **named):
        self.asked.append(list(proposals))
        return super().estimate(*given, proposals=proposals, **named)
