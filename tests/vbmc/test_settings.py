"""Every settings field is read somewhere, and the paper preset holds the paper's constants."""

import ast
import dataclasses
import functools
from pathlib import Path

import pytest
from sparing.acquisition.propose import Rule

import sparing
from sparing.surrogate.hyperparameters import HyperparameterInference
from sparing.vbmc.settings import HyperparameterSchedule, Settings

SOURCE = Path(sparing.__file__).parent


def settings_classes() -> list[type]:
    found: list[type] = []
    queue: list[object] = [Settings(), Settings.paper()]
    while queue:
        item = queue.pop()
        if dataclasses.is_dataclass(item) and not isinstance(item, type):
            if type(item) not in found:
                found.append(type(item))
            queue += [getattr(item, field.name) for field in dataclasses.fields(item)]
    return found


@functools.cache
def attributes_read() -> set[str]:
    names: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                names.add(node.attr)
    return names


@pytest.mark.parametrize("owner", settings_classes(), ids=lambda owner: owner.__name__)
def test_every_field_is_read(owner):
    unread = {field.name for field in dataclasses.fields(owner)} - attributes_read()
    assert not unread, f"{owner.__name__} has fields nobody reads: {sorted(unread)}"


@pytest.mark.parametrize("owner", settings_classes(), ids=lambda owner: owner.__name__)
def test_settings_are_frozen(owner):
    assert owner.__dataclass_params__.frozen  # type: ignore[attr-defined]


def test_number_of_hyperparameter_samples_follows_section_3_4():
    schedule = HyperparameterSchedule.paper()
    assert [schedule.n_samples(n, warm_up=False) for n in (10, 100, 400)] == [25, 8, 4]
    assert schedule.n_samples(10, warm_up=True) == 8


def test_the_paper_preset_has_the_papers_constants():
    paper = Settings.paper()
    assert paper.acquisition.n_active == 5
    assert paper.acquisition.rules == (Rule.PROSPECTIVE,)
    assert paper.acquisition.variance_floor == 1e-4
    assert paper.initial_design.n_points == 10
    assert paper.stopping.n_stable == 8
    assert paper.stopping.tolerance_sd == 0.1
    assert paper.stopping.tolerance_kl_factor == 0.01
    assert paper.stopping.tolerance_improvement == 0.01
    assert (paper.variational.beta_lcb, paper.stopping.beta_lcb_unstable) == (3.0, 5.0)
    assert paper.stopping.n_recent == 4
    assert (paper.warm_up.tolerance_elcbo, paper.warm_up.n_iterations) == (1.0, 3)
    assert paper.warm_up.trim_per_dimension == 10.0
    assert paper.surrogate.hpd_fraction == 0.8
    assert paper.whitening is None
    assert paper.deep_values is None
    assert paper.posterior_error is None
    assert paper.surrogate.inference is HyperparameterInference.SLICE
    assert paper.acquisition.n_climbing == paper.acquisition.n_active
    assert not paper.warm_up.watch_values
    assert paper.hyperparameters.max_samples is None
    assert paper.final_fit is None
    assert not paper.evidence.importance_correction
    assert paper.budget(6) == 400


def test_vbmc_u_is_the_paper_with_the_other_rule():
    assert Settings.paper(Rule.UNCERTAINTY).acquisition.rules == (Rule.UNCERTAINTY,)


def test_the_search_for_unread_fields_can_fail():
    @dataclasses.dataclass(frozen=True)
    class Unread:
        a_field_that_no_module_of_the_package_reads: int = 0

    with pytest.raises(AssertionError, match="a_field_that_no_module"):
        test_every_field_is_read(Unread)
