"""The result of a run, from the state of its engine."""

from __future__ import annotations

from collections.abc import Sequence

from sparing.errors import TargetError
from sparing.problem.gradients import gradient_warnings
from sparing.problem.problem import Problem
from sparing.results.result import Result
from sparing.vbmc.engine import Engine
from sparing.vbmc.final import warnings_for_the_user
from sparing.vbmc.settings import Settings
from sparing.vbmc.stopping import StopReason


def current_result(
    engine: Engine, problem: Problem, settings: Settings, store_warnings: Sequence[str]
) -> Result:
    """The result as it is now, of a run that has ended or not; TargetError before the first."""
    if not engine.history:
        raise TargetError(
            f"no result yet: {len(engine.log.usable())} usable of {len(engine.log)} "
            "evaluations, and the initial design is not complete"
        )
    final = engine.final
    if final is None:
        final = engine.final_solution(converged=False)
    reason, evaluations = engine.stop_reason, tuple(engine.log)
    return Result(
        problem=problem,
        posterior=final.posterior,
        elbo=final.elbo,
        elbo_sd=final.elbo_sd,
        evidence=final.evidence,
        converged=reason is StopReason.STABLE,
        stop_reason=reason,
        evaluations=evaluations,
        history=engine.history,
        warnings=(
            *store_warnings,
            *warnings_for_the_user(final, engine.state, evaluations, reason),
            *gradient_warnings(evaluations),
        ),
        settings=settings,
        seed=engine.streams.seed,
        surrogate=engine.state.trained,
    )
