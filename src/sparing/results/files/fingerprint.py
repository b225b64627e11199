"""What makes two runs the same run, as plain JSON values that a run directory can compare.

Left out is what may change between the parts of a run without changing what is computed next: the
function (it cannot be compared) and the default budget.
"""

from __future__ import annotations

from typing import Any

from sparing.numerics.arrays import Array
from sparing.numerics.json_numbers import encode_number
from sparing.problem.parameter_transform import ParameterTransform
from sparing.problem.parameters import VECTORS
from sparing.problem.problem import Problem
from sparing.results.files.result_writer import coordinate_kind
from sparing.results.files.settings_json import settings_that_count
from sparing.results.files.stored_problem import fixed_members, prior_description
from sparing.vbmc.settings import Settings

DECLARED = "a function"  # which cannot be compared


def fingerprint(
    problem: Problem,
    settings: Settings,
    *,
    tag: str | None = None,
    starting_points: Array | None = None,
) -> dict[str, Any]:
    """Names, bounds, plausible box, coordinates, prior, fixed values, settings, x0 and the tag.

    Equal for equal runs in every process and on every platform, also after a trip through JSON:
    a float is written with the digits that read back exactly.
    """
    transform = ParameterTransform.from_problem(problem, settings.bounded_map)
    parameters = {
        name: {
            **{vector: encode_number(getattr(problem, vector)[i]) for vector in VECTORS},
            "coordinate": coordinate_kind(transform.coordinates[i]),
        }
        for i, name in enumerate(problem.names)
    }
    return {
        "names": list(problem.names),
        "parameters": parameters,
        "prior": prior_description(problem),
        "settings": settings_that_count(settings),
        "starting_points": [] if starting_points is None else starting_points.tolist(),
        "tag": tag,
        **fixed_members(problem),
        **({"support": DECLARED} if problem.support is not None else {}),
    }
