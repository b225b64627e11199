"""Settings is composed of strategies: each field has a reader, none of them is a switch."""

import ast
import dataclasses
import functools
import importlib
import math
import typing
from pathlib import Path
from types import ModuleType

import pytest

import sparing
from sparing import strategies
from sparing.acquisition.cma_es import CmaEs
from sparing.acquisition.initial_design import UniformDesign
from sparing.acquisition.rules import ALL_SAMPLES, ProspectiveSampling, UncertaintySampling
from sparing.problem.parameter_transform import BoundedMap
from sparing.surrogate.empirical_prior import EmpiricalPrior
from sparing.surrogate.map_then_slice.training import MapThenSlice
from sparing.surrogate.training_data import MeasuredValues
from sparing.variational.adam import IndependentDraws, StepsInBoxWidths
from sparing.variational.components import Growth
from sparing.variational.objective import NoPenalties
from sparing.variational.starts import RankByMonteCarlo
from sparing.variational.whitening import Unwhitened
from sparing.vbmc import answer, warm_up
from sparing.vbmc.answer import BestBound, LastFit
from sparing.vbmc.evidence import LowerBound
from sparing.vbmc.exploration import Trusting
from sparing.vbmc.posterior_error import Untested
from sparing.vbmc.settings import HyperparameterSchedule, Settings
from sparing.vbmc.warm_up import WatchingBound

SOURCE = Path(sparing.__file__).parent
ROOMS = ("surrogate", "variational", "acquisition", "vbmc")  # of strategies and their readers


def named_types(hint: object) -> set[type]:
    """Every type in an annotation, within unions and tuples too."""
    if isinstance(hint, type) and not typing.get_args(hint):
        return {hint}
    return {item for part in typing.get_args(hint) for item in named_types(part)}


@functools.cache
def field_types(owner: type) -> dict[str, set[type]]:
    """The types each field may have; of what is no dataclass, what its constructor was given."""
    if dataclasses.is_dataclass(owner):
        hints = typing.get_type_hints(owner)
        return {field.name: named_types(hints[field.name]) for field in dataclasses.fields(owner)}
    if "__init__" in vars(owner):
        hints = typing.get_type_hints(vars(owner)["__init__"])
        return {name: named_types(hint) for name, hint in hints.items()}
    return {}


def strategy_classes(root: type = Settings) -> list[type]:
    """The settings and every strategy that one may put into them."""
    found, queue = [], [root]
    while queue:
        owner = queue.pop()
        if dataclasses.is_dataclass(owner) and owner not in found:
            found.append(owner)
            queue += [item for types in field_types(owner).values() for item in types]
    return sorted(found, key=lambda owner: owner.__name__)


each_strategy = pytest.mark.parametrize("owner", strategy_classes(), ids=lambda o: o.__name__)


class Readers(ast.NodeVisitor):
    """Who reads which field, as far as annotations tell what an expression is."""

    def __init__(self, module: ModuleType, tree: ast.Module) -> None:
        self.known = vars(module)
        self.variables: dict[str, set[type]] = {}
        self.owner: type | None = None
        self.read: set[tuple[type, str]] = set()
        self.visit(tree)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outer, self.owner = self.owner, self.known.get(node.name)
        self.generic_visit(node)
        self.owner = outer

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outer = self.variables
        self.variables = dict(outer)
        for argument in [*node.args.args, *node.args.kwonlyargs]:
            self.variables[argument.arg] = self.annotated(argument)
        self.generic_visit(node)
        self.variables = outer

    def annotated(self, argument: ast.arg) -> set[type]:
        if argument.annotation is None:
            return {self.owner} if argument.arg == "self" and self.owner else set()
        try:
            return named_types(eval(ast.unparse(argument.annotation), dict(self.known)))
        except NameError:
            return set()

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        (target,) = node.targets[:1]
        pairs = [(target, node.value)]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(target.elts, node.value.elts, strict=True))
        for name, value in pairs:
            if isinstance(name, ast.Name):
                self.variables[name.id] = self.types(value)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Load):
            self.read |= {(owner, node.attr) for owner in self.types(node.value)}
        self.generic_visit(node)

    def types(self, node: ast.expr) -> set[type]:
        if isinstance(node, ast.Name):
            return self.variables.get(node.id, set())
        if isinstance(node, ast.Subscript):
            return self.types(node.value)
        if isinstance(node, ast.IfExp):
            return self.types(node.body) | self.types(node.orelse)
        if isinstance(node, ast.Attribute):
            owners = self.types(node.value)
            found = (field_types(owner).get(node.attr, set()) for owner in owners)
            return set().union(*found)
        return set()


