"""The variants of the ablation table: what each takes back, and nothing else."""

from dataclasses import fields

import pytest
from benchmarks.errors import BenchmarkError
from benchmarks.methods import find_method
from benchmarks.methods.base import LibraryClock
from benchmarks.methods.sparing_method import VARIANTS
from benchmarks.problems import load_problem

import sparing

PARTS = {
    "sparing": set(),
    "sparing-no-whitening": {"coordinates"},
    "sparing-no-compression": {"depths"},
    "sparing-no-final-fit": {"final_fit"},
    "sparing-no-correction": {"evidence"},
    "sparing-no-posterior-test": {"accuracy"},
    "sparing-trusting": {"exploration"},
    "sparing-paper-warm-up": {"warm_up"},
    "sparing-paper-acquisition": {"rules", "warm_up"},
    "sparing-paper-surrogate": {"surrogate"},
    "sparing-paper-variational": {"variational"},
    "sparing-paper-design": {"initial_design"},
}


def different(one, other):
    names = [field.name for field in fields(one)]
    return {name for name in names if getattr(one, name) != getattr(other, name)}


@pytest.mark.parametrize("name", PARTS)
def test_a_variant_takes_back_one_idea(name):
    assert different(VARIANTS[name](sparing), sparing.Settings()) == PARTS[name]


def test_the_papers_own_variants():
    paper = sparing.Settings.paper()
    assert VARIANTS["sparing-paper"](sparing) == paper
    assert different(VARIANTS["sparing-paper-u"](sparing), paper) == {"rules", "warm_up"}
    assert different(VARIANTS["sparing-paper-guided"](sparing), paper) == {
        "surrogate",
        "variational",
    }
    assert set(VARIANTS) - set(PARTS) == {
        "sparing-paper",
        "sparing-paper-u",
        "sparing-paper-guided",
    }


def test_the_method_with_gradients_gives_them():
    problem = load_problem("student-2-g1", None)
    called = []

    def log_joint(x):
        called.append(x)
        return problem.log_joint(x)

    clock = LibraryClock()
    run = find_method("sparing-gradients").run
    estimate = run(problem, log_joint, problem.starting_point(1), 1, 12, clock)
    assert len(called) == 12 + 1  # and the one that checks the gradient
    assert estimate.snapshots[-1].n_evaluations == 12
    lacking = load_problem("shell-2-0", None)
    with pytest.raises(BenchmarkError, match="has no gradient"):
        run(lacking, lacking.log_joint, lacking.starting_point(1), 1, 12, clock)
