"""What `make quick` leaves out: everything named here, and single tests marked as slow."""

from importlib.util import find_spec
from pathlib import Path

import pytest

# Processes, networks, other libraries, whole pages of documentation, runs from start to end.
SLOW = (
    "benchmarks",
    "executors",
    "integrations",
    "kernels/test_compiled_code.py",
    "packaging",
    "plots",
    "cli",
    "report",
    "results/files/test_state_codec.py",
    "running/test_durable_runs.py",
    "running/test_inference.py",
    "running/test_noise.py",
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
