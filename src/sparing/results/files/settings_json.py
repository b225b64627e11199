"""Settings in files, also those of earlier releases, which read as the nearest this one has.

The first release had one flat record for each part, in which enums, booleans and nulls chose
between two ways of doing a thing. They are first turned into the composition of strategies by
which the next release said the same; what did nothing, or has become a constant, is passed over.
Strategies that there are no longer are then replaced by what does their work now, which computes
something else: a run of before is read as it was, and goes on as one of this release.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from sparing.errors import SettingsError
from sparing.store.dataclass_json import dataclass_from_json, dataclass_to_json
from sparing.store.json_members import MalformedError, require
from sparing.vbmc.settings import Settings

Record = Mapping[str, Any]
WITHOUT_EFFECT = ("evaluations_per_dimension",)  # the default of max_evaluations, nothing else

# Where the parts of the first release are now: each strategy takes the fields it has.
PARTS = """
    initial_design   initial_design
    surrogate        surrogate surrogate.prior
    hyperparameters  sampling
    deep_values      depths
    variational      variational variational.starts variational.ascent variational.pruning
    variational      variational.penalties
    acquisition      warm_up
    whitening        coordinates
    stopping         stopping
    calibration      evidence.calibration
    posterior_error  accuracy
"""
RENAMED = """
    acquisition.n_active             n_active
    surrogate.n_map_starts           surrogate.n_ascents
    variational.n_fast               variational.starts.n_per_component
    variational.n_fast_many          variational.starts.n_per_component_at_first
    variational.n_entropy_samples    variational.ranking.n_samples
    variational.n_entropy_samples    variational.ascent.draws.n_per_component
    variational.max_entropy_samples  variational.ascent.draws.n_at_most
    variational.pruning_tolerance    variational.pruning.tolerance
    stopping.tolerance_posterior     accuracy.tolerance
    stopping.n_posterior_errors      accuracy.n_iterations
    stopping.n_recent_solutions      answer.n_recent
    stopping.recent_fraction         answer.fraction
"""
# Which strategy a field chose: by one of its values, and by any other.
CHOICES = """
    initial_design.kind             initial_design            UNIFORM UniformDesign LatinHypercube
    surrogate.inference             surrogate                 SLICE MapThenSlice Collapsed
    surrogate.bounded_mean_maximum  surrogate.prior.peak      False PeakAnywhere PeakNearBest
    surrogate.length_scale_prior    surrogate.prior.length_scales \
                                    EMPIRICAL              LengthsFromPoints LengthsFromBox
    deep_values                     depths                    None  MeasuredValues CompressedDepths
    variational.candidate_entropy   variational.ranking \
                                    MONTE_CARLO            RankByMonteCarlo RankByLowerBound
    variational.mean_stiffness      variational.penalties     0.0   NoPenalties SoftPenalties
    variational.mirrored_samples    variational.ascent.draws  False IndependentDraws MirroredDraws
    variational.standardise_steps   variational.ascent.steps  False StepsInBoxWidths StepsInSds
    warm_up.watch_values            warm_up                   False WatchingBound Climbing
    whitening                       coordinates               None  Unwhitened Whitened
    evidence.importance_correction  evidence                  False LowerBound SurrogatePosterior
    posterior_error                 accuracy                  None  Untested ExpectedError
    stopping.n_recent_solutions     answer                    None  BestBound SmallestError
    final_fit                       final_fit                 None  LastFit ThoroughSample
"""
RULES = {
    "UNCERTAINTY": "UncertaintySampling",
    "PROSPECTIVE": "ProspectiveSampling",
    "EXPLORATION": "TemperedSampling",
    "VARIANCE_REDUCTION": "VarianceReduction",
    "POSTERIOR_DRAW": "PosteriorDraw",
}
# Strategies of the next release: where they stood, their names, those of what is nearest now, and
# which of their fields that does not have, or means otherwise.
REPLACED = """
    variational.growth RestoringGrowth Growth
    evidence  ImportanceCorrected SurrogatePosterior n_samples n_samples_in_warm_up largest_variance
    final_fit RicherFit ThoroughSample n_components
    exploration LookElsewhere LookElsewhere n_rounds
    exploration LookAtOnce LookAtOnce n_rounds
