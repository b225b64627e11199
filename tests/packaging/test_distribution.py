"""Wheel and source distribution: what is in them, and that the wheel works once it is installed.

Everything is built from a copy of the sources and without the network: the build backend and the
dependencies are those of the environment that runs the tests.
"""

import email
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAME = f"{PROJECT['name']}-{PROJECT['version']}"
NOT_SOURCES = (".*", "__pycache__", "*.egg-info", "build", "dist", "output")
OPTIONAL = ("arviz", "distributed", "jinja2", "loky", "matplotlib", "mpi4py", "pandas", "ray")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("build") is None, reason="needs the package build (extra dev)"
)


def run(*command, directory):
    """What the command prints; nothing of the caller's Python settings reaches it."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=directory,
        env=inherited | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """(wheel, source distribution): the second from the sources, the first from the second."""
    sources = tmp_path_factory.mktemp("sources") / "project"
    shutil.copytree(ROOT, sources, ignore=shutil.ignore_patterns(*NOT_SOURCES))
    output = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", output, directory=sources)
    assert {path.name for path in output.iterdir()} == {
        f"{NAME}-py3-none-any.whl",
        f"{NAME}.tar.gz",
    }
    return output / f"{NAME}-py3-none-any.whl", output / f"{NAME}.tar.gz"


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """The bin directory of a new environment with the wheel, and dependencies from this one."""
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment, symlinks=True)
    base = {"base": str(environment), "platbase": str(environment)}
    binaries = Path(sysconfig.get_path("scripts", "venv", vars=base))
    options = ["--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "--python", binaries / "python", "install", *options]
    run(*pip, built[0], directory=environment)
    # Directories named in a .pth file come last, and .pth files inside them are not read: what this
    # environment has of sparing is hidden by the wheel.
    ours = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    packages = Path(sysconfig.get_path("purelib", "venv", vars=base))
    (packages / "dependencies.pth").write_text("\n".join(ours), encoding="utf-8")
    take_over_compiled_kernels(packages)
    return binaries


def take_over_compiled_kernels(packages):
    """Copy Numba's cache of the same sources: compiling again would take half a minute.

    It is keyed by the time of the source file. Where there is none, the kernels are compiled.
    """
    for cached in (ROOT / "src").rglob("*.nb[ic]"):
        place = packages / cached.relative_to(ROOT / "src")
        place.parent.mkdir(exist_ok=True)
        shutil.copy2(cached, place)
    for module in (packages / "sparing").rglob("*.py"):
        shutil.copystat(ROOT / "src" / module.relative_to(packages), module)


def package_files():
    """Every file of the package in the sources, relative to src."""
    return {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "sparing").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_is_the_package_and_its_description(built):
    with zipfile.ZipFile(built[0]) as wheel:
        names = set(wheel.namelist())
    described = {name for name in names if name.startswith(f"{NAME}.dist-info/")}
    assert names - described == package_files()
    assert f"{NAME}.dist-info/licenses/LICENSE" in described
    assert {"sparing/py.typed", "sparing/report/templates/report.html"} <= names


def test_the_source_distribution_builds_the_wheel_and_holds_no_more(built):
    with tarfile.open(built[1]) as archive:
        names = {member.name.split("/", 1)[1] for member in archive if member.isfile()}
    package = {name for name in names if name.startswith("src/sparing/")}
    assert package == {f"src/{name}" for name in package_files()}
    others = {name for name in names - package if not name.startswith("src/sparing.egg-info/")}
    assert others == {
        "CHANGELOG.md",
        "LICENSE",
        "MANIFEST.in",
        "PKG-INFO",
        "README.md",
        "pyproject.toml",
        "setup.cfg",
    }


def test_the_metadata_says_what_pyproject_says(built):
    with zipfile.ZipFile(built[0]) as wheel:
        metadata = email.message_from_bytes(wheel.read(f"{NAME}.dist-info/METADATA"))
        entry_points = wheel.read(f"{NAME}.dist-info/entry_points.txt").decode()
    assert metadata["Name"] == PROJECT["name"]
    assert metadata["Version"] == PROJECT["version"]
    assert metadata["License-Expression"] == PROJECT["license"]
    assert metadata["Requires-Python"] == PROJECT["requires-python"]
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().startswith("# sparing")
    required = [text for text in metadata.get_all("Requires-Dist") if "extra ==" not in text]
    assert sorted(required) == sorted(PROJECT["dependencies"])
    assert sorted(metadata.get_all("Provides-Extra")) == sorted(PROJECT["optional-dependencies"])
    assert re.search(r"^sparing = sparing\.cli:main$", entry_points, re.MULTILINE)


def test_the_version_is_written_in_one_place():
    literal = re.compile(rf"['\"]{re.escape(PROJECT['version'])}['\"]")
    sources = [*(ROOT / "src").rglob("*.py"), ROOT / "Makefile"]
    assert [path for path in sources if literal.search(path.read_text(encoding="utf-8"))] == []


def test_the_installed_package_imports_from_its_own_place(installed, tmp_path):
    code = f"""
        import sys, sparing
        print(sparing.__file__, sparing.__version__)
        print([name for name in {OPTIONAL} if name in sys.modules])
    """
    printed = run(installed / "python", "-W", "error", "-c", dedent(code), directory=tmp_path)
    place, loaded = printed.splitlines()
    assert place.startswith(str(installed.parent))
    assert place.endswith(f"__init__.py {PROJECT['version']}")
    assert loaded == "[]"  # what is optional is not imported, which also keeps the import short


def test_the_command_is_installed(installed, tmp_path):
    version = run(installed / "sparing", "--version", directory=tmp_path)
    assert version == f"sparing {PROJECT['version']}"


def test_the_installed_package_infers_and_reports(installed, tmp_path):
    code = """
        import sparing
        problem = sparing.Problem(lambda x: -0.5 * float(x[0]) ** 2, -2, 2)
        result = sparing.infer(problem, seed=1, max_evaluations=20, progress=False)
        print(round(result.log_evidence, 1))  # log sqrt(2 pi) = 0.919
        print(result.report("run.html").stat().st_size > 10_000)
    """
    printed = run(installed / "python", "-W", "error", "-c", dedent(code), directory=tmp_path)
    assert printed.split() == ["0.9", "True"]
