"""What `make quick` leaves out: everything named here, and single tests marked as slow."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

# Processes, networks, other libraries, whole pages of documentation, runs from start to end.
SLOW = (
    "benchmarks",
    "executors",
    "integrations",
    "packaging",
    "plots",
    "cli",
    "report",
    "results/files/test_state_codec.py",
    "running/test_durable_runs.py",
    "running/test_inference.py",
    "running/test_noise.py",
    "running/test_reproducibility.py",
    "running/test_several_runs.py",
    "running/test_stored_run.py",
    "store/test_durability.py",
    "testing",
    "vbmc/test_bent_run.py",
    "vbmc/test_skewed_run.py",
    "vbmc/test_events.py",
    "vbmc/test_held_out_draws.py",
    "vbmc/test_two_modes.py",
    "test_docstrings.py",
    "test_documentation.py",
    "test_examples.py",
)
# Compared with scikit-learn, which has no wheels for the newest Python.
NEED_SCIKIT_LEARN = (
    "benchmarks/test_methods_process.py",
    "benchmarks/test_methods_runs.py",
    "benchmarks/test_methods_samplers.py",
    "surrogate/test_gaussian_process.py",
)
collect_ignore = [] if find_spec("sklearn") else list(NEED_SCIKIT_LEARN)


def pytest_collection_modifyitems(items):
    tests = Path(__file__).parent
    slow = [tests / name for name in SLOW]
    missing = [str(place) for place in slow if not place.exists()]
    if missing:
        raise pytest.UsageError(f"{__file__} names what is not there: {', '.join(missing)}")
    for item in items:
        if any(item.path.is_relative_to(place) for place in slow):
            item.add_marker(pytest.mark.slow)


RUN = """
import importlib, pkgutil, sys
from pathlib import Path
import sparing, sparing.kernels
from sparing.kernels import compilation

for module in pkgutil.iter_modules(sparing.kernels.__path__):
    importlib.import_module(f"sparing.kernels.{module.name}")
if len(sys.argv) > 1:
    compilation.compile_all()  # in this process, which alone has the code to look at
problem = sparing.Problem(
    lambda x: -0.5 * float((x[0] - x[1] ** 2) ** 2 / 0.3 + x[1] ** 2), [-2, -2], [2, 2]
)
result = sparing.infer(problem, seed=1, max_evaluations=25, progress=False)
print(result.log_evidence.hex(), result.elbo.hex(), *[v.hex() for v in result.posterior.mean])
if len(sys.argv) > 1:
    for kernel in compilation.kernels:
        for number, code in enumerate(kernel.inspect_llvm().values()):
            name = f"{kernel.py_func.__module__}.{kernel.py_func.__name__}.{number}.ll"
            Path(sys.argv[1], name).write_text(code)
"""


@pytest.fixture(scope="session")
def compiling_run(tmp_path_factory):
    """A run in a process that compiles all kernels, which takes half a minute.

    Its output, its code for each kernel, and another run that finds them in the cache.
    """
    cache, code = tmp_path_factory.mktemp("cache"), tmp_path_factory.mktemp("code")

    def run(*arguments, cache=cache):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
        command = [sys.executable, "-c", RUN, *arguments]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout

    output = run(str(code))
    assert any(cache.rglob("*.nbc")), "nothing was compiled into the cache"
    codes = {path.stem: path.read_text() for path in code.iterdir()}
    return SimpleNamespace(output=output, codes=codes, run_again=run)
