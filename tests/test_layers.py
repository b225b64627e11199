"""A module imports lower layers only, and no imports go in circles."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import sparing

# From the bottom up; within a layer imports are free as long as they do not go in circles. An
# entry stands for a module or for a package with everything in it.
LAYERS = {
    "L0 foundations": "errors blas_threads random_streams linear_algebra quasi_random "
    "slice_sampling kernels",
    "L1 problem": "user_values problem_checks priors problem coordinate_maps parameter_transform",
    "L2 evaluations": "evaluation_log store",
    "L3 surrogate": "surrogate",
    "L3 variational": "variational",
    "L4 decisions": "acquisition importance evidence posterior_error diagnostics stopping "
    "whitening training_data",
    "L5 iteration": "settings posterior state step assessment final executors engine "
    "run_progress progress several_progress",
    "L5 account": "run_record summary plots report integrations",
    "L5 run": "result serialisation run_opening inference agreement diagnose several_runs run_loop "
    "independent_runs run_plan driver",
    "L6 surface": "cli demo live testing __main__ __init__ "
    "stored_run comparison calibration predictive",
}
RANKS = {name: rank for rank, names in enumerate(LAYERS.values()) for name in names.split()}
PACKAGE = "sparing"


def modules_of(root: Path) -> dict[str, Path]:
    """Dotted names of all modules below a package's folder, without the package's own name."""
    modules = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if parts[-1] == "__init__" and len(parts) > 1:
            parts = parts[:-1]
        modules[".".join(parts)] = path
    return modules


def rank_of(module: str) -> int | None:
    return RANKS.get(module.split(".")[0])


def imports_of(module: str, modules: dict[str, Path]) -> set[str]:
    """Modules of the package that this one imports, wherever in its text."""
    path = modules[module]
    # The package that a relative import starts from.
    parts = [] if module == "__init__" else module.split(".")
    package = parts if path.name == "__init__.py" else parts[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            found |= {
                name.split(".", 1)[-1] if "." in name else "__init__"
                for name in names
                if name.split(".")[0] == PACKAGE
            }
        elif isinstance(node, ast.ImportFrom):
            target = node.module.split(".") if node.module else []
            if node.level:
                target = package[: len(package) - node.level + 1] + target
            elif target and target[0] == PACKAGE:
                target = target[1:]
            else:
                continue
            for alias in node.names:
                inner = ".".join([*target, alias.name])
                found.add(inner if inner in modules else ".".join(target) or "__init__")
    return found - {module}


def violations(root: Path) -> list[str]:
    modules = modules_of(root)
    faults = [
        f"{module} is in no layer: place it in LAYERS of {Path(__file__).name}"
        for module in modules
        if rank_of(module) is None
    ]
    graph = {module: imports_of(module, modules) for module in modules}
    for module, imported in graph.items():
        for other in sorted(imported):
            if other not in modules:
                faults.append(f"{module} imports {other}, which does not exist")
                continue
            own_rank, other_rank = rank_of(module), rank_of(other)
            if own_rank is not None and other_rank is not None and other_rank > own_rank:
                faults.append(f"{module} imports {other}, which is in a higher layer")
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        faults.append("imports go in a circle: " + " -> ".join(error.args[1]))
    return faults


def test_every_module_imports_lower_layers_only():
    faults = violations(Path(sparing.__file__).parent)
    assert not faults, "\n".join(faults)


def write_package(root: Path, sources: dict[str, str]) -> Path:
    for name, source in sources.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return root


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ({"problem.py": "from sparing.errors import X\n", "errors.py": ""}, []),
        (
            {"errors.py": "from sparing.problem import Problem\n", "problem.py": ""},
            ["errors imports problem, which is in a higher layer"],
        ),
        (
            {"errors.py": "def f():\n    import sparing.problem\n", "problem.py": ""},
            ["errors imports problem, which is in a higher layer"],
        ),
        (
            {"errors.py": "from sparing import problem\n", "problem.py": ""},
            ["errors imports problem, which is in a higher layer"],
        ),
        (
            {"kernels/a.py": "from ..problem import Problem\n", "problem.py": ""},
            ["kernels.a imports problem, which is in a higher layer"],
        ),
        (
            {"surrogate/a.py": "from sparing.variational.b import c\n", "variational/b.py": ""},
            ["surrogate.a imports variational.b, which is in a higher layer"],
        ),
        ({"variational/b.py": "from sparing.surrogate.a import c\n", "surrogate/a.py": ""}, []),
        ({"errors.py": "import sparing\n", "__init__.py": ""},
         ["errors imports __init__, which is in a higher layer"]),
        ({"misplaced.py": ""}, ["misplaced is in no layer: place it in LAYERS of test_layers.py"]),
        ({"errors.py": "from sparing.gone import x\n"},
         ["errors imports gone, which does not exist"]),
    ],
)  # fmt: skip
def test_the_walk_finds_what_it_should(tmp_path, sources, expected):
    assert violations(write_package(tmp_path, sources)) == expected


def test_the_walk_finds_circles_within_a_layer(tmp_path):
    root = write_package(
        tmp_path,
        {
            "priors.py": "from sparing.problem import Problem\n",
            "problem.py": "from .priors import Prior\n",
        },
    )
    (fault,) = violations(root)
    assert fault.startswith("imports go in a circle: ")
