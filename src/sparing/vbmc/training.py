"""Training the surrogate in one iteration (Algorithm 1, lines 16 to 20).

psi    hyperparameters        n_gp   hyperparameter samples        n   training points
"""

from __future__ import annotations

from collections.abc import Sequence

from sparing.numerics.random_streams import RandomStreams
from sparing.problem.evaluations import Evaluation
from sparing.problem.parameter_transform import ParameterTransform
from sparing.surrogate.interface import learnt_from
from sparing.surrogate.known_support import known_support
from sparing.surrogate.training_data import training_set
from sparing.vbmc.settings import HyperparameterSchedule, Settings
from sparing.vbmc.state import Iteration, Phase, State, TrainedSurrogate


def train_surrogate(
    state: State,
    transform: ParameterTransform,
    evaluations: Sequence[Evaluation],
    settings: Settings,
    streams: RandomStreams,
) -> TrainedSurrogate:
    """Sample the hyperparameters, optimise them, or keep them, in the given coordinates."""
    kept = [entry for entry in evaluations if entry.index not in state.trimmed]
    learnt = None
    if not state.searching:  # on the way up stand-ins keep q from running off
        learnt = settings.edges.support(evaluations, transform)
    support = known_support(transform, learnt)
    if support is not None:
        kept = [entry for entry in kept if entry.usable]
    trained_on = tuple(entry.index for entry in kept)
    training = learnt_from(settings.surrogate, training_set(kept, transform, settings.depths))
    # Hyperparameters are about one coordinate system: in another they mean nothing.
    previous = None
    if state.trained is not None and transform.number == state.trained.transform.number:
        previous = state.trained.surrogate
        # The noise of gradients is a hyperparameter where there are any.
        same_kind = (previous.training.gradients is None) == (training.gradients is None)
        if same_kind and not retraining_is_due(state, training.n_points, settings.sampling):
            surrogate = settings.surrogate.condition(training, previous.parameters)
            return TrainedSurrogate(transform, surrogate, trained_on, False, support)
    n_samples = None
    if not state.sampling_stopped:
        schedule = settings.sampling
        n_samples = schedule.n_samples(training.n_rows, searching=state.searching)
    generator = streams.generator("hyperparameters", state.iteration)
    surrogate = settings.surrogate.train(training, n_samples, generator, previous)
    return TrainedSurrogate(transform, surrogate, trained_on, True, support)


def retraining_is_due(state: State, n_training: int, schedule: HyperparameterSchedule) -> bool:
    """Whether the training set has grown enough since the hyperparameters were last trained."""
    if state.phase is not Phase.SETTLED:
        return True
    last = next(past.n_training for past in reversed(state.history) if past.retrained)
    return n_training >= (1.0 + schedule.retraining_growth) * last


def sampling_brings_little(history: Sequence[Iteration], schedule: HyperparameterSchedule) -> bool:
    """Section 3.4: the spread over hyperparameter samples stayed below the threshold."""
    recent = history[-schedule.n_iterations :]
    if len(recent) < schedule.n_iterations or any(past.warm_up for past in recent):
        return False
    return all(past.hyperparameter_variance < schedule.variance_threshold for past in recent)
