"""Settings in files, also those of earlier releases, which read as the nearest this one has.

The first release had one flat record for each part, in which enums, booleans and nulls chose
between two ways of doing a thing, and several numbers did nothing under one of them. They are
first turned into the composition of strategies by which the next release said the same. Strategies
that there are no longer are then replaced by what does their work now, which computes something
else: a run of before is read as it was, and goes on as one of this release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any, get_args

from sparing.errors import SettingsError
from sparing.store.dataclass_json import (
    alternatives,
    dataclass_from_json,
    dataclass_to_json,
    field_types,
)
from sparing.store.json_members import MalformedError, require
from sparing.vbmc.settings import Settings

Record = Mapping[str, Any]
WITHOUT_EFFECT = ("evaluations_per_dimension",)  # the default of max_evaluations, nothing else

# Where the fields of before have gone: the part they were in, the strategy they are in, the names.
KEPT = """
    initial_design   initial_design         n_points
    surrogate        surrogate              n_map_candidates n_map_starts n_map_evaluations
    surrogate        surrogate              n_random_starts n_weighted_candidates burn_in_sweeps
    surrogate        surrogate              thinning max_slice_widths
    surrogate        surrogate.prior        hpd_fraction noise_sd_location noise_sd_scale
    surrogate        surrogate.prior        noise_sd_floor largest_mean_scale
    hyperparameters  sampling               numerator max_samples_in_warm_up max_samples
    hyperparameters  sampling               variance_threshold n_iterations retraining_growth
    deep_values      depths                 depth_per_dimension fraction_kept slope
    variational      variational            n_final_entropy_samples n_comparison_samples beta_lcb
    variational      variational.starts     data_fraction
    variational      variational.ascent     rate_min rate_max_warm_up rate_max rate_decay momentum
    variational      variational.ascent     second_momentum epsilon n_batch value_tolerance
    variational      variational.ascent     parameter_tolerance max_steps_base
    variational      variational.ascent     max_steps_per_component
    variational      variational.pruning    min_weight
    variational      variational.penalties  box_margin smallest_sd largest_sd mean_stiffness
    variational      variational.penalties  scale_stiffness weight_pressure weight_threshold
    acquisition      warm_up                n_climbing
    whitening        coordinates            every correlation_floor condition_number minimal_gain
    whitening        coordinates            width
    stopping         stopping               tolerance_sd tolerance_kl_factor tolerance_improvement
    stopping         stopping               n_stable n_unstable_allowed n_recent
    evidence         evidence               n_samples n_samples_in_warm_up largest_variance
    calibration      evidence.calibration   n_draws n_prior unproven_variance n_estimates
    calibration      evidence.calibration   largest_sd
    posterior_error  accuracy               n_points n_functions n_hyperparameter_samples
    final_fit        final_fit              n_components
"""
RENAMED = """
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
# Which strategy a field chose: by one of its values, and by any other; by the names of then.
CHOICES = """
    initial_design.kind             initial_design         UNIFORM  UniformDesign LatinHypercube
    surrogate.inference             surrogate              SLICE    MapThenSlice Collapsed
    surrogate.bounded_mean_maximum  surrogate.prior.peak   False    PeakAnywhere PeakNearBest
    surrogate.length_scale_prior    surrogate.prior.length_scales \
                                            EMPIRICAL  LengthsFromPoints LengthsFromBox
    deep_values                     depths                 None     MeasuredValues CompressedDepths
    variational.candidate_entropy   variational.ranking \
                                            MONTE_CARLO  RankByMonteCarlo RankByLowerBound
    variational.mean_stiffness      variational.penalties  0.0      NoPenalties SoftPenalties
    variational.restore_components  variational.growth     False    Growth RestoringGrowth
    variational.mirrored_samples    variational.ascent.draws \
                                            False  IndependentDraws MirroredDraws
    variational.standardise_steps   variational.ascent.steps \
                                            False  StepsInBoxWidths StepsInSds
    warm_up.watch_values            warm_up                False    WatchingBound Climbing
    whitening                       coordinates            None     Unwhitened Whitened
    evidence.importance_correction  evidence               False    LowerBound ImportanceCorrected
    posterior_error                 accuracy               None     Untested ExpectedError
    stopping.n_recent_solutions     answer                 None     BestBound SmallestError
    final_fit                       final_fit              None     LastFit RicherFit
"""
# Strategies of before: where they stood, their names, those of what is nearest now, and which of
# their fields that does not have, or means otherwise.
REPLACED = """
    evidence   ImportanceCorrected SurrogatePosterior  n_samples n_samples_in_warm_up \
                                                       largest_variance
    final_fit  RicherFit           ThoroughSample      n_components
"""
# What a release did that did not know the field.
BEFORE_THE_FIELD = {"exploration": {"kind": "Trusting"}}
# What has become a constant, and its value.
CONSTANTS = (
    ("acquisition.box_margin", 0.5),
    ("warm_up.tolerance_elcbo", 1.0),
    ("warm_up.n_iterations", 3),
    ("warm_up.trim_per_dimension", 10.0),
    ("stopping.beta_lcb_unstable", 5.0),
    ("evidence.largest_pareto_k", 0.7),
)
# The rules of before: the strategy, and the fields of `acquisition` that are its own.
RULES = {
    "UNCERTAINTY": ("UncertaintySampling", ("variance_floor",)),
    "PROSPECTIVE": ("ProspectiveSampling", ("variance_floor",)),
    "EXPLORATION": ("TemperedSampling", ("temper",)),
    "VARIANCE_REDUCTION": ("VarianceReduction", ("n_references", "widening")),
    "POSTERIOR_DRAW": ("PosteriorDraw", ()),
}
ELSEWHERE = """
    bounded_map evaluations_per_dimension acquisition.n_active acquisition.warm_up_rules
    acquisition.rules acquisition.pending_warm_up_rules acquisition.search acquisition.temper
    acquisition.variance_floor acquisition.n_references acquisition.n_hyperparameter_samples
    acquisition.widening
"""


