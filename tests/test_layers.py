"""A folder is a layer: it imports only folders above it in the list of ARCHITECTURE.md."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import sparing

ARCHITECTURE = Path(__file__).parent.parent / "ARCHITECTURE.md"
PACKAGE = "sparing"
# Modules of the root: everyone may import the first, nobody the others.
FOR_EVERYONE = {"errors", "readable_text"}
ROOT = FOR_EVERYONE | {"__init__", "__main__", "live", "strategies"}


def folders_in(page: str) -> list[str]:
    """The folders of the numbered list under "The house", first to last."""
    section = page.split("## The house", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in section.splitlines() if line[:1].isdigit()]
    return [row.split("`")[1].rstrip("/") for row in rows]


FOLDERS = folders_in(ARCHITECTURE.read_text())


def modules_of(root: Path) -> dict[str, Path]:
    """Dotted names of all modules below a package's folder, without the package's own name."""
    modules = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if parts[-1] == "__init__" and len(parts) > 1:
            parts = parts[:-1]
        modules[".".join(parts)] = path
    return modules


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


def rank_of(module: str, folders: list[str]) -> int | None:
    """The height of a module: those for everyone below all folders, other ones above all."""
    folder = module.split(".")[0]
    if folder in ROOT:
        return -1 if folder in FOR_EVERYONE else len(folders)
    return folders.index(folder) if folder in folders else None


def violations(root: Path, folders: list[str]) -> list[str]:
    modules = modules_of(root)
    faults = [
        f"{module} has no room: put it in a folder of ARCHITECTURE.md"
        for module in modules
        if rank_of(module, folders) is None
    ]
    graph = {module: imports_of(module, modules) for module in modules}
    for module, imported in graph.items():
        for other in sorted(imported):
            if other not in modules:
                faults.append(f"{module} imports {other}, which does not exist")
                continue
            own_rank, other_rank = rank_of(module, folders), rank_of(other, folders)
            if own_rank is not None and other_rank is not None and other_rank > own_rank:
                faults.append(f"{module} imports {other}, which stands below it in the list")
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        faults.append("imports go in a circle: " + " -> ".join(error.args[1]))
    return faults


def test_every_folder_imports_only_folders_above_it():
    faults = violations(Path(sparing.__file__).parent, FOLDERS)
    assert not faults, "\n".join(faults)


def test_every_folder_of_the_page_exists():
    root = Path(sparing.__file__).parent
    assert [folder for folder in FOLDERS if (root / folder / "__init__.py").exists()] == FOLDERS


# What a surrogate and a mixture are made of, and the one room that may look at it.
PRIVATE = {
    "surrogate": {"cholesky", "inverse_cholesky", "alpha", "hyperparameters"},
    "variational": {"scales", "lengths"},
}


def insides_touched(root: Path) -> list[str]:
    """Where a module reads what only another room may know."""
    faults = []
    for module, path in modules_of(root).items():
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Attribute) or ast.unparse(node.value) == "np.linalg":
                continue
            faults += [
                f"{module}, line {node.lineno}: .{node.attr} is the business of {room}/"
                for room, names in PRIVATE.items()
                if node.attr in names and module.split(".")[0] != room
            ]
    return faults


def test_no_other_room_looks_inside_a_surrogate_or_a_mixture():
    faults = insides_touched(Path(sparing.__file__).parent)
    assert not faults, "\n".join(faults)


def test_a_look_inside_is_noticed(tmp_path):
    root = write_package(
        tmp_path,
        {
            "vbmc/a.py": "def f(q):\n    return q.scales\n",
            "variational/b.py": "def f(q):\n    return q.scales\n",
            "plots/c.py": "L = np.linalg.cholesky(A)\nx = gp.cholesky\n",
        },
    )
    assert insides_touched(root) == [
        "plots.c, line 2: .cholesky is the business of surrogate/",
        "vbmc.a, line 2: .scales is the business of variational/",
    ]


def test_tests_stand_where_what_they_test_stands():
    own = {"benchmarks", "packaging"}
    tests = {path.parent for path in Path(__file__).parent.rglob("test_*.py")}
    names = {path.relative_to(Path(__file__).parent).parts for path in tests}
    strays = {parts[0] for parts in names if parts} - set(FOLDERS) - own
    assert not strays


def test_dir_shows_the_public_names():
    assert dir(sparing) == sorted([*sparing.__all__, "__version__"])


def write_package(root: Path, sources: dict[str, str]) -> Path:
    for name, source in sources.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return root


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ({"low/a.py": "from sparing.errors import X\n", "errors.py": ""}, []),
        (
            {"errors.py": "from sparing.low.a import X\n", "low/a.py": ""},
            ["errors imports low.a, which stands below it in the list"],
        ),
        (
            {"low/a.py": "def f():\n    import sparing.high.b\n", "high/b.py": ""},
            ["low.a imports high.b, which stands below it in the list"],
        ),
        (
            {"low/a.py": "from sparing import high\n", "high/__init__.py": ""},
            ["low.a imports high, which stands below it in the list"],
        ),
        (
            {"low/a.py": "from ..high.b import x\n", "high/b.py": ""},
            ["low.a imports high.b, which stands below it in the list"],
        ),
        ({"high/b.py": "from sparing.low.a import c\n", "low/a.py": ""}, []),
        ({"low/a.py": "import sparing\n", "__init__.py": ""},
         ["low.a imports __init__, which stands below it in the list"]),
        ({"misplaced.py": ""}, ["misplaced has no room: put it in a folder of ARCHITECTURE.md"]),
        ({"attic/a.py": ""}, ["attic.a has no room: put it in a folder of ARCHITECTURE.md"]),
        ({"errors.py": "from sparing.gone import x\n"},
         ["errors imports gone, which does not exist"]),
    ],
)  # fmt: skip
def test_the_walk_finds_what_it_should(tmp_path, sources, expected):
    assert violations(write_package(tmp_path, sources), ["low", "high"]) == expected


def test_the_walk_finds_circles_within_a_folder(tmp_path):
    root = write_package(
        tmp_path,
        {"low/a.py": "from sparing.low.b import B\n", "low/b.py": "from .a import A\n"},
    )
    (fault,) = violations(root, ["low"])
    assert fault.startswith("imports go in a circle: ")
