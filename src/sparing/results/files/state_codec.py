"""The state after an iteration as arrays and JSON, exact to the last bit.

The surrogate is not stored: its hyperparameters and the evaluations it was trained on are, and it
is conditioned again in the same way as at first. Evaluations, settings and the coordinates without
whitening come from the run directory and the problem. A state is a cache, so one that another
release wrote is refused: that release may have computed something else.

    trimmed                            indices of evaluations left out for good
    base.centre, base.width (D,)       coordinates without whitening, to recognise them
    solution.hyperparameters (S, 3D+3)
    solution.trained_on                indices of evaluations
    solution.values (n,)               what they became as training values, to recognise them
    solution.elbo (6,)                 ELBO, its sd, entropy, its sd, E[G], Var[G]
    solution.mean_by_sample, solution.variance_by_sample (S,)
    solution.component_means (S, K), solution.component_covariances (S, K, K)
and the tables of `posteriors` and `history`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.numerics.blas_threads import one_blas_thread
from sparing.problem.evaluations import Evaluation
from sparing.problem.parameter_transform import ParameterTransform
from sparing.results.files.history import read_history, write_history
from sparing.results.files.parts import Arrays, Metadata, Parts, load_errors, require
from sparing.results.files.posteriors import PosteriorReader, PosteriorWriter
from sparing.surrogate.gaussian_process import condition
from sparing.surrogate.training_data import training_set
from sparing.variational.elbo import Elbo, ExpectedLogJoint
from sparing.variational.mixture import GaussianMixture
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import Solution, State

FORMAT = "sparing state"
VERSION = 1
FLAGS = ("warm_up", "warm_up_just_ended", "sampling_stopped")


def state_to_parts(state: State) -> tuple[Arrays, Metadata]:
    """The state as named arrays and a JSON object."""
    posteriors = PosteriorWriter()
    arrays, history = write_history(state.history, posteriors)
    metadata: Metadata = {
        "format": FORMAT,
        "version": VERSION,
        "release": version("sparing"),
        **history,
        **{name: bool(getattr(state, name)) for name in FLAGS},
        "last_whitening": int(state.last_whitening),
        "mixture": posteriors.mixtures.row(state.mixture),
        "transform": posteriors.transforms.row(state.transform),
        "solution": None,
    }
    if state.solution is not None:
        solution_arrays, metadata["solution"] = _write_solution(state.solution, posteriors)
        arrays |= solution_arrays
    arrays |= {
        "trimmed": np.array(sorted(state.trimmed), dtype=np.int64),
        "base.centre": state.transform.centre,
        "base.width": state.transform.width,
        **posteriors.arrays(state.transform.dimension),
    }
    return arrays, metadata


def state_from_parts(
    arrays: Mapping[str, NDArray[Any]],
    metadata: Mapping[str, Any],
    *,
    base: ParameterTransform,
    evaluations: Sequence[Evaluation],
    names: tuple[str, ...],
    settings: Settings,
) -> State:
    """The state that `state_to_parts` took apart.

    ``base`` holds the problem's coordinates without whitening, ``evaluations`` is the log at
    least up to the state, ``names`` are the problem's. LoadError when they do not go together.
    """
    with load_errors("the saved state"):
        parts = Parts(arrays, metadata)
        parts.expect_format(FORMAT, VERSION)
        require(parts.value("release", str) == version("sparing"), "another release wrote it")
        centre, width = parts.floats("base.centre", None), parts.floats("base.width", None)
        same = np.array_equal(centre, base.centre) and np.array_equal(width, base.width)
        require(same, "it belongs to other coordinates")
        posteriors = PosteriorReader(parts, base, names)
        history = read_history(parts, posteriors)
        mixtures, transforms = posteriors.mixtures, posteriors.transforms
        return State(
            transform=transforms[parts.index("transform", len(transforms))],
            mixture=mixtures[parts.index("mixture", len(mixtures))],
            solution=_read_solution(parts, posteriors, evaluations, settings),
            trimmed=frozenset(parts.indices("trimmed", None, len(evaluations))),
            last_whitening=parts.value("last_whitening", int),
            history=history,
            **{name: parts.value(name, bool) for name in FLAGS},
        )


def _write_solution(solution: Solution, posteriors: PosteriorWriter) -> tuple[Arrays, Metadata]:
    if not solution.trained_on:
        raise ValueError("the solution does not say what its surrogate was trained on")
    elbo, joint = solution.elbo, solution.elbo.expected_log_joint
    numbers = [elbo.value, elbo.sd, elbo.entropy, elbo.entropy_sd, joint.mean, joint.variance]
    arrays: Arrays = {
        "solution.hyperparameters": solution.gp.hyperparameters,
        "solution.trained_on": np.array(solution.trained_on, dtype=np.int64),
        "solution.values": solution.gp.training.values,
        "solution.elbo": np.array(numbers, dtype=np.float64),
        "solution.mean_by_sample": joint.mean_by_sample,
        "solution.variance_by_sample": joint.variance_by_sample,
        "solution.component_means": joint.component_means,
        "solution.component_covariances": joint.component_covariances,
    }
    return arrays, {
        "mixture": posteriors.mixtures.row(solution.mixture),
        "transform": posteriors.transforms.row(solution.transform),
        "n_pruned": int(solution.n_pruned),
    }


def _read_solution(
    parts: Parts,
    posteriors: PosteriorReader,
    evaluations: Sequence[Evaluation],
    settings: Settings,
) -> Solution | None:
    if parts.metadata.get("solution") is None:
        return None
    record = parts.within("solution")
    transform = posteriors.transforms[record.index("transform", len(posteriors.transforms))]
    mixture = posteriors.mixtures[record.index("mixture", len(posteriors.mixtures))]
    trained_on = tuple(parts.indices("solution.trained_on", None, len(evaluations)))
    kept = [evaluations[index] for index in trained_on]
    training = training_set(kept, transform, settings.deep_values)
    same = np.array_equal(training.values, parts.floats("solution.values", None))
    require(same, "it was trained on other evaluations than those in the log")
    hyperparameters = parts.floats("solution.hyperparameters", None, None)
    with one_blas_thread():  # as in the run: more threads could round differently
        gp = condition(training, hyperparameters)
    elbo = _read_elbo(parts, len(hyperparameters), mixture)
    return Solution(transform, gp, mixture, elbo, record.value("n_pruned", int), trained_on)


def _read_elbo(parts: Parts, n_samples: int, mixture: GaussianMixture) -> Elbo:
    K = mixture.n_components
    value, sd, entropy, entropy_sd, mean, variance = parts.floats("solution.elbo", 6).tolist()
    joint = ExpectedLogJoint(
        mean,
        variance,
        parts.floats("solution.mean_by_sample", n_samples),
        parts.floats("solution.variance_by_sample", n_samples),
        parts.floats("solution.component_means", n_samples, K),
        parts.floats("solution.component_covariances", n_samples, K, K),
    )
    return Elbo(value, sd, joint, entropy, entropy_sd)
