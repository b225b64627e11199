"""Settings of earlier releases are read as the nearest that there is."""

import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from sparing.results.files.settings_json import (
    settings_from_json,
    settings_to_json,
    upgraded_fingerprint,
)
from sparing.store.json_members import MalformedError, parse_object
from sparing.strategies import (
    BestBound,
    CompressedDepths,
    LowerBound,
    PosteriorDraw,
    SurrogatePosterior,
    ThoroughSample,
    Trusting,
    VarianceReduction,
)
from sparing.surrogate.support import StandIns
from sparing.vbmc.exploration import LookAtOnce, LookElsewhere
from sparing.vbmc.held_out import HeldOutCalibration
from sparing.vbmc.settings import Settings

SAMPLES = Path(__file__).parent / "sample"
# The defaults of before, where they are others today.
BEFORE = replace(
    Settings(),
    rules=(
        VarianceReduction(),
        PosteriorDraw(),
        VarianceReduction(),
        PosteriorDraw(widening=1.5),
    ),
    exploration=Trusting(),
    edges=StandIns(),
)
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


def stored_settings(version):
    with zipfile.ZipFile(SAMPLES / f"result-v{version}.sparing") as archive:
        return parse_object(archive.read("record.json"))["settings"]


def test_the_defaults_of_before_are_todays_but_for_rules_and_exploration():
    assert settings_from_json({"acquisition": {}}) == BEFORE


def test_the_papers_preset_of_before_is_todays():
    assert settings_from_json(PAPER) == Settings.paper()


@pytest.mark.parametrize("version", [1, 2])
def test_a_sample_has_the_defaults_of_before_but_for_what_it_changed(version):
    stored = stored_settings(version)
    settings = settings_from_json(stored)
    same = replace(
        BEFORE,
        depths=CompressedDepths(slope=0.05),
        stopping=settings.stopping,
        coordinates=settings.coordinates,
        bounded_map=settings.bounded_map,
    )
    assert settings == same
    assert settings.stopping.tolerance_sd == stored["stopping"]["tolerance_sd"]


def test_a_strategy_of_before_is_the_nearest_of_now():
    """With what means the same: 20 components of q are not 20 normals that describe a sample."""
    stored = stored_settings(2)
    assert stored["evidence"]["kind"] == "ImportanceCorrected"
    assert stored["final_fit"] == {"kind": "RicherFit", "n_components": 20}
    stored["evidence"]["calibration"]["n_draws"] = 7
    settings = settings_from_json(stored)
    calibration = HeldOutCalibration(n_draws=7)
    assert settings.evidence == SurrogatePosterior(calibration=calibration)
    assert settings.final_fit == ThoroughSample()
    assert settings.exploration == Trusting()


@pytest.mark.parametrize("strategy", [LookElsewhere, LookAtOnce])
def test_rounds_of_looks_are_no_longer_counted(strategy):
    settings = replace(Settings(), exploration=strategy(n_probes=5))
    stored = settings_to_json(settings)
    stored["exploration"]["n_rounds"] = 2
    assert settings_from_json(stored) == settings


def test_settings_of_today_are_read_as_they_are():
    for settings in (Settings(), Settings.paper(), BEFORE):
        assert settings_from_json(settings_to_json(settings)) == settings


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
        ({"acquisition": {"rules": ["GUESS"]}}, "something else than rules"),
        ({"acquisition": {"rules": "PROSPECTIVE"}}, "something else than rules"),
        ({"acquisition": {"search": 3}}, "not an object"),
        ({"acquisition": {}, "surrogate": {"prior": 3}}, "part of no object"),
        ({"acquisition": {}, "stopping": {"n_stable": "x"}}, "n_stable"),
        ({"acquisition": None}, "'acquisition'"),
        ({"acquisition": {}, "rules": []}, "'acquisition'"),
        ({"surprise": 1}, "surprise"),
        ({"evidence": {"kind": "ImportanceCorrected", "surprise": 1}}, "surprise"),
        ({"evidence": {"kind": "RicherFit"}}, "evidence.kind is 'RicherFit'"),
        ({"evidence": ["ImportanceCorrected"]}, "evidence is not an object"),
        ({"final_fit": {"kind": "RicherFit", "n_draws": "x"}}, "n_draws"),
        ({"exploration": None}, "exploration is not an object"),
    ],
)
def test_what_no_release_wrote_is_refused(old, text):
    with pytest.raises(MalformedError, match=text):
        settings_from_json(old)


def test_what_had_an_effect_in_the_first_release_only_is_passed_over():
    old = {"acquisition": {"box_margin": 2.0}, "warm_up": {"n_iterations": 9}, "whitening": {}}
    assert settings_from_json(old) == BEFORE


def test_a_fingerprint_that_cannot_be_read_stays_for_the_comparison_to_name():
    odd = {"names": ["a"], "settings": {"surprise": 1}}
    assert upgraded_fingerprint(odd) == odd
    assert upgraded_fingerprint({"model": "line"}) == {"model": "line"}
