"""The state after an iteration as arrays and JSON, exact to the last bit.

Evaluations, settings and the coordinates without whitening come from the run directory and the
problem. A state is a cache, so one that another
release wrote is refused: that release may have computed something else.

    trimmed                            indices of evaluations left out for good
    base.centre, base.width (D,)       coordinates without whitening, to recognise them
    solution.elbo (6,)                 ELBO, its sd, entropy, its sd, E[G], Var[G]
    solution.mean_by_sample, solution.variance_by_sample (S,)
    solution.component_means (S, K), solution.component_covariances (S, K, K)
and the tables of `posteriors`, `history` and `surrogates`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.problem.evaluation_log import Evaluation
from sparing.problem.parameter_transform import ParameterTransform
from sparing.results.files.history import read_history, write_history
from sparing.results.files.parts import Arrays, Metadata, Parts, load_errors, require
from sparing.results.files.plain import enum_from_plain
from sparing.results.files.posteriors import PosteriorReader, PosteriorWriter
from sparing.results.files.surrogates import read_surrogate, write_surrogate
from sparing.variational.elbo import Elbo, ExpectedLogJoint
from sparing.variational.mixture import GaussianMixture
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import Phase, Solution, State

FORMAT = "sparing state"
VERSION = 2


def state_to_parts(state: State, timings: Sequence[Mapping[str, float]]) -> tuple[Arrays, Metadata]:
    """The state and the timings of its iterations as named arrays and a JSON object."""
    posteriors = PosteriorWriter()
    arrays, history = write_history(state.history, timings, posteriors)
    metadata: Metadata = {
        "format": FORMAT,
        "version": VERSION,
        "release": version("sparing"),
        **history,
        "phase": state.phase.name,
        "sampling_stopped": bool(state.sampling_stopped),
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
) -> tuple[State, list[Mapping[str, float]]]:
    """The state and the timings that `state_to_parts` took apart.

    ``base`` holds the problem's coordinates without whitening, ``evaluations`` is the log at
    least up to the state, ``names`` are the problem's. LoadError when they do not go together.
    """
    with load_errors("the saved state"):
        parts = Parts(arrays, metadata)
        parts.expect_format(FORMAT, VERSION)
        require(parts.value("version", int) == VERSION, "its format is an older one")
        require(parts.value("release", str) == version("sparing"), "another release wrote it")
        centre, width = parts.floats("base.centre", None), parts.floats("base.width", None)
        same = np.array_equal(centre, base.centre) and np.array_equal(width, base.width)
        require(same, "it belongs to other coordinates")
        posteriors = PosteriorReader(parts, base, names)
        history, timings = read_history(parts, posteriors)
        mixtures, transforms = posteriors.mixtures, posteriors.transforms
        state = State(
            transform=transforms[parts.index("transform", len(transforms))],
            mixture=mixtures[parts.index("mixture", len(mixtures))],
            solution=_read_solution(parts, posteriors, evaluations, settings),
            trimmed=frozenset(parts.indices("trimmed", None, len(evaluations))),
            last_whitening=parts.value("last_whitening", int),
            history=history,
            phase=enum_from_plain(parts.metadata.get("phase"), Phase, "phase"),
            sampling_stopped=parts.value("sampling_stopped", bool),
        )
        return state, timings


def _write_solution(solution: Solution, posteriors: PosteriorWriter) -> tuple[Arrays, Metadata]:
    elbo, joint = solution.elbo, solution.elbo.expected_log_joint
    numbers = [elbo.value, elbo.sd, elbo.entropy, elbo.entropy_sd, joint.mean, joint.variance]
    trained_arrays, trained = write_surrogate(solution.trained, posteriors)
    arrays: Arrays = {
        **trained_arrays,
        "solution.elbo": np.array(numbers, dtype=np.float64),
        "solution.mean_by_sample": joint.mean_by_sample,
        "solution.variance_by_sample": joint.variance_by_sample,
        "solution.component_means": joint.component_means,
        "solution.component_covariances": joint.component_covariances,
    }
    return arrays, {
        "mixture": posteriors.mixtures.row(solution.mixture),
        "n_pruned": int(solution.n_pruned),
        "surrogate": trained,
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
    mixture = posteriors.mixtures[record.index("mixture", len(posteriors.mixtures))]
    trained = read_surrogate(record.within("surrogate"), posteriors, evaluations, settings)
    elbo = _read_elbo(parts, trained.surrogate.n_samples, mixture)
    return Solution(trained, mixture, elbo, record.value("n_pruned", int))


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