@functools.cache
def fields_read() -> set[tuple[type, str]]:
    found: set[tuple[type, str]] = set()
    for path in sorted(path for room in ROOMS for path in (SOURCE / room).rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        module = importlib.import_module(".".join(parts))
        found |= Readers(module, ast.parse(path.read_text())).read
    return found


def unread_fields(owner: type, read: set[tuple[type, str]]) -> list[str]:
    """Fields that neither the class, nor one it inherits them from, nor another reader reads."""
    names = [field.name for field in dataclasses.fields(owner)]
    return [name for name in names if not any((base, name) in read for base in owner.__mro__)]


@each_strategy
def test_every_field_is_read(owner):
    unread = unread_fields(owner, fields_read())
    assert not unread, f"{owner.__name__} has fields nobody reads: {unread}"


@each_strategy
def test_no_boolean_and_no_word_selects_an_algorithm(owner):
    switches = {name for name, types in field_types(owner).items() if types & {bool, str}}
    assert not switches, f"{owner.__name__}: make a strategy of {sorted(switches)}"


@each_strategy
def test_strategies_are_frozen(owner):
    assert owner.__dataclass_params__.frozen  # type: ignore[attr-defined]


def test_the_walk_reaches_what_is_nested_in_unions_and_tuples():
    names = {owner.__name__ for owner in strategy_classes()}
    assert {"Settings", "CmaEs", "PosteriorDraw", "WatchingBound", "HeldOutCalibration"} <= names
    assert {"MirroredDraws", "LengthsFromPoints", "RankByMonteCarlo", "LastFit"} <= names
    public = [getattr(strategies, name) for name in strategies.__all__]
    assert {item.__name__ for item in public if dataclasses.is_dataclass(item)} <= names


MODULE = """
class Strategy:
    def method(self): return self.own
def reader(strategy: Strategy): return strategy.handed_over
def other(thing: Settings): return thing.unread
"""


def test_the_search_for_unread_fields_can_fail():
    @dataclasses.dataclass(frozen=True)
    class Strategy:
        own: int = 0
        handed_over: int = 0
        unread: int = 0  # by one who has a Strategy: that another class has such a field is nothing

    @dataclasses.dataclass(frozen=True)
    class Inherited(Strategy):
        unread_too: int = 0

    module = ModuleType("module")
    vars(module).update(Strategy=Strategy, Settings=Settings)
    read = Readers(module, ast.parse(MODULE)).read
    assert unread_fields(Strategy, read) == ["unread"]
    assert unread_fields(Inherited, read) == ["unread", "unread_too"]


def test_the_search_for_switches_can_fail():
    @dataclasses.dataclass(frozen=True)
    class Switched:
        correct: bool = True

    with pytest.raises(AssertionError, match="correct"):
        test_no_boolean_and_no_word_selects_an_algorithm(Switched)


def test_number_of_hyperparameter_samples_follows_section_3_4():
    schedule = HyperparameterSchedule.paper()
    assert [schedule.n_samples(n, searching=False) for n in (10, 100, 400)] == [25, 8, 4]
    assert schedule.n_samples(10, searching=True) == 8
    assert HyperparameterSchedule(max_samples=6).n_samples(10, searching=False) == 6
    assert schedule.n_samples(10**6, searching=False) == 1


def test_the_paper_preset_has_the_papers_constants():
    paper = Settings.paper()
    rules = (ProspectiveSampling(search=CmaEs(), n_samples=ALL_SAMPLES, variance_floor=1e-4),)
    assert paper.n_active == 5
    assert paper.rules == rules
    assert paper.warm_up == WatchingBound(rules)
    assert paper.initial_design == UniformDesign(n_points=10)
    assert paper.stopping.n_stable == 8
    assert paper.stopping.tolerance_sd == 0.1
    assert paper.stopping.tolerance_kl_factor == 0.01
    assert paper.stopping.tolerance_improvement == 0.01
    assert (paper.variational.beta_lcb, answer.BETA_LCB_UNSTABLE) == (3.0, 5.0)
    assert paper.stopping.n_recent == 4
    assert (warm_up.TOLERANCE_ELCBO, warm_up.N_ITERATIONS) == (1.0, 3)
    assert paper.warm_up.trimmed_depth == 10.0
    assert paper.surrogate == MapThenSlice(EmpiricalPrior.paper())
    assert paper.surrogate.prior.hpd_fraction == 0.8
    assert paper.coordinates == Unwhitened()
    assert paper.depths == MeasuredValues()
    assert paper.accuracy == Untested()
    assert paper.bounded_map is BoundedMap.LOGIT
    assert paper.sampling.max_samples == math.inf
    assert paper.sampling.retraining_growth == 0.0
    assert paper.final_fit == LastFit()
    assert paper.answer == BestBound()
    assert paper.evidence == LowerBound()
    assert paper.exploration == Trusting()
    assert paper.budget(6) == 400


def test_the_paper_preset_fits_as_sections_s1_1_and_s1_3_say():
    fit = Settings.paper().variational
    assert fit.ascent.draws == IndependentDraws(n_per_component=100)
    assert fit.ascent.steps == StepsInBoxWidths()
    assert (fit.ascent.rate_max, fit.ascent.max_steps(1)) == (0.01, 10_000)
    assert (fit.starts.n_per_component, fit.starts.n_per_component_at_first) == (5, 50)
    assert fit.starts.data_fraction == 0.0
    assert (fit.ranking, fit.penalties, fit.growth) == (RankByMonteCarlo(), NoPenalties(), Growth())
    assert (fit.pruning.min_weight, fit.pruning.tolerance) == (0.01, 0.01)
    assert fit.n_final_entropy_samples == 2**15


def test_vbmc_u_is_the_paper_with_the_other_rule():
    (rule,) = Settings.paper(UncertaintySampling).rules
    assert isinstance(rule, UncertaintySampling)
    assert Settings.paper(UncertaintySampling).warm_up.rules == (rule,)
