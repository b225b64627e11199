"""Settings in files, also those of releases before they were composed of strategies.

Those had one flat record for each part, in which enums, booleans and nulls chose between two ways
of doing a thing, and several numbers did nothing under one of them. Read, they are the composition
that computes the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sparing.store.dataclass_json import dataclass_from_json, dataclass_to_json
from sparing.store.json_members import MalformedError, require
from sparing.vbmc.settings import Settings

Record = Mapping[str, Any]
# The parts of before and their fields; four parts could be null.
FIELDS = {
    "initial_design": "n_points kind",
    "surrogate": "inference hpd_fraction length_scale_prior noise_sd_location noise_sd_scale "
    "noise_sd_floor bounded_mean_maximum largest_mean_scale n_map_candidates n_map_starts "
    "n_map_evaluations n_random_starts n_weighted_candidates burn_in_sweeps thinning "
    "max_slice_widths",
    "hyperparameters": "numerator max_samples_in_warm_up max_samples variance_threshold "
    "n_iterations retraining_growth",
    "deep_values": "depth_per_dimension fraction_kept slope",
    "variational": "n_fast n_fast_many candidate_entropy data_fraction n_entropy_samples "
    "max_entropy_samples mirrored_samples n_final_entropy_samples n_comparison_samples rate_min "
    "rate_max_warm_up rate_max rate_decay momentum second_momentum epsilon n_batch "
    "standardise_steps value_tolerance parameter_tolerance max_steps_base max_steps_per_component "
    "min_weight pruning_tolerance restore_components beta_lcb box_margin smallest_sd largest_sd "
    "mean_stiffness scale_stiffness weight_pressure weight_threshold",
    "acquisition": "n_active n_climbing warm_up_rules rules pending_warm_up_rules temper "
    "variance_floor n_references n_hyperparameter_samples widening box_margin search",
    "warm_up": "tolerance_elcbo n_iterations watch_values trim_per_dimension",
    "whitening": "every correlation_floor condition_number minimal_gain width",
    "stopping": "tolerance_sd tolerance_kl_factor tolerance_improvement n_stable "
    "tolerance_posterior n_posterior_errors n_unstable_allowed n_recent beta_lcb_unstable "
    "recent_fraction n_recent_solutions",
    "evidence": "importance_correction n_samples n_samples_in_warm_up largest_variance "
    "largest_pareto_k",
    "calibration": "n_draws n_prior unproven_variance n_estimates largest_sd",
    "posterior_error": "n_points n_functions n_hyperparameter_samples",
    "final_fit": "n_components",
}
NULLABLE = ("deep_values", "whitening", "posterior_error", "final_fit")
# What has become a constant, and its value.
CONSTANTS = {
    "acquisition.box_margin": 0.5,
    "warm_up.tolerance_elcbo": 1.0,
    "warm_up.n_iterations": 3,
    "warm_up.trim_per_dimension": 10.0,
    "stopping.beta_lcb_unstable": 5.0,
    "evidence.largest_pareto_k": 0.7,
}
WITHOUT_EFFECT = ("evaluations_per_dimension",)  # the default of max_evaluations, nothing else


def settings_from_json(value: Any) -> Settings:
    """The settings that a JSON object of this release or an earlier one describes."""
    require(isinstance(value, dict), "settings is not an object")
    if "acquisition" in value:
        value = composed(value)
    return dataclass_from_json(value, Settings, "settings")


def settings_that_count(settings: Settings) -> dict[str, Any]:
    """The settings as a JSON object, less those that change nothing that is computed."""
    members = dataclass_to_json(settings)
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


def composed(old: Record) -> dict[str, Any]:
    """Settings of before as the members of a composition."""
    unknown = set(old) - {*FIELDS, "bounded_map", "evaluations_per_dimension"}
    for name, fields in FIELDS.items():
        part = old.get(name, {})
        if part is not None or name not in NULLABLE:
            require(isinstance(part, dict), f"settings.{name} is not an object")
            unknown |= {f"{name}.{field}" for field in part or () if field not in fields.split()}
    require(not unknown, f"settings has fields that no release knows: {sorted(unknown)}")
    for name, value in CONSTANTS.items():
        part, field = name.split(".")
        found = old.get(part, {}).get(field, value)
        require(found == value, f"settings.{name} is {found!r}; it is always {value} now")
    acquisition, stopping = old["acquisition"], old.get("stopping", {})
    return {
        **_kept(old, "bounded_map evaluations_per_dimension"),
        **_kept(acquisition, "n_active"),
        "initial_design": _initial_design(old.get("initial_design", {})),
        "depths": _one_of(old, "deep_values", "CompressedDepths", "MeasuredValues"),
        "surrogate": _surrogate(old.get("surrogate", {})),
        "sampling": _without_none(old.get("hyperparameters", {}), max_samples="inf"),
        "variational": _variational(old.get("variational", {})),
        "warm_up": _warm_up(old.get("warm_up", {}), acquisition),
        "rules": _rules(acquisition),
        "coordinates": _one_of(old, "whitening", "Whitened", "Unwhitened"),
        "evidence": _evidence(old.get("evidence", {}), old.get("calibration", {})),
        "accuracy": _accuracy(old, stopping),
        "stopping": _kept(
            stopping,
            "tolerance_sd tolerance_kl_factor tolerance_improvement n_stable n_unstable_allowed "
            "n_recent",
        ),
        "answer": _answer(stopping),
        "final_fit": _one_of(old, "final_fit", "RicherFit", "LastFit"),
    }


def _kept(record: Record, names: str, **renamed: str) -> dict[str, Any]:
    """Some fields, as far as they are there; ``renamed`` gives new names to old ones."""
    kept = {name: record[name] for name in names.split() if name in record}
    return kept | {new: record[name] for name, new in renamed.items() if name in record}


def _one_of(old: Record, name: str, some: str, none: str) -> dict[str, Any]:
    """A part that could be null."""
    part = old.get(name, {})
    return {"kind": none} if part is None else {"kind": some, **part}


def _without_none(record: Record, **instead: Any) -> dict[str, Any]:
    return {name: instead.get(name) if value is None else value for name, value in record.items()}


def _initial_design(old: Record) -> dict[str, Any]:
    uniform = old.get("kind") == "UNIFORM"
    return {"kind": "UniformDesign" if uniform else "LatinHypercube", **_kept(old, "n_points")}


def _surrogate(old: Record) -> dict[str, Any]:
    empirical = old.get("length_scale_prior") == "EMPIRICAL"
    near_best = old.get("bounded_mean_maximum", True)
    prior = {
        **_kept(old, "hpd_fraction noise_sd_location noise_sd_scale noise_sd_floor"),
        **_kept(old, "largest_mean_scale"),
        "length_scales": {"kind": "LengthsFromPoints" if empirical else "LengthsFromBox"},
        "peak": {"kind": "PeakNearBest" if near_best else "PeakAnywhere"},
    }
    if old.get("inference") == "SLICE":
        names = "n_map_candidates n_map_starts n_map_evaluations burn_in_sweeps thinning"
        numbers = _kept(old, f"{names} max_slice_widths")
        return {"kind": "MapThenSlice", "prior": prior, **numbers}
    numbers = _kept(old, "n_random_starts n_weighted_candidates", n_map_starts="n_ascents")
    return {"kind": "Collapsed", "prior": prior, **numbers}


def _variational(old: Record) -> dict[str, Any]:
    by_bound = old.get("candidate_entropy", "LOWER_BOUND") == "LOWER_BOUND"
    ranking = {"kind": "RankByLowerBound"}
    if not by_bound:
        ranking = {"kind": "RankByMonteCarlo", **_kept(old, "", n_entropy_samples="n_samples")}
    charging = ("mean_stiffness", "scale_stiffness", "weight_pressure")
    penalties: dict[str, Any] = {"kind": "NoPenalties"}
    if any(old.get(name, 1.0) for name in charging):
        names = "box_margin smallest_sd largest_sd mean_stiffness scale_stiffness weight_pressure"
        penalties = {"kind": "SoftPenalties", **_kept(old, f"{names} weight_threshold")}
    restored = old.get("restore_components", True)
    return {
        "starts": _kept(
            old,
            "data_fraction",
            n_fast="n_per_component",
            n_fast_many="n_per_component_at_first",
        ),
        "ranking": ranking,
        "penalties": penalties,
        "ascent": _ascent(old),
        "growth": {"kind": "RestoringGrowth" if restored else "Growth"},
        "pruning": _kept(old, "min_weight", pruning_tolerance="tolerance"),
        **_kept(old, "n_final_entropy_samples n_comparison_samples beta_lcb"),
    }


def _ascent(old: Record) -> dict[str, Any]:
    draws = {"kind": "IndependentDraws", **_kept(old, "", n_entropy_samples="n_per_component")}
    if old.get("mirrored_samples", True):
        draws["kind"] = "MirroredDraws"
        draws |= _kept(old, "", max_entropy_samples="n_at_most")
    in_sds = old.get("standardise_steps", True)
    names = "rate_min rate_max_warm_up rate_max rate_decay momentum second_momentum epsilon n_batch"
    limits = "value_tolerance parameter_tolerance max_steps_base max_steps_per_component"
    return {
        "draws": draws,
        "steps": {"kind": "StepsInSds" if in_sds else "StepsInBoxWidths"},
        **_kept(old, f"{names} {limits}"),
    }


def _rules(acquisition: Record) -> list[dict[str, Any]]:
    """Every second draw from the posterior was widened: two turns, where there are draws."""
    names = acquisition.get("rules", ["VARIANCE_REDUCTION", "POSTERIOR_DRAW"])
    require(isinstance(names, list), "settings.acquisition.rules is not a list")
    turns = [_rule(name, acquisition) for name in names]
    if "POSTERIOR_DRAW" not in names:
        return turns
    widening = acquisition.get("widening", 1.5)
    wide = [{**r, "widening": widening} if r["kind"] == "PosteriorDraw" else r for r in turns]
    return [*turns, *wide]


def _rule(name: str, acquisition: Record) -> dict[str, Any]:
    if name == "POSTERIOR_DRAW":
        return {"kind": "PosteriorDraw", "widening": 1.0}
    kinds = {
        "UNCERTAINTY": ("UncertaintySampling", "variance_floor"),
        "PROSPECTIVE": ("ProspectiveSampling", "variance_floor"),
        "EXPLORATION": ("TemperedSampling", "temper"),
        "VARIANCE_REDUCTION": ("VarianceReduction", "n_references widening"),
    }
    known = isinstance(name, str) and name in kinds
    require(known, f"settings.acquisition has a rule {name!r:.60}")
    kind, fields = kinds[name]
    few = _kept(acquisition, "", n_hyperparameter_samples="n_samples")
    search = _search(acquisition.get("search", {}))
    own = _kept(acquisition, fields)
    return {"kind": kind, "search": search, **_without_none(few, n_samples="inf"), **own}


def _search(old: Record) -> dict[str, Any]:
    require(isinstance(old, dict), "settings.acquisition.search is not an object")
    if old.get("local_search") == "CMA_ES":
        renamed = {"cma_evaluations_per_dimension": "evaluations_per_dimension"}
        return {"kind": "CmaEs", **_kept(old, "n_candidates", **renamed)}
    return {"kind": "ShrinkingClouds", **_kept(old, "n_candidates n_rounds n_cloud shrinkage")}


def _warm_up(old: Record, acquisition: Record) -> dict[str, Any]:
    def rules(field: str, default: Sequence[str]) -> list[dict[str, Any]]:
        names = acquisition.get(field, default)
        require(isinstance(names, list), f"settings.acquisition.{field} is not a list")
        return [_rule(name, acquisition) for name in names]

    chosen = rules("warm_up_rules", ["PROSPECTIVE"])
    if not old.get("watch_values", True):
        return {"kind": "WatchingBound", "rules": chosen}
    pending = rules("pending_warm_up_rules", ["PROSPECTIVE", "EXPLORATION"])
    numbers = _kept(acquisition, "n_climbing")
    return {"kind": "Climbing", "rules": chosen, "pending_rules": pending, **numbers}


def _evidence(old: Record, calibration: Record) -> dict[str, Any]:
    if not old.get("importance_correction", True):
        return {"kind": "LowerBound"}
    numbers = _kept(old, "n_samples n_samples_in_warm_up largest_variance")
    return {"kind": "ImportanceCorrected", "calibration": dict(calibration), **numbers}


def _accuracy(old: Record, stopping: Record) -> dict[str, Any]:
    accuracy = _one_of(old, "posterior_error", "ExpectedError", "Untested")
    if accuracy["kind"] == "Untested":
        return accuracy
    renamed = {"tolerance_posterior": "tolerance", "n_posterior_errors": "n_iterations"}
    return accuracy | _kept(stopping, "", **renamed)


def _answer(stopping: Record) -> dict[str, Any]:
    if stopping.get("n_recent_solutions", 5) is None:
        return {"kind": "BestBound", **_kept(stopping, "", recent_fraction="fraction")}
    return {"kind": "SmallestError", **_kept(stopping, "", n_recent_solutions="n_recent")}
