"""Settings of the release before are read as the composition that computes the same."""

import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from sparing.results.files.settings_json import settings_from_json, upgraded_fingerprint
from sparing.store.json_members import MalformedError, parse_object
from sparing.strategies import BestBound, LowerBound, PosteriorDraw, VarianceReduction
from sparing.vbmc.settings import Settings

SAMPLE = Path(__file__).parent / "sample" / "result-v1.sparing"
# What `Settings.paper()` of that release said beside its defaults.
PAPER = {
    "bounded_map": "LOGIT",
    "initial_design": {"kind": "UNIFORM"},
    "surrogate": {
        "inference": "SLICE",
        "length_scale_prior": "EMPIRICAL",
        "noise_sd_location": 0.001,
        "noise_sd_floor": 1e-4,
        "bounded_mean_maximum": False,
        "largest_mean_scale": 100.0,
        "burn_in_sweeps": 25,
        "thinning": 5,
        "max_slice_widths": 1000,
    },
    "hyperparameters": {"max_samples": None, "variance_threshold": 1e-4, "retraining_growth": 0.0},
    "deep_values": None,
    "variational": {
        "candidate_entropy": "MONTE_CARLO",
        "data_fraction": 0.0,
        "n_entropy_samples": 100,
        "max_entropy_samples": "inf",
        "mirrored_samples": False,
        "n_final_entropy_samples": 2**15,
        "rate_max": 0.01,
        "standardise_steps": False,
        "mean_stiffness": 0.0,
        "scale_stiffness": 0.0,
        "weight_pressure": 0.0,
        "restore_components": False,
        "max_steps_base": 10_000,
    },
    "acquisition": {
        "n_climbing": 5,
        "warm_up_rules": ["PROSPECTIVE"],
        "rules": ["PROSPECTIVE"],
        "pending_warm_up_rules": ["PROSPECTIVE"],
        "n_hyperparameter_samples": None,
        "search": {"n_candidates": 1024, "local_search": "CMA_ES"},
    },
    "warm_up": {"watch_values": False},
    "whitening": None,
    "stopping": {"n_stable": 8, "n_recent_solutions": None},
    "evidence": {"importance_correction": False},
    "posterior_error": None,
    "final_fit": None,
}


def test_the_defaults_of_before_are_todays():
    assert settings_from_json({"acquisition": {}}) == Settings()


def test_the_papers_preset_of_before_is_todays():
    assert settings_from_json(PAPER) == Settings.paper()


def test_the_sample_of_version_1_has_todays_defaults_but_for_what_it_changed():
    with zipfile.ZipFile(SAMPLE) as archive:
        stored = parse_object(archive.read("record.json"))["settings"]
    settings = settings_from_json(stored)
    same = replace(
        Settings(),
        stopping=settings.stopping,
        coordinates=settings.coordinates,
        bounded_map=settings.bounded_map,
    )
    assert settings == same
    assert settings.stopping.tolerance_sd == stored["stopping"]["tolerance_sd"]


def test_changed_fields_arrive_where_they_are_read():
    settings = settings_from_json(
        {
            "acquisition": {"n_references": 64, "widening": 2.0, "n_active": 3},
            "stopping": {"recent_fraction": 0.5, "n_recent_solutions": None, "tolerance_sd": 0.2},
            "evidence": {"importance_correction": False, "n_samples": 99},
            "variational": {"n_fast": 7},
        }
    )
    reduction = VarianceReduction(n_references=64, widening=2.0)
    wide = PosteriorDraw(widening=2.0)
    assert settings.rules == (reduction, PosteriorDraw(), reduction, wide)
    assert (settings.n_active, settings.stopping.tolerance_sd) == (3, 0.2)
    assert (settings.answer, settings.evidence) == (BestBound(fraction=0.5), LowerBound())
    assert settings.variational.starts.n_per_component == 7


@pytest.mark.parametrize(
    ("old", "text"),
    [
        ({"acquisition": {"surprise": 1}}, "acquisition.surprise"),
        ({"acquisition": {}, "rules": []}, "'rules'"),
        ({"acquisition": {}, "warm_up": {"tolerance_elcbo": 2.0}}, "always 1.0 now"),
        ({"acquisition": {"rules": ["GUESS"]}}, "something else than rules"),
        ({"acquisition": {"rules": "PROSPECTIVE"}}, "something else than rules"),
        ({"acquisition": {"search": 3}}, "not an object"),
        ({"acquisition": {}, "surrogate": 3}, "'surrogate'"),
        ({"acquisition": {}, "surrogate": None}, "'surrogate'"),
        ({"acquisition": None}, "'acquisition'"),
    ],
)
def test_what_no_release_wrote_is_refused(old, text):
    with pytest.raises(MalformedError, match=text):
        settings_from_json(old)


def test_a_fingerprint_that_cannot_be_read_stays_for_the_comparison_to_name():
    odd = {"names": ["a"], "settings": {"acquisition": {"surprise": 1}}}
    assert upgraded_fingerprint(odd) == odd
    assert upgraded_fingerprint({"model": "line"}) == {"model": "line"}
