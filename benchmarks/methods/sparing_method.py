"""sparing, with its own settings and with the paper's, through the public interface only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.methods.base import Environment, Estimate, LibraryClock, Method, Snapshot
from benchmarks.problems.base import Array, BenchmarkProblem

N_SAMPLES = 20_000  # the paper draws as many from its surrogates (Section 4, "Algorithms")


def run_sparing(
    problem: BenchmarkProblem,
    log_joint: Callable[[Array], float],
    x0: Array,
    seed: int,
    budget: int,
    clock: LibraryClock,
    *,
    variant: Callable[[Any], Any],
    told_noise: bool = False,
    with_gradients: bool = False,
) -> Estimate:
    """One run of sparing.infer; ``variant`` makes the settings from the package.

    ``told_noise``: whether the target says how noisy its values are. ``with_gradients``: whether
    it gives its gradient with every value; an evaluation is an evaluation either way.
    """
    import sparing
    from sparing.kernels.compilation import compile_all

    compile_all()  # once per machine; not a cost of the run
    settings = variant(sparing)
    gradient = clock.exclude(problem.log_joint_gradient) if with_gradients else None
    if with_gradients and problem.gradient is None:
        raise BenchmarkError(f"{problem.name} has no gradient")
    snapshots: list[Snapshot] = []

    def record(info: Any) -> None:
        moments = np.asarray(info.posterior.mean), np.asarray(info.posterior.covariance)
        error = info.log_evidence_sd
        snapshots.append(Snapshot(info.n_evaluations, info.log_evidence, *moments, error))

    with clock:
        result = sparing.infer(
            sparing.Problem(
                problem.telling_noise(log_joint) if told_noise else log_joint,
                problem.plausible_lower,
                problem.plausible_upper,
                problem.lower,
                problem.upper,
                gradient=gradient,
            ),
            x0=x0,
            seed=seed,
            max_evaluations=budget,
            settings=settings,
            progress=False,
            callback=clock.exclude(record),
        )
    phases: Counter[str] = Counter()
    for info in result.history:
        phases.update(info.timings)
    return Estimate(
        log_evidence=float(result.log_evidence),
        log_evidence_sd=float(result.log_evidence_sd),
        elbo=float(result.elbo),
        elbo_sd=float(result.elbo_sd),
        mean=np.asarray(result.posterior.mean, dtype=float),
        covariance=np.asarray(result.posterior.covariance, dtype=float),
        samples=np.asarray(result.posterior.sample(N_SAMPLES, seed=seed), dtype=float),
        converged=bool(result.converged),
        snapshots=tuple(snapshots),
        version=version("sparing"),
        phase_seconds=dict(phases),
    )


def default(sparing: Any) -> Any:
    """What users get."""
    return sparing.Settings()


def paper(sparing: Any) -> Any:
    """VBMC-P."""
    return sparing.Settings.paper()


def paper_uncertainty(sparing: Any) -> Any:
    """VBMC-U."""
    from sparing.strategies import UncertaintySampling

    return sparing.Settings.paper(UncertaintySampling)


def paper_guided(sparing: Any) -> Any:
    """VBMC-P whose fits may start at good points and stay near the data.

    The paper has neither, nor a bound of the mean function's scale; of its neuronal cells VBMC-P
    then solves most (docs/benchmarks.md).
    """
    paper, default = sparing.Settings.paper(), sparing.Settings()
    variational = replace(
        paper.variational,
        starts=replace(paper.variational.starts, data_fraction=0.5),
        penalties=default.variational.penalties,
    )
    prior = replace(paper.surrogate.prior, largest_mean_scale=20.0)
    surrogate = replace(paper.surrogate, prior=prior)
    return replace(paper, variational=variational, surrogate=surrogate)


def paper_warm_up(sparing: Any) -> Any:
    """The default whose warm-up watches the bound alone; points are searched as in the default."""
    from sparing.strategies import WatchingBound

    return replace(sparing.Settings(), warm_up=WatchingBound())


def paper_acquisition(sparing: Any) -> Any:
    """The default with the paper's rule for every point, and five points in every iteration."""
    default, rules = sparing.Settings(), sparing.Settings.paper().rules
    warm_up = replace(
        default.warm_up, rules=rules, pending_rules=rules, n_climbing=default.n_active
    )
    return replace(default, rules=rules, warm_up=warm_up)


def with_paper(part: str) -> Callable[[Any], Any]:
    """The default with one of its parts as in the paper."""

    def variant(sparing: Any) -> Any:
        return replace(sparing.Settings(), **{part: getattr(sparing.Settings.paper(), part)})

    return variant


# The default with one idea taken back at a time, for the ablation table.
VARIANTS: dict[str, Callable[[Any], Any]] = {
    "sparing": default,
    "sparing-paper": paper,
    "sparing-paper-u": paper_uncertainty,
    "sparing-paper-guided": paper_guided,
    "sparing-no-whitening": with_paper("coordinates"),
    "sparing-no-compression": with_paper("depths"),
    "sparing-no-final-fit": with_paper("final_fit"),
    "sparing-no-correction": with_paper("evidence"),
    "sparing-no-posterior-test": with_paper("accuracy"),
    "sparing-trusting": with_paper("exploration"),
    "sparing-paper-warm-up": paper_warm_up,
    "sparing-paper-acquisition": paper_acquisition,
    "sparing-paper-surrogate": with_paper("surrogate"),
    "sparing-paper-variational": with_paper("variational"),
    "sparing-paper-design": with_paper("initial_design"),
}

_OPTIONS = {
    **{name: {"variant": variant} for name, variant in VARIANTS.items()},
    "sparing-told-noise": {"variant": default, "told_noise": True},
    "sparing-gradients": {"variant": default, "with_gradients": True},
}

SPARING_METHODS = tuple(
    Method(name, Environment.PROJECT, partial(run_sparing, **options))
    for name, options in _OPTIONS.items()
)
