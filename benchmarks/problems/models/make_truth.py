"""Make the table of answers of the models with data.

``python -m benchmarks.problems.models.make_truth [NAME ...]`` writes ``truth.json`` anew, or the
problems named; half a minute each. The numbers are those of a grid in three dimensions, where a
small second mode escapes draws, and of adaptive importance sampling in more, with a standard error
of the LML of 0.001 to 0.006. Tempered sequential Monte Carlo from draws of the prior must agree:
where it does not, the entry is not written and the script says so.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.metrics import gskl
from benchmarks.problems.base import Array, Marginal
from benchmarks.problems.importance import importance_sample, tempered_sample
from benchmarks.problems.models.base import Model
from benchmarks.problems.models.problems import LEVELS, MODELS, TABLE, fingerprint
from benchmarks.problems.shapes import FAMILIES, member_generator, parse

NUMBERS = range(4)
PARTICLES, MOVES = 10_000, 40
DRAWS, LAST_DRAWS, COMPONENTS, ROUNDS = 20_000, 300_000, 80, 6
GRID_DIMENSION, GRID_REACH = 3, 6.0  # prior sds
END = 1e-5  # mass beyond the ends of a tabulated marginal
DEPTH = 20.0  # nats below the peak that the fine grid reaches
LML_AGREEMENT, GSKL_AGREEMENT = 0.06, 0.01


def main(names: Sequence[str]) -> int:
    """Make the answers; return how many could not be had."""
    table: dict[str, Any] = json.loads(TABLE.read_text()) if names and TABLE.exists() else {}
    failures = 0
    for name in names or _all_names():
        shape = parse(name)
        if shape is None or shape[0] not in MODELS:
            raise BenchmarkError(f"{name} is not a model with data: use one of {', '.join(MODELS)}")
        family, D, number = shape
        model = MODELS[family](D, member_generator(family, D, number))
        entry = answers(model)
        agree = entry["lml_difference"] < LML_AGREEMENT and entry["gskl"] < GSKL_AGREEMENT
        print(f"{name}: {_describe(entry)}{'' if agree else ', NOT WRITTEN'}", flush=True)
        failures += not agree
        if agree:
            table[name] = entry
            TABLE.write_text(_text(table))
    return failures


def _all_names() -> list[str]:
    return [
        f"{family}-{D}-{number}"
        for family in MODELS
        for D in FAMILIES[family].set_dimensions
        for number in NUMBERS
    ]


def answers(model: Model) -> dict[str, Any]:
    """Evidence, moments and quantiles, and how far another method is from them."""
    generator = np.random.default_rng(0)
    particles = tempered_sample(
        model.log_joints,
        model.log_priors,
        model.sample_prior(PARTICLES, generator),
        generator,
        moves=MOVES,
    )
    if len(model.prior_mean) <= GRID_DIMENSION:
        numbers = by_grid(model)
    else:
        numbers = _by_importance(model, particles.points, generator)
    moments = np.array(numbers["mean"]), np.array(numbers["covariance"])
    return {
        "fingerprint": fingerprint(model),
        **numbers,
        "lml_difference": abs(numbers["log_evidence"] - particles.log_evidence),
        "gskl": gskl(*moments, *particles.moments()),
    }


def _by_importance(model: Model, start: Array, generator: np.random.Generator) -> dict[str, Any]:
    draws = importance_sample(
        model.log_joints,
        start,
        generator,
        DRAWS,
        rounds=ROUNDS,
        components=COMPONENTS,
        last_draws=LAST_DRAWS,
    )
    mean, covariance = draws.moments()
    return {
        "log_evidence": draws.log_evidence,
        "log_evidence_se": draws.log_evidence_se,
        "mean": mean.tolist(),
        "covariance": covariance.tolist(),
        "quantiles": [
            _quantiles(Marginal.of_draws(column, draws.weights)) for column in draws.points.T
        ],
    }


def _quantiles(marginal: Marginal) -> list[float]:
    """At LEVELS, the ends where a little mass is left: the outermost draws are anywhere."""
    return marginal.quantile(np.clip(LEVELS, END, 1 - END)).tolist()


def by_grid(model: Model, coarse: int = 100, fine: int = 200) -> dict[str, Any]:
    """Of a model with three parameters and a normal prior: a coarse grid finds the mass."""
    lower = model.prior_mean - GRID_REACH * model.prior_sd
    upper = model.prior_mean + GRID_REACH * model.prior_sd
    sides = np.linspace(lower, upper, coarse).T
    values = _on_grid(model, sides)
    step = sides[:, 1] - sides[:, 0]
    there = np.argwhere(values > values.max() - DEPTH)
    every = range(len(sides))
    lower = sides[every, there.min(axis=0)] - step
    upper = sides[every, there.max(axis=0)] + step
    sides = np.linspace(lower, upper, fine).T
    values = _on_grid(model, sides)
    masses = np.exp(values - values.max())
    total = masses.sum()
    cell = float(np.sum(np.log(sides[:, 1] - sides[:, 0])))
    masses /= total
    return _grid_summary(sides, masses, float(values.max() + np.log(total)) + cell)


def _on_grid(model: Model, sides: Array) -> Array:
    """Log joints on the grid, slice by slice."""
    rest = np.stack(np.meshgrid(*sides[1:], indexing="ij"), axis=-1).reshape(-1, len(sides) - 1)
    slices = [
        model.log_joints(np.column_stack([np.full(len(rest), first), rest])) for first in sides[0]
    ]
    return np.reshape(slices, [sides.shape[1]] * len(sides))


def _grid_summary(sides: Array, masses: Array, log_evidence: float) -> dict[str, Any]:
    D = len(sides)
    axes = range(D)
    single = [masses.sum(axis=tuple(k for k in axes if k != d)) for d in axes]
    mean = np.array([mass @ side for mass, side in zip(single, sides, strict=True)])
    covariance = np.empty((D, D))
    for i in axes:
        covariance[i, i] = single[i] @ (sides[i] - mean[i]) ** 2
        for j in range(i):
            pair = masses.sum(axis=tuple(k for k in axes if k not in (i, j)))
            covariance[i, j] = covariance[j, i] = (sides[j] - mean[j]) @ pair @ (sides[i] - mean[i])
    marginals = [Marginal.tabulate(side, mass) for side, mass in zip(sides, single, strict=True)]
    return {
        "log_evidence": log_evidence,
        "log_evidence_se": 0.0,
        "mean": mean.tolist(),
        "covariance": covariance.tolist(),
        "quantiles": [_quantiles(marginal) for marginal in marginals],
    }


def _describe(entry: dict[str, Any]) -> str:
    return (
        f"LML {entry['log_evidence']:.3f} ({entry['log_evidence_se']:.3f}); the other method "
        f"differs by {entry['lml_difference']:.3f}, gsKL {entry['gskl']:.4f}"
    )


def _text(table: dict[str, Any]) -> str:
    """One line an entry, in the order of the names; seven digits, twelve of single numbers."""

    def rounded(value: Any, digits: int = 12) -> Any:
        if isinstance(value, list):
            return [rounded(item, 7) for item in value]
        return float(f"{value:.{digits}g}")

    lines = (
        f"{json.dumps(name)}: {json.dumps({key: rounded(value) for key, value in entry.items()})}"
        for name, entry in sorted(table.items())
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