def settings_from_json(value: Any) -> Settings:
    """The settings that a JSON object of this release describes, or of one before."""
    require(isinstance(value, dict), "settings is not an object")
    if "acquisition" in value:
        value = composed(value)
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
    new = {**BEFORE_THE_FIELD, **old}
    for part, before, now, *dropped in _rows(REPLACED):
        strategy = new.get(part)
        if isinstance(strategy, dict) and strategy.get("kind") == before:
            kept = {name: value for name, value in strategy.items() if name not in dropped}
            new[part] = {**kept, "kind": now}
    return new


def composed(old: Record) -> dict[str, Any]:
    """Settings of the first release as the members of a composition."""
    flat = dict(_flattened(old))
    kept = ((part, place, n) for part, place, *names in _rows(KEPT) for n in names)
    moves = [(f"{part}.{n}", f"{place}.{n}") for part, place, n in kept]
    moves += [(name, place) for name, place in _rows(RENAMED)]
    choices = _rows(CHOICES)
    known = {name for name, *_ in (*moves, *choices, *CONSTANTS)} | {*ELSEWHERE.split()}
    unknown = sorted(set(flat) - known)
    require(not unknown, f"settings has fields that no release knows: {unknown}")
    for name, value in CONSTANTS:
        found = flat.get(name, value)
        require(found == value, f"settings.{name} is {found!r}; it is always {value} now")
    new: dict[str, Any] = {n: flat[n] for n in ("bounded_map", *WITHOUT_EFFECT) if n in flat}
    for name, place in moves:
        if name in flat:
            _put(new, place, "inf" if flat[name] is None else flat[name])
    for name, place, value, one, other in choices:
        _put(new, f"{place}.kind", one if str(flat.get(name, "absent")) == value else other)
    acquisition = {n.partition(".")[2]: v for n, v in flat.items() if n.startswith("acquisition.")}
    if "n_active" in acquisition:
        new["n_active"] = acquisition["n_active"]
    new["rules"] = _turns(acquisition, "rules", ["VARIANCE_REDUCTION", "POSTERIOR_DRAW"])
    if any(rule["kind"] == "PosteriorDraw" for rule in new["rules"]):
        # Every second draw was widened: two turns.
        wide = {"PosteriorDraw": {"widening": acquisition.get("widening", 1.5)}}
        new["rules"] += [{**rule, **wide.get(rule["kind"], {})} for rule in new["rules"]]
    new["warm_up"]["rules"] = _turns(acquisition, "warm_up_rules", ["PROSPECTIVE"])
    pending = _turns(acquisition, "pending_warm_up_rules", ["PROSPECTIVE", "EXPLORATION"])
    new["warm_up"]["pending_rules"] = pending
    return _fitting(new, Settings)


def _rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.strip().splitlines()]


def _flattened(old: Record) -> Iterator[tuple[str, Any]]:
    """Fields by their dotted names; a part that is null by its own."""
    for part, fields in old.items():
        if isinstance(fields, dict):
            yield from ((f"{part}.{name}", value) for name, value in fields.items())
        else:
            yield part, fields


def _put(members: dict[str, Any], place: str, value: Any) -> None:
    *path, name = place.split(".")
    for step in path:
        members = members.setdefault(step, {})
    members[name] = value


def _turns(acquisition: Record, field: str, default: list[str]) -> list[dict[str, Any]]:
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
    rules = []
    for kind, own in (RULES[name] for name in names):
        fields = {name: acquisition[name] for name in own if name in acquisition}
        fields |= {"search": search, "n_samples": "inf" if n_samples is None else n_samples}
        rules.append({"kind": kind, **fields})
    return rules


def _fitting(members: Any, hint: Any) -> Any:
    """The members without those that the strategy they are now in does not have."""
    kinds = [kind for kind in alternatives(hint) if isinstance(members, dict)]
    if isinstance(members, list):
        return [_fitting(item, get_args(hint)[0]) for item in members]
    named = [kind for kind in kinds if len(kinds) == 1 or kind.__name__ == members.get("kind")]
    if not named or not is_dataclass(named[0]):
        return members
    types = field_types(named[0])
    kept = {name: _fitting(members[name], types[name]) for name in types if name in members}
    return kept if len(kinds) == 1 else {"kind": members["kind"], **kept}