"""
# What a release did that did not know the field.
BEFORE_THE_FIELD = {"exploration": {"kind": "Trusting"}, "edges": {"kind": "StandIns"}}


def settings_from_json(value: Any) -> Settings:
    """The settings that a JSON object of this release describes, or of one before."""
    require(isinstance(value, dict), "settings is not an object")
    if isinstance(value.get("acquisition"), dict) and "rules" not in value:
        return dataclass_from_json(composed(value), Settings, "settings", strict=False)
    return dataclass_from_json(nearest(value), Settings, "settings")


def settings_to_json(settings: Settings) -> dict[str, Any]:
    """The settings as a JSON object; `SettingsError` where they hold a strategy made elsewhere."""
    try:
        return dataclass_to_json(settings)
    except TypeError as error:
        fault = f"{error}: files and run directories hold no strategy that was made elsewhere, "
        raise SettingsError([f"{fault}since reading them never runs code"]) from error


def settings_that_count(settings: Settings) -> dict[str, Any]:
    """The settings as a JSON object, less those that change nothing that is computed."""
    members = settings_to_json(settings)
    return {name: value for name, value in members.items() if name not in WITHOUT_EFFECT}


def upgraded_fingerprint(members: Record) -> Record:
    """What an earlier release stored of a run's identity, as this one would have stored it.

    As it is where its settings cannot be read: what differs is then named by a comparison.
    """
    try:
        settings = settings_from_json(members.get("settings"))
    except MalformedError:
        return members
    return {**members, "settings": settings_that_count(settings)}


def nearest(old: Record) -> dict[str, Any]:
    """The members of a composition of any release, with strategies that there are now."""
    new = copy.deepcopy({**BEFORE_THE_FIELD, **old})
    for place, before, now, *dropped in _rows(REPLACED):
        strategy: Any = new
        for part in place.split("."):
            strategy = strategy.get(part) if isinstance(strategy, dict) else None
        if isinstance(strategy, dict) and strategy.get("kind") == before:
            for name in dropped:
                strategy.pop(name, None)
            strategy["kind"] = now
    return new


def composed(old: Record) -> dict[str, Any]:
    """Settings of the first release as the members of a composition, and of more than it has."""
    parts = {name: value for name, value in old.items() if isinstance(value, dict)}
    flat = {f"{part}.{name}": value for part in parts for name, value in parts[part].items()}
    flat |= {name: value for name, value in old.items() if name not in parts}
    moves = [(part, place) for part, *places in _rows(PARTS) for place in places]
    moves = [(f"{part}.{n}", f"{place}.{n}") for part, place in moves for n in parts.get(part, {})]
    new: dict[str, Any] = {n: flat[n] for n in ("bounded_map", *WITHOUT_EFFECT) if n in flat}
    for name, place in (*moves, *_rows(RENAMED)):
        if name in flat:
            _put(new, place, "inf" if flat[name] is None else flat[name])
    for name, place, value, one, other in _rows(CHOICES):
        _put(new, f"{place}.kind", one if str(flat.get(name, "absent")) == value else other)
    acquisition = {"widening": 1.5, **parts.get("acquisition", {})}
    turns = _turns(acquisition, "rules", ["VARIANCE_REDUCTION", "POSTERIOR_DRAW"])
    if "PosteriorDraw" in (rule["kind"] for rule in turns):
        # Every second draw was widened: two turns.
        turns += [{**rule, "widening": acquisition["widening"]} for rule in turns]
    new["rules"] = turns
    new["warm_up"]["rules"] = _turns(acquisition, "warm_up_rules", ["PROSPECTIVE"])
    pending = _turns(acquisition, "pending_warm_up_rules", ["PROSPECTIVE", "EXPLORATION"])
    new["warm_up"]["pending_rules"] = pending
    return new | BEFORE_THE_FIELD


def _rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.strip().splitlines()]


def _put(members: dict[str, Any], place: str, value: Any) -> None:
    *path, name = place.split(".")
    for step in path:
        members = members.setdefault(step, {})
        require(isinstance(members, dict), f"settings.{place} is part of no object")
    members[name] = value


def _turns(acquisition: Record, field: str, default: list[str]) -> list[dict[str, Any]]:
    """Rules with all the fields of then: each takes those it has."""
    names = acquisition.get(field, default)
    fits = isinstance(names, list) and all(isinstance(n, str) and n in RULES for n in names)
    require(fits, f"settings.acquisition.{field} holds something else than rules: {names!r:.80}")
    search = acquisition.get("search", {})
    require(isinstance(search, dict), "settings.acquisition.search is not an object")
    uses_cma = search.get("local_search") == "CMA_ES"
    renamed = {"cma_evaluations_per_dimension": "evaluations_per_dimension"}
    search = {renamed.get(name, name): value for name, value in search.items()}
    search |= {"kind": "CmaEs" if uses_cma else "ShrinkingClouds"}
    n_samples = acquisition.get("n_hyperparameter_samples", 3)
    fields = {"search": search, "n_samples": "inf" if n_samples is None else n_samples}
    own = {"POSTERIOR_DRAW": {"widening": 1.0}}
    return [{**acquisition, **fields, **own.get(n, {}), "kind": RULES[n]} for n in names]
