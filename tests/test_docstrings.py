"""Everything public has a docstring with an example, and every example runs.

The example in the docstring of the package itself makes `np`, `sparing`, `problem` and `result`;
every other example begins with a copy of what it made, and with its own class or function. Lines
starting with ``>>>`` are executed in an empty folder, and what they print is compared.
"""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import pkgutil
import re
import warnings
from functools import cached_property

import pytest

import sparing

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# Public modules: all that __all__ lists, or the names given here where a module has no such list.
MODULES = {
    "sparing": None,
    "sparing.executors": None,
    "sparing.live": None,
    "sparing.plots": None,
    "sparing.problem.priors": ("Prior",),
    "sparing.report": None,
    "sparing.store": None,
    "sparing.summary": None,
    "sparing.testing": None,
}
# Public modules of small things alike: one example, in the module's docstring, shows them all.
SHOWN_TOGETHER = ("sparing.strategies",)
# Packages that raise warnings of their own, which nobody here can answer.
NOISY_PACKAGES = ("distributed", "ray")


def integrations():
    """Modules for other packages that the docstring of their package names."""
    if importlib.util.find_spec("sparing.integrations") is None:
        return []
    package = importlib.import_module("sparing.integrations")
    found = [module.name for module in pkgutil.iter_modules(package.__path__)]
    named = [name for name in found if re.search(rf"\b{name}\b", package.__doc__ or "")]
    return [f"{package.__name__}.{name}" for name in named]


def names_in(module):
    """What __all__ lists, or everything without underscore that is made in the module."""
    made_there = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    return getattr(module, "__all__", made_there)


def public_objects():
    """Classes and functions by the name a user gives them, each once."""
    found = {}
    for module_name in [*MODULES, *integrations()]:
        module = importlib.import_module(module_name)
        for name in MODULES.get(module_name) or names_in(module):
            value = getattr(module, name)
            is_new = all(value is not other for other in found.values())
            if is_new and (inspect.isclass(value) or inspect.isfunction(value)):
                found[f"{module_name}.{name}"] = value
    return found


def members(owner):
    """Public methods and properties of a class, those from other packages left out."""
    found = {}
    package = owner.__module__.split(".")[0]
    for base in [base for base in owner.__mro__ if base.__module__.split(".")[0] == package]:
        for name, value in vars(base).items():
            function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            is_member = inspect.isfunction(function) or isinstance(
                function, property | cached_property
            )
            if is_member and not name.startswith("_"):
                found.setdefault(name, function)
    return found


def is_interface(owner, member):
    """Whether there is nothing to run: a method that others write."""
    return getattr(owner, "_is_protocol", False) or getattr(member, "__isabstractmethod__", False)


def examples(value):
    """The code of a docstring's examples, empty when there are none."""
    found = doctest.DocTestParser().get_examples(inspect.getdoc(value) or "")
    return "".join(example.source for example in found)


def faults_of(name, value, methods_need_own=True):
    """What a public object lacks.

    A function and a class have an example of their own, and so have methods where they need one.
    For a property, an example in the docstring of its class does.
    """
    if not inspect.getdoc(value):
        return [f"{name} has no docstring"]
    faults = [] if examples(value) else [f"{name} has no example"]
    if not inspect.isclass(value):
        return faults
    for member_name, member in members(value).items():
        full_name = f"{name}.{member_name}"
        is_shown = examples(member) or re.search(rf"\.{member_name}\b", examples(value))
        if not inspect.getdoc(member):
            faults.append(f"{full_name} has no docstring")
        elif is_interface(value, member):
            continue
        elif methods_need_own and inspect.isfunction(member) and not examples(member):
            faults.append(f"{full_name} has no example")
        elif not is_shown:
            faults.append(f"{full_name} is in no example, its own or its class's")
    return faults


def with_examples(objects):
    """The objects and their members that have examples, by name; what is inherited, once."""
    candidates = {}
    for name, value in objects.items():
        candidates[name] = value
        own = members(value) if inspect.isclass(value) else {}
        candidates |= {f"{name}.{member_name}": member for member_name, member in own.items()}
    found = {}
    for name, value in candidates.items():
        if examples(value) and all(value is not other for other in found.values()):
            found[name] = value
    return found


def run_examples(name, value, namespace):
    """Run a docstring and return its namespace; the failure says which line printed otherwise."""
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(value), namespace, name, name, 0)
    failure = None
    try:
        doctest.DebugRunner(optionflags=OPTIONS).run(test, clear_globs=False)
    except doctest.DocTestFailure as found:
        failure = f"{name}\n{found.example.source}expected\n{found.example.want}got\n{found.got}"
    except doctest.UnexpectedException as found:
        error = found.exc_info[1]
        ours = str(getattr(error, "name", "")).startswith("sparing")
        if isinstance(error, ModuleNotFoundError | sparing.MissingExtraError) and not ours:
            pytest.skip(str(error))
        raise error from None
    if failure is not None:
        pytest.fail(failure, pytrace=False)
    return test.globs


OBJECTS = public_objects()
WITH_EXAMPLES = with_examples(OBJECTS)


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """What the example in the package's docstring makes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("package"))
        return run_examples("sparing", sparing, {"__name__": "__main__"})


@pytest.mark.parametrize("name", OBJECTS)
def test_it_is_documented_with_an_example(name):
    exported = name.removeprefix("sparing.") in sparing.__all__
    faults = faults_of(name, OBJECTS[name], methods_need_own=exported)
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_its_example_runs(name, start, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    value = OBJECTS.get(name, sparing)  # a member is reached through what there is already
    code = examples(WITH_EXAMPLES[name])
    with warnings.catch_warnings():
        if any(re.search(rf"^import {p}$|^from {p}\b", code, re.M) for p in NOISY_PACKAGES):
            warnings.simplefilter("ignore")
        run_examples(name, WITH_EXAMPLES[name], start | {value.__name__: value})


@pytest.mark.parametrize("name", SHOWN_TOGETHER)
def test_what_is_shown_together_is_documented_and_the_example_runs(name, start):
    module = importlib.import_module(name)
    assert examples(module)
    run_examples(name, module, start)
    undocumented = [item for item in module.__all__ if not inspect.getdoc(getattr(module, item))]
    assert not undocumented


class Sample:
    """A class whose members lack something.

    >>> Sample().shown
    1
    """

    @property
    def shown(self):
        """In the example of the class."""
        return 1

    @property
    def hidden(self):
        """In no example."""
        return 2

    def method(self):
        """Without one of its own."""

    def silent(self):
        return 3


def test_what_is_missing_is_found():
    assert faults_of("Sample", Sample) == [
        "Sample.hidden is in no example, its own or its class's",
        "Sample.method has no example",
        "Sample.silent has no docstring",
    ]
    assert faults_of("Sample.silent", Sample.silent) == ["Sample.silent has no docstring"]
    assert faults_of("Sample.method", Sample.method) == ["Sample.method has no example"]


def test_a_wrong_output_is_found_and_a_missing_package_is_no_failure():
    def wrong():
        """Says what is not so.

        >>> 1 + 1
        3
        """

    def needs_more():
        """Needs something that is not there.

        >>> import no_such_package
        """

    with pytest.raises(pytest.fail.Exception, match=r"1 \+ 1\s+expected\s+3\s+got\s+2"):
        run_examples("wrong", wrong, {})
    with pytest.raises(pytest.skip.Exception, match="no_such_package"):
        run_examples("needs_more", needs_more, {})
